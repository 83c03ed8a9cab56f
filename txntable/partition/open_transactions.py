"""Transactions with data in a partition that no marker has ended, and the marker that ends a hanging one.

Owns the direct ABORT marker (PROTOCOL.md §6.5).  That the transaction hangs is a fact of the
transaction log, which the caller brings; that it is still open is decided here, at the slot.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from txntable.log.actions import Action
from txntable.log.table_state import TableState
from txntable.partition.completion import OwedMarker, decide_markers
from txntable.partition.markers import Control
from txntable.partition.partition_log import PartitionLogs


@dataclass(frozen=True, slots=True)
class OpenInPartition:
    """A transaction that is open in one partition.

    Attributes
    ----------
    partition : int
        From 0.
    producer_id, producer_epoch : int
        They name the transaction.
    start_offset : int
        Of its first record here: the last stable offset is not above it.
    since_ms : int
        The store's time at which its first live segment here was appended, ms since 1970.
    """

    partition: int
    producer_id: int
    producer_epoch: int
    start_offset: int
    since_ms: int


@dataclass(frozen=True, slots=True)
class HangingEpoch:
    """A transaction that the transaction log will never end, and the position of its direct ABORT marker.

    Attributes
    ----------
    producer_id, epoch : int
        They name the transaction.
    position : int
        A version of the transaction log that decides nothing else, written after it was found to hang.
    decided_at_ms : int
        Its in-commit time.
    coordinator_epoch : int
        Of the lease, as T shows it.
    """

    producer_id: int
    epoch: int
    position: int
    decided_at_ms: int
    coordinator_epoch: int


def open_in_topic(logs: PartitionLogs) -> Iterator[OpenInPartition]:
    """Yield the open transactions of a topic, one for each partition with data of it.

    Parameters
    ----------
    logs : PartitionLogs
        S's state.
    """
    for (producer_id, epoch), transaction in logs.open.items():
        since_ms: dict[int, int] = {}
        for batch in transaction.batches.values():
            since_ms[batch.partition] = min(batch.appended_at_ms, since_ms.get(batch.partition, batch.appended_at_ms))
        for partition, start_offset in transaction.first_offsets.items():
            yield OpenInPartition(partition, producer_id, epoch, start_offset, since_ms[partition])


def decide_abort_marker(
    logs: PartitionLogs,
    table: TableState,
    topic_id: str,
    hanging: HangingEpoch,
    owed: tuple[Sequence[OwedMarker], int],
) -> list[Action]:
    """Decide the ABORT marker of a hanging transaction, with all markers that the topic is owed.

    Parameters
    ----------
    logs, table
        S's state.
    topic_id : str
        Of the topic.
    hanging : HangingEpoch
        What to end.
    owed : tuple
        Every decision that is not COMPLETE and enrolled the topic, and T's version on which they were read: at
        or above the position of `hanging`.

    Returns
    -------
    list of Action
        Empty when the transaction is not open any more.  Without its marker when the topic has markers of later
        decisions than the position: then take a new one.
    """
    transaction = logs.open.get((hanging.producer_id, hanging.epoch))
    if transaction is None:
        return []
    decided, known_through = owed
    ended = OwedMarker(
        hanging.producer_id,
        hanging.epoch,
        Control.ABORT,
        hanging.position,
        hanging.decided_at_ms,
        frozenset(transaction.first_offsets),
        coordinator_epoch=hanging.coordinator_epoch,
    )
    return decide_markers(logs, table, topic_id, [*decided, ended], known_through)
