"""Deciding what a topic is owed: the segments that decisions carry, and markers (PROTOCOL.md §6.4).

``decided_through`` alone says whether a decision is owed.  Whoever knows the transaction log up to
`known_through` writes, in decision order, what *all* decisions above it carry, each with its marker, and raises it.
Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from txntable.coordinator.batch_memory import BatchId
from txntable.coordinator.lease import NEVER_CLAIMED
from txntable.coordinator.manifest import ManifestSegment
from txntable.format.layout import marker_path
from txntable.log.actions import Action, Txn
from txntable.log.table_state import TableState
from txntable.partition.append import ACTION_BYTES, LARGEST_COMMIT_BYTES, LARGEST_COMMIT_SEGMENTS
from txntable.partition.batch import ProducerEpoch
from txntable.partition.manifest import carried_add
from txntable.partition.markers import Control, Marker, marker_add
from txntable.partition.offsets import (
    DECIDED_THROUGH,
    NEXT_OFFSET,
    decided_through,
    next_offset,
    per_partition,
    per_topic,
)
from txntable.partition.partition_log import PartitionLogs


@dataclass(frozen=True, slots=True)
class OwedMarker:
    """A decision that enrolled partitions of the topic.

    Attributes
    ----------
    producer_id, ends : int
        The transaction: producer id and epoch.
    control : Control
        COMMIT or ABORT.
    position : int
        The decision position.
    decided_at_ms : int
        Its in-commit time.
    partitions : frozenset of int
        Enrolled here.
    segments : sequence of ManifestSegment
        What it carries for the topic.
    coordinator_epoch : int
        Of the lease, as the completer knows it; 0: nobody has claimed it yet.
    transactional_id : str or None
        Whose it is, for people.
    batch_id : str, int or None
        That it carried, for people.
    """

    producer_id: int
    ends: int
    control: Control
    position: int
    decided_at_ms: int
    partitions: frozenset[int]
    segments: Sequence[ManifestSegment] = ()
    coordinator_epoch: int = NEVER_CLAIMED
    transactional_id: str | None = None
    batch_id: BatchId | None = None


def decide_markers(
    logs: PartitionLogs, table: TableState, topic_id: str, decided: Sequence[OwedMarker], known_through: int
) -> list[Action]:
    """Decide the rows of one commit of S: what each decision carries, and its marker.

    Parameters
    ----------
    logs, table
        S's state.
    topic_id : str
        The enrolled topic; when it is gone or another one, nothing is owed.
    decided : sequence of OwedMarker
        Every decision at or below `known_through` that is not COMPLETE and enrolled the topic.
    known_through : int
        T's version on which `decided` was read.

    Returns
    -------
    list
        As many decisions, in their order, as one commit takes; nothing is left out in between, and those of one
        position stay together: ``decided_through`` cannot tell them apart.
    """
    owed = still_owed(logs, table, topic_id, decided)
    if not owed:
        return []
    writing = _Writing(table, topic_id)
    for _, of_one_position in groupby(owed, key=lambda one: one.position):
        together = list(of_one_position)
        if writing.is_full(together):
            # Whoever goes on from here finds the rest owed.
            known_through = writing.through
            break
        for one in together:
            writing.take(one)
    return writing.actions(known_through)


def still_owed(
    logs: PartitionLogs, table: TableState, topic_id: str, decided: Sequence[OwedMarker]
) -> list[OwedMarker]:
    """Return those of `decided` that the topic lacks, in decision order; of one position by producer ids."""
    settings = logs.settings
    if settings is None or settings.deleted or settings.topic_id != topic_id:
        return []
    through = decided_through(table.numbers, topic_id)
    lacking = (one for one in decided if one.position > through)
    return sorted(lacking, key=lambda one: (one.position, one.producer_id))


class _Writing:
    """The rows of one commit, as far as they are decided: offsets follow one another."""

    def __init__(self, table: TableState, topic_id: str) -> None:
        self._table, self._topic_id = table, topic_id
        self._next: dict[int, int] = {}
        self._rows: list[Action] = []
        self._bytes = 0
        self.through = 0

    def is_full(self, together: Sequence[OwedMarker]) -> bool:
        rows = len(self._rows) + sum(len(one.segments) + 1 for one in together)
        size = self._bytes + sum(map(_bytes_of, together))
        return bool(self._rows) and (rows > LARGEST_COMMIT_SEGMENTS or size > LARGEST_COMMIT_BYTES)

    def take(self, one: OwedMarker) -> None:
        producer = ProducerEpoch(one.producer_id, one.ends)
        for segment in one.segments:
            base = self._take_offsets(segment.partition, segment.records)
            self._rows.append(carried_add(self._topic_id, producer, segment, base, one.decided_at_ms))
        marker = Marker(
            path=marker_path(self._topic_id, one.producer_id, one.ends),
            producer_id=one.producer_id,
            ends=one.ends,
            control=one.control,
            position=one.position,
            decided_at_ms=one.decided_at_ms,
            coordinator_epoch=one.coordinator_epoch,
            offsets={partition: self._take_offsets(partition, 1) for partition in sorted(one.partitions)},
        )
        self._rows.append(marker_add(self._topic_id, marker, one.decided_at_ms))
        self._bytes += _bytes_of(one)
        self.through = one.position

    def _take_offsets(self, partition: int, count: int) -> int:
        known = self._next.get(partition)
        base = next_offset(self._table.numbers, self._topic_id, partition) if known is None else known
        self._next[partition] = base + count
        return base

    def actions(self, known_through: int) -> list[Action]:
        ends = [Txn(per_partition(NEXT_OFFSET, self._topic_id, p), offset) for p, offset in sorted(self._next.items())]
        return [*self._rows, *ends, Txn(per_topic(DECIDED_THROUGH, self._topic_id), known_through)]


def _bytes_of(one: OwedMarker) -> int:
    return sum(ACTION_BYTES + len(segment.stats) for segment in one.segments)
