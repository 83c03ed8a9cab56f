"""Decoding row groups side by side, and handing out their batches one row group after the other.

Owns the threads of one read, and how far they may be ahead of whoever takes the batches.

Invariants
----------
* Batches come in the order of the row groups; an error comes in its place, behind the batches before it.
* What is decoded and not taken yet is :data:`AHEAD_BYTES` at most, and a batch for each thread; of a row group whose
  values are large nothing is decoded ahead.
* Who stops early ends the threads: each stops at its next batch.
* The child of a fork, which has none of the threads, decodes the row groups itself, and none of their batches twice.

Must not know what a row group is read from.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field
from itertools import islice

import pyarrow as pa

from txntable.runtime.background_thread import start_in_background, threads_may_begin
from txntable.runtime.one_process import is_own

AHEAD_BYTES = 64 * 1024 * 1024
"""What may be decoded ahead of who takes the batches, of all row groups together."""
UNDER_WAY_BYTES = 64 * 1024 * 1024
"""What row groups that are begun may take in their files, unless it is one alone."""


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group to be decoded, or a whole file that is decoded in its turn.

    Attributes
    ----------
    size : int
        Bytes of the read columns in the file.
    decode : callable
        (whether by itself) -> its batches; may be called again.  By itself: no other row group is decoded meanwhile,
        so threads for its columns gain something.  ``None`` instead of a batch: those behind it are large.
    in_turn : bool
        Never ahead: by who takes the batches, when those before have been taken.
    """

    size: int
    decode: Callable[[bool], Generator[pa.RecordBatch | None, None, None]]
    in_turn: bool = False


def decoded(groups: Iterable[RowGroup], most: int) -> Generator[pa.RecordBatch, None, None]:
    """Yield the batches of row groups, in their order.

    Parameters
    ----------
    groups : iterable of RowGroup
        Asked for when there is room for them.
    most : int
        How many are decoded at once; less than 2: one after the other, without a thread.
    """
    ahead = _Ahead(iter(groups), most)
    try:
        yield from ahead.batches()
    finally:
        ahead.stop()


@dataclass(slots=True, eq=False)
class _Coming:
    """A row group that was asked for: what is decoded of it and not taken, and how many batches were."""

    group: RowGroup
    batches: deque[pa.RecordBatch] = field(default_factory=deque)
    taken: int = 0
    of_threads: bool = False
    begun: bool = False
    ended: bool = False
    error: Exception | None = None


class _Ahead:
    """The row group whose batches are taken, and those behind it."""

    def __init__(self, groups: Iterator[RowGroup], most: int) -> None:
        self._groups, self._most = groups, most if threads_may_begin() else 1
        self._next: RowGroup | None = None
        self._coming: deque[_Coming] = deque()
        self._changed = threading.Condition()
        self._bytes = 0
        self._over = False
        self._threads = 0
        self._made_in = os.getpid()

    def batches(self) -> Iterator[pa.RecordBatch]:
        while True:
            self._fill()
            if not self._coming:
                return
            first = self._coming[0]
            yield from self._taken(first) if first.of_threads else self._decoded_here(first)
            self._leave()

    def stop(self) -> None:
        """Let the threads end at their next batch."""
        if is_own(self._made_in):
            with self._changed:
                self._over = True
                self._changed.notify_all()

    def _fill(self) -> None:
        """Ask for as many row groups as fit; one alone is left to who takes it."""
        while not (self._coming and self._coming[-1].group.in_turn):
            self._next = self._next or next(self._groups, None)
            if self._next is None or not self._fits(self._next):
                break
            with self._alone():
                self._coming.append(_Coming(self._next))
            self._next = None
        if len(self._coming) > 1 and is_own(self._made_in):
            with self._changed:
                for each in self._coming:
                    each.of_threads = True
                self._changed.notify_all()
            self._start()

    def _start(self) -> None:
        while self._threads < min(self._most, len(self._coming)):
            self._threads += 1
            try:
                start_in_background("txntable-decode", self._work, self.stop)
            except RuntimeError:
                # None can be had, at the end of the process: who takes the batches decodes them.
                self.stop()

    def _alone(self) -> AbstractContextManager[object]:
        # A fork's copy of the lock may be held by a thread that is not there.
        return self._changed if is_own(self._made_in) else nullcontext()

    def _fits(self, group: RowGroup) -> bool:
        if not self._coming:
            return True
        under_way = sum(each.group.size for each in self._coming)
        # One more than are decoded: whoever is done with one goes on with it.
        room = self._most > 1 and len(self._coming) <= self._most and under_way + group.size <= UNDER_WAY_BYTES
        return room and not group.in_turn

    def _decoded_here(self, first: _Coming) -> Iterator[pa.RecordBatch]:
        with closing(first.group.decode(not first.of_threads)) as batches:
            yield from islice((batch for batch in batches if batch is not None), first.taken, None)

    def _taken(self, first: _Coming) -> Iterator[pa.RecordBatch]:
        # A fork's copy has none of the threads; and at the exit of the process they have stopped.
        while is_own(self._made_in):
            with self._changed:
                while not (first.batches or first.ended or self._over):
                    self._changed.wait()
                if not first.batches and first.ended:
                    if first.error is not None:
                        raise first.error
                    return
                if not first.batches:
                    break
                batch = first.batches.popleft()
                first.taken += 1
                self._bytes -= batch.nbytes
                self._changed.notify_all()
            yield batch
        yield from self._decoded_here(first)

    def _leave(self) -> None:
        with self._alone():
            self._coming.popleft()
        if is_own(self._made_in):
            with self._changed:
                # Which is the first now waits for no room.
                self._changed.notify_all()

    # -- of the threads -------------------------------------------------------------------------

    def _work(self) -> None:
        while (coming := self._begun()) is not None:
            error = None
            try:
                self._decode(coming)
            except Exception as found:  # noqa: BLE001  raised in its place, to who takes the batches
                error = found
            with self._changed:
                coming.ended, coming.error = not self._over, error
                self._changed.notify_all()

    def _begun(self) -> _Coming | None:
        with self._changed:
            while not self._over:
                for each in self._coming:
                    if each.of_threads and not each.begun:
                        each.begun = True
                        return each
                self._changed.wait()
            return None

    def _decode(self, coming: _Coming) -> None:
        with closing(coming.group.decode(False)) as batches:
            for batch in batches:
                with self._changed:
                    while not (self._over or self._has_room(coming, batch)):
                        self._changed.wait()
                    if self._over:
                        return
                    if batch is not None:
                        coming.batches.append(batch)
                        self._bytes += batch.nbytes
                        self._changed.notify_all()

    def _has_room(self, coming: _Coming, batch: pa.RecordBatch | None) -> bool:
        is_first = coming is self._coming[0]
        if batch is None:
            return is_first
        return self._bytes + batch.nbytes <= AHEAD_BYTES or (is_first and not coming.batches)
