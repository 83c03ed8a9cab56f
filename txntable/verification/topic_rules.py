"""A topic's S held against T, and its P held against S (PROTOCOL.md §5.6, §6.4, §7).

Owns the rules that need two logs.  T was read before P, P before S, and T once more behind them: so what one log may
lack is only what came after it was read.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from txntable.coordinator.open_epoch_status import OpenEpoch, open_epoch_status
from txntable.coordinator.transaction import TransactionMetadata
from txntable.format.layout import commit_path, public_root, segments_root
from txntable.log.actions import Add, Commit, Metadata, Txn
from txntable.log.table_state import TableState
from txntable.partition.batch import batch_of
from txntable.partition.markers import Marker
from txntable.partition.offsets import DECIDED_THROUGH, REFLECTS, next_offset, per_topic
from txntable.partition.partition_log import PartitionLogs
from txntable.partition.projection import PublicTable, project
from txntable.verification.damage import Damage, DamageKind
from txntable.verification.decision_record import DecisionRecord, RecordedDecision
from txntable.verification.log_replay import Problem
from txntable.verification.retained_segments import RetainedSegments


class PublicRules:
    """The rules of one topic's P that need no other log: the guard's and the numbers' are those of any log.

    Attributes
    ----------
    retained : RetainedSegments
        What the entries have taken away.
    """

    def __init__(self) -> None:
        self.retained = RetainedSegments()

    def begin(self, table: TableState, fold: PublicTable) -> Iterable[Problem]:
        """Ask nothing."""
        return ()

    def observe(self, commit: Commit, table: TableState, fold: PublicTable) -> Iterable[Problem]:
        """Judge whether an entry is a projection: it says what it reflects."""
        self.retained.observe(commit.actions, table)
        if commit.actions and not any(isinstance(one, Txn) and one.app_id == REFLECTS for one in commit.actions):
            yield DamageKind.PROJECTION, "the entry is no projection: it does not say which version of S it shows"

    def stand(self, table: TableState, fold: PublicTable) -> Iterable[Problem]:
        """Ask nothing: what P shows is judged once S stands at that version."""
        return ()


def public_against_segments(
    name: str, logs: PartitionLogs, segments: TableState, public: TableState
) -> Iterator[Damage]:
    """Hold P against S as it was at the version that P reflects.

    Parameters
    ----------
    name : str
        The topic's.
    logs, segments
        S at that version.
    public : TableState
        P.
    """
    root, head = public_root(name), public.next_version - 1
    path = commit_path(root, head)
    wanted: dict[str, Add] = {}
    for action in project(logs, segments, TableState(), 0):
        match action:
            case Add():
                wanted[action.path] = action
            case Txn() if (shown := public.number(action.app_id)) != action.version:
                problem = f"{action.app_id} is {shown}, and S has {action.version}"
                # No number falls: where S has not come so far, it may have lost what came after.
                is_ahead = shown > action.version
                yield Damage(DamageKind.PROJECTION_OR_LOG if is_ahead else DamageKind.PROJECTION, path, problem)
            case Metadata() if action != public.metadata:
                yield Damage(DamageKind.PROJECTION, path, "its metadata is not the one that S makes")
    for add in public.files:
        should = wanted.pop(add.path, None)
        if should is None:
            problem = "it shows a segment that S does not show"
            yield Damage(DamageKind.PROJECTION_OR_LOG, f"{root}/{add.path}", problem)
        elif _told(should) != _told(add):
            yield Damage(DamageKind.PROJECTION, f"{root}/{add.path}", "its row is not the one that S makes")
    for missing in sorted(wanted):
        yield Damage(DamageKind.PROJECTION, f"{root}/{missing}", "it lacks a segment that is committed in S")


def _told(add: Add) -> tuple[object, ...]:
    return dict(add.partition_values), add.size, add.modification_time, add.stats, add.tag


def live_segments_in_order(name: str, logs: PartitionLogs, table: TableState) -> Iterator[Damage]:
    """Judge whether the live segments of each partition lie side by side, below its next offset."""
    if logs.settings is None:
        return
    rows = (add for add in table.files if add.partition_values["_control"] is None)
    before = None
    for batch in sorted(map(batch_of, rows), key=lambda one: (one.partition, one.base_offset)):
        path = f"{segments_root(name)}/{batch.path}"
        if before is not None and before.partition == batch.partition and before.last_offset >= batch.base_offset:
            yield Damage(DamageKind.OFFSETS, path, f"it overlaps {before.path}")
        if batch.last_offset >= next_offset(table.numbers, logs.settings.topic_id, batch.partition):
            yield Damage(DamageKind.OFFSETS, path, "it reaches beyond the high watermark")
        before = batch


def markers_against_decisions(
    name: str, markers: Mapping[tuple[str, int, int], Marker], decisions: DecisionRecord, head: int | None
) -> Iterator[Damage]:
    """Judge whether somebody decided what the markers of a topic say; `head` is T's version, read after S.

    What lies beyond it is judged of all topics at once (:mod:`txntable.verification.lost_ends`).
    """
    for (topic_id, producer_id, epoch), marker in sorted(markers.items(), key=lambda each: each[1].position):
        path = f"{segments_root(name)}/{marker.path}"
        taken = decisions.of_epoch(producer_id, epoch)
        if taken is not None and topic_id in taken.topics and taken.outcome.value != marker.control.value:
            problem = (
                f"it is an {marker.control.value} of what was decided as {taken.outcome.value} at {taken.position}"
            )
            yield Damage(DamageKind.MARKER, path, problem)
            continue
        if not decisions.knows(marker.position, head):
            continue
        found = [one for one in decisions.by_position.get(marker.position, ()) if one.producer_id == producer_id]
        # Of a hanging transaction it is the position of an entry that decides nothing (§6.5).
        if not found and marker.control.value == "ABORT":
            continue
        if not any(_decides(one, topic_id, epoch, marker) for one in found):
            problem = f"position {marker.position} decided no {marker.control.value} of (producer id {producer_id}, "
            yield Damage(DamageKind.MARKER, path, f"{problem}epoch {epoch}) in these partitions")


def _decides(one: RecordedDecision, topic_id: str, epoch: int, marker: Marker) -> bool:
    enrolled = one.topics.get(topic_id)
    partitions = frozenset() if enrolled is None else enrolled.partitions
    return one.epoch == epoch and one.outcome.value == marker.control.value and partitions == frozenset(marker.offsets)


def decisions_against_markers(
    name: str,
    table: TableState,
    logs: PartitionLogs,
    seen: tuple[Mapping[tuple[str, int, int], Marker], Mapping[str, int]],
    decisions: Iterable[RecordedDecision],
) -> Iterator[Damage]:
    """Judge whether every decision that a topic's `decided_through` has passed has its marker.

    Parameters
    ----------
    name : str
        The topic's.
    table, logs
        S at its head.
    seen : tuple
        The markers that S's entries showed, and by topic id from which position on all are among them.
    decisions : iterable of RecordedDecision
        Of T, read before S.
    """
    if logs.settings is None or logs.settings.deleted:
        return
    topic_id, (markers, above) = logs.settings.topic_id, seen
    through = table.number(per_topic(DECIDED_THROUGH, topic_id))
    for one in decisions:
        is_passed = topic_id in one.topics and above.get(topic_id, 0) < one.position <= through
        if is_passed and (topic_id, one.producer_id, one.epoch) not in markers:
            problem = f"nothing ends (producer id {one.producer_id}, epoch {one.epoch}), which was decided at"
            path = commit_path(segments_root(name), table.next_version - 1)
            yield Damage(DamageKind.MARKER_MISSING, path, f"{problem} {one.position}: it will never get a marker")


def owed_though_complete(
    name: str, topic_id: str, through: tuple[int, int], complete: Iterable[RecordedDecision]
) -> Iterator[Damage]:
    """Judge whether S and P have come as far as T says: `through` is the `decided_through` of S, and of P.

    What S has and P lacks is made again from S; what S lacks is lost.
    """
    segments, public = through
    owed = [one for one in complete if topic_id in one.topics and one.position > min(through)]
    for one in owed:
        for table, reached in ((segments_root(name), segments), (public_root(name), public)):
            if one.position > max(segments, reached):
                problem = f"{one.transactional_id} is complete at {one.position}, and the table at {reached}"
                yield Damage(DamageKind.INCOMPLETE, table, problem)
    newest = max((one.position for one in owed if one.position <= segments), default=None)
    if newest is not None:
        problem = f"it shows what was decided up to {public}, and once showed it up to {newest} at least"
        yield Damage(DamageKind.PUBLICATION, public_root(name), problem)


def open_against_rows(
    name: str, logs: PartitionLogs, rows: Mapping[int, TransactionMetadata], next_producer_id: int
) -> Iterator[Damage]:
    """Judge whether something will end each open transaction; `rows` are T's by producer id, read after S."""
    if logs.settings is None:
        return
    for producer_id, epoch in sorted(logs.open):
        status = open_epoch_status(
            rows.get(producer_id), OpenEpoch(producer_id, epoch, logs.settings.topic_id), next_producer_id
        )
        if status.hangs:
            problem = f"nothing will end (producer id {producer_id}, epoch {epoch}): {status.value}"
            yield Damage(DamageKind.HANGING, segments_root(name), problem)
