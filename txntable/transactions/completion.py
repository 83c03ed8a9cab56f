"""Completing decided transactions: markers, projections, offsets, COMPLETE (PROTOCOL.md §6.4).

Anyone may: the producer, an admin, the next producer of the id, a reader with write permission.
Owns the order: T is read first, every enrolled topic gets its markers and is projected, the offsets of
every enrolled group are settled.  Then the decision is known complete: the id's next entry is decided on the row as
COMPLETE would leave it, and COMPLETE itself is written only for what stays the last of a series.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from functools import partial
from typing import Any

from txntable.coordinator.decision import Decision, Outcome
from txntable.coordinator.store_time import has_passed
from txntable.coordinator.transaction import TransactionMetadata
from txntable.coordinator.transaction_request import Transition
from txntable.coordinator.transaction_shard import complete, time_out
from txntable.coordinator.transaction_state import TransactionState
from txntable.errors import DamagedDataError, StorePermissionError, UnknownTopicOrPartitionError
from txntable.format.layout import TOPICS_FOLDER, TRANSACTION_LOG_ROOT, commit_path, topic_names
from txntable.log.keyed_log import LARGEST_COMMIT_ROWS
from txntable.log.log_view import LogView
from txntable.log.request_queue import RowChange
from txntable.log.table_state import TableState
from txntable.offsets.offset_log import DECIDED_THROUGH, OffsetLog
from txntable.partition.completion import OwedMarker
from txntable.partition.markers import Control
from txntable.partition.offsets import decided_through
from txntable.partition.open_transactions import HangingEpoch, open_in_topic
from txntable.storage.side_by_side import side_by_side
from txntable.topics.topic_log import TopicLog, known, lost_log
from txntable.transactions.completion_linger import CompletionLinger
from txntable.transactions.decided_end import require_settled
from txntable.transactions.transaction_log import TransactionLog
from txntable.transactions.transaction_rows import id_columns

logger = logging.getLogger(__name__)

_CONTROL = {Outcome.COMMIT: Control.COMMIT, Outcome.ABORT: Control.ABORT}


class Completer:
    """Completes what the transaction log has decided.

    Parameters
    ----------
    transactions : TransactionLog
        T.
    topic_log : callable
        Topic name -> its logs.
    offsets : OffsetLog
        O.
    given_up : collection of str
        Names of topics that have lost their partition logs for good: what transactions wrote there is owed no more.

    Attributes
    ----------
    transactions : TransactionLog
        T.
    offsets : OffsetLog
        O.
    """

    def __init__(
        self,
        transactions: TransactionLog,
        topic_log: Callable[[str], TopicLog],
        offsets: OffsetLog,
        given_up: Collection[str] = (),
    ) -> None:
        self.transactions = transactions
        self.offsets = offsets
        self._given_up = given_up
        self._context = transactions.context
        self._topic_log = topic_log
        self._linger = CompletionLinger(self._context.environment, self.record)

    # -- one id's decision ------------------------------------------------------------------

    def bring(self, transactional_id: str) -> None:
        """Do what is owed of the decided transaction of one id, if there is one: then it is known complete.

        For who has decided it just now.  COMPLETE is left to the id's next entry; see :meth:`complete_soon`.

        Raises
        ------
        CommitStateUnknownError, StoreUnavailableError
            Call again, or leave it to others: the decision stands.
        """
        row = self.transactions.row(transactional_id)
        if row is not None and row.state.is_decided:
            self.bring_row(row)

    def look_and_bring(self, transactional_id: str) -> None:
        """Do the same for who meets a decision, which others may have completed; raises as :meth:`bring`."""
        row = self.transactions.row(transactional_id)
        if row is not None and row.state.is_decided:
            self.bring_rows([row])

    def complete_soon(self, transactional_id: str) -> None:
        """Let COMPLETE be written when the id has no next entry within a moment."""
        if self._context.environment.has_background:
            self._linger.wait_for(transactional_id)

    def record_last(self, transactional_id: str) -> None:
        """Write COMPLETE for the id's last transaction now, if it is known complete; raises as :meth:`bring`."""
        self._linger.forget(transactional_id)
        self.record([transactional_id])

    def complete(self, transactional_id: str) -> int:
        """Complete the decided transaction of one id, if there is one, and write COMPLETE; raises as :meth:`bring`.

        Returns
        -------
        int
            How many transactions the same work completed; 0: others were first.
        """
        self.bring(transactional_id)
        return self.record() if self.transactions.is_unrecorded(transactional_id) else 0

    # -- all decisions ----------------------------------------------------------------------

    def fence_logs(self) -> None:
        """Begin a new incarnation of every log: what processes of before a restore still put is void (§6.7).

        Raises
        ------
        DamagedDataError
            The end of a log is lost; nothing was written.
        CommitStateUnknownError, StoreUnavailableError
            Call again.
        """
        topics = [self._topic_log(name) for name in topic_names(self._context.store.folders(TOPICS_FOLDER))]
        # Before the first of them: a fence would take the place of what is lost.
        require_settled(self.transactions, self.offsets)
        for topic in topics:
            topic.prove_whole()
            topic.require_decided()
        for log in (self.transactions.log, self.offsets.log):
            known(log.fence(), log.root)
        for topic in topics:
            topic.fence()

    def complete_all(self) -> int:
        """Complete all that is decided, publish all that is appended; return how many transactions that were."""
        completed = self.complete_decided()
        for name in topic_names(self._context.store.folders(TOPICS_FOLDER)):
            # A plain writer may have died between its append and its projection: T knows nothing of it.
            with suppress(UnknownTopicOrPartitionError):
                self._topic_log(name).catch_up()
        return completed

    def complete_decided(self) -> int:
        """Complete everything that is decided as of now; return how many transactions that were."""
        self.bring_decided()
        return self.record()

    def bring_decided(self) -> None:
        """Do what is owed of everything that is decided as of now; raises as :meth:`bring`."""
        self.bring_rows(self.transactions.look(self.transactions.log.fold.incomplete))

    def bring_rows(self, rows: Iterable[TransactionMetadata]) -> None:
        """Do what is owed of decided transactions, and is not done yet; raises as :meth:`bring`.

        Parameters
        ----------
        rows : iterable of TransactionMetadata
            In a state PREPARE_*, as T has them.  All that others have done of them is known when this raises, too.
        """
        met = list(rows)
        self.look_at(met)
        for row in met:
            self.bring_row(row)

    def look_at(self, rows: Collection[TransactionMetadata]) -> None:
        """Read what others have done of decided transactions, each log once and all at the same time.

        A log that these credentials may not read tells nothing.  Raises as :meth:`bring`.
        """
        topics = {topic_id: self._topic_log(topic.name) for row in rows for topic_id, topic in row.topics.items()}
        has_groups = any(row.groups for row in rows)
        logs: list[LogView[Any]] = [topic.public for topic in topics.values()]
        if has_groups:
            logs.append(self.offsets.log)
        side_by_side(self._context.store, [partial(_refresh_readable, log) for log in logs])
        for topic_id, topic in topics.items():
            topic.require_decided(topic_id)
        if has_groups:
            require_settled(self.transactions, self.offsets)
        shown = {topic_id: decided_through(topic.public.table.numbers, topic_id) for topic_id, topic in topics.items()}
        settled = self.offsets.log.table.number(DECIDED_THROUGH) if has_groups else 0
        # P takes its number over from S: so this shows what S owed, and that P shows it.
        self.transactions.know_complete(
            lambda row: (
                all(shown.get(topic_id, 0) >= row.position for topic_id in row.topics)
                and (settled >= row.position or not row.groups)
            )
        )

    def bring_row(self, row: TransactionMetadata) -> None:
        """Do what is owed of one decided transaction, and of others by the same work; raises as :meth:`bring`.

        Nothing when it is known complete, or the id has gone beyond it.
        """
        if not self.transactions.is_incomplete(row):
            return
        steps: list[Callable[[], int]] = [
            partial(self._bring_topic, self._topic_log(topic.name), topic_id, row.position)
            for topic_id, topic in row.topics.items()
        ]
        if row.groups:
            steps.append(partial(self._bring_offsets, row.position))
        through = min(side_by_side(self._context.store, steps), default=row.position)
        # What was decided at or below it and enrolled no other topics has its markers and is published; so are the
        # offsets of all groups settled, when this one's are.
        self.transactions.know_complete(
            lambda other: (
                other.position <= through
                and other.topics.keys() <= row.topics.keys()
                and bool(other.groups) <= bool(row.groups)
            )
        )

    def record(self, transactional_ids: Collection[str] | None = None) -> int:
        """Write COMPLETE for what is known complete, in one slot of T for all; raises as :meth:`bring`.

        Parameters
        ----------
        transactional_ids : collection of str, optional
            Of these ids alone; by default of all.

        Returns
        -------
        int
            How many transactions that were; others may have been first.
        """

        def due() -> list[TransactionMetadata]:
            rows = self.transactions.log.fold.unrecorded()
            return [row for row in rows if transactional_ids is None or row.transactional_id in transactional_ids]

        def request(table: TableState) -> RowChange[int]:
            now = [complete(row, row.position, table.next_version).row for row in due()[:LARGEST_COMMIT_ROWS]]
            done = [id_columns(row) for row in now if row is not None]
            return RowChange(len(done), done)

        recorded = 0
        with self.transactions.log.lock:
            while due():
                recorded += self.transactions.run("COMPLETE", request)
        return recorded

    # -- the work ---------------------------------------------------------------------------

    def _bring_topic(self, topic: TopicLog, topic_id: str, position: int) -> int:
        """Complete a topic up to a decision, unless another has done so while this one waited for it."""

        def shown() -> int:
            return decided_through(topic.public.table.numbers, topic_id)

        with topic.completing:
            if shown() >= position:
                return shown()
            with topic.turn_to_complete(lambda: shown() >= position) as have_others_completed:
                if have_others_completed:
                    topic.public.refresh()
                    if shown() >= position:
                        return shown()
                    # What others have decided since is completed by the same work: they are waiting for the turn.
                    self.transactions.refresh()
                return self.bring_through(topic, topic_id)

    def _bring_offsets(self, position: int) -> int:
        with self.offsets.settling:
            settled = self.offsets.log.table.number(DECIDED_THROUGH)
            return settled if settled >= position else self.settle_offsets()

    def bring_through(self, topic: TopicLog, topic_id: str) -> int:
        """Write every marker that the topic is owed as far as T is known, and project the topic.

        Returns
        -------
        int
            The version of T up to which the topic is complete now.

        Raises
        ------
        DamagedDataError
            The topic has lost its log: as long as it is not restored, or given up, its transactions are not complete.
        TransactionCoordinatorFencedError
            The coordinator job lost its lease: nothing was written.
        """
        owed, known_through = self._owed_to(topic, topic_id)
        # With what both logs are: none of it stands where one of them has lost its end.
        topic.require_decided(topic_id)
        if not topic.has_log and topic.name not in self._given_up and topic.segments.refresh().version is None:
            raise lost_log(topic.name)
        with self._context.store.series():
            topic.write_markers(topic_id, owed, known_through)
            topic.project(owed)
        return known_through

    def settle_offsets(self) -> int:
        """Settle the pending offsets of every decided transaction as far as T is known, in all groups.

        Returns
        -------
        int
            The version of T up to which no offset is pending now, nor ever will be.

        Raises
        ------
        TransactionCoordinatorFencedError
            The coordinator job lost its lease: nothing was written.
        CommitStateUnknownError, StoreUnavailableError
            Call again, or leave it to others.
        """
        log = self.transactions.log
        with log.lock:
            known_through = log.ensure_fresh().next_version - 1
            self.transactions.check_lease()
            decided = {
                (row.producer_id, row.decision.epoch): row.decision
                for row in log.fold.incomplete()
                if row.decision and row.groups
            }
        self.offsets.settle(decided, known_through)
        return known_through

    def abort_hanging(self, topic: TopicLog, topic_id: str, hanging: HangingEpoch) -> None:
        """Write the ABORT marker of a hanging transaction in a topic, and project the topic (PROTOCOL.md §6.5).

        Raises
        ------
        CommitStateUnknownError, StoreUnavailableError
            Call again.
        """
        owed, known_through = self._owed_to(topic, topic_id)
        topic.require_decided(topic_id)
        topic.write_abort_marker(topic_id, hanging, owed, known_through)
        topic.project(owed)

    def _owed_to(self, topic: TopicLog, topic_id: str) -> tuple[list[OwedMarker], int]:
        """Return the markers that a topic may be owed, and the version of T up to which these are all."""
        log = self.transactions.log
        # All from the same view: "known to h" and "these are all that is decided up to h" are one fact.
        with log.lock:
            known_through = log.ensure_fresh().version
            self.transactions.check_lease()
            coordinator_epoch = self.transactions.coordinator_epoch()
            owed = [
                _owed(row, topic_id, log.fold.decision_ms(row.transactional_id), coordinator_epoch)
                for row in log.fold.incomplete_of(topic_id, decided_through(topic.segments.table.numbers, topic_id))
            ]
        if known_through is None:
            raise DamagedDataError("the transaction log is gone; restore it from a backup", log=log.root)
        return owed, known_through

    def abort_timed_out(self) -> int:
        """Abort and complete every ongoing transaction whose timeout has passed; return how many."""
        under_way = self.transactions.look(lambda: list(self.transactions.log.fold.under_way.values()))
        aborted = 0
        for row in under_way:
            if self.time_out(row):
                self.complete(row.transactional_id)
                aborted += 1
        return aborted

    def abort_timed_out_in(self, topic: TopicLog, topic_id: str) -> None:
        """Abort and complete each transaction that holds readers of a topic back beyond its timeout.

        For who reads below the last stable offset.  While no data is old enough nothing is asked of the store but,
        now and then, its time: a transaction began before its first append.  Raises as :meth:`time_out`.

        Parameters
        ----------
        topic : TopicLog
            The topic's logs, just read; T as well.
        topic_id : str
            Of the topic.

        Raises
        ------
        StorePermissionError
            Who may not write waits for who may.
        """
        with topic.segments.lock:
            open_here = list(open_in_topic(topic.segments.fold))
        if not open_here:
            return
        try:
            topic.require_decided(topic_id)
        except DamagedDataError as error:
            # The decision would take the place of a lost one.  Who reads reads on: jobs and checks fail.
            logger.warning("what timed out is not ended: %s", error)
            return
        since_ms: dict[tuple[int, int], int] = {}
        for one in open_here:
            key = one.producer_id, one.producer_epoch
            since_ms[key] = min(one.since_ms, since_ms.get(key, one.since_ms))
        now_ms = self._context.clock.now_ms()
        log = self.transactions.log
        with log.lock:
            log.ensure_fresh()
            under_way = list(log.fold.under_way.values())
        for row in under_way:
            began_ms = since_ms.get((row.producer_id, row.producer_epoch))
            is_due = began_ms is not None and has_passed(now_ms - began_ms, row.timeout_ms)
            if is_due and topic_id in row.topics and self.time_out(row):
                self.complete(row.transactional_id)

    def time_out(self, seen: TransactionMetadata) -> bool:
        """Decide the abort of a transaction if it is ongoing and its timeout has passed, by the store's time.

        A transaction's clock starts with its first enrolment: the time of that entry of T is asked from
        the store.  An entry that was cleaned up is older than any timeout.

        Parameters
        ----------
        seen : TransactionMetadata
            The row as a view knows it.

        Returns
        -------
        bool
            Whether this call decided it: it is to be completed.

        Raises
        ------
        CommitStateUnknownError, StoreUnavailableError
            Call again.
        """
        if seen.state is not TransactionState.ONGOING or seen.started_position is None:
            return False
        now_ms = self._context.clock.now_ms()
        entry = self._context.store.head(commit_path(TRANSACTION_LOG_ROOT, seen.started_position))
        elapsed_ms = None if entry is None else now_ms - entry.last_modified_ms

        def request(row: TransactionMetadata | None, position: int) -> Transition[Decision | None]:
            # The elapsed time was measured for this transaction, not for whatever the id does by now.
            if row is None or row.started_position != seen.started_position:
                return Transition(None, None)
            return time_out(row, elapsed_ms, position)

        is_decided = self.transactions.request("TIME_OUT", seen.transactional_id, request) is not None
        if is_decided:
            self._context.counters.add("transaction-metrics/timed-out-total")
            logger.info(
                "transaction timed out transactional_id=%s producer_id=%d timeout_ms=%d",
                seen.transactional_id,
                seen.producer_id,
                seen.timeout_ms,
            )
        return is_decided


def _refresh_readable(log: LogView[Any]) -> None:
    with suppress(StorePermissionError):
        log.refresh()


def _owed(row: TransactionMetadata, topic_id: str, decided_at_ms: int, coordinator_epoch: int) -> OwedMarker:
    decision = row.decision
    if decision is None:
        raise DamagedDataError("a decided transaction has no decision", transactional_id=row.transactional_id)
    return OwedMarker(
        producer_id=row.producer_id,
        ends=decision.epoch,
        control=_CONTROL[decision.outcome],
        position=decision.position,
        decided_at_ms=decided_at_ms,
        partitions=row.topics[topic_id].partitions,
        segments=row.manifest.get(topic_id, ()),
        coordinator_epoch=coordinator_epoch,
        transactional_id=row.transactional_id,
        batch_id=decision.batch_id,
    )
