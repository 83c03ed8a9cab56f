"""A producer's side of the coordinator: requests to the transaction log, and completion.

Owns the loops that Kafka's client has (init until granted), and the rule that an append is verified
on a reading of T newer than the partition log's state (PROTOCOL.md §6.3).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from txntable.coordinator.batch_memory import BatchId, BatchMemory, CommittedBatches, check_batch_id
from txntable.coordinator.decision import Decision, Outcome, PastDecision
from txntable.coordinator.enrolment import EnrolledTopic
from txntable.coordinator.group import GroupRow
from txntable.coordinator.group_request import OffsetLogTransition
from txntable.coordinator.manifest import NOTHING_CARRIED, Manifest
from txntable.coordinator.offset_request import OffsetTransaction
from txntable.coordinator.offset_shard import Refused
from txntable.coordinator.offset_shard import commit as commit_offsets
from txntable.coordinator.prepared_token import PreparedToken, compare_token
from txntable.coordinator.transaction import TransactionMetadata
from txntable.coordinator.transaction_guard import refused
from txntable.coordinator.transaction_request import (
    EndRequest,
    EnrolRequest,
    InitRequest,
    PrepareRequest,
    ProducerIdentity,
    Transition,
)
from txntable.coordinator.transaction_shard import (
    carried_batch,
    end,
    enrol,
    init_producer,
    prepare,
    verify,
    verify_offsets,
)
from txntable.errors import (
    ConcurrentTransactionsError,
    InvalidPidMappingError,
    InvalidProducerEpochError,
    TxnTableError,
    UnstableOffsetCommitError,
)
from txntable.log.delta_log import DeltaLog
from txntable.log.log_view import LogView
from txntable.log.request_queue import AnswerT
from txntable.offsets.group_commit import GroupCommit
from txntable.offsets.offset_log import GroupOffsets
from txntable.partition.batch import ProducerEpoch
from txntable.partition.partition_log import PartitionLogs
from txntable.producer.appender import Staged, VerifyFor
from txntable.storage.retries import ending_within
from txntable.topics.topic_log import TopicLog, Verify
from txntable.transactions.completion import Completer
from txntable.transactions.decided_end import require_settled
from txntable.transactions.transaction_log import NEXT_PRODUCER_ID, Request

logger = logging.getLogger(__name__)

DEFAULT_TIMEOUT_MS = 60_000
_COMPLETION_ROUNDS = 20
_RECORD_PATIENCE_MS = 5_000


@dataclass(frozen=True, slots=True)
class Ending:
    """How a producer asks for its transaction to be ended.

    Attributes
    ----------
    outcome : Outcome
        Commit or abort.
    batch_id : str or int, optional
        What the producer knows of it.
    manifest : Manifest
        The segments that a commit appends.
    repeated : bool
        Whether it was asked before, and the outcome is not known.
    """

    outcome: Outcome
    batch_id: BatchId | None = None
    manifest: Manifest = NOTHING_CARRIED
    repeated: bool = False


class CoordinatorClient:
    """Requests of producers, run by this process over the shared log.

    Parameters
    ----------
    completer : Completer
        Completes decided transactions; knows T and O.
    topic_log : callable
        Topic name -> its logs.
    max_timeout_ms : int
        The warehouse's ``transaction_max_timeout_ms``.
    """

    def __init__(self, completer: Completer, topic_log: Callable[[str], TopicLog], max_timeout_ms: int) -> None:
        self._transactions = completer.transactions
        self._completer = completer
        self._offsets = completer.offsets
        self.topic_log = topic_log
        self._max_timeout_ms = max_timeout_ms
        self._producer_ids = range(0)

    def init(self, transactional_id: str, timeout_ms: int | None, *, keep_prepared: bool = False) -> ProducerIdentity:
        """Take the id: complete what is decided, abort what is open, until the id is free.

        Parameters
        ----------
        transactional_id : str
            The id.
        timeout_ms : int, optional
            The transaction timeout; ``None``: what the id has, and Kafka's default for a new one.
        keep_prepared : bool
            Whether a prepared transaction is taken over with its token, instead of refused.

        Raises
        ------
        ConcurrentTransactionsError
            Others kept it busy all the time; call again.
        DamagedDataError
            The transaction log has lost its newest entries: nothing was written.
        """

        def request(row: TransactionMetadata | None, position: int) -> Transition[ProducerIdentity | Decision]:
            next_id = self._transactions.log.table.number(NEXT_PRODUCER_ID)
            timeout = self._kept_timeout_ms(row) if timeout_ms is None else timeout_ms
            asked = InitRequest(transactional_id, next_id, timeout, position, self._max_timeout_ms, keep_prepared)
            return init_producer(row, asked)

        require_settled(self._transactions, self._offsets)
        for _ in range(_COMPLETION_ROUNDS):
            try:
                answer = self._transactions.request("INIT", transactional_id, request)
                if isinstance(answer, ProducerIdentity):
                    return answer
            except ConcurrentTransactionsError:
                pass
            self._completer.look_and_bring(transactional_id)
        raise ConcurrentTransactionsError(
            "other producers with this transactional id keep beginning transactions; call again",
            transactional_id=transactional_id,
        )

    def _kept_timeout_ms(self, row: TransactionMetadata | None) -> int:
        # The warehouse's largest may have become less since the id had its own.
        return min(DEFAULT_TIMEOUT_MS if row is None else row.timeout_ms, self._max_timeout_ms)

    def new_producer_id(self) -> int:
        """Return a producer id for a producer without a transactional id."""
        if not self._producer_ids:
            require_settled(self._transactions, self._offsets)
            self._producer_ids = self._transactions.allocate_producer_ids()
        taken, self._producer_ids = self._producer_ids[0], self._producer_ids[1:]
        return taken

    def memory(self, transactional_id: str, batch_id: BatchId) -> BatchMemory:
        """Return what T remembers of a batch id, now.

        Raises
        ------
        InvalidRequestError
            It is no batch id: give another.
        """
        check_batch_id(batch_id)
        return self._transactions.look(lambda: self._transactions.memory(transactional_id, batch_id))

    def committed_batches(self, transactional_id: str) -> CommittedBatches:
        """Return what the view of T remembers of all batches of an id.

        It shows at least what was there when this producer began; whoever began since has fenced it.
        """
        return self._transactions.committed_batches(transactional_id)

    def enrol(
        self, transactional_id: str, producer: ProducerEpoch, staged: Mapping[str, Staged], groups: tuple[str, ...] = ()
    ) -> None:
        """Enrol the partitions that are about to be appended to before the decision, and groups whose offsets are.

        The logs' states are read before: so the enrolment's own put counts as the reading of T that
        an append's first attempt needs.
        """
        topics: dict[str, EnrolledTopic] = {}
        for topic_id, one in staged.items():
            one.topic.segments.ensure_fresh()
            topics[topic_id] = EnrolledTopic(one.settings.name, one.partitions)
        if groups:
            self._offsets.log.ensure_fresh()
        self._request(
            "ENROL",
            transactional_id,
            lambda row, position: enrol(
                row, EnrolRequest(producer.producer_id, producer.epoch, position, topics, groups)
            ),
        )

    def send_offsets(self, transaction: OffsetTransaction, offsets: GroupCommit) -> None:
        """Append a group's offsets as pending ones of the transaction; the group is enrolled already.

        Raises
        ------
        OffsetMetadataTooLargeError
            Nothing was written: shorten the text.
        UnstableOffsetCommitError
            Another transaction with offsets of these partitions is open: call again, or abort.
        TxnTableError
            As :func:`txntable.coordinator.offset_shard.commit` and
            :func:`txntable.coordinator.verification.verify_offsets`.
        """

        def request(row: GroupRow | None, rows: GroupOffsets, position: int) -> OffsetLogTransition[Refused]:
            id_row = self._newest_row(transaction.transactional_id, self._offsets.log)
            verify_offsets(id_row, transaction.producer_id, transaction.epoch, offsets.group)
            return commit_offsets(row, rows, offsets.request(position, transaction))

        try:
            self._offsets.request("SEND OFFSETS", offsets.group, request)
        except UnstableOffsetCommitError:
            self._completer.bring_decided()
            self._offsets.request("SEND OFFSETS", offsets.group, request)

    def _request(self, operation: str, transactional_id: str, request: Request[AnswerT]) -> AnswerT:
        """Make a request; when the id's last transaction was left to others, see first that nothing is owed of it."""
        try:
            return self._transactions.request(operation, transactional_id, request)
        except ConcurrentTransactionsError:
            self._completer.look_and_bring(transactional_id)
            return self._transactions.request(operation, transactional_id, request)

    def _newest_row(self, transactional_id: str, after: LogView[Any] | None = None) -> TransactionMetadata | None:
        return self._transactions.look(lambda: self._transactions.row(transactional_id), after)

    def verifier(self, transactional_id: str, producer: ProducerEpoch) -> VerifyFor:
        """Return what appends of the transaction are verified by, at every attempt."""

        def verify_for(topic_id: str, partitions: frozenset[int]) -> Verify:
            def check(segments: DeltaLog[PartitionLogs]) -> None:
                row = self._newest_row(transactional_id, segments)
                verify(row, producer.producer_id, producer.epoch, topic_id, partitions)

            return check

        return verify_for

    @contextmanager
    def telling_who_ended(self, transactional_id: str, producer: ProducerEpoch) -> Iterator[None]:
        """Let a partition's refusal of the producer's epoch say who ended it: T's row knows, and is read only then."""
        try:
            yield
        except InvalidProducerEpochError as error:
            if "transactional_id" in error.facts:
                raise
            told = self._who_ended(transactional_id, producer)
            if told is None:
                raise
            raise told from error

    def _who_ended(self, transactional_id: str, producer: ProducerEpoch) -> TxnTableError | None:
        try:
            row = self._newest_row(transactional_id)
        except TxnTableError as error:
            logger.debug("who ended the transaction could not be looked up: %s", error)
            return None
        if row is None or row.producer_id != producer.producer_id or row.producer_epoch <= producer.epoch:
            return None
        return refused(InvalidProducerEpochError, row, producer.epoch)

    def new_token(self, transactional_id: str, producer: ProducerEpoch) -> str:
        """Return a token for the producer's transaction that no other has."""
        unique = self._transactions.context.environment.new_id()
        return str(PreparedToken.new(transactional_id, producer.producer_id, producer.epoch, unique))

    def prepare(self, transactional_id: str, producer: ProducerEpoch, token: str, batch_id: BatchId | None) -> None:
        """Make the transaction wait for its token; the same call again finds it prepared.

        Raises
        ------
        CommitStateUnknownError
            Ask again with the same token.
        TxnTableError
            As :func:`txntable.coordinator.transaction_shard.prepare`.
        """

        def request(row: TransactionMetadata | None, position: int) -> Transition[ProducerIdentity]:
            memory = self._transactions.memory(transactional_id, batch_id)
            return prepare(row, PrepareRequest(producer.producer_id, producer.epoch, token, position, batch_id, memory))

        self._request("PREPARE", transactional_id, request)

    def compare_token(self, transactional_id: str, token: str | None, holder: ProducerIdentity) -> Outcome | None:
        """Return how the prepared transaction is to be ended.

        See :func:`txntable.coordinator.prepared_token.compare_token`.
        One that another process has prepared since, and whose token is the database's last, is committed at once: for
        who has lost the id nothing is left to be ended.
        """
        row = self._newest_row(transactional_id)
        if row is None:
            raise InvalidPidMappingError(
                "the transactional id is unknown or has expired; create a new producer",
                transactional_id=transactional_id,
            )
        outcome = compare_token(row, token, holder)
        owner = ProducerIdentity(row.producer_id, row.producer_epoch, token)
        if outcome is Outcome.COMMIT and owner != replace(holder, token=token):
            self.end(transactional_id, owner, Ending(outcome))
            self.try_bring(transactional_id)
            return None
        return outcome

    def end(
        self,
        transactional_id: str,
        producer: ProducerIdentity,
        ending: Ending,
    ) -> Decision | PastDecision:
        """Decide the transaction: the put of this request *is* the transaction.

        Parameters
        ----------
        transactional_id : str
            The id.
        producer : ProducerIdentity
            Who asks, with the token of a prepared transaction.
        ending : Ending
            How it is to end.

        Raises
        ------
        CommitStateUnknownError
            Ask again with the same outcome, and say so.
        TxnTableError
            As :func:`txntable.coordinator.transaction_shard.end`.
        """
        decided_at_ms, commits = self._transactions.context.clock.now_ms(), ending.outcome is Outcome.COMMIT

        def request(row: TransactionMetadata | None, position: int) -> Transition[Decision | PastDecision]:
            # After a restart only the row of a prepared transaction knows its batch id.
            carried = carried_batch(row, producer, ending.batch_id) if commits else None
            asked = EndRequest(
                producer.producer_id,
                producer.producer_epoch,
                ending.outcome,
                position,
                token=producer.token,
                batch_id=carried,
                memory=self._transactions.memory(transactional_id, carried),
                decided_at_ms=decided_at_ms,
                manifest=ending.manifest,
                repeated=ending.repeated,
            )
            return end(row, asked)

        return self._request(ending.outcome.value, transactional_id, request)

    def try_bring(self, transactional_id: str) -> None:
        """Do what one's own decision owes; what fails here is left to others, and COMPLETE to the id's next entry."""
        try:
            self._completer.bring(transactional_id)
        except TxnTableError as error:
            logger.warning("the transaction is decided; others will complete it: %s", error)
        else:
            self._completer.complete_soon(transactional_id)

    def try_record(self, transactional_id: str) -> None:
        """Write COMPLETE for the id's last transaction, when it will have no next entry; raises nothing, as the other.

        Where it is not known complete by now nothing is written; a store that does not answer holds nobody up for it.
        """
        try:
            with ending_within(self._transactions.context.environment, _RECORD_PATIENCE_MS):
                self._completer.record_last(transactional_id)
        except TxnTableError as error:
            logger.warning("the transaction is decided; others will complete it: %s", error)
