"""A column of a topic as a person types it: ``carrier string not null``, Spark SQL's names.

Owns both directions of that text.  Pure.
"""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa

from txntable.errors import SchemaMismatchError
from txntable.format.delta_types import from_delta_type, to_delta_type

_TOKEN = re.compile(r"\s*([^\s<>,:(]+(?:\s*\([\d\s,]*\))?|[<>,:])\s*")
_DECIMAL = re.compile(r"(?:decimal|dec|numeric)(?:\((\d{1,9})(?:,(\d{1,9}))?\))?")
_MOST_DIGITS = 38
_BOUNDED_TEXT = re.compile(r"(var)?char(acter)?(\(\d*\))?")
_OTHER_NAMES = {"int": "integer", "bigint": "long", "smallint": "short", "tinyint": "byte", "real": "float"}
KNOWN_TYPES = (
    "boolean, byte, short, int, long, float, double, decimal(p,s), string, binary, date, timestamp, timestamp_ntz, "
    "array<…>, map<…,…>, struct<name:type,…>"
)


class _RefusedTypeError(ValueError):
    """A type that can be read, and that no column can have; the message has the remedy."""


def column_from_text(text: str) -> pa.Field:
    """Return the column that `text` says.

    Parameters
    ----------
    text : str
        Name, type, and ``not null`` where it is required; in a struct there is a colon behind each name.

    Raises
    ------
    SchemaMismatchError
        It cannot be read, or there is no such type.
    """
    words = text.split(maxsplit=1)
    if len(words) < 2 or words[0].endswith(":"):
        raise SchemaMismatchError(
            "a column is given as: name type, and not null where it is required", column=repr(text)
        )
    name, said = words
    tokens = _tokens(said)
    try:
        kind, nullable = _type(tokens), _is_nullable(tokens)
        if tokens:
            raise ValueError(tokens[-1])
    except (ValueError, IndexError, RecursionError) as error:
        unread = "the type of the column cannot be read; write one of those known"
        raise SchemaMismatchError(
            str(error) if isinstance(error, _RefusedTypeError) else unread,
            column=name,
            found=said.strip(),
            known=KNOWN_TYPES,
        ) from error
    return pa.field(name, kind, nullable=nullable)


def _tokens(text: str) -> list[str]:
    """Return the parts of a type, the first one last."""
    found = [match[1] for match in _TOKEN.finditer(text)]
    # What stands between two tokens belongs to no type.
    return found[::-1] if "".join("".join(found).split()) == "".join(text.split()) else []


def _type(tokens: list[str]) -> pa.DataType:
    name = "".join(tokens.pop().lower().split())
    match name:
        case "array":
            return pa.list_(pa.field("element", _behind(tokens, "<", last=True)))
        case "map":
            key = _behind(tokens, "<")
            return pa.map_(key, _behind(tokens, ",", last=True))
        case "struct":
            return pa.struct(_fields(tokens))
        case _:
            return from_delta_type(_plain_name(name))


def _plain_name(name: str) -> str:
    """Return a plain type's name in Delta's schemas; of decimals without digits Spark SQL's default."""
    if _BOUNDED_TEXT.fullmatch(name):
        raise _RefusedTypeError("text has no bound here; write STRING")
    if (decimal := _DECIMAL.fullmatch(name)) is None:
        return _OTHER_NAMES.get(name, name)
    precision, scale = int(decimal[1] or 10), int(decimal[2] or 0)
    if not 1 <= precision <= _MOST_DIGITS or scale > precision:
        raise _RefusedTypeError(
            f"a decimal has 1 to {_MOST_DIGITS} digits (precision), and at most all of them behind the point (scale); "
            "write DECIMAL(precision, scale)"
        )
    return f"decimal({precision},{scale})"


def _behind(tokens: list[str], opening: str, *, last: bool = False) -> pa.DataType:
    _take(tokens, opening)
    kind = _type(tokens)
    if last:
        _take(tokens, ">")
    return kind


def _fields(tokens: list[str]) -> list[pa.Field]:
    found: list[pa.Field] = []
    opening = "<"
    while not found or tokens[-1] == ",":
        _take(tokens, opening)
        found.append(_field(tokens))
        opening = ","
    _take(tokens, ">")
    return found


def _field(tokens: list[str]) -> pa.Field:
    if (name := tokens.pop()) in "<>,:":
        raise ValueError(name)
    if tokens[-1] == ":":
        tokens.pop()
    return pa.field(name, _type(tokens), nullable=_is_nullable(tokens))


def _is_nullable(tokens: list[str]) -> bool:
    required = [token.lower() for token in tokens[:-3:-1]] == ["not", "null"]
    if required:
        del tokens[-2:]
    return not required


def _take(tokens: list[str], wanted: str) -> None:
    if (found := tokens.pop()) != wanted:
        raise ValueError(found)


def column_text(column: pa.Field) -> str:
    """Return the text that :func:`column_from_text` reads; that elements and values are never null is left out."""
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
            return f"struct<{','.join(_shown_field(each) for each in kind['fields'])}>"


def _shown_field(field: dict[str, Any]) -> str:
    return f"{field['name']}:{_shown(field['type'])}{'' if field['nullable'] else ' not null'}"
