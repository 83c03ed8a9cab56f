"""Deciding the markers that a topic is owed (PROTOCOL.md §6.4).

``decided_through`` alone says whether a marker is owed.  Whoever knows the transaction log up to
`known_through` writes, in decision order, the markers of *all* decisions above it, and raises it.
Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from txntable.coordinator.lease import NEVER_CLAIMED
from txntable.format.layout import marker_path
from txntable.log.actions import Action, Txn
from txntable.log.table_state import TableState
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
    coordinator_epoch : int
        Of the lease, as the completer knows it; 0: nobody has claimed it yet.
    """

    producer_id: int
    ends: int
    control: Control
    position: int
    decided_at_ms: int
    partitions: frozenset[int]
    coordinator_epoch: int = NEVER_CLAIMED


def decide_markers(
    logs: PartitionLogs, table: TableState, topic_id: str, decided: Sequence[OwedMarker], known_through: int
) -> list[Action]:
    """Decide the marker rows of one commit of S.

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
    """
    settings = logs.settings
    through = decided_through(table.numbers, topic_id)
    if settings is None or settings.deleted or settings.topic_id != topic_id or known_through <= through:
        return []
    owed = sorted((m for m in decided if m.position > through), key=lambda m: m.position)
    if not owed:
        return []
    offsets: dict[int, int] = {}
    actions: list[Action] = []
    for one in owed:
        taken: dict[int, int] = {}
        for partition in sorted(one.partitions):
            taken[partition] = offsets.get(partition, next_offset(table.numbers, topic_id, partition))
            offsets[partition] = taken[partition] + 1
        path = marker_path(topic_id, one.producer_id, one.ends)
        marker = Marker(
            path,
            one.producer_id,
            one.ends,
            one.control,
            one.position,
            one.decided_at_ms,
            one.coordinator_epoch,
            taken,
        )
        actions.append(marker_add(topic_id, marker, one.decided_at_ms))
    actions.extend(Txn(per_partition(NEXT_OFFSET, topic_id, p), offset) for p, offset in sorted(offsets.items()))
    actions.append(Txn(per_topic(DECIDED_THROUGH, topic_id), known_through))
    return actions
