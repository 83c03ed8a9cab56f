"""How large records are, for the limits that Kafka has: ``max_request_size``, ``max.message.bytes``, ``batch_size``.

Owns what counts.  The size of a record is the bytes of its values: of fixed width by their type
(a boolean 1, a decimal 16), texts and bytes by their length, lists, maps and structs by what is
in them.  Nulls, the timestamp and whatever a file adds count nothing.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Sizes = npt.NDArray[np.int64]


def value_sizes(columns: Iterable[pa.Array | pa.ChunkedArray], records: int) -> Sizes:
    """Return the size of each of some records.

    Parameters
    ----------
    columns : iterable of pyarrow.Array or pyarrow.ChunkedArray
        Of canonical types, each with `records` values.
    records : int
        How many there are.

    Returns
    -------
    numpy.ndarray of int64
        Bytes.
    """
    sizes = np.zeros(records, np.int64)
    for column in columns:
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        start = 0
        for chunk in chunks:
            sizes[start : start + len(chunk)] += _sizes(chunk)
            start += len(chunk)
    return sizes


def fixed_size(kind: pa.DataType) -> int | None:
    """Return the bytes of every value of a type; ``None``: they differ."""
    if pa.types.is_boolean(kind):
        return 1
    return kind.bit_width // 8 if pa.types.is_primitive(kind) or pa.types.is_decimal(kind) else None


def _sizes(array: pa.Array) -> Sizes | np.int64:
    kind = array.type
    fixed = fixed_size(kind)
    if fixed is not None:
        return np.int64(fixed) if not array.null_count else _valid(array) * np.int64(fixed)
    if pa.types.is_struct(kind):
        return value_sizes(array.flatten(), len(array))  # flatten: a null struct's fields are null
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        return _sizes_of_lists(array)
    return np.asarray(pc.fill_null(pc.binary_length(array), 0)).astype(np.int64)


def _sizes_of_lists(array: pa.Array) -> Sizes:
    offsets = np.asarray(array.offsets, dtype=np.int64)
    first, last = int(offsets[0]), int(offsets[-1])
    # A slice still holds the items of the whole: only those between its offsets are its own.
    parts = [array.keys, array.items] if pa.types.is_map(array.type) else [array.values]
    inside = value_sizes([part.slice(first, last - first) for part in parts], last - first)
    totals = np.concatenate([np.zeros(1, np.int64), np.cumsum(inside)])
    sizes: Sizes = totals[offsets[1:] - first] - totals[offsets[:-1] - first]
    # A null list may have items behind it that nobody sees.
    return sizes if not array.null_count else sizes * _valid(array)


def _valid(array: pa.Array) -> npt.NDArray[np.bool_]:
    return np.asarray(array.is_valid())
