"""Where open transactions begin, by partition (PROTOCOL.md §5.6), as Kafka's ``ongoingTxns``.

Owns the order of their first offsets: the last stable offset is asked for by every reader and projection, and
whether a producer is in a transaction by every append, so neither may walk all that is open.  Pure.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import MutableMapping

from txntable.log.overlay import Overlay

TransactionKey = tuple[int, int]
# First offset in the partition, then producer id and epoch.
_Start = tuple[int, TransactionKey]


class UnstableOffsets:
    """The first offset of each open transaction in each partition that has data of it."""

    def __init__(self) -> None:
        # Ascending: of any number of transactions the first one is the partition's first unstable offset.
        self._starts: MutableMapping[int, list[_Start]] = {}
        # (partition, producer id) -> of how many transactions: epochs of one producer may wait for their markers.
        self._busy: MutableMapping[tuple[int, int], int] = {}

    def overlay(self) -> UnstableOffsets:
        """Return the same offsets, whose changes this one does not see."""
        over = UnstableOffsets()
        over._starts, over._busy = Overlay(self._starts, list), Overlay(self._busy)
        return over

    def begin(self, partition: int, key: TransactionKey, offset: int) -> None:
        """Take note that a transaction begins at an offset of a partition in which it had no data."""
        insort(self._starts.setdefault(partition, []), (offset, key))
        place = (partition, key[0])
        self._busy[place] = self._busy.get(place, 0) + 1

    def end(self, partition: int, key: TransactionKey, offset: int) -> None:
        """Take note that a transaction that began at an offset of a partition holds nothing back there any more."""
        starts = self._starts[partition]
        del starts[bisect_left(starts, (offset, key))]
        if not starts:
            del self._starts[partition]
        place = (partition, key[0])
        self._busy[place] -= 1
        if not self._busy[place]:
            del self._busy[place]

    def is_busy(self, partition: int, producer_id: int) -> bool:
        """Return whether a producer has an open transaction with data in a partition."""
        return (partition, producer_id) in self._busy

    def first(self, partition: int) -> int | None:
        """Return the first unstable offset of a partition; ``None``: no transaction with data there is open."""
        starts = self._starts.get(partition)
        return None if starts is None else starts[0][0]

    def firsts(self) -> dict[int, int]:
        """Return the first unstable offset of each partition that has one."""
        return {partition: starts[0][0] for partition, starts in self._starts.items()}
