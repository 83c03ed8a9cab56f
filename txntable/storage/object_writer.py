"""The file that a new object is streamed into; one for all stores.

Owns when an object appears: :meth:`ObjectWriter.close` publishes; an exception inside ``with``,
:meth:`ObjectWriter.discard` and garbage collection do not.  The collector must not: Python
closes forgotten files, which would publish half an object.  After a fork both processes have the
file: only the one that made it publishes or discards.  Must not know where bytes go.
"""

from __future__ import annotations

import contextlib
import io
import os
from types import TracebackType
from typing import Any, BinaryIO, Protocol, cast

from txntable.runtime.one_process import check_own, is_own

_BUFFERED_BYTES = 1024 * 1024


class ObjectSink(Protocol):
    """Where the bytes of one new object go; called by one thread, in order."""

    def write(self, block: bytes) -> None:
        """Take the next bytes."""
        ...

    def publish(self) -> None:
        """Let the object appear, whole and durable."""
        ...

    def discard(self) -> None:
        """Forget all that was written; called once at most, also after a failed publish."""
        ...


class ObjectWriter(io.RawIOBase):
    """A file open for writing, whose object appears when it is closed.

    Parameters
    ----------
    sink : ObjectSink
        Gets blocks of 1 MiB or more, a smaller one at the end.
    """

    def __init__(self, sink: ObjectSink) -> None:
        super().__init__()
        self._made_in = os.getpid()
        self._sink = sink
        self._blocks: list[bytes] = []
        self._buffered = 0
        self._position = 0

    def writable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return how many bytes were written."""
        return self._position

    def write(self, data: Any, /) -> int:
        """Add bytes and return their number.

        Raises
        ------
        StoreUnavailableError
            The bytes could not be passed on; discard the object.
        """
        if self.closed:
            raise ValueError("write to closed file")
        check_own("an object being written", self._made_in)
        block = data if isinstance(data, bytes) else bytes(memoryview(data).cast("B"))
        self._blocks.append(block)
        self._buffered += len(block)
        self._position += len(block)
        if self._buffered >= _BUFFERED_BYTES:
            self._drain()
        return len(block)

    def close(self) -> None:
        """Publish the object; a second call does nothing.

        Raises
        ------
        StoreUnavailableError
            It is not known whether the object appeared.
        """
        if self.closed:
            return
        try:
            check_own("an object being written", self._made_in)
            self._drain()
            self._sink.publish()
        except BaseException:
            self.discard()
            raise
        super().close()

    def discard(self) -> None:
        """Close without publishing; does nothing once closed."""
        if self.closed:
            return
        super().close()
        self._blocks.clear()
        if is_own(self._made_in):
            self._sink.discard()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Publish, or discard after an exception."""
        if kind is None:
            self.close()
        else:
            self.discard()

    def __del__(self) -> None:
        """Discard what nobody closed."""
        # also reached when __init__ itself failed, or at exit with half the modules gone
        with contextlib.suppress(Exception):
            self.discard()

    def _drain(self) -> None:
        blocks, self._blocks, self._buffered = self._blocks, [], 0
        if blocks:
            self._sink.write(blocks[0] if len(blocks) == 1 else b"".join(blocks))


def open_writer(sink: ObjectSink) -> BinaryIO:
    """Return a file over `sink`, as :meth:`ObjectStore.writer` promises it."""
    return cast(BinaryIO, ObjectWriter(sink))
