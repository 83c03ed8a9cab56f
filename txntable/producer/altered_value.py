"""What Arrow would take into a column, and change without a word: the part of a value of which that is so, and how.

Owns that for one record what :func:`txntable.format.conform.conform` owns for tables, by the types of Python: whatever
is taken reads back equal to what was given, at every depth.  A float is rounded to the 32 bits of its column, a number
may be given for a date or a time (days, microseconds), for Python has no type for all of them.  Pure.
"""

from __future__ import annotations

import datetime as dt
import math
import numbers
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from txntable.coordinator.error_kinds import shown
from txntable.format.near_names import column_hint

# Path of a part, its value, its type.
_Part: TypeAlias = tuple[str, Any, pa.DataType]
_BYTES = (bytes, bytearray, memoryview)
_BOOLEANS = (bool, np.bool_)
_NO_INTEGERS = (*_BOOLEANS, np.datetime64, np.timedelta64)


def alteration(value: Any, kind: pa.DataType, path: str) -> tuple[str, str] | None:
    """Return the first part of a value that Arrow takes into a type and would change; ``None``: it changes none.

    Parameters
    ----------
    value : object
        One of which Arrow makes a value of the type.
    kind : pyarrow.DataType
        A column's, or that of a part of one.
    path : str
        Where the value stands: of a column, its name.

    Returns
    -------
    tuple of (str, str) or None
        The path of the part, and why it would not be what was given.
    """
    if value is None or isinstance(value, pa.Scalar):
        # Arrow takes its own scalars where they have the type.
        return None
    reason = _of_value(value, kind, path)
    if reason is not None:
        return path, reason
    inner = (alteration(part, of, f"{path}.{name}") for name, part, of in _parts(value, kind))
    return next((each for each in inner if each is not None), None)


def _of_value(value: Any, kind: pa.DataType, path: str) -> str | None:
    if pa.types.is_struct(kind) and isinstance(value, Mapping):
        return _unknown_field(value, kind, path)
    return next((why(value, kind) for is_of, why in _CHECKS if is_of(kind)), None)


def _unknown_field(value: Mapping[Any, Any], kind: pa.DataType, path: str) -> str | None:
    known = [field.name for field in kind.fields]
    unknown = next((name for name in value if name not in known), None)
    if unknown is None:
        return None
    dropped, hint = shown(f"{path}.{unknown}"), column_hint([unknown], known)
    return f"arrow would drop {dropped}, which the topic does not have{hint}"


def _parts(value: Any, kind: pa.DataType) -> Iterable[_Part]:
    """Return the parts of a value, as Arrow finds them in it."""
    if pa.types.is_struct(kind):
        if isinstance(value, tuple):
            return [(field.name, part, field.type) for field, part in zip(kind.fields, value, strict=False)]
        pairs = value.items() if isinstance(value, Mapping) else value
        return [(name, part, kind.field(name).type) for name, part in pairs]
    if pa.types.is_list(kind):
        return [("element", part, kind.value_type) for part in value]
    if pa.types.is_map(kind):
        pairs = value.items() if isinstance(value, Mapping) else value
        sides = [("key", kind.key_type), ("value", kind.item_type)]
        return [(side, part, of) for pair in pairs for (side, of), part in zip(sides, pair, strict=True)]
    return ()


def _of_integer(value: Any, kind: pa.DataType) -> str | None:
    if isinstance(value, _NO_INTEGERS):
        return f"{_name(value)} is no integer: say the number"
    return None if value == int(value) else "arrow would cut its fraction"


def _of_float(value: Any, kind: pa.DataType) -> str | None:
    if isinstance(value, _BOOLEANS):
        return f"{_name(value)} is no number: say the number"
    if not math.isinf(value) and math.isinf(pa.scalar(value, kind).as_py()):
        return "it is beyond what the column's bits hold, and would become infinite"
    return None


def _of_text(value: Any, kind: pa.DataType) -> str | None:
    return "bytes are no text: decode them" if isinstance(value, _BYTES) else None


def _of_bytes(value: Any, kind: pa.DataType) -> str | None:
    # Arrow would take its UTF-8, which is a guess.
    return "text is no bytes: encode it" if isinstance(value, str) else None


def _of_date(value: Any, kind: pa.DataType) -> str | None:
    if isinstance(value, dt.datetime):
        return "a moment is no date, and would lose its time: give its .date()"
    return _of_count(value, dt.date, "days since 1970")


def _of_moment(value: Any, kind: pa.DataType) -> str | None:
    if not isinstance(value, dt.datetime):
        return _of_count(value, dt.datetime, "microseconds since 1970")
    if value.utcoffset() is None and kind.tz is not None:
        return "a moment without a time zone could be any: give it one, as .replace(tzinfo=datetime.UTC)"
    if value.utcoffset() is not None and kind.tz is None:
        return "the column has no time zone, and that of the moment would be lost: give it .replace(tzinfo=None)"
    # Of pandas.
    return "arrow would cut its nanoseconds: give it .floor('us')" if getattr(value, "nanosecond", 0) else None


def _of_count(value: Any, python: type, unit: str) -> str | None:
    if isinstance(value, python) or (isinstance(value, numbers.Integral) and not isinstance(value, _NO_INTEGERS)):
        return None
    return f"{_name(value)} is no {python.__name__}: give one, or an integer of {unit}"


def _of_list(value: Any, kind: pa.DataType) -> str | None:
    return f"{_name(value)} is no list: arrow would take it apart" if isinstance(value, (str, *_BYTES)) else None


def _name(value: Any) -> str:
    return type(value).__name__


_CHECKS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[Any, pa.DataType], str | None]], ...] = (
    (pa.types.is_integer, _of_integer),
    (pa.types.is_floating, _of_float),
    (pa.types.is_string, _of_text),
    (pa.types.is_binary, _of_bytes),
    (pa.types.is_date32, _of_date),
    (pa.types.is_timestamp, _of_moment),
    (pa.types.is_list, _of_list),
)
