"""Which types become a column's type without loss: what Spark's store assignment takes and no value is changed by.

Owns the rule for values that are not nested; :mod:`txntable.format.conform` applies it at every depth.  By types alone,
so that a write is refused before it runs.  Left out on purpose: whatever depends on the values (a long as a double), on
a session's time zone (a date as a moment), or on how a value is spelled (a number as text).  Pure.
"""

from __future__ import annotations

import pyarrow as pa

from txntable.format.delta_types import TIMESTAMP_NTZ

# Bits of a number that a floating-point one keeps exactly.
_EXACT_BITS = {pa.float16(): 11, pa.float32(): 24, pa.float64(): 53}
# Digits of the largest integer, by its bits without a sign.
_DIGITS = {7: 3, 8: 3, 15: 5, 16: 5, 31: 10, 32: 10, 63: 19, 64: 20}


def widens(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether every value of one type is a value of another, wider one.

    Parameters
    ----------
    found : pyarrow.DataType
        Of what is written; not nested.
    wanted : pyarrow.DataType
        The column's, a canonical type (:mod:`txntable.format.delta_types`).
    """
    if pa.types.is_integer(found):
        return _integer_widens(found, wanted)
    if found in _EXACT_BITS and wanted in _EXACT_BITS:
        return _EXACT_BITS[found] <= _EXACT_BITS[wanted]
    if pa.types.is_decimal(found) and pa.types.is_decimal128(wanted):
        return bool(found.scale <= wanted.scale and found.precision - found.scale <= wanted.precision - wanted.scale)
    return bool(pa.types.is_date32(found) and wanted == TIMESTAMP_NTZ)


def _integer_widens(found: pa.DataType, wanted: pa.DataType) -> bool:
    bits = _magnitude_bits(found)
    if pa.types.is_integer(wanted):
        return bits <= _magnitude_bits(wanted)
    if wanted in _EXACT_BITS:
        return bits <= _EXACT_BITS[wanted]
    return bool(pa.types.is_decimal128(wanted) and _DIGITS[bits] <= wanted.precision - wanted.scale)


def _magnitude_bits(kind: pa.DataType) -> int:
    return int(kind.bit_width) - (1 if pa.types.is_signed_integer(kind) else 0)
