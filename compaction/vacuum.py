"""Deleting what nothing needs any more: tombstone, project, look again, delete (PROTOCOL.md §5.7).

Owns the order, on which safety rests: T, S and P are read, then the folder is listed; every name that is to go
gets a tombstone in S, so that nothing can make it live any more; P is brought to that version of S; then all is
judged once more on the states as they are *then*, and what goes all the same is deleted.  Killed anywhere it
leaves names that are tombstoned and files that are still there: the next vacuum goes on from that.

A dry run writes nothing at all; it goes by this machine's clock, since asking for the store's time is a write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from txntable.compaction.vacuum_plan import (
    SMALLEST_AGE_MS,
    Horizons,
    Reason,
    TopicStates,
    judge_file,
    judge_heartbeat,
)
from txntable.compaction.vacuum_report import ShowProgress, Tally, VacuumLine, VacuumReport
from txntable.coordinator.error_kinds import shown
from txntable.coordinator.transaction import TransactionMetadata
from txntable.errors import InvalidRequestError, StorePermissionError, TxnTableError, UnknownTopicOrPartitionError
from txntable.format.layout import (
    HEARTBEATS_FOLDER,
    PROBE_FOLDER,
    TOPICS_FOLDER,
    heartbeat_path,
    public_root,
    segments_root,
    topic_names,
)
from txntable.log.actions import Action
from txntable.log.table_state import TableState
from txntable.offsets.offset_log import OffsetLog
from txntable.partition.tombstoning import LARGEST_TOMBSTONING, decide_tombstoning
from txntable.storage.object_store import ObjectMeta
from txntable.topics.topic_log import TopicLog
from txntable.transactions.transaction_log import NEXT_PRODUCER_ID, TransactionLog
from txntable.warehouse.warehouse import Warehouse

_DELETED_AT_ONCE = 1000

Judge = Callable[[ObjectMeta], Reason]


def vacuum(
    warehouse: Warehouse,
    *,
    execute: bool = False,
    topics: Sequence[str] | None = None,
    progress: ShowProgress | None = None,
) -> VacuumReport:
    """Delete what no retained version, no open transaction and no upload under way needs.

    Parameters
    ----------
    warehouse : Warehouse
        Which one.
    execute : bool
        ``False``: only say what would go, and why; nothing is written, and no permission to write is needed.
    topics : sequence of str, optional
        Only these; default: all, and what lies beside the topics.
    progress : callable, optional
        Is told from time to time how far it is.

    Returns
    -------
    VacuumReport
        Objects and bytes, for each topic and reason.

    Raises
    ------
    UnknownTopicOrPartitionError
        There never was such a topic: check the name.
    InvalidRequestError
        `topics` is a single name.
    StoreUnavailableError, DamagedDataError
        The transaction log cannot be read.  What fails in one topic is in the report's `failures`, and the others go
        on: call again; what is deleted is deleted, the rest is still there.
    """
    if isinstance(topics, str):
        raise InvalidRequestError("topics is a list of names; put the name into one", topics=shown(topics))
    run = _Vacuum(warehouse, execute, progress)
    works: list[Callable[[], list[VacuumLine]]]
    if topics is None:
        names = topic_names(warehouse.store.folders(TOPICS_FOLDER))
        works = [*(partial(run.named_topic, name) for name in names), run.beside_topics]
    else:
        works = [partial(run.topic, run.known_topic(name)) for name in dict.fromkeys(topics)]
    lines: list[VacuumLine] = []
    failures: list[str] = []
    for work in works:
        try:
            lines += work()
        except (TxnTableError, OSError) as error:
            failures.append(f"{error.code} {error}" if isinstance(error, TxnTableError) else str(error))
    return VacuumReport(execute, tuple(lines), tuple(failures), tuple(run.notices))


@dataclass(frozen=True, slots=True)
class _Candidate:
    """An object that is to go."""

    meta: ObjectMeta
    reason: Reason


class _Vacuum:
    """One run; everything is judged as of its beginning."""

    def __init__(self, warehouse: Warehouse, execute: bool, progress: ShowProgress | None) -> None:
        self._context, self._store = warehouse.context, warehouse.store
        self._execute, self._progress = execute, progress
        self.notices: list[str] = []
        wall_ms = self._context.environment.instant().wall_ms
        self._now_ms = self._context.clock.now_ms() if execute else wall_ms
        self._offsets = warehouse.offsets
        # Before anything is listed, and once: epochs and ids only rise, so an older view lets too much stay at worst.
        self._producers, self._next_producer_id = producers_of(warehouse.transactions)

    def named_topic(self, name: str) -> list[VacuumLine]:
        """Vacuum the folder of a topic by its name."""
        return self.topic(self.view_of(name))

    def view_of(self, name: str) -> TopicLog:
        """Return a view of a topic's logs that nobody else moves."""
        topic = TopicLog(self._context, name)
        topic.segments.refresh()
        topic.public.refresh()
        return topic

    def known_topic(self, name: str) -> TopicLog:
        """Return the view of a topic that exists, or did."""
        topic = self.view_of(name)
        if topic.segments.table.version is None:
            raise UnknownTopicOrPartitionError("there never was such a topic; check its name", topic=name)
        return topic

    # -- a topic ----------------------------------------------------------------------------

    def topic(self, topic: TopicLog) -> list[VacuumLine]:
        """Vacuum a topic's folder, also when the topic was deleted."""
        tally = Tally(topic.name, self._progress)
        candidates = self._sorted(self._store.list(public_root(topic.name)), tally, self._judge_of(topic))
        for first in range(0, len(candidates), LARGEST_TOMBSTONING):
            part = candidates[first : first + LARGEST_TOMBSTONING]
            if self._execute:
                self._tombstone(topic, part)
                part = self._still_going(topic, part, tally)
            self._delete(part, tally, self._store.delete_unordered)
        return tally.lines()

    def _judge_of(self, topic: TopicLog) -> Judge:
        """Return what judges the topic's files on the states as they are now."""
        segments, public = topic.segments.table, topic.public.table
        if segments.version is None:
            # Without its first version a topic was never there: what lies here is somebody else's.
            return lambda meta: Reason.UNKNOWN
        horizons = Horizons(
            unnamed=self._now_ms - SMALLEST_AGE_MS,
            segments=self._now_ms - segments.deleted_files_retention_ms,
            # A commit takes its time before its put, which may be answered a guard later.
            public=self._now_ms - public.deleted_files_retention_ms - self._context.guard_ms,
        )
        open_here = topic.segments.fold.open
        states = TopicStates(segments, public, open_here, self._producers, self._next_producer_id, horizons)
        root = f"{public_root(topic.name)}/"
        return lambda meta: judge_file(states, meta.path.removeprefix(root), meta.last_modified_ms)

    def _tombstone(self, topic: TopicLog, going: Sequence[_Candidate]) -> None:
        """Give every name that S might take a tombstone there, and let P reflect that version."""
        root = f"{segments_root(topic.name)}/"
        # What other software has left has none of our names.
        names = [one.meta.path.removeprefix(root) for one in going if one.reason is not Reason.REFUSED_WRITE]

        def decide(table: TableState) -> Sequence[Action]:
            return decide_tombstoning(table, names, self._context.clock.now_ms())

        if names:
            topic.commit_segments("TOMBSTONE", decide)
            topic.project()

    def _still_going(self, topic: TopicLog, part: Sequence[_Candidate], tally: Tally) -> list[_Candidate]:
        """Return what goes by the states as they are now; what was saved meanwhile is counted as staying."""
        judge = self._judge_of(topic)
        going = []
        for one in part:
            reason = judge(one.meta)
            if reason.goes:
                going.append(one)
            else:
                tally.count(reason, one.meta)
        return going

    # -- beside the topics ------------------------------------------------------------------

    def beside_topics(self) -> list[VacuumLine]:
        """Vacuum heartbeats, probes, and what killed writers have left."""
        tally = Tally(None, self._progress)
        old_ms = self._now_ms - SMALLEST_AGE_MS
        members = _heartbeats(self._offsets)

        def by_age(reason: Reason) -> Judge:
            return lambda meta: reason if meta.last_modified_ms < old_ms else Reason.YOUNG

        def judge_beat(meta: ObjectMeta) -> Reason:
            return judge_heartbeat(members, meta.path, meta.last_modified_ms, old_ms)

        beats = self._sorted(self._store.list(HEARTBEATS_FOLDER), tally, judge_beat)
        probes = self._sorted(self._store.list(PROBE_FOLDER), tally, by_age(Reason.PROBE))
        self._delete([*beats, *probes], tally, self._store.delete_unordered)
        unfinished = self._sorted(self._unfinished(), tally, by_age(Reason.UNFINISHED))
        self._delete(unfinished, tally, self._store.discard)
        return tally.lines()

    def _unfinished(self) -> Iterator[ObjectMeta]:
        try:
            yield from self._store.unfinished()
        except StorePermissionError as error:
            # Only a rule of the bucket does away with them then.
            self.notices.append(f"uploads that were never completed were not looked for: {error}")

    # -- any place --------------------------------------------------------------------------

    def _sorted(self, found: Iterable[ObjectMeta], tally: Tally, judge: Judge) -> list[_Candidate]:
        """Return what is to go; what stays is counted."""
        going = []
        for meta in found:
            tally.listed()
            reason = judge(meta)
            if reason.goes:
                going.append(_Candidate(meta, reason))
            else:
                tally.count(reason, meta)
        return going

    def _delete(self, going: Sequence[_Candidate], tally: Tally, delete: Callable[[Sequence[str]], None]) -> None:
        for first in range(0, len(going), _DELETED_AT_ONCE):
            part = going[first : first + _DELETED_AT_ONCE]
            if self._execute:
                delete([one.meta.path for one in part])
            for one in part:
                tally.count(one.reason, one.meta)


def producers_of(transactions: TransactionLog) -> tuple[dict[int, int], int]:
    """Return each producer id's epoch whose files may still be named, and the first id that T has not given out."""
    with transactions.log.lock:
        transactions.refresh()
        epochs = {row.producer_id: _epoch_of(row) for row in transactions.rows()}
        return epochs, transactions.log.table.number(NEXT_PRODUCER_ID)


def _epoch_of(row: TransactionMetadata) -> int:
    if row.state.is_decided and row.decision is not None:
        # What a decision carries, and its markers, are named by no partition log before it is completed.
        return row.decision.epoch
    return row.producer_epoch


def _heartbeats(offsets: OffsetLog) -> set[str]:
    """Return the paths of the heartbeats of all members of all groups."""
    groups = offsets.look(lambda: list(offsets.log.fold.groups.values()))
    return {heartbeat_path(group.group, member_id) for group in groups for member_id in group.members}
