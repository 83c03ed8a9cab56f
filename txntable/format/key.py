"""A record's key: its bytes, and the partition they lead to (PROTOCOL.md §9).

Owns which types can be keys.  Invariant: one key goes to one partition for ever, from the Python
client and from Spark, as from Kafka's own producers with the same bytes.  Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txntable.errors import InvalidRequestError, SchemaMismatchError
from txntable.format.key_encoding import EncodedKeys, encode_column, encode_composite
from txntable.format.murmur2 import murmur2, murmur2_many
from txntable.format.near_names import column_hint

_POSITIVE = 0x7FFFFFFF
_PREFIX_BYTES = 4
_NULL_PREFIX = b"\xff\xff\xff\xff"
_INTEGER_BYTES = {pa.int8(): 1, pa.int16(): 2, pa.int32(): 4, pa.int64(): 8, pa.date32(): 4}
_ACCEPTED = "string, binary, integers, boolean, date, timestamp with time zone, decimal"
# Hashing each distinct key once pays when keys repeat: judged by the head of a batch.
_SAMPLE_ROWS = 1024
_REPEATING = 4


def check_key(schema: pa.Schema, key: Sequence[str]) -> None:
    """Refuse a key that cannot choose a partition.

    Parameters
    ----------
    schema : pyarrow.Schema
        The topic's columns.
    key : sequence of str
        Names of key columns; empty: the topic has no key.

    Raises
    ------
    InvalidRequestError
        A column is missing or named twice: mend the list.
    SchemaMismatchError
        A column's type has no key bytes: choose another column.
    """
    for position, name in enumerate(key):
        if name in key[:position]:
            raise InvalidRequestError("a key column is named twice; name each once", column=name)
        if name not in schema.names:
            raise InvalidRequestError(
                "the topic has no such key column; name one of its columns" + column_hint([name], schema.names),
                column=name,
                columns=",".join(schema.names),
            )
        kind = schema.field(name).type
        if not is_key_type(kind):
            raise SchemaMismatchError(
                "a column of this type cannot be a key; choose another one",
                column=name,
                found=str(kind),
                expected=_ACCEPTED,
            )


def is_key_type(kind: pa.DataType) -> bool:
    """Return whether values of a type have key bytes."""
    return bool(
        kind in _INTEGER_BYTES
        or pa.types.is_boolean(kind)
        or _is_text_or_bytes(kind)
        or pa.types.is_decimal128(kind)
        or (pa.types.is_timestamp(kind) and kind.unit == "us" and kind.tz is not None)
    )


def _is_text_or_bytes(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
    )


def key_bytes(values: Sequence[object], types: Sequence[pa.DataType]) -> bytes | None:
    """Return the key bytes of one record.

    Parameters
    ----------
    values : sequence of object
        Of the key columns, in the order of the topic's key.
    types : sequence of pyarrow.DataType
        Their columns' types.

    Returns
    -------
    bytes or None
        ``None``: the record has no key (its only key column is null) and goes to any partition.
    """
    pieces = [_value_bytes(value, kind) for value, kind in zip(values, types, strict=True)]
    if len(pieces) == 1:
        return pieces[0]
    return b"".join(
        _NULL_PREFIX if piece is None else len(piece).to_bytes(_PREFIX_BYTES, "big") + piece for piece in pieces
    )


def _value_bytes(value: object, kind: pa.DataType) -> bytes | None:
    if value is None:
        return None
    scalar = pa.scalar(value, kind)
    if _is_text_or_bytes(kind):
        return bytes(scalar.as_buffer())
    if pa.types.is_boolean(kind):
        return b"\x01" if value else b"\x00"
    if pa.types.is_decimal128(kind):
        return _decimal_bytes(scalar)
    if pa.types.is_timestamp(kind):
        return int(scalar.value).to_bytes(8, "big", signed=True)
    number = scalar.value if pa.types.is_date32(kind) else scalar.as_py()
    return int(number).to_bytes(_INTEGER_BYTES[kind], "big", signed=True)


def _decimal_bytes(scalar: pa.Scalar) -> bytes:
    sign, digits, _ = scalar.as_py().as_tuple()
    unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
    magnitude = unscaled if unscaled >= 0 else -unscaled - 1
    return unscaled.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)


def partition_of(key: bytes, partitions: int) -> int:
    """Return the partition of a key.

    Parameters
    ----------
    key : bytes
        See :func:`key_bytes`.
    partitions : int
        How many the topic has.
    """
    return (murmur2(key) & _POSITIVE) % partitions


def partitions_of(batch: pa.RecordBatch, key: Sequence[str], partitions: int) -> pa.Int32Array:
    """Return the partition of each record of a batch.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
        Holds the key columns, with types that :func:`check_key` accepts, or dictionaries of them.
    key : sequence of str
        Names of key columns, at least one.
    partitions : int
        How many the topic has.

    Returns
    -------
    pyarrow.Int32Array
        Null: the record has no key.
    """
    columns = [batch.column(name) for name in key]
    if len(columns) > 1:
        return _map_keys(encode_composite([_decoded(column) for column in columns]), partitions)
    (column,) = columns
    if not pa.types.is_dictionary(column.type) and _repeats(column):
        column = column.dictionary_encode()
    if pa.types.is_dictionary(column.type):
        return _map_keys(encode_column(column.dictionary), partitions).take(column.indices)
    return _map_keys(encode_column(column), partitions)


def _decoded(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _repeats(column: pa.Array) -> bool:
    if not _is_text_or_bytes(column.type) or len(column) < _SAMPLE_ROWS:
        return False
    return bool(pc.count_distinct(column.slice(0, _SAMPLE_ROWS)).as_py() <= _SAMPLE_ROWS // _REPEATING)


def _map_keys(keys: EncodedKeys, partitions: int) -> pa.Int32Array:
    lengths = np.where(keys.valid, keys.lengths, 0)
    chosen = (murmur2_many(keys.data, keys.starts, lengths) & np.int32(_POSITIVE)) % np.int32(partitions)
    return pa.array(chosen.astype(np.int32), pa.int32(), mask=None if keys.valid.all() else ~keys.valid)
