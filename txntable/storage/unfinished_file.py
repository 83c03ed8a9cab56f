"""One file of a local store on its way to becoming an object.

Owns the rule that such a file is opened once, by the process that made it: after a kill a left
one may be another name of a committed object, and writing to it would change that object.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

from txntable.storage.disk_errors import failing_at
from txntable.storage.system_calls import SystemCalls

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL


class UnfinishedFile:
    """A new, empty file.

    Parameters
    ----------
    calls : SystemCalls
        The disk.
    place : str
        Absolute path.

    Raises
    ------
    FileExistsError
        The name is taken; choose another.
    """

    def __init__(self, calls: SystemCalls, place: str) -> None:
        self.place = place
        self._calls = calls
        self._descriptor: int | None = calls.open(place, _CREATE)

    def write(self, data: bytes) -> None:
        """Add bytes."""
        if self._descriptor is None:
            return
        written = self._calls.write(self._descriptor, data)
        if written < len(data):
            rest = memoryview(data)[written:]
            while rest:
                rest = rest[self._calls.write(self._descriptor, rest) :]

    def seal(self, *, durable: bool) -> None:
        """Close the file, its bytes on the disk when `durable`."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            try:
                if durable:
                    self._calls.fsync(descriptor)
            finally:
                self._calls.close(descriptor)

    def remove(self) -> None:
        """Take the name away, if it is still there."""
        with contextlib.suppress(OSError):
            self.seal(durable=False)
        with contextlib.suppress(OSError):
            self._calls.unlink(self.place)


class FileSink:
    """The sink of one streamed object: a file that becomes the object when it is published."""

    def __init__(self, file: UnfinishedFile, path: str, replace: Callable[[UnfinishedFile, str], None]) -> None:
        self._file = file
        self._path = path
        self._replace = replace

    def write(self, block: bytes) -> None:
        """Add bytes."""
        with failing_at(self._path):
            self._file.write(block)

    def publish(self) -> None:
        """Make the file the object."""
        with failing_at(self._path):
            self._replace(self._file, self._path)

    def discard(self) -> None:
        """Remove the file; there is no object."""
        self._file.remove()
