"""Small Parquet files that decode to very much, and a footer that lies about it."""

from __future__ import annotations

import datetime as dt
import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

MOMENT = dt.datetime(2013, 1, 1, tzinfo=dt.UTC)


def parquet(table: pa.Table, **options: Any) -> bytes:
    """Return the bytes of a file."""
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", write_page_checksum=True, **options)
    return sink.getvalue()


def repeated(value: str, rows: int) -> pa.DictionaryArray:
    """A column of one value, which a file holds once."""
    zeros = pa.repeat(pa.scalar(0, pa.int32()), rows)
    return pa.DictionaryArray.from_arrays(zeros, pa.array([value]))


def segment(column: pa.Array, **options: Any) -> bytes:
    """A file like a segment of a topic with the column ``v``."""
    rows = len(column)
    table = pa.table(
        {
            "v": column,
            "_offset_delta": pa.array(range(rows), pa.int64()),
            "_timestamp": pa.repeat(pa.scalar(MOMENT, pa.timestamp("us", "UTC")), rows),
        }
    )
    return parquet(table, **options)


def plain_bomb(size: int) -> bytes:
    """One value of zeros, compressed; its footer says how large it is."""
    return segment(pa.array(["\0" * size]), use_dictionary=False, write_statistics=False)


def repeating_bomb(size: int, rows: int) -> bytes:
    """One large value, repeated by a run length."""
    return segment(repeated("x" * size, rows), row_group_size=rows, write_statistics=False)


def list_bomb(size: int, times: int) -> bytes:
    """One record with a list of one large value, repeated by a run length."""
    whole = pa.ListArray.from_arrays(pa.array([0, times], pa.int32()), repeated("x" * size, times))
    return segment(whole, row_group_size=1, write_statistics=False)


def lying(data: bytes, column: int = 0) -> bytes:
    """Return a file whose footer says of a column that it is small."""
    chunk = pq.read_metadata(io.BytesIO(data)).row_group(0).column(column)
    said = _varint(chunk.total_uncompressed_size)
    length = int.from_bytes(data[-8:-4], "little")
    footer = data[-8 - length : -8]
    assert said in footer
    # As long as before: a number may be written with leading zeros.
    small = bytes([0x80 | 100, *[0x80] * (len(said) - 2), 0])
    return data[: -8 - length] + footer.replace(said, small) + data[-8:]


def _varint(number: int) -> bytes:
    zigzag, found = number << 1, bytearray()
    while zigzag > 127:
        found.append(0x80 | zigzag & 127)
        zigzag >>= 7
    return bytes([*found, zigzag])
