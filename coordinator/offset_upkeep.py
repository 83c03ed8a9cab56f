"""What happens to a group's offsets besides commits: they are settled, deleted, expire (PROTOCOL.md §8.1).

Anyone may settle and expire, at any time and any number of times.  A row that is removed takes its pending offsets
with it: nothing of them is left to settle, as with Kafka's tombstones.  Ages come as arguments, measured by the
store's clock.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

from txntable.coordinator.assignment import NamedPartition
from txntable.coordinator.decision import Decision, Outcome
from txntable.coordinator.errors import (
    GroupIdNotFoundError,
    GroupSubscribedToTopicError,
    NonEmptyGroupError,
    TxnTableError,
)
from txntable.coordinator.group import GroupRow
from txntable.coordinator.group_offsets import CommittedOffset, OffsetRow, PendingOffset
from txntable.coordinator.group_request import OffsetLogTransition
from txntable.coordinator.group_state import GroupOperation, GroupState

DEFAULT_OFFSETS_RETENTION_MS = 7 * 24 * 60 * 60 * 1_000
Decisions = Mapping[tuple[int, int], Decision]
"""(producer id, epoch) -> how that transaction was decided; none that is not decided."""
Age = Callable[[int], int | None]
"""A version of the offset log -> how long ago it was written, ms; ``None``: so long that its entry is gone."""


def settle(rows: Iterable[OffsetRow], decisions: Decisions, position: int) -> OffsetLogTransition[None]:
    """Let pending offsets count, or drop them, as their transactions were decided.

    Parameters
    ----------
    rows : iterable of OffsetRow
        Rows with pending offsets; others are left alone.
    decisions : Mapping of (int, int) to Decision
        What the transaction log says of them.
    position : int
        The slot decided on.

    Returns
    -------
    OffsetLogTransition
        With the rows that change, and those that hold nothing any more.
    """
    settled = [(row, _settled(row, decisions, position)) for row in rows]
    changed = [(row, new) for row, new in settled if new.pending != row.pending]
    return OffsetLogTransition(
        None,
        offsets=tuple(new for _, new in changed if new.committed is not None or new.pending),
        removed=tuple(row for row, new in changed if new.committed is None and not new.pending),
    )


def delete_offsets(
    group: GroupRow | None, rows: Mapping[NamedPartition, OffsetRow], partitions: Collection[NamedPartition]
) -> OffsetLogTransition[Mapping[NamedPartition, TxnTableError]]:
    """Delete a group's offsets of some partitions, pending ones too (Kafka's ``deleteConsumerGroupOffsets``).

    Parameters
    ----------
    group : GroupRow, optional
        The group's row; ``None`` when there is none.
    rows : Mapping of NamedPartition to OffsetRow
        All rows of the group.
    partitions : collection of NamedPartition
        Which to delete; those without an offset are passed over.

    Returns
    -------
    OffsetLogTransition
        With the partitions that were refused: a member subscribes to the topic.

    Raises
    ------
    GroupIdNotFoundError
        There is no such group: neither members nor offsets.
    """
    _check_exists(group, rows)
    subscribed = frozenset[str]() if group is None else group.subscribed_topics
    refused: dict[NamedPartition, TxnTableError] = {
        each: GroupSubscribedToTopicError(
            "a member of the group subscribes to the topic; let it leave first, or wait for its session timeout where "
            "it has ended",
            topic=each[0],
            partition=each[1],
        )
        for each in partitions
        if each[0] in subscribed
    }
    removed = tuple(rows[each] for each in partitions if each in rows and each not in refused)
    return OffsetLogTransition(refused, removed=removed)


def delete_group(
    group: GroupRow | None, rows: Mapping[NamedPartition, OffsetRow], position: int
) -> OffsetLogTransition[None]:
    """Delete a group with all its offsets, pending ones too.

    Parameters
    ----------
    group : GroupRow, optional
        The group's row; ``None`` when there is none.
    rows : Mapping of NamedPartition to OffsetRow
        All rows of the group.
    position : int
        The slot decided on.

    Raises
    ------
    GroupIdNotFoundError
        There is no such group: neither members nor offsets.
    NonEmptyGroupError
        It has members: let them leave first.
    """
    _check_exists(group, rows)
    if group is not None and group.members:
        raise NonEmptyGroupError(
            "the group has members; let them leave first, or wait for their session timeout where they have ended",
            group=group.group,
            members=len(group.members),
        )
    dead = None if group is None else group.moved(GroupOperation.DELETE, position)
    return OffsetLogTransition(None, group=dead, removed=tuple(rows.values()))


def forget_topic(rows: Iterable[OffsetRow], topic: str, topic_id: str) -> OffsetLogTransition[None]:
    """Remove the offsets of a topic that was deleted, of all groups.

    Parameters
    ----------
    rows : iterable of OffsetRow
        Rows of any groups; those of other topics are left alone.
    topic, topic_id : str
        What was deleted: offsets in a later topic of the name stay.
    """
    gone = (row for row in rows if row.topic == topic and topic_ids(row) <= {topic_id})
    return OffsetLogTransition(None, removed=tuple(gone))


def expire_offsets(
    group: GroupRow | None,
    rows: Mapping[NamedPartition, OffsetRow],
    age: Age,
    position: int,
    retention_ms: int = DEFAULT_OFFSETS_RETENTION_MS,
) -> OffsetLogTransition[None]:
    """Remove what ``offsets.retention`` no longer keeps, and an empty group that has nothing left.

    Parameters
    ----------
    group : GroupRow, optional
        The group's row; ``None`` when there is none: its offsets are those of consumers that assign themselves.
    rows : Mapping of NamedPartition to OffsetRow
        All rows of the group.
    age : callable
        Version of the offset log -> its age in ms, ``None``: its entry is gone.
    position : int
        The slot decided on.
    retention_ms : int
        Offsets of an empty group count from when it became empty, those of topics that its members do not
        subscribe to, and those without a group, from their commit.

    Returns
    -------
    OffsetLogTransition
        Nothing is removed that has a pending offset, nor of a group that is reconciling.
    """

    def is_old(version: int) -> bool:
        passed = age(version)
        return passed is None or passed >= retention_ms

    if group is not None and group.state is GroupState.RECONCILING:
        return OffsetLogTransition(None)
    emptied = group is not None and not group.members and is_old(group.position)
    gone = {each: row for each, row in rows.items() if _may_expire(row, group) and _is_unused(row, group, is_old)}
    dead = group.moved(GroupOperation.DELETE, position) if group and emptied and len(gone) == len(rows) else None
    return OffsetLogTransition(None, group=dead, removed=tuple(gone.values()))


def _may_expire(row: OffsetRow, group: GroupRow | None) -> bool:
    return not row.pending and (group is None or row.topic not in group.subscribed_topics)


def _is_unused(row: OffsetRow, group: GroupRow | None, is_old: Callable[[int], bool]) -> bool:
    asked = row.position if row.committed is None else row.committed.request
    # An admin may have committed after the group became empty: the later of the two counts (ours).
    return is_old(asked if group is None or group.members else max(asked, group.position))


def _settled(row: OffsetRow, decisions: Decisions, position: int) -> OffsetRow:
    committed = row.committed
    for each in row.pending:
        decision = decisions.get((each.producer_id, each.epoch))
        if decision is not None and decision.outcome is Outcome.COMMIT:
            committed = _later(committed, each, decision)
    left = tuple(each for each in row.pending if (each.producer_id, each.epoch) not in decisions)
    return replace(row, committed=committed, pending=left, position=position)


def _later(committed: CommittedOffset | None, pending: PendingOffset, decision: Decision) -> CommittedOffset:
    if committed is not None and committed.request > pending.request:
        return committed
    return CommittedOffset(pending.offset, pending.metadata, pending.topic_id, pending.request, decision.position)


def topic_ids(row: OffsetRow) -> set[str]:
    """Return the ids of the topics of that name that a row's offsets are of."""
    known = () if row.committed is None else (row.committed.topic_id,)
    return {*known, *(each.topic_id for each in row.pending)}


def _check_exists(group: GroupRow | None, rows: Mapping[NamedPartition, OffsetRow]) -> None:
    if group is None and not rows:
        raise GroupIdNotFoundError("there is no such group; list the groups to see their names")
