"""One spelling of every value, for this process and for those of the engines: JSON.  Of the standard library only.

A time with a zone is in UTC; numbers that JSON does not have are texts; bytes are hex digits.
"""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any


def encode(value: Any) -> Any:
    """Return a value as JSON has it: what is equal for SQL is equal here, NaN as well."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Decimal):
        digits = f"{value:f}"
        return digits.rstrip("0").rstrip(".") if "." in digits else digits
    if isinstance(value, dt.datetime):
        return (value if value.tzinfo is None else value.astimezone(dt.UTC)).isoformat(timespec="microseconds")
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).hex()
    if isinstance(value, dict):
        return {name: encode(each) for name, each in value.items()}
    if isinstance(value, list):
        return [encode(each) for each in value]
    return value
