"""A column of a topic as a person types it: ``carrier string not null``, Spark SQL's names.

Owns both directions of that text.  Pure.
"""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa

from txntable.errors import SchemaMismatchError
from txntable.format.delta_types import from_delta_type, to_delta_type

_COLUMN = re.compile(
    r"\s*(?P<name>\S+)\s+(?P<type>[^\s(]+\s*(\([\d\s,]*\))?)(?P<required>\s+not\s+null)?\s*", re.IGNORECASE
)
_OTHER_NAMES = {"int": "integer", "bigint": "long", "smallint": "short", "tinyint": "byte", "real": "float"}
KNOWN_TYPES = (
    "boolean, byte, short, int, long, float, double, decimal(p,s), string, binary, date, timestamp, timestamp_ntz"
)


def column_from_text(text: str) -> pa.Field:
    """Return the column that `text` says.

    Parameters
    ----------
    text : str
        Name, type, and ``not null`` where it is required.

    Raises
    ------
    SchemaMismatchError
        It cannot be read, or there is no such type; nested ones are made with the Python client.
    """
    matched = _COLUMN.fullmatch(text)
    if matched is None:
        words = text.split(maxsplit=1)
        if len(words) == 2:
            # Of nested types, as Spark prints them, and intervals: the name of a type has spaces.
            raise _unknown_type(words[0], words[1])
        raise SchemaMismatchError(
            "a column is given as: name type, and not null where it is required", column=repr(text)
        )
    name = "".join(matched["type"].lower().split())
    try:
        kind = from_delta_type(_OTHER_NAMES.get(name, name))
    except ValueError as error:
        raise _unknown_type(matched["name"], matched["type"]) from error
    return pa.field(matched["name"], kind, nullable=matched["required"] is None)


def _unknown_type(column: str, found: str) -> SchemaMismatchError:
    return SchemaMismatchError(
        "there is no such type for a column here; take one of those known, or the Python client for nested ones",
        column=column,
        found=found.strip(),
        known=KNOWN_TYPES,
    )


def column_text(column: pa.Field) -> str:
    """Return the text that :func:`column_from_text` would read; a nested type is as Spark SQL shows it."""
    return f"{column.name} {type_name(column)}{'' if column.nullable else ' not null'}"


def type_name(column: pa.Field) -> str:
    """Return the name of a column's type: ``array<struct<key:string,value:binary>>``, as Spark SQL shows it."""
    return _shown(to_delta_type(column.type))


def _shown(kind: Any) -> str:
    if isinstance(kind, str):
        return kind
    match kind["type"]:
        case "array":
            return f"array<{_shown(kind['elementType'])}>"
        case "map":
            return f"map<{_shown(kind['keyType'])},{_shown(kind['valueType'])}>"
        case _:
            fields = ",".join(f"{each['name']}:{_shown(each['type'])}" for each in kind["fields"])
            return f"struct<{fields}>"
