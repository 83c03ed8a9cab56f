"""The bytes of key columns, for whole Arrow arrays (PROTOCOL.md §9).

Owns the translation of one array into pieces of one buffer, without a Python step per row.  The
same for one record at a time is :func:`txntable.format.key.key_bytes`: both say the same, for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from txntable.format.murmur2 import Bytes, Positions

_NULL_LENGTH = -1
_PREFIX_BYTES = 4
_DECIMAL_BYTES = 16
_BIG_ENDIAN = {1: ">i1", 2: ">i2", 4: ">i4", 8: ">i8"}


@dataclass(frozen=True, slots=True)
class EncodedKeys:
    """The key bytes of many records.

    Attributes
    ----------
    data : numpy.ndarray of uint8
        Holds all of them, in any order.
    starts, lengths : numpy.ndarray of int64
        Where each record's are.
    valid : numpy.ndarray of bool
        False: null; its start and length mean nothing.
    """

    data: Bytes
    starts: Positions
    lengths: Positions
    valid: npt.NDArray[np.bool_]


def encode_column(column: pa.Array) -> EncodedKeys:
    """Return the bytes of one key column of a type that ``check_key`` accepts."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _encode_variable(column, np.int32)
    if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        return _encode_variable(column, np.int64)
    if pa.types.is_decimal128(kind):
        return _encode_decimal(column)
    return _encode_integers(_as_integers(column), _validity(column))


def _as_integers(column: pa.Array) -> pa.Array:
    kind = column.type
    if pa.types.is_boolean(kind):
        return column.cast(pa.int8())
    if pa.types.is_date32(kind):
        return column.view(pa.int32())
    if pa.types.is_timestamp(kind):
        return column.view(pa.int64())
    return column


def encode_composite(columns: Sequence[pa.Array]) -> EncodedKeys:
    """Return the bytes of a key of several columns: for each its length in 4 bytes (-1 for null), then its bytes."""
    encoded = [encode_column(column) for column in columns]
    rows = len(columns[0])
    parts = [np.where(one.valid, one.lengths, 0) for one in encoded]
    lengths = np.full(rows, _PREFIX_BYTES * len(encoded), np.int64)
    for part in parts:
        lengths += part
    starts = np.cumsum(lengths) - lengths
    data = np.zeros(int(lengths.sum()), np.uint8)
    cursor = starts.copy()
    for one, part in zip(encoded, parts, strict=True):
        prefix = np.where(one.valid, part, _NULL_LENGTH).astype(">i4").view(np.uint8).reshape(rows, _PREFIX_BYTES)
        data[cursor[:, None] + np.arange(_PREFIX_BYTES)] = prefix
        cursor += _PREFIX_BYTES
        _copy_pieces(one, part, data, cursor)
        cursor += part
    return EncodedKeys(data, starts, lengths, np.ones(rows, np.bool_))


def _copy_pieces(source: EncodedKeys, lengths: Positions, target: Bytes, at: Positions) -> None:
    """Copy each record's bytes to its own place in `target`."""
    within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    target[np.repeat(at, lengths) + within] = source.data[np.repeat(source.starts, lengths) + within]


def _encode_variable(column: pa.Array, offset_type: type[np.int32] | type[np.int64]) -> EncodedKeys:
    valid = _validity(column)
    _, offsets_buffer, data_buffer = column.buffers()
    if len(column) == 0 or offsets_buffer is None:
        return EncodedKeys(np.zeros(0, np.uint8), np.zeros(0, np.int64), np.zeros(0, np.int64), valid)
    offsets = np.frombuffer(offsets_buffer, offset_type)[column.offset : column.offset + len(column) + 1]
    first, last = int(offsets[0]), int(offsets[-1])
    data = np.zeros(0, np.uint8) if data_buffer is None else np.frombuffer(data_buffer, np.uint8)[first:last]
    positions: Positions = offsets.astype(np.int64) - first
    lengths: Positions = positions[1:] - positions[:-1]
    return EncodedKeys(data, positions[:-1], lengths, valid)


def _encode_integers(column: pa.Array, valid: npt.NDArray[np.bool_]) -> EncodedKeys:
    values = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
    width = values.dtype.itemsize
    data = np.ascontiguousarray(values.astype(_BIG_ENDIAN[width])).view(np.uint8)
    starts = np.arange(len(column), dtype=np.int64) * width
    return EncodedKeys(data, starts, np.full(len(column), width, np.int64), valid)


def _encode_decimal(column: pa.Array) -> EncodedKeys:
    """Unscaled, big-endian, two's complement, in as few bytes as hold it (Java's ``BigInteger.toByteArray``)."""
    rows = len(column)
    stored = np.frombuffer(column.buffers()[1], np.uint8)[: (column.offset + rows) * _DECIMAL_BYTES]
    little = stored.reshape(-1, _DECIMAL_BYTES)[column.offset :]
    big = np.ascontiguousarray(little[:, ::-1])
    sign = np.where(big[:, :1] >= 128, np.uint8(255), np.uint8(0))
    # A leading byte goes when it only repeats the sign of the byte below it.
    repeats = (big[:, :-1] == sign) & ((big[:, 1:] >= 128) == (sign == 255))
    spare = np.logical_and.accumulate(repeats, axis=1).sum(axis=1).astype(np.int64)
    starts: Positions = np.arange(rows, dtype=np.int64) * _DECIMAL_BYTES + spare
    return EncodedKeys(big.reshape(-1), starts, _DECIMAL_BYTES - spare, _validity(column))


def _validity(column: pa.Array) -> npt.NDArray[np.bool_]:
    if column.null_count == 0:
        return np.ones(len(column), np.bool_)
    valid: npt.NDArray[np.bool_] = column.is_valid().to_numpy(zero_copy_only=False)
    return valid
