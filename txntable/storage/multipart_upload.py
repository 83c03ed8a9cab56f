"""One object on its way to a remote store, part by part, in bounded memory.

obstore's own writer cannot be abandoned: its parts would stay in the bucket, unseen and paid
for.  Its ``put`` of an iterator can: when the iterator raises, the upload is aborted.  So a
thread runs that ``put``, and :meth:`MultipartUpload.write` hands it the parts.  An object of
less than one part is one plain PUT without a thread.

Memory: at most 2 parts waiting, 4 in flight, one filling.
"""

from __future__ import annotations

import functools
import threading
from collections import deque
from collections.abc import Callable, Iterator

from txntable.runtime.background_thread import start_in_background

PART_BYTES = 8 * 1024 * 1024
PARTS_IN_FLIGHT = 4
_PARTS_WAITING = 2


class _DiscardedError(Exception):
    """Raised inside obstore's ``put`` to make it abort the upload."""


class _Parts:
    """Parts passed from the writing thread to the uploading one."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[bytes] = deque()
        self._ended = False
        self._discarded = False
        self._failure: BaseException | None = None

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._ended or self._discarded)
            if self._discarded:
                raise _DiscardedError
            if not self._waiting:
                raise StopIteration
            part = self._waiting.popleft()
            self._changed.notify_all()
            return part

    def put(self, part: bytes) -> None:
        with self._changed:
            self._changed.wait_for(lambda: len(self._waiting) < _PARTS_WAITING or self._failure is not None)
            if self._failure is not None:
                raise self._failure
            self._waiting.append(part)
            self._changed.notify_all()

    def end(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def discard(self) -> None:
        with self._changed:
            self._discarded = True
            self._changed.notify_all()

    def fail(self, failure: BaseException) -> None:
        with self._changed:
            self._failure = failure
            self._changed.notify_all()

    def raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure


class MultipartUpload:
    """The sink of one streamed object.

    Parameters
    ----------
    put_whole : Callable
        Puts an object by one request.
    put_parts : Callable
        Puts an object from an iterator of parts, aborting when it raises.
    """

    def __init__(self, put_whole: Callable[[bytes], None], put_parts: Callable[[Iterator[bytes]], None]) -> None:
        self._put_whole = put_whole
        self._put_parts = put_parts
        self._blocks: list[bytes] = []
        self._size = 0
        self._parts: _Parts | None = None
        self._thread: threading.Thread | None = None

    def write(self, block: bytes) -> None:
        """Take the next bytes; waits while too many are under way."""
        self._blocks.append(block)
        self._size += len(block)
        if self._size >= PART_BYTES:
            self._start().put(self._take())

    def publish(self) -> None:
        """Send the rest and complete the upload."""
        if self._parts is None or self._thread is None:
            self._put_whole(self._take())
            return
        if self._size:
            self._parts.put(self._take())
        self._parts.end()
        self._thread.join()
        self._parts.raise_failure()

    def discard(self) -> None:
        """Abort the upload and wait until that is done."""
        self._blocks.clear()
        if self._parts is not None and self._thread is not None:
            self._parts.discard()
            if self._thread is not threading.current_thread():  # the collector may run in any thread
                self._thread.join()

    def _take(self) -> bytes:
        data = self._blocks[0] if len(self._blocks) == 1 else b"".join(self._blocks)
        self._blocks.clear()
        self._size = 0
        return data

    def _start(self) -> _Parts:
        if self._parts is None:
            self._parts = parts = _Parts()
            upload = functools.partial(_upload, self._put_parts, parts)
            self._thread = start_in_background("txntable-upload", upload, parts.discard)
        return self._parts


def _upload(put_parts: Callable[[Iterator[bytes]], None], parts: _Parts) -> None:
    try:
        put_parts(parts)
    except BaseException as failure:  # noqa: BLE001  handed to the writing thread, which raises it
        parts.fail(failure)
