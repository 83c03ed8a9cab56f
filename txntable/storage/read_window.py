"""Reading objects one after the other while the next ones are on their way.

Owns what is under way at once: so many objects, and so many bytes of them.  Of a small object that is all of it, of
a large one its end; the rest of it is read when it is its turn.

Invariants
----------
* Objects are handed out in the order in which they were asked for.
* A request that fails ahead of its turn is nobody's failure.  It is made once, and what it was for is asked for again
  by the reader itself, in its turn: so errors, and the time for which a call tries again, are those of a read without
  a window, and no thread tries on for a caller that has given up.
* Who stops early leaves nothing to be asked for: requests that have not begun are cancelled, and of those under way
  the answer is dropped.

Must not know what the bytes mean.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass

from txntable.runtime.background_thread import PATIENCE_S
from txntable.runtime.environment import SystemEnvironment
from txntable.runtime.one_process import is_own
from txntable.storage.object_reader import ObjectReader
from txntable.storage.object_store import ObjectStore
from txntable.storage.retries import ending_within

WINDOW_BYTES = 32 * 1024 * 1024
WINDOW_OBJECTS = 32
"""Of small segments more at once gain nothing: they wait to be decoded."""


@dataclass(frozen=True, slots=True)
class ReadWindow:
    """How much may be under way at once; no more objects than :data:`WINDOW_OBJECTS`.

    Attributes
    ----------
    bytes : int
        Of what was asked for and is not done with; one object is always asked for.
    pool : Executor, optional
        Makes the requests; ``None``: threads of the read's own, which end with it.
    """

    bytes: int = WINDOW_BYTES
    pool: Executor | None = None


def readers_ahead(
    store: ObjectStore, objects: Iterable[tuple[str, int]], window: ReadWindow | None = None
) -> Generator[ObjectReader, None, None]:
    """Yield a reader of each object, in their order; who asks for the next one is done with the one before.

    Parameters
    ----------
    store : ObjectStore
        Where they are.
    objects : iterable of (str, int)
        Path of each, and its size in bytes, as the log says.
    window : ReadWindow, optional
        What is under way meanwhile; ``None``: nothing.
    """
    readers = (ObjectReader(store, path, size) for path, size in objects)
    if window is None or store.parallel_reads < 2:
        yield from readers
        return
    under_way = _UnderWay(readers, window, min(store.parallel_reads, WINDOW_OBJECTS))
    try:
        while (reader := under_way.first()) is not None:
            yield reader
            under_way.leave()
    finally:
        under_way.end()


@dataclass(slots=True)
class _Coming:
    reader: ObjectReader
    request: Future[None] | None = None


class _UnderWay:
    """The object that is read, and those that were asked for meanwhile."""

    def __init__(self, readers: Iterator[ObjectReader], window: ReadWindow, most: int) -> None:
        self._readers, self._window, self._most = readers, window, most
        self._next = next(readers, None)
        self._coming: deque[_Coming] = deque()
        self._bytes = 0
        self._own_pool: ThreadPoolExecutor | None = None
        self._made_in = os.getpid()

    def first(self) -> ObjectReader | None:
        """Return the first object, of which the first bytes are there or are the reader's to ask for."""
        self._fill()
        if not self._coming:
            return None
        request = self._coming[0].request
        # A fork's copy has none of the threads: it hears from the store itself.
        if request is not None and is_own(self._made_in):
            with suppress(CancelledError):
                request.exception()
        return self._coming[0].reader

    def leave(self) -> None:
        self._bytes -= self._coming.popleft().reader.first_bytes

    def _fill(self) -> None:
        while self._next is not None and self._fits(self._next):
            self._coming.append(_Coming(self._next))
            self._bytes += self._next.first_bytes
            self._next = next(self._readers, None)
        # One alone gains nothing by a thread.
        if len(self._coming) > 1 and is_own(self._made_in):
            for each in self._coming:
                if each.request is None:
                    # Threads cannot be had at the end of the process: each is asked for in its turn.
                    with suppress(RuntimeError):
                        each.request = self._pool().submit(_ask_once, each.reader)

    def _fits(self, reader: ObjectReader) -> bool:
        room = len(self._coming) < self._most and self._bytes + reader.first_bytes <= self._window.bytes
        return room or not self._coming

    def _pool(self) -> Executor:
        if self._window.pool is not None:
            return self._window.pool
        if self._own_pool is None:
            self._own_pool = ThreadPoolExecutor(self._most, "txntable-read")
        return self._own_pool

    def end(self) -> None:
        if not is_own(self._made_in):
            return
        requests = [each.request for each in self._coming if each.request is not None]
        begun = [request for request in requests if not request.cancel()]
        if self._own_pool is not None:
            self._own_pool.shutdown(wait=False, cancel_futures=True)
            # A store that does not answer holds nobody up for long: the thread then ends after its request.
            if not wait(begun, PATIENCE_S).not_done:
                self._own_pool.shutdown()


def _ask_once(reader: ObjectReader) -> None:
    # Not for as long as the caller would: that asks again.
    with ending_within(SystemEnvironment(), 0):
        reader.ask_first()
