"""An object as a file to read from, by ranges: a part of a large object costs that part.

Owns which ranges are asked for.  The object's size is known from the log, so opening costs no
request; an object that is gone or shorter than the log says is damage, and never fewer rows.
Must not know what the bytes mean.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Iterable

from txntable.errors import DamagedDataError
from txntable.runtime.background_thread import PATIENCE_S
from txntable.storage.object_store import ObjectStore
from txntable.storage.side_by_side import threads

WHOLE_BYTES = 4 * 1024 * 1024
"""Objects up to this size are fetched by one request."""
_TAIL_BYTES = 64 * 1024
# Ranges are asked for together where less than this is between them, up to this size each, so many at a time.
_HOLE_BYTES = 64 * 1024
_RANGE_BYTES = 32 * 1024 * 1024
_PARALLEL_RANGES = 8


def first_bytes_of(size: int) -> int:
    """Return how many bytes of an object of some size are fetched by the first request."""
    return size if size <= WHOLE_BYTES else _TAIL_BYTES


class ObjectReader(io.RawIOBase):
    """One object, open for reading at any place.

    Parameters
    ----------
    store : ObjectStore
        The store.
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
        self._held: list[tuple[int, memoryview]] = []
        self._in_use = threading.Lock()

    @property
    def first_bytes(self) -> int:
        """How many bytes :meth:`ask_first` asks for."""
        return first_bytes_of(self._size)

    def ask_first(self) -> None:
        """Fetch what is read first, by one request: all of a small object, the end of a large one."""
        self._range(max(0, self._size - 1), 1)

    def hold(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Fetch ranges, few at a time and together where they are near, and keep them instead of those held before.

        Parameters
        ----------
        ranges : iterable of (int, int)
            Start and length of each; none may reach beyond the object.
        """
        self._held = []
        if self._size <= WHOLE_BYTES:
            return
        wanted: list[list[int]] = []
        for start, length in sorted(ranges):
            end = start + length
            if end > self._size:
                raise DamagedDataError("an object's own index points behind its end", path=self._path, size=self._size)
            if wanted and start - wanted[-1][1] <= _HOLE_BYTES and end - wanted[-1][0] <= _RANGE_BYTES:
                wanted[-1][1] = max(end, wanted[-1][1])
            elif length:
                wanted.append([start, end])
        parallel = min(len(wanted), self._store.parallel_reads, _PARALLEL_RANGES)
        if parallel < 2:
            found = [self._range(start, end - start) for start, end in wanted]
        else:
            with threads(parallel) as pool:
                found = list(pool.map(lambda one: self._range(one[0], one[1] - one[0]), wanted))
        self._held = [(start, memoryview(data)) for (start, _), data in zip(wanted, found, strict=True)]

    def at(self, start: int, length: int) -> bytes | memoryview:
        """Return a part of the object: without a request, and a copy, where it is held."""
        for first, data in self._held:
            if first <= start and start + length <= first + len(data):
                return data[start - first : start - first + length]
        return self._range(start, length)

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
        return bytes(self.read_buffer(size))

    def read_buffer(self, size: int | None = -1, /) -> bytes | memoryview:
        """Return what :meth:`read` does, without a copy where it is held: Arrow asks for it, and decodes from there."""
        with self._in_use:
            if self.closed:
                raise ValueError("the object is not read any more")
            rest = max(0, self._size - self._position)
            wanted = rest if size is None or size < 0 else min(size, rest)
            if not wanted:
                return b""
            data = self.at(self._position, wanted)
            self._position += wanted
            return data

    def close(self) -> None:
        """Read no more, and wait for the request under way, for a while.

        Arrow reads ahead in threads of its own.  One that comes back from here while the interpreter ends would end
        the whole process (:mod:`txntable.runtime.background_thread`).
        """
        super().close()
        if self._in_use.acquire(timeout=PATIENCE_S):
            self._in_use.release()

    def _range(self, start: int, length: int) -> bytes:
        if self._size <= WHOLE_BYTES:
            if self._tail is None:
                # A byte more than there should be, as below: memory is bounded by what the log says.
                self._tail = self._checked(self._store.get_range(self._path, 0, self._size + 1), self._size)
            return self._tail[start : start + length]
        tail_start = self._size - _TAIL_BYTES
        if start < tail_start:
            return self._checked(self._store.get_range(self._path, start, length), length)
        if self._tail is None:
            # An object that is longer than the log says is another one.
            self._tail = self._checked(self._store.get_range(self._path, tail_start, _TAIL_BYTES + 1), _TAIL_BYTES)
        return self._tail[start - tail_start : start - tail_start + length]

    def _checked(self, data: bytes | None, length: int) -> bytes:
        if data is None or len(data) != length:
            raise DamagedDataError(
                "an object that the log names is gone or has another size; restore it from a backup",
                path=self._path,
                expected_size=self._size,
                found="nothing" if data is None else "another size",
            )
        return data
