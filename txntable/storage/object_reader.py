"""An object as a file to read from, by ranges: a part of a large object costs that part.

Owns which ranges are asked for.  The object's size is known from the log, so opening costs no
request; an object that is gone or shorter than the log says is damage, and never fewer rows.
Must not know what the bytes mean.
"""

from __future__ import annotations

import io

from txntable.errors import DamagedDataError
from txntable.storage.object_store import ObjectStore

WHOLE_BYTES = 4 * 1024 * 1024
"""Objects up to this size are fetched by one request."""
_TAIL_BYTES = 64 * 1024


class ObjectReader(io.RawIOBase):
    """One object, open for reading at any place.

    Parameters
    ----------
    store : ObjectStore
        The door.
    path : str
        The object.
    size : int
        Bytes, as the log says.

    Raises
    ------
    DamagedDataError
        On reading: the object is gone, or has another size.
    StoreUnavailableError
        On reading: try again.
    """

    def __init__(self, store: ObjectStore, path: str, size: int) -> None:
        super().__init__()
        self._store, self._path, self._size = store, path, size
        self._position = 0
        # The footer is read in small pieces from the end: they come with one request.
        self._tail: bytes | None = None

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def size(self) -> int:
        """Return the size; Arrow asks for it."""
        return self._size

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Go to a position and return it."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, base + offset)
        return self._position

    def read(self, size: int | None = -1, /) -> bytes:
        """Return the next bytes, all that was asked for where the object has them."""
        rest = max(0, self._size - self._position)
        wanted = rest if size is None or size < 0 else min(size, rest)
        if not wanted:
            return b""
        data = self._range(self._position, wanted)
        self._position += wanted
        return data

    def _range(self, start: int, length: int) -> bytes:
        if self._size <= WHOLE_BYTES:
            if self._tail is None:
                self._tail = self._fetch_whole()
            return self._tail[start : start + length]
        tail_start = self._size - _TAIL_BYTES
        if start < tail_start:
            return self._fetch(start, length)
        if self._tail is None:
            # A byte more than there should be: an object that is longer is another one.
            self._tail = self._checked(self._store.get_range(self._path, tail_start, _TAIL_BYTES + 1), _TAIL_BYTES)
        return self._tail[start - tail_start : start - tail_start + length]

    def _fetch_whole(self) -> bytes:
        found = self._store.get(self._path)
        return self._checked(None if found is None else found.data, self._size)

    def _fetch(self, start: int, length: int) -> bytes:
        return self._checked(self._store.get_range(self._path, start, length), length)

    def _checked(self, data: bytes | None, length: int) -> bytes:
        if data is None or len(data) != length:
            raise DamagedDataError(
                "an object that the log names is gone or has another size; restore it from a backup",
                path=self._path,
                expected_size=self._size,
                found="nothing" if data is None else "another size",
            )
        return data
