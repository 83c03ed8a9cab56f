"""Letting go of offsets that nobody goes on from (PROTOCOL.md §8.1).

Owns which rows of O may go without a group's doing: those that ``offsets_retention_ms`` no longer keeps, and those of
topics that are gone.  What is planned on a view is decided again at the slot.  Must not know when it is due: the
coordinator job does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from txntable.coordinator.assignment import NamedPartition
from txntable.coordinator.group_offsets import OffsetRow
from txntable.coordinator.group_request import OffsetLogTransition
from txntable.coordinator.offset_upkeep import expire_offsets, forget_topic, topic_ids
from txntable.errors import UnknownTopicOrPartitionError
from txntable.format.layout import OFFSET_LOG_ROOT
from txntable.log.entry_time import version_as_of
from txntable.log.keyed_log import LARGEST_COMMIT_ROWS
from txntable.log.keyed_table import find_row
from txntable.log.table_state import TableState
from txntable.offsets.offset_log import OffsetLog
from txntable.offsets.offset_rows import GROUP_KIND, OFFSET_KIND
from txntable.topics.topic_log import TopicLog, lost_log


@dataclass(frozen=True, slots=True)
class OffsetExpirySpec:
    """What is old enough to go.

    Attributes
    ----------
    since_ms : int
        What was written until then, ms since 1970 by the store's time, is.
    old_through : int, optional
        The newest version of O at that time; ``None``: there was none.
    retention_ms : int
        ``offsets_retention_ms``.
    """

    since_ms: int
    old_through: int | None
    retention_ms: int

    def age_ms(self, version: int) -> int | None:
        """Return ``None`` for a version that is old enough; the exact age was not asked of the store."""
        return None if self.old_through is not None and version <= self.old_through else 0


@dataclass(frozen=True, slots=True)
class Swept:
    """What one commit removed.

    Attributes
    ----------
    offsets, groups : int
        Rows of O.
    """

    offsets: int = 0
    groups: int = 0

    @property
    def something(self) -> bool:
        """Whether anything was removed: then there may be more."""
        return bool(self.offsets or self.groups)


def plan_offset_expiry(offsets: OffsetLog, retention_ms: int) -> OffsetExpirySpec:
    """Plan what may go, on the newest rows; asks the store for ages only when there is something without a user.

    Parameters
    ----------
    offsets : OffsetLog
        O.
    retention_ms : int
        ``offsets_retention_ms``.

    Raises
    ------
    StoreUnavailableError
        Call again.
    """
    head = offsets.refresh()
    since_ms = offsets.context.clock.now_ms() - retention_ms
    spec = OffsetExpirySpec(since_ms, head, retention_ms)
    with offsets.log.lock:
        candidates = any(True for _ in _expired(offsets, offsets.log.table, spec))
    old_through = version_as_of(offsets.context, OFFSET_LOG_ROOT, head, since_ms) if candidates else None
    return replace(spec, old_through=old_through)


def expire_offsets_part(offsets: OffsetLog, spec: OffsetExpirySpec) -> Swept:
    """Remove rows in one commit, as many as it may hold; call again until there is nothing.

    Raises
    ------
    CommitStateUnknownError, StoreUnavailableError
        Plan again: what is gone is not planned any more.
    """
    return _swept(offsets, "EXPIRE OFFSETS", lambda table: _expired(offsets, table, spec))


def forget_topic_part(offsets: OffsetLog, topic: str, topic_id: str) -> Swept:
    """Remove the offsets of a topic that is gone, of all groups, in one commit; call again until there is nothing.

    Parameters
    ----------
    offsets : OffsetLog
        O.
    topic, topic_id : str
        What was deleted, and that durably: offsets in a later topic of the name stay.

    Raises
    ------
    CommitStateUnknownError, StoreUnavailableError
        Call again.
    """

    def gone(table: TableState) -> Iterator[OffsetLogTransition[None]]:
        rows = [row for group in offsets.log.fold.offsets.values() for row in group.values()]
        yield forget_topic(rows, topic, topic_id)

    return _swept(offsets, "FORGET TOPIC", gone)


def topics_of(offsets: OffsetLog) -> dict[str, frozenset[str]]:
    """Return the ids of topics that offsets are of, by the topics' names, in order.

    Parameters
    ----------
    offsets : OffsetLog
        O.

    Raises
    ------
    StoreUnavailableError
        Call again.
    """
    rows = offsets.look(lambda: [row for group in offsets.log.fold.offsets.values() for row in group.values()])
    known: dict[str, set[str]] = {}
    for row in rows:
        known.setdefault(row.topic, set()).update(topic_ids(row) - {""})
    return {name: frozenset(ids) for name, ids in sorted(known.items()) if ids}


def ids_gone(topic: TopicLog, ids: Collection[str]) -> list[str]:
    """Return which of these ids the topic has no more, by its log.

    Parameters
    ----------
    topic : TopicLog
        Its logs.
    ids : collection of str
        Of :func:`topics_of`, read before: an id that a topic does not have *later* is one that it never has again.

    Raises
    ------
    DamagedDataError
        The topic has lost its log, which would tell: nothing is known to be gone.
    StoreUnavailableError
        Call again.
    """
    live = _live_id(topic)
    if not topic.has_log:
        raise lost_log(topic.name)
    return sorted(set(ids) - {live})


def part_of(transition: OffsetLogTransition[None], rows: int = LARGEST_COMMIT_ROWS) -> OffsetLogTransition[None]:
    """Return the part of a removal that fits into `rows` rows; a group goes with the last of its offsets."""
    if _size(transition) <= rows:
        return transition
    return replace(transition, group=None, removed=transition.removed[:rows])


def _swept(
    offsets: OffsetLog, operation: str, gone: Callable[[TableState], Iterator[OffsetLogTransition[None]]]
) -> Swept:
    """Make transitions durable, as many as one commit may hold."""
    written: list[OffsetLogTransition[None]] = []

    def request(table: TableState) -> Sequence[OffsetLogTransition[None]]:
        written.clear()
        left = LARGEST_COMMIT_ROWS
        for transition in gone(table):
            part = part_of(transition, left)
            written.append(part)
            left -= _size(part)
            if left <= 0:
                break
        return written

    offsets.sweep(operation, request)
    return Swept(sum(len(one.removed) for one in written), sum(one.group is not None for one in written))


def _size(transition: OffsetLogTransition[None]) -> int:
    return len(transition.removed) + (transition.group is not None)


def _expired(offsets: OffsetLog, table: TableState, spec: OffsetExpirySpec) -> Iterator[OffsetLogTransition[None]]:
    """Yield what each group loses, if it loses anything."""
    fold = offsets.log.fold
    for name in sorted({*fold.groups, *fold.offsets}):
        group, rows = fold.groups.get(name), fold.offsets.get(name, {})
        expired = _really_old(
            expire_offsets(group, rows, spec.age_ms, table.next_version, spec.retention_ms), rows, table, spec
        )
        if _size(expired):
            yield expired


def _really_old(
    expired: OffsetLogTransition[None],
    rows: Mapping[NamedPartition, OffsetRow],
    table: TableState,
    spec: OffsetExpirySpec,
) -> OffsetLogTransition[None]:
    """Return what stays of an expiry without the rows that are younger by their own word.

    An entry that log cleanup has deleted counts as older than anything, and ``vacuum_retention_ms`` may be the shorter.
    """

    def is_old(kind: str, key: str) -> bool:
        add = find_row(table, kind, key)
        return add is not None and add.modification_time <= spec.since_ms

    removed = tuple(row for row in expired.removed if is_old(OFFSET_KIND, row.key))
    group = expired.group
    if group is not None and (len(removed) < len(rows) or not is_old(GROUP_KIND, group.key)):
        group = None
    return replace(expired, group=group, removed=removed)


def _live_id(topic: TopicLog) -> str | None:
    try:
        return topic.settings().topic_id
    except UnknownTopicOrPartitionError:
        return None
