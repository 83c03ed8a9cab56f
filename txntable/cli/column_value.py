"""A value of a column as JSON has it, read strictly: the way back from :func:`txntable.cli.output.json_value`.

Owns which JSON stands for which type.  Invariant: nothing is rounded, cut or guessed; what is not
exactly a value of the column's type is refused with a ``ValueError`` that says why.  Pure; must
not know of files or topics.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
import struct
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from enum import Enum
from functools import partial
from typing import Any

import pyarrow as pa

from txntable.format.delta_types import TIMESTAMP, TIMESTAMP_NTZ

Reader = Callable[[Any], Any]

LONGEST_SHOWN = 80
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "infinity": math.inf, "-inf": -math.inf, "-infinity": -math.inf}
# Python would drop the seventh digit and those after it without a word.
_FINER_THAN_MICROSECONDS = re.compile(r"[.,]\d{6}\d*[1-9]")


class BytesForm(Enum):
    """How bytes stand in a text."""

    TEXT = "text"
    """The text's own bytes, in UTF-8."""
    BASE64 = "base64"
    """As JSON answers of the command line print them."""


def parse_json(text: str) -> Any:
    """Return what a JSON text says, numbers with a fraction as :class:`decimal.Decimal`.

    Raises
    ------
    ValueError
        It is no JSON, or an object has a name twice.
    """
    try:
        return json.loads(text, parse_float=Decimal, object_pairs_hook=_object)
    except RecursionError as error:
        raise ValueError("the JSON is nested too deeply") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"a JSON object has a name twice: {next(n for n in names if names.count(n) > 1)}")
    return found


def shown(value: object) -> str:
    """Return a value as messages show it: short, in one line."""
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1]}…"


def value_reader(field: pa.Field, bytes_form: BytesForm) -> Reader:
    """Return what turns a value parsed from JSON into one of a column.

    Parameters
    ----------
    field : pyarrow.Field
        The column, of a canonical type.
    bytes_form : BytesForm
        How binary columns stand in the JSON.

    Returns
    -------
    callable
        Parsed JSON -> what pyarrow takes for the type; raises ``ValueError`` with the reason.
    """
    read = _type_reader(field.type, bytes_form)

    def read_or_null(value: Any) -> Any:
        if value is not None:
            return read(value)
        if not field.nullable:
            raise ValueError("missing or null, where a value is required")
        return None

    return read_or_null


def read_fields(readers: Mapping[str, Reader], found: Any) -> dict[str, Any]:
    """Return the fields of a JSON object by name; one that is not there counts as null.

    Raises
    ------
    ValueError
        It is no object, has an unknown name, or a value does not fit; the message names the field.
    """
    if not isinstance(found, dict):
        raise _unfit("an object", found)
    if unknown := [name for name in found if name not in readers]:
        raise ValueError(f"unknown: {', '.join(unknown)}; known: {', '.join(readers)}")
    values = {}
    for name, read in readers.items():
        try:
            values[name] = read(found.get(name))
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
    return values


def headers_reader(bytes_form: BytesForm) -> Reader:
    """Return what reads a record's headers: an object, pairs, or objects with key and value."""
    bytes_reader = value_reader(pa.field("value", pa.binary()), bytes_form)

    def read(found: Any) -> list[dict[str, Any]] | None:
        if found is None:
            return None
        return [{"key": _string(name), "value": bytes_reader(value)} for name, value in _header_pairs(found)]

    return read


