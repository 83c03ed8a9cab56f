"""How much memory decoding a row group takes, and what is refused before a byte of it is decoded (PROTOCOL.md §5.2).

A few hundred kilobytes can decode to terabytes: by a codec, by run lengths, by a dictionary whose one large value
is repeated.  Owns the bounds, found from the pages' own headers; what stays within them is decoded in batches that
stay within them, too.  Pure: must not know of storage, nor of what the columns mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from txntable.errors import DamagedDataError
from txntable.format.delta_types import inner_fields
from txntable.format.parquet_pages import Encoding, Page, pages_of

LARGEST_ROW_GROUP_BYTES = 1024 * 1024 * 1024
"""What all read columns of a row group may decode to.  Writers stay far below: their row groups have 64 MiB."""
BATCH_BYTES = 256 * 1024 * 1024
"""What the repeated values of one batch may decode to."""
_DICTIONARIES = (Encoding.PLAIN_DICTIONARY, Encoding.RLE_DICTIONARY)
# Bytes of a decoded value of each of Parquet's types, with what says whether it is null; texts: with their length.
_WIDTHS = {"BOOLEAN": 1, "INT32": 5, "INT64": 9, "FLOAT": 5, "DOUBLE": 9, "INT96": 13, "BYTE_ARRAY": 5}
_TEXT = "BYTE_ARRAY"
_LENGTH_BYTES = 4
# Where Arrow's name of a codec is not Parquet's in lower case.
_CODECS = {"LZ4": "lz4_raw"}


@dataclass(frozen=True, slots=True)
class Chunk:
    """Where a column of a row group lies in the file."""

    index: int
    start: int
    length: int
    codec: str


def leaf_count(kind: pa.DataType) -> int:
    """Return how many of Parquet's columns a column of a type has."""
    return sum(leaf_count(field.type) for field in inner_fields(kind)) or 1


def chunks_of(footer: pq.FileMetaData, group: int, columns: Iterable[int]) -> list[Chunk]:
    """Return where Parquet's reader looks for columns of a row group.

    Raises
    ------
    DamagedDataError
        The footer claims more than a row group can have, or what no file has.
    """
    found = []
    row_group = footer.row_group(group)
    claimed = 0
    for index in columns:
        chunk = row_group.column(index)
        start, length = chunk.data_page_offset, chunk.total_compressed_size
        if chunk.has_dictionary_page and 0 < (chunk.dictionary_page_offset or 0) < start:
            start = chunk.dictionary_page_offset
        claimed += max(chunk.total_uncompressed_size, length)
        if start < 0 or length < 0:
            raise DamagedDataError("its footer names a place below zero")
        found.append(Chunk(index, start, length, chunk.compression))
    _check_total(claimed, LARGEST_ROW_GROUP_BYTES)
    return found


def check_footer(footer: pq.FileMetaData) -> None:
    """Return when no reader will refuse a row group, by what a footer that is trusted says of its pages.

    Raises
    ------
    DamagedDataError
        A row group would decode to more than :data:`LARGEST_ROW_GROUP_BYTES`.
    """
    for group in range(footer.num_row_groups):
        row_group = footer.row_group(group)
        total = 0
        for index in range(footer.num_columns):
            chunk = row_group.column(index)
            total += chunk.total_uncompressed_size + _width(footer.schema.column(index)) * chunk.num_values
        _check_total(total, LARGEST_ROW_GROUP_BYTES)


def batch_rows(
    footer: pq.FileMetaData, chunks: Iterable[Chunk], read: Callable[[int, int], bytes | memoryview], most: int
) -> int:
    """Return of how many rows a batch of a row group may be.

    Parameters
    ----------
    footer : pyarrow.parquet.FileMetaData
        Of the file.
    chunks : iterable of Chunk
        The columns that are read, of one row group.
    read : callable
        (place, length) -> these bytes of the file.
    most : int
        The most rows of a batch.

    Raises
    ------
    DamagedDataError
        The columns would decode to more than :data:`LARGEST_ROW_GROUP_BYTES`, a value that is repeated to more than
        :data:`BATCH_BYTES`, or the pages cannot be read.
    """
    total = repeated = 0
    schema = footer.schema
    for chunk, found in _columns(chunks, read):
        column = schema.column(chunk.index)
        total += found.decoded(_width(column))
        _check_total(total, LARGEST_ROW_GROUP_BYTES)
        if column.physical_type == _TEXT:
            repeated += found.repeated(BATCH_BYTES, is_flat=column.max_repetition_level == 0)
    return max(1, min(most, BATCH_BYTES // repeated)) if repeated else most


def check_whole(
    footer: pq.FileMetaData, chunks: Iterable[Chunk], read: Callable[[int, int], bytes | memoryview], most: int
) -> int:
    """Refuse a row group that would decode to more than `most` bytes when it is read at once; return how many it would.

    Raises
    ------
    DamagedDataError
        It would, or its pages cannot be read.
    """
    total = 0
    schema = footer.schema
    for chunk, found in _columns(chunks, read):
        column = schema.column(chunk.index)
        total += found.decoded(_width(column))
        _check_total(total, most)
        if column.physical_type == _TEXT:
            found.repeated(most, is_flat=False)
    return total


def _columns(
    chunks: Iterable[Chunk], read: Callable[[int, int], bytes | memoryview]
) -> Iterator[tuple[Chunk, _Column]]:
    for chunk in chunks:
        data = memoryview(read(chunk.start, chunk.length))
        try:
            yield chunk, _Column(chunk.codec, data, list(pages_of(data)))
        except ValueError as error:
            raise DamagedDataError(f"its pages cannot be read: {error}") from error


def _width(column: pq.ColumnSchema) -> int:
    return _WIDTHS.get(column.physical_type) or int(column.length) + 1


def _check_total(total: int, most: int) -> None:
    if total > most:
        raise DamagedDataError(f"it would decode to more than can be: {total} bytes, {most} at most")


@dataclass(frozen=True, slots=True)
class _Column:
    """The pages of one column in a row group."""

    codec: str
    data: memoryview
    pages: list[Page]

    def decoded(self, width: int) -> int:
        """Return what all pages decode to, a dictionary's values counted once."""
        return sum(page.uncompressed + width * (0 if page.is_dictionary else page.values) for page in self.pages)

    def repeated(self, most: int, *, is_flat: bool) -> int:
        """Return the size of the largest value that a dictionary may repeat in every row; 0: at most `most` in all."""
        dictionary = next((page for page in self.pages if page.is_dictionary), None)
        values = sum(page.values for page in self.pages if page.encoding in _DICTIONARIES and not page.is_dictionary)
        if dictionary is None or values * dictionary.uncompressed <= most:
            return 0
        largest = self._largest(dictionary)
        if values * largest <= most:
            return 0
        if is_flat:
            return largest
        # In a list one row can have all of them, so that no batch is small enough.
        raise DamagedDataError(
            f"a value is repeated to more than can be: {values} times {largest} bytes, {most} at most"
        )

    def _largest(self, page: Page) -> int:
        """Return the size of the largest value of a dictionary: of each its length, and its bytes."""
        content: Any = self.data[page.start : page.end]
        if self.codec != "UNCOMPRESSED":
            codec = pa.Codec(_CODECS.get(self.codec, self.codec.lower()))
            content = codec.decompress(content, decompressed_size=page.uncompressed)
        content = memoryview(content)
        at = largest = 0
        while at + _LENGTH_BYTES <= len(content):
            length = int.from_bytes(content[at : at + _LENGTH_BYTES], "little")
            largest = max(largest, length)
            at += _LENGTH_BYTES + length
        return largest
