"""Verifying a warehouse: T, then each topic, then O, then T once more.

Owns the order, in which each log is read after those that it may run behind of: so what another process writes
meanwhile is never taken for damage.  Writes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from txntable.coordinator.offset_upkeep import topic_ids
from txntable.coordinator.transaction import TransactionMetadata
from txntable.errors import StorePermissionError
from txntable.format.layout import OFFSET_LOG_ROOT, TOPICS_FOLDER, TRANSACTION_LOG_ROOT, public_root, topic_names
from txntable.log.keyed_table import KIND
from txntable.offsets.offset_log import DECIDED_THROUGH, SETTLED_THROUGH, OffsetLogFold
from txntable.partition.append import unknown_topic
from txntable.partition.offsets import DECIDED_THROUGH as OF_TOPIC
from txntable.partition.offsets import per_topic
from txntable.storage.object_store import ObjectStore
from txntable.transactions.transaction_log import NEXT_PRODUCER_ID, TransactionLogFold
from txntable.transactions.transaction_rows import ID_KIND, id_row_of
from txntable.verification.causes import in_order
from txntable.verification.constant_files import damages_of_constant_files
from txntable.verification.damage import Damage, DamageKind, Progress, Verification
from txntable.verification.decision_record import DecisionRecord, RecordedDecision
from txntable.verification.doubted_projections import doubted
from txntable.verification.keyed_rules import OffsetRules, offsets_against_decisions
from txntable.verification.log_replay import LogReplay
from txntable.verification.lost_ends import (
    Witness,
    lost_end_of_offsets,
    lost_end_of_transactions,
    lost_settlements,
    unsettled,
)
from txntable.verification.topic_rules import markers_against_decisions, open_against_rows
from txntable.verification.topic_verification import TopicVerification
from txntable.verification.transaction_rules import TransactionRules
from txntable.verification.warehouse_identity import damages_of_identity


class WarehouseVerification:
    """One look at everything that is stored.

    Parameters
    ----------
    store : ObjectStore
        The warehouse's.
    warehouse_id : str
        As ``_warehouse.json`` says.
    guard_ms : int
        See :class:`LogReplay`.
    now_ms : callable
        Returns the time, ms since 1970: vacuum may have deleted what was taken away long enough before.
    """

    def __init__(self, store: ObjectStore, warehouse_id: str, guard_ms: int, now_ms: Callable[[], int]) -> None:
        self._store, self._guard_ms, self._now_ms = store, guard_ms, now_ms
        self._warehouse_id = warehouse_id
        self._transactions = LogReplay(store, TRANSACTION_LOG_ROOT, TransactionLogFold, TransactionRules, guard_ms)
        self._offsets = LogReplay(store, OFFSET_LOG_ROOT, OffsetLogFold, OffsetRules, guard_ms)
        self._topics: list[TopicVerification] = []
        self._not_allowed: dict[str, Damage] = {}
        # T's entries below it were read before any topic: what they name, its log has.
        self._read_before = self._seen_settled = 0
        self._damages: list[Damage] = []

    def run(self, topics: Sequence[str] | None, progress: Progress) -> Verification:
        """Read everything, or some topics and what stands beside them.

        Parameters
        ----------
        topics : sequence of str, optional
            Default: all.
        progress : callable
            Is told how far it is.

        Raises
        ------
        UnknownTopicOrPartitionError
            There is no such topic.
        StoreUnavailableError
            Call again; nothing is said of what was not read.
        StorePermissionError
            The warehouse's own two logs may not be read.  A topic that may not be read is told among the damages.
        """
        self._transactions.advance(progress)
        complete, under_way = self._by_completeness()
        self._read_before = self._transactions.table.next_version
        self._seen_settled = self._transactions.table.number(SETTLED_THROUGH)
        names = topic_names(self._store.folders(TOPICS_FOLDER))
        for name in names if topics is None else topics:
            with self._if_allowed(name):
                topic = self._topic(name)
                topic.run(complete, progress)
                if topics is not None and not (topic.is_there or name in self._named()):
                    raise unknown_topic(name)
                self._topics.append(topic)
        self._offsets.advance(progress)
        self._transactions.advance(progress)
        self._damages += self._of_lost_topics(topics, progress)
        self._damages += self._of_keyed_logs(bool(names), progress)
        self._damages += self._of_offsets(complete, under_way)
        self._damages += self._of_topics()
        return self._told()

    def _topic(self, name: str) -> TopicVerification:
        return TopicVerification(self._store, name, self._decisions, self._guard_ms, self._now_ms)

    @contextmanager
    def _if_allowed(self, name: str) -> Iterator[None]:
        """Give a block that reads a topic, which ends where that is not allowed."""
        try:
            yield
        except StorePermissionError as error:
            self._not_allowed[name] = Damage(DamageKind.NOT_ALLOWED, public_root(name), str(error))

    @property
    def _decisions(self) -> DecisionRecord:
        return self._transaction_rules.decisions

    @property
    def _transaction_rules(self) -> TransactionRules:
        assert isinstance(self._transactions.rules, TransactionRules)
        return self._transactions.rules

    @property
    def _offset_rules(self) -> OffsetRules:
        assert isinstance(self._offsets.rules, OffsetRules)
        return self._offsets.rules

    def _rows(self) -> list[TransactionMetadata]:
        adds = self._transactions.table.files
        return [id_row_of(add) for add in adds if add.partition_values.get(KIND) == ID_KIND]

    def _by_completeness(self) -> tuple[list[RecordedDecision], list[RecordedDecision]]:
        """Return the decisions of which T says that nothing is owed, and those in PREPARE_*."""
        if not self._transactions.is_whole:
            return [], []
        owing = {(row.producer_id, row.producer_epoch - 1) for row in self._rows() if row.state.is_decided}
        split: tuple[list[RecordedDecision], list[RecordedDecision]] = ([], [])
        for one in self._decisions:
            split[(one.producer_id, one.epoch) in owing].append(one)
        return split

    def _named(self) -> dict[str, str]:
        """Return the topics that T and O name as far as they were read, each with who does."""
        named: dict[str, str] = {}
        for row in self._rows():
            named |= {one.name: f"transactional id {row.transactional_id}" for one in row.topics.values()}
        for decision in self._decisions:
            named |= {one.name: f"the decision at {decision.position}" for one in decision.topics.values()}
        for group, rows in self._offsets.fold.offsets.items():
            for offset in rows.values():
                if topic_ids(offset) - {""}:
                    named.setdefault(offset.topic, f"group {group}")
        return named

    def _of_lost_topics(self, topics: Sequence[str] | None, progress: Progress) -> Iterator[Damage]:
        """Look for the logs of topics that T and O name: a topic that was deleted keeps them."""
        read = {topic.name: topic for topic in self._topics}
        for name, who in sorted(self._named().items()):
            if topics is not None and name not in topics:
                continue
            if name not in read:
                # Created since the folders were listed, or lost with its folder.
                read[name] = self._topic(name)
                with self._if_allowed(name):
                    read[name].segments.advance(progress)
            if not (read[name].is_there or name in self._not_allowed):
                root = read[name].segments.root
                yield Damage(DamageKind.LOG_MISSING, root, f"{who} names the topic, and its segment log is not there")

    def _of_keyed_logs(self, has_topics: bool, progress: Progress) -> Iterator[Damage]:
        for log in (self._transactions, self._offsets):
            if not log.exists and not log.damages and has_topics:
                yield Damage(DamageKind.LOG_MISSING, log.root, "the warehouse has topics and has lost this log")
            yield from damages_of_constant_files(self._store, log.root, sorted(log.table.files.paths()), progress)
        shown = {
            TRANSACTION_LOG_ROOT: self._transaction_rules.metadata,
            OFFSET_LOG_ROOT: self._offset_rules.metadata,
        }
        yield from damages_of_identity(self._warehouse_id, shown)

    def _of_offsets(
        self, complete: Iterable[RecordedDecision], under_way: Iterable[RecordedDecision]
    ) -> Iterator[Damage]:
        """Hold O against T; what is complete, or under way, T said before O was read."""
        offsets, transactions = self._offsets, self._transactions
        if not (offsets.is_whole and transactions.is_whole and offsets.exists):
            return
        settled = offsets.table.number(DECIDED_THROUGH)
        named = [
            *lost_settlements(settled, complete),
            *lost_end_of_offsets(settled, self._offset_rules.pending, under_way),
        ]
        yield from named or unsettled(settled, self._seen_settled)
        head = transactions.table.version
        yield from offsets_against_decisions(offsets.table, offsets.fold, self._decisions, head)

    def _of_topics(self) -> Iterator[Damage]:
        transactions = self._transactions
        if not transactions.is_whole or not transactions.exists:
            return
        rows = {row.producer_id: row for row in self._rows()}
        head, free = transactions.table.version, transactions.table.number(NEXT_PRODUCER_ID)
        yield from lost_end_of_transactions(transactions.table.next_version - 1, self._witnesses())
        for topic in self._topics:
            yield from self._covered(topic)
            if topic.segments.exists:
                yield from markers_against_decisions(topic.name, topic.rules.markers, self._decisions, head)
            if topic.segments.is_whole:
                yield from open_against_rows(topic.name, topic.segments.fold, rows, free)

    def _witnesses(self) -> list[Witness]:
        """Return what S and O show of T: both were read before T was read to its end."""
        found = [Witness("the offset log", self._offsets.table.number(DECIDED_THROUGH))]
        for topic in self._topics:
            numbers, prefix = topic.segments.table.numbers, per_topic(OF_TOPIC, "")
            through = max((number for name, number in numbers.items() if name.startswith(prefix)), default=0)
            found.append(Witness(f"topic {topic.name}", through, topic.rules.markers.values()))
        return found

    def _covered(self, topic: TopicVerification) -> Iterator[Damage]:
        """Look for a topic whose folder was lost before another one of the name was created."""
        log = topic.segments
        if not (log.exists and log.is_whole and log.began_at is None):
            return
        lost = {
            topic_id: decision.position
            for decision in self._decisions
            for topic_id, enrolled in decision.topics.items()
            if decision.position < self._read_before
            and enrolled.name == topic.name
            and topic_id not in topic.rules.topic_ids
        }
        for topic_id, position in lost.items():
            problem = f"the decision at {position} names an earlier topic of the name, {topic_id}, whose log was lost"
            yield Damage(DamageKind.LOG_COVERED, log.root, f"{problem}, and the one that is there was made over it")

    def _told(self) -> Verification:
        topics = self._topics
        logs = [self._transactions, self._offsets, *(log for one in topics for log in (one.public, one.segments))]
        damages = {each for log in logs for each in log.damages} | {each for one in topics for each in one.damages}
        damages = doubted(damages | {*self._damages, *self._not_allowed.values()})
        return Verification(
            sum(log.exists for log in logs),
            sum(log.entries for log in logs),
            sum(log.checkpoints for log in logs),
            sum(one.files for one in topics),
            sum(one.bytes for one in topics),
            in_order(damages),
        )