def _header_pairs(found: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(found, dict):
        return found.items()
    pairs = []
    for header in found if isinstance(found, list) else [found]:
        if isinstance(header, dict) and set(header) == {"key", "value"}:
            pairs.append((header["key"], header["value"]))
        elif isinstance(header, list) and len(header) == 2:
            pairs.append((header[0], header[1]))
        else:
            raise _unfit("an object of headers, or a list of pairs", header)
    return pairs


def _unfit(expected: str, found: Any) -> ValueError:
    return ValueError(f"expected {expected}, found {shown(found)}")


def _type_reader(kind: pa.DataType, bytes_form: BytesForm) -> Reader:
    if kind in _READERS:
        return _READERS[kind]
    if pa.types.is_integer(kind):
        return partial(_integer, kind)
    if pa.types.is_decimal(kind):
        return partial(_decimal, kind)
    if pa.types.is_binary(kind):
        return _text_bytes if bytes_form is BytesForm.TEXT else _base64_bytes
    return _nested_reader(kind, bytes_form)


def _nested_reader(kind: pa.DataType, bytes_form: BytesForm) -> Reader:
    if pa.types.is_struct(kind):
        return partial(read_fields, {field.name: value_reader(field, bytes_form) for field in kind.fields})
    if pa.types.is_map(kind):
        return partial(
            _map, value_reader(kind.key_field, bytes_form), value_reader(kind.item_field, bytes_form), kind.key_type
        )
    return partial(_list, value_reader(kind.value_field, bytes_form))


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _unfit("true or false", value)
    return value


def _integer(kind: pa.DataType, value: Any) -> int:
    if type(value) is not int:
        raise _unfit("an integer", value)
    limit = 1 << (kind.bit_width - 1)
    if not -limit <= value < limit:
        raise _unfit(str(kind), value)
    return value


def _double(value: Any) -> float:
    if isinstance(value, str) and value.lower() in _NOT_FINITE:
        return _NOT_FINITE[value.lower()]
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise _unfit("a number", value)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if math.isinf(number) and not isinstance(value, float):
        raise _unfit("a number that a double holds", value)
    return number


def _float(value: Any) -> float:
    number = _double(value)
    try:
        struct.pack("<f", number)
    except OverflowError as error:
        raise _unfit("a number that a float holds", value) from error
    return number


def _decimal(kind: pa.DataType, value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        raise _unfit(f"a decimal of {kind}, as a number or as text", value)
    try:
        number = Decimal(value)
        pa.scalar(number, kind)
    except (InvalidOperation, pa.ArrowInvalid) as error:
        raise _unfit(f"a decimal that fits {kind}", value) from error
    return number


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise _unfit("text", value)
    # JSON can name half a character, which UTF-8 cannot hold.
    value.encode()
    return value


def _text_bytes(value: Any) -> bytes:
    return _string(value).encode()


def _base64_bytes(value: Any) -> bytes:
    try:
        return base64.b64decode(_string(value), validate=True)
    except binascii.Error as error:
        raise _unfit("base64", value) from error


def _date(value: Any) -> date:
    try:
        return date.fromisoformat(_string(value))
    except ValueError as error:
        raise _unfit("a date as in 2026-11-20", value) from error


def _timestamp(value: Any) -> datetime:
    found = _datetime(value)
    if found is None or found.tzinfo is None:
        raise _unfit("a time with its offset as in 2026-11-20T08:30:00.000001Z", value)
    return found


def _timestamp_ntz(value: Any) -> datetime:
    found = _datetime(value)
    if found is None or found.tzinfo is not None:
        raise _unfit("a time without an offset as in 2026-11-20T08:30:00.000001", value)
    return found


def _datetime(value: Any) -> datetime | None:
    if not isinstance(value, str) or _FINER_THAN_MICROSECONDS.search(value):
        return None
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return None


def _list(read: Reader, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise _unfit("a list", value)
    return [read(element) for element in value]


def _map(read_key: Reader, read_item: Reader, key_type: pa.DataType, value: Any) -> list[tuple[Any, Any]]:
    if isinstance(value, dict) and pa.types.is_string(key_type):
        value = [[name, item] for name, item in value.items()]
    if not isinstance(value, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in value):
        raise _unfit("a list of pairs, or an object where keys are text", value)
    return [(read_key(key), read_item(item)) for key, item in value]


_READERS: dict[pa.DataType, Reader] = {
    pa.bool_(): _boolean,
    pa.float32(): _float,
    pa.float64(): _double,
    pa.string(): _string,
    pa.date32(): _date,
    TIMESTAMP: _timestamp,
    TIMESTAMP_NTZ: _timestamp_ntz,
}
