"""The headers of a column's pages in a Parquet file: what decoding them will really take (PROTOCOL.md §5.2).

A footer may claim anything; a page cannot be decoded to more than its own header says, for the reader takes the
header's sizes.  Owns as much of Thrift's compact encoding as these headers need.  Pure: bytes in, numbers out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

# Fields of Parquet's PageHeader, and of the three kinds of header inside.
_UNCOMPRESSED, _COMPRESSED, _DATA, _DICTIONARY, _DATA_V2 = 2, 3, 5, 7, 8
_NUM_VALUES, _ENCODING, _ENCODING_V2 = 1, 2, 4
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _STRUCT = 1, 2, 3, 7, 8, 12
_NUMBERS = (4, 5, 6)
_DEEPEST = 8
_LARGEST_SIZE = 2**31 - 1


class Encoding(IntEnum):
    """Parquet's encodings that segments and checkpoints have; others are refused."""

    PLAIN = 0
    PLAIN_DICTIONARY = 2
    RLE = 3
    BIT_PACKED = 4
    DELTA_BINARY_PACKED = 5
    RLE_DICTIONARY = 8
    BYTE_STREAM_SPLIT = 9


@dataclass(frozen=True, slots=True)
class Page:
    """One page.

    Attributes
    ----------
    is_dictionary : bool
        Whether it is its column's dictionary.
    encoding : Encoding
        Of its values.
    values : int
        How many, nulls and what is in lists included.
    uncompressed : int
        Bytes that it is decompressed to.
    start, end : int
        Of its compressed bytes in the column's.
    """

    is_dictionary: bool
    encoding: Encoding
    values: int
    uncompressed: int
    start: int
    end: int


def pages_of(chunk: bytes | memoryview) -> Iterator[Page]:
    """Yield the pages of a column in a row group.

    Parameters
    ----------
    chunk : bytes or memoryview
        All bytes of it.

    Raises
    ------
    ValueError
        They are no pages, or of an encoding that this format does not have.
    """
    at = 0
    while at < len(chunk):
        reader = _Compact(chunk, at)
        try:
            header = reader.struct(0)
            body = header.get(_DATA) or header.get(_DATA_V2) or header.get(_DICTIONARY)
            uncompressed, compressed = header[_UNCOMPRESSED], header[_COMPRESSED]
            values = 0 if body is None else body[_NUM_VALUES]
            encoding = None if body is None else Encoding(body[_ENCODING_V2 if _DATA_V2 in header else _ENCODING])
        except (LookupError, TypeError) as error:
            raise ValueError("a page has no header") from error
        end = reader.at + compressed
        if not 0 <= values <= _LARGEST_SIZE or not 0 <= uncompressed <= _LARGEST_SIZE or not reader.at <= end:
            raise ValueError("a page has a size below zero")
        if end > len(chunk):
            raise ValueError("a page ends behind its column")
        at = end
        # Without one it is an index: nobody decodes it.
        if encoding is not None:
            yield Page(_DICTIONARY in header, encoding, values, uncompressed, reader.at, end)


class _Compact:
    """Reads Thrift's compact encoding; fields that nobody asks for are passed over."""

    def __init__(self, data: bytes | memoryview, at: int) -> None:
        self._data = data
        self.at = at

    def struct(self, depth: int) -> dict[int, Any]:
        if depth > _DEEPEST:
            raise ValueError("a page's header is too deep")
        found: dict[int, Any] = {}
        field = 0
        data = self._data
        while kind := data[self.at]:
            self.at += 1
            field = field + (kind >> 4) if kind >> 4 else self._signed()
            kind &= 15
            # Nearly all numbers have one byte or two.
            if kind in _NUMBERS and (byte := data[self.at]) < 128:
                self.at += 1
                found[field] = (byte >> 1) ^ -(byte & 1)
            else:
                found[field] = self._value(kind, depth)
        self.at += 1
        return found

    def _value(self, kind: int, depth: int) -> Any:
        if kind in _NUMBERS:
            return self._signed()
        if kind in (_TRUE, _FALSE):
            return kind == _TRUE
        if kind == _BINARY:
            length = self._varint()
            self.at += length
            return None
        if kind == _STRUCT:
            return self.struct(depth + 1)
        if kind in (_BYTE, _DOUBLE):
            self.at += 1 if kind == _BYTE else 8
            return None
        raise ValueError("a page's header has what none has")

    def _signed(self) -> int:
        number = self._varint()
        return (number >> 1) ^ -(number & 1)

    def _varint(self) -> int:
        number = shift = 0
        while True:
            byte = self._data[self.at]
            self.at += 1
            number |= (byte & 127) << shift
            if byte < 128:
                return number
            shift += 7
            if shift > 63:
                raise ValueError("a page's header has a number of more than 64 bits")
