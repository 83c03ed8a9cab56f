"""One spelling of every value, for this process and for those of the engines: JSON.  Of the standard library only.

A time with a zone is in UTC; numbers that JSON does not have are texts; bytes are hex digits.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any


def encode(value: Any) -> Any:
    """Return a value as JSON has it: what is equal for SQL is equal here, NaN as well."""
    return next((spell(value) for kinds, spell in _SPELLINGS if isinstance(value, kinds)), value)


def _decimal(value: Decimal) -> str:
    digits = f"{value:f}"
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def _time(value: dt.datetime) -> str:
    return (value if value.tzinfo is None else value.astimezone(dt.UTC)).isoformat(timespec="microseconds")


# A time is a date, too, and stands before it.
_SPELLINGS: tuple[tuple[type | tuple[type, ...], Callable[[Any], Any]], ...] = (
    (float, lambda value: value if math.isfinite(value) else str(value)),
    (Decimal, _decimal),
    (dt.datetime, _time),
    (dt.date, dt.date.isoformat),
    ((bytes, bytearray, memoryview), lambda value: bytes(value).hex()),
    (dict, lambda value: {name: encode(each) for name, each in value.items()}),
    (list, lambda value: [encode(each) for each in value]),
)
