"""What a snapshot rests on: its position, what is published, and how far each public table has come.

For people and programs that read the public tables by SQL: ``_commit <= D`` on any of them is one state
of all topics while ``merged_through <= D <= published_position`` (PROTOCOL.md §10).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from txntable.errors import UnknownTopicOrPartitionError
from txntable.partition.topic_view import TopicView
from txntable.snapshot.snapshot import Snapshot, published_position
from txntable.transactions.transaction_log import TransactionLog


@dataclass(frozen=True, slots=True)
class TopicPosition:
    """How far a public table has come.

    Attributes
    ----------
    topic : str
        Its name.
    version : int
        Of the public table, that the snapshot reads.
    decided_through : int
        Every decision at or below has its marker there.
    merged_through : int
        Below it the table cannot tell apart what was committed when.
    last_stable_offsets, high_watermarks : int
        Of the partitions, together: equal when nothing open holds back ``read_committed``.
    """

    topic: str
    version: int
    decided_through: int
    merged_through: int
    last_stable_offsets: int
    high_watermarks: int


@dataclass(frozen=True, slots=True)
class SnapshotDescription:
    """What a snapshot rests on.

    Attributes
    ----------
    position : int
        It is pinned there.
    published_position : int
        Everything decided at or below is published in every topic.
    head : int
        Of the transaction log.
    topics : tuple of TopicPosition
        Those that there were, by name.
    """

    position: int
    published_position: int
    head: int
    topics: tuple[TopicPosition, ...]


def describe_snapshot(
    transactions: TransactionLog, snapshot: Snapshot, topics: Callable[[], Iterable[str]]
) -> SnapshotDescription:
    """Return what a snapshot rests on.

    Parameters
    ----------
    transactions : TransactionLog
        T.
    snapshot : Snapshot
        Pinned just now.
    topics : callable
        Names those that there are now.

    Raises
    ------
    OffsetOutOfRangeError
        Retention has removed what the snapshot reads of a topic.
    StoreUnavailableError
        Call again.
    """
    head = transactions.refresh()
    found = tuple(_positions(snapshot, topics()))
    return SnapshotDescription(snapshot.position, published_position(transactions, head), head, found)


def topics_then(snapshot: Snapshot, topics: Iterable[str]) -> Iterator[tuple[str, TopicView]]:
    """Yield the topics that there were, with what the snapshot shows of each.

    Parameters
    ----------
    snapshot : Snapshot
        Of the past, or of now.
    topics : iterable of str
        Names, also of topics that there were not.

    Raises
    ------
    OffsetOutOfRangeError
        Retention has removed what the snapshot reads of a topic.
    StoreUnavailableError
        Call again.
    """
    for name in topics:
        try:
            view = snapshot.view(name)
        except UnknownTopicOrPartitionError:
            # It was deleted, or there was none of the name then.
            continue
        yield name, view


def _positions(snapshot: Snapshot, topics: Iterable[str]) -> Iterator[TopicPosition]:
    for name, view in topics_then(snapshot, topics):
        stable = sum(bounds.last_stable_offset for bounds in view.bounds.values())
        highest = sum(bounds.high_watermark for bounds in view.bounds.values())
        yield TopicPosition(name, view.version, view.decided_through, view.merged_through, stable, highest)
