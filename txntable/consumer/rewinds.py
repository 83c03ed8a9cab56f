"""When a consumer has gone back in everything that it is assigned: by that it gives up what it was handed before.

Owns what going back is: to what is committed, as far as that is known, or to the first record that was handed out
since, or before.  A partition that was gained begins there.  Must not know why: whether a transaction was aborted
before, its producer knows (:mod:`txntable.producer.lost_readings`).  Pure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable

from txntable.coordinator.group_request import Rewind
from txntable.format.records import TopicPartition
from txntable.runtime.process_order import next_in_order

REMEMBERED = 256


class Rewinds:
    """The rewinds of one consumer.

    Parameters
    ----------
    now : callable
        Returns the number of what happens now, in the order of the process.

    Attributes
    ----------
    found : deque of Rewind
        Those of all that was assigned by then, in their order; of one that goes on and on, each that began later.
    """

    def __init__(self, now: Callable[[], int] = next_in_order) -> None:
        self._now = now
        self.found: deque[Rewind] = deque(maxlen=REMEMBERED)
        # When each partition was gone back in, or gained.
        self._back_at: dict[TopicPartition, int] = {}
        # The first offset that was handed out, and the end of all that was.
        self._handed: dict[TopicPartition, tuple[int, int]] = {}
        # A producer may write here, in a thread of its own: it is all that it touches.
        self._committed: dict[TopicPartition, int] = {}

    def gained(self, partitions: Iterable[TopicPartition]) -> None:
        """Take note that these begin at what is committed."""
        chosen = list(partitions)
        self.lost(chosen)
        self._back_at |= dict.fromkeys(chosen, self._now())

    def lost(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget partitions that are read no more."""
        for partition in partitions:
            self._back_at.pop(partition, None)
            self._handed.pop(partition, None)
            self._committed.pop(partition, None)

    def handed_out(self, partition: TopicPartition, start: int, end: int) -> None:
        """Take note of records that were handed out."""
        old = self._uncommitted(partition)
        self._handed[partition] = (start, end) if old is None else (min(old[0], start), max(old[1], end))

    def committed(self, partition: TopicPartition, offset: int) -> None:
        """Take note of where the group stands in a partition that is assigned; any thread may tell."""
        self._committed[partition] = offset

    def has_committed(self, partition: TopicPartition) -> bool:
        """Return whether something is known to be committed of a partition that is assigned."""
        return partition in self._committed

    def is_back(self, partition: TopicPartition, offset: int, stands_at: int | None) -> bool:
        """Return whether all that was handed out and is not committed lies at this offset or behind it."""
        handed = self._uncommitted(partition)
        first = stands_at if handed is None else handed[0]
        return offset <= max(first or 0, self._committed.get(partition, 0))

    def went_back(self, partitions: Iterable[TopicPartition], assigned: Collection[TopicPartition]) -> int | None:
        """Take note that the user went back in some; return since when all that is assigned was, if it was."""
        at = self._now()
        self._back_at |= dict.fromkeys(partitions, at)
        if not assigned or any(each not in self._back_at for each in assigned):
            return None
        began = min(self._back_at[each] for each in assigned)
        # One that began at the same time and ended later says nothing more.
        if not self.found or self.found[-1].began < began:
            self.found.append(Rewind(began, at))
        return began

    def went_on(self, partitions: Iterable[TopicPartition]) -> None:
        """Take note that the user went elsewhere in these."""
        for partition in partitions:
            self._back_at.pop(partition, None)

    def _uncommitted(self, partition: TopicPartition) -> tuple[int, int] | None:
        handed = self._handed.get(partition)
        return None if handed is None or handed[1] <= self._committed.get(partition, 0) else handed
