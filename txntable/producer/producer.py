"""The producer: Kafka's, over a warehouse without a broker (PROTOCOL.md §6).

Idempotent by default, transactional with a transactional id, at-least-once on request.  Owns the
life of a transaction: init, begin, prepare, decide; each decision is a request to the transaction
log.  What becomes of records is :mod:`txntable.producer.record_sender`'s.  Threads may share one: its calls run
one after the other.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import pyarrow as pa

from txntable.coordinator.batch_memory import BatchId, CommittedBatches, check_batch, check_batch_id
from txntable.coordinator.decision import Outcome
from txntable.coordinator.group_request import GroupMetadata
from txntable.coordinator.manifest import NOTHING_CARRIED
from txntable.coordinator.transaction_request import ProducerIdentity
from txntable.errors import IllegalStateError, InvalidRequestError, TxnTableError, UnknownTopicOrPartitionError
from txntable.format.kafka_call_names import answering_producer
from txntable.format.records import OnDelivery, RecordMetadata, SendOptions, TopicPartition, header_structs
from txntable.format.topic import TopicSettings
from txntable.log.log_view import LogContext
from txntable.offsets.group_commit import GroupCommit, OffsetAndMetadata, committing_member, new_offsets, topics_of
from txntable.partition.batch import ProducerEpoch
from txntable.producer.client_state import Call, ClientState
from txntable.producer.consumed_offsets import ConsumedOffsets
from txntable.producer.coordinator_client import CoordinatorClient, Ending
from txntable.producer.producer_config import ProducerConfig, check_identity, timeout_ms_of
from txntable.producer.record_sender import KafkaRecord, RecordSender
from txntable.producer.transaction import Transaction
from txntable.runtime.counters import Metrics, grouped
from txntable.runtime.one_process import OfOneProcess
from txntable.segments.segment import SegmentPlan, StagedSegment
from txntable.storage.retries import LEAST_BUDGET_MS, ending_within
from txntable.topics.topic_log import TopicLog
from txntable.topics.topic_question import asking_for_topics

if TYPE_CHECKING:
    from txntable.consumer.consumer import Consumer

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

_UNDECIDED = (ClientState.IN_TRANSACTION, ClientState.ABORTABLE_ERROR)


def in_turn(call: Callable[Concatenate[Producer, P], T]) -> Callable[Concatenate[Producer, P], T]:
    """Let the calls of one producer run one after the other."""

    @functools.wraps(call)
    def run(producer: Producer, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with producer.lock:
            return call(producer, *args, **kwargs)

    return run


def timed(name: str) -> Callable[[Callable[Concatenate[Producer, P], T]], Callable[Concatenate[Producer, P], T]]:
    """Add the time that a call takes to the producer's total of that name: Kafka's, of KIP-761."""

    def decorate(call: Callable[Concatenate[Producer, P], T]) -> Callable[Concatenate[Producer, P], T]:
        @functools.wraps(call)
        def run(producer: Producer, /, *args: P.args, **kwargs: P.kwargs) -> T:
            with producer.counters.timing(f"producer-metrics/{name}"):
                return call(producer, *args, **kwargs)

        return run

    return decorate


@answering_producer
@asking_for_topics(attrgetter("_context"))
class Producer(OfOneProcess):
    """Sends records and decides transactions; created by :meth:`txntable.Warehouse.producer`.

    Parameters
    ----------
    config : ProducerConfig
        Transactional id, timeout, idempotence.
    context : LogContext
        Of the warehouse.
    coordinator : CoordinatorClient
        The state machine over the transaction log, and completion.

    Attributes
    ----------
    config : ProducerConfig
        As given.
    lock : threading.RLock
        Held by the thread that is in a call.
    counters : Counters
        What :meth:`metrics` shows.
    """

    def __init__(self, config: ProducerConfig, context: LogContext, coordinator: CoordinatorClient) -> None:
        self.config, self._context, self._coordinator = config, context, coordinator
        self._clock, self._environment = context.clock, context.environment
        self._sender = RecordSender(config, context, coordinator)
        self._status, self._outbox, self.lock = self._sender.status, self._sender.outbox, self._sender.lock
        self.counters = self._sender.counters
        self._batch_id: BatchId | None = None
        self._token: str | None = None
        self._took_over = False
        self._consumed = ConsumedOffsets()

    # -- what it is -------------------------------------------------------------------------

    @property
    def state(self) -> str:
        """The client's state, in Kafka's terms."""
        return self._status.state.value

    @property
    def producer_id(self) -> int | None:
        """The producer id; ``None`` before there is one."""
        return None if self._outbox.producer is None else self._outbox.producer.producer_id

    @property
    def producer_epoch(self) -> int | None:
        """The producer epoch; ``None`` before there is one."""
        return None if self._outbox.producer is None else self._outbox.producer.epoch

    def metrics(self) -> Metrics:
        """Return what the producer has counted: group -> name -> value, with Kafka's names where Kafka has them.

        ``producer-metrics`` has ``record-send-total``, ``record-error-total``, ``outgoing-byte-total``, and of the
        transactional calls the time spent in them (``txn-commit-time-ns-total``, …).  Ours are ``batch-total``
        (segments), ``txn-commit-total`` and ``txn-abort-total``.  What never happened is not there.  Cheap: no request.
        """
        return grouped(self.counters.totals())

    # -- sending ----------------------------------------------------------------------------

    @in_turn
    def send(  # noqa: PLR0913  a Kafka record's parts, by name
        self,
        topic: str,
        value: bytes | None = None,
        *,
        key: bytes | None = None,
        headers: Sequence[tuple[str, bytes]] | None = None,
        row: Mapping[str, Any] | None = None,
        rows: pa.Table | pa.RecordBatch | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> RecordMetadata:
        """Buffer a record, or many; :meth:`flush` or commit makes them durable.

        Parameters
        ----------
        topic : str
            The topic's name.
        value, key, headers
            For topics with Kafka's default schema.
        row : Mapping, optional
            One record of a topic with its own schema.
        rows : pyarrow.Table or pyarrow.RecordBatch, optional
            Many records, columns by name, in any order.  Nullable ones may be left out, and narrower types are widened.
        partition : int, optional
            Takes precedence over the key.
        timestamp_ms : int, optional
            ms since 1970; default: the store's time.
        on_delivery : callable, optional
            (metadata, error or None) -> None; called once: when the records are appended (in a transaction: by a
            flush, or by its commit), or will never be appended.  Exceptions that it raises are logged.

        Returns
        -------
        RecordMetadata
            Has the offset after a flush.

        Raises
        ------
        SchemaMismatchError, InvalidRequestError
            Nothing was buffered; inside a transaction the call may be corrected and repeated.
        UnknownTopicOrPartitionError, RecordTooLargeError, MissingKeyError
            Nothing was buffered; a transaction must be aborted, as in Kafka.
        IllegalStateError
            No transaction is open, or the producer is closed.
        StoreUnavailableError, CommitStateUnknownError
            Nothing was buffered: full batches of earlier sends could not be uploaded; call again.
        """
        self._sender.make_room()
        if row is None and rows is None:
            row = KafkaRecord(key=key, value=value, headers=header_structs(headers))
        else:
            _check_only_one(key if value is None else value, row, rows)
        time_ms = self._clock.now_ms() if timestamp_ms is None else timestamp_ms
        return self._sender.buffer(topic, row, rows, SendOptions(time_ms, partition, on_delivery))

    @in_turn
    def spoil(self, error: BaseException) -> None:
        """Allow only abort after records of an open transaction were not sent; a wrong argument does not count.

        Kafka's rule: otherwise a transaction that lacks records could be committed.  Retriable errors do not count.
        """
        self._sender.spoil(error)

    @in_turn
    @timed("flush-time-ns-total")
    def flush(self, timeout: float | None = None) -> None:
        """Upload and append buffered records.  Outside a transaction they are visible when this returns.

        Parameters
        ----------
        timeout : float, optional
            For how long a store that does not answer is asked again, in *seconds*, as in all of Kafka's Python
            clients; at least a second, at most 3,600 (who says 10000 means ms).  Default: the storage option
            ``retry_timeout``.

        Raises
        ------
        CommitStateUnknownError, StoreUnavailableError
            Call again; outside a transaction exactly the same batches are appended.
        TxnTableError
            Any other refusal: inside a transaction, abort.
        """
        with self._ending_within(timeout):
            self._sender.flush()

    @in_turn
    def stage(
        self, topic: TopicLog, settings: TopicSettings, segments: Sequence[StagedSegment], metadata: RecordMetadata
    ) -> None:
        """Accept segments that others have uploaded for this producer (Spark's executors)."""
        self._sender.stage(topic, settings, segments, metadata)

    @in_turn
    def segment_plan(self, topic: TopicLog, settings: TopicSettings) -> SegmentPlan:
        """Return the common properties of segments that are uploaded for this producer."""
        return self._sender.segment_plan(topic, settings)

    def topic_log(self, topic: str) -> TopicLog:
        """Return the logs of a topic."""
        return self._outbox.topic_log(topic)

    def partitions_for(self, topic: str) -> set[int]:
        """Return the partitions of a topic; raises :class:`UnknownTopicOrPartitionError` if there is none."""
        return set(range(self.topic_log(topic).settings().partitions))

    # -- transactions -----------------------------------------------------------------------

    @in_turn
    @timed("txn-init-time-ns-total")
    def init_transactions(self, timeout: float | None = None, *, keep_prepared: bool = False) -> None:
        """Acquire the transactional id: fence its previous holder and abort what that left open.

        Parameters
        ----------
        timeout : float, optional
            See :meth:`flush`.
        keep_prepared : bool
            Whether to take over a prepared transaction, to be ended by :meth:`complete_transaction`.

        Raises
        ------
        IllegalStateError
            Called twice, or without a transactional id.
        InvalidTxnStateError
            A transaction is prepared, and `keep_prepared` was not given.
        InvalidTransactionTimeoutError
            The timeout is out of bounds.
        CommitStateUnknownError, StoreUnavailableError
            Call again.
        """
        transactional_id = self._transactional_id(Call.INIT)
        self._status.check(Call.INIT)
        with self._ending_within(timeout):
            self._token = self._take(transactional_id, keep_prepared=keep_prepared)
        self._took_over = self._token is not None
        self._status.reach(ClientState.PREPARED_TRANSACTION if self._took_over else ClientState.READY)
        producer = self._sender.require_producer()
        logger.info(
            "producer initialised transactional_id=%s producer_id=%d producer_epoch=%d",
            transactional_id,
            producer.producer_id,
            producer.epoch,
        )

    @in_turn
    def resume(self, identity: ProducerEpoch) -> None:
        """Continue with the identity that a producer in another process obtained, instead of requesting one.

        For a driver whose steps run in different processes: one plans what others upload, another commits it.

        Parameters
        ----------
        identity : ProducerEpoch
            Its producer id and epoch.  They name one transaction: only one process may resume it, once, and
            the other producer must send nothing.  The logs refuse an identity that a newer producer has fenced.

        Raises
        ------
        IllegalStateError, InvalidRequestError
            This producer has an identity, or needs none (``enable_idempotence=False``); or `identity` is not valid.
        """
        check_identity(identity)
        if self.config.transactional_id is not None:
            self._status.check(Call.INIT)
        elif self._outbox.producer is not None or not self.config.enable_idempotence:
            raise IllegalStateError("the producer cannot take over an identity; create a new one", state=self.state)
        self._outbox.restart(identity)
        self._status.reach(ClientState.READY)

    def _take(self, transactional_id: str, *, keep_prepared: bool) -> str | None:
        """Take the id; return the token of the prepared transaction that was taken over with it."""
        timeout_ms = self.config.transaction_timeout_ms
        identity = self._status.guard(
            lambda: self._coordinator.init(transactional_id, timeout_ms, keep_prepared=keep_prepared)
        )
        self._outbox.restart(ProducerEpoch(identity.producer_id, identity.producer_epoch))
        return identity.token

    @in_turn
    @timed("txn-begin-time-ns-total")
    def begin_transaction(self, batch_id: BatchId | None = None) -> None:
        """Begin a transaction; nothing is written yet.

        Parameters
        ----------
        batch_id : str or int, optional
            Names the run: a string is refused once it has committed, an integer must be higher than the last one.
            A string of digits alone could be either, and is refused.

        Raises
        ------
        BatchAlreadyCommittedError
            That run has committed: skip it.
        BatchOutOfOrderError
            The integer is below the last committed one: skip the run if it was done, else give it a name.
        InvalidRequestError
            The batch id is not valid: give another.
        IllegalStateError
            Not initialised, or a transaction is open.
        CommitStateUnknownError, StoreUnavailableError
            Call again.
        """
        transactional_id = self._transactional_id(Call.BEGIN)
        self._status.check(Call.BEGIN)
        if batch_id is not None:
            self.check_batch(batch_id)
        if self._took_over:
            # Who prepared what was taken over has its epoch, too, and learns of its decision: only one may go on.
            self._take(transactional_id, keep_prepared=False)
            self._took_over = False
        self._tell_offsets(transactional_id)
        self._batch_id, self._token, self._sender.enrolled = batch_id, None, False
        self._sender.lost.begun()
        self._outbox.restart(self._outbox.producer)
        self._status.reach(ClientState.IN_TRANSACTION)

    @in_turn
    def check_batch(self, batch_id: BatchId) -> None:
        """Return if a run with this batch id may still commit; needs no init, and so fences nobody.

        Raises
        ------
        BatchAlreadyCommittedError, BatchOutOfOrderError, InvalidRequestError
            As :meth:`begin_transaction`, which checks again.
        """
        memory = self._coordinator.memory(self._transactional_id(Call.BEGIN), check_batch_id(batch_id))
        check_batch(memory.last_integer, memory.name_known, batch_id)

    @in_turn
    def is_committed(self, batch_id: BatchId) -> bool:
        """Return whether a run with this batch id has committed under the transactional id; raises if it is invalid.

        Of an integer: whether it or a higher one has, since the last one alone is remembered.
        """
        return self._coordinator.memory(self._transactional_id(Call.BEGIN), check_batch_id(batch_id)).has(batch_id)

    @in_turn
    def committed_batches(self) -> CommittedBatches:
        """Return what is remembered of the batches that have committed under the transactional id.

        Without asking the store: what was there when this producer was initialised, and its own since.
        """
        return self._coordinator.committed_batches(self._transactional_id(Call.BEGIN))

    @in_turn
    @timed("txn-send-offsets-time-ns-total")
    def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int], group: GroupMetadata | str
    ) -> None:
        """Commit a consumer group's offsets as part of the transaction: they count if and when it commits.

        A later call for the same partition replaces the earlier one.

        Parameters
        ----------
        offsets : Mapping of TopicPartition to OffsetAndMetadata or int
            The next record to read of each partition; may be empty.
        group : GroupMetadata or str
            :meth:`Consumer.group_metadata`, asked for after the last poll: it has who owned what *when it was read*, so
            that what was lost since can neither be committed nor left out, and of which topic the offsets are, should
            it have been created again.  A name alone skips that, as in Kafka.

        Raises
        ------
        StaleMemberEpochError, UnknownMemberIdError, IllegalGenerationError, FencedInstanceIdError, GroupIdNotFoundError
            The consumer no longer owns the partitions, or others that it has read from: abort, and read again.
        OffsetMetadataTooLargeError, InvalidRequestError, UnknownTopicOrPartitionError
            Nothing was sent: correct the arguments.
        IllegalStateError
            The consumer auto-commits, and so also what the transaction may abort; or `group` is from before it joined.
        UnstableOffsetCommitError
            Another transaction has pending offsets of these partitions: call again.
        AbortableError
            Abort.
        FatalError
            Fenced: close the producer.
        """
        transactional_id = self._transactional_id(Call.SEND_OFFSETS)
        self._status.check(Call.SEND_OFFSETS)
        name, member = committing_member(group)
        topics, read = topics_of(offsets), group.topic_ids if isinstance(group, GroupMetadata) else None
        try:
            found = new_offsets(offsets, self._outbox.settings_of(topics), read)
        except UnknownTopicOrPartitionError:
            # It may have come since the transaction began.
            found = new_offsets(offsets, {topic: self.topic_log(topic).settings() for topic in topics}, read)
        self._send_offsets(GroupCommit(name, found, member), transactional_id)

    @in_turn
    def send_offsets_of(self, consumer: Consumer) -> None:
        """Commit the offsets of everything that a consumer has read since its last commit as part of the transaction.

        After an abort, :meth:`Consumer.seek_to_committed` makes polls start from there again; :meth:`Consumer.read`
        always does.  Who tries again with the same records calls this again.  Raises as
        :meth:`send_offsets_to_transaction`, :class:`IllegalStateError` if the consumer has no group or auto-commits,
        and :class:`CommitFailedError` if someone else committed a range that was read.
        """
        transactional_id = self._transactional_id(Call.SEND_OFFSETS)
        self._status.check(Call.SEND_OFFSETS)
        self._consumed.send(consumer, lambda offsets: self._send_offsets(offsets, transactional_id))

    def _send_offsets(self, offsets: GroupCommit, transactional_id: str) -> None:
        self._status.guard(lambda: self._sender.send_offsets(offsets, transactional_id))

    @in_turn
    @timed("txn-commit-time-ns-total")
    def commit_transaction(self, timeout: float | None = None) -> None:
        """Commit: everything sent since begin becomes visible, or nothing does.

        Parameters
        ----------
        timeout : float, optional
            See :meth:`flush`.

        Raises
        ------
        AbortableError
            An earlier send failed, or the log refused: abort.
        FatalError
            Fenced, or no longer in this transaction: close the producer; nothing was committed.
        TransactionOutcomeUnknownError
            The call was repeated so late that the outcome is no longer kept: check whether the records are there.
        CommitStateUnknownError
            The store cannot be reached: call again; never abort.
        """
        self._transactional_id(Call.COMMIT)
        self._status.check(Call.COMMIT)
        with self._ending_within(timeout):
            if not self._outbox.is_empty and self._status.state is ClientState.IN_TRANSACTION:
                # Still in the transaction: an append of unknown outcome leads to abort, never to a commit asked again.
                self._status.guard(self._sender.carry_waiting)
            self._status.enter(Call.COMMIT)
            self._end(Outcome.COMMIT)

    @in_turn
    @timed("txn-abort-time-ns-total")
    def abort_transaction(self, timeout: float | None = None) -> None:
        """Abort: nothing sent since begin is ever visible.

        Parameters
        ----------
        timeout : float, optional
            See :meth:`flush`.

        Raises
        ------
        FatalError
            Fenced: close the producer.
        CommitStateUnknownError
            The store cannot be reached: call again.
        """
        self._transactional_id(Call.ABORT)
        with self._ending_within(timeout):
            self._status.enter(Call.ABORT)
            self._end(Outcome.ABORT)

    @in_turn
    def prepare_transaction(self) -> str:
        """First phase of a commit together with an external database: make the transaction wait for its token.

        From here on the transaction cannot time out, and survives this process; nothing can be
        added.  Store the token in the external database's own transaction, commit that, then call
        :meth:`complete_transaction` (KIP-939; durable here).

        Returns
        -------
        str
            The token.

        Raises
        ------
        AbortableError, BatchAlreadyCommittedError, BatchOutOfOrderError
            Abort, and roll back the external database.
        CommitStateUnknownError
            The store cannot be reached: call again.
        FatalError
            Fenced: roll back the external database, close the producer.
        """
        transactional_id = self._transactional_id(Call.PREPARE)
        self._status.check(Call.PREPARE)
        if not self._outbox.is_empty:
            self._status.guard(self._sender.send_waiting)
        producer = self._sender.require_producer()
        self._status.enter(Call.PREPARE)
        token = self._token = self._token or self._coordinator.new_token(transactional_id, producer)
        self._status.guard(lambda: self._coordinator.prepare(transactional_id, producer, token, self._batch_id))
        self._status.reach(ClientState.PREPARED_TRANSACTION)
        return token

    @in_turn
    def complete_transaction(self, token: str | None) -> None:
        """Second phase: end the prepared transaction the way the external database ended its own.

        Parameters
        ----------
        token : str, optional
            The last token that the external database committed; ``None`` if it never did.  The token of the
            prepared transaction commits it, an earlier one aborts it.  Read it after init, in a way that
            makes a commit of an earlier process in that database fail.

        Raises
        ------
        InvalidTxnStateError
            The token's transaction was aborted here by an admin, or never prepared: the two sides differ.
        TransactionOutcomeUnknownError
            The transaction ended so long ago that its outcome is no longer kept: check whether its records are there.
        InvalidRequestError
            The token is not valid, or belongs to another producer id: nothing has changed.
        CommitStateUnknownError
            The store cannot be reached: call again.
        """
        transactional_id = self._transactional_id(Call.COMPLETE)
        self._status.check(Call.COMPLETE)
        if self._status.state in (ClientState.COMMITTING, ClientState.ABORTING):
            outcome: Outcome | None = Outcome.COMMIT if token == self._token else Outcome.ABORT
        else:
            producer = self._sender.require_producer()
            holder = ProducerIdentity(producer.producer_id, producer.epoch)
            outcome = self._status.look(lambda: self._coordinator.compare_token(transactional_id, token, holder))
        if outcome is None:
            self._status.reach(ClientState.READY)
            return
        self._status.enter(Call.COMMIT if outcome is Outcome.COMMIT else Call.ABORT)
        self._end(outcome)

    def _end(self, outcome: Outcome) -> None:
        transactional_id, producer = self._transactional_id(Call.COMMIT), self._sender.require_producer()
        ending = self._ending(outcome)
        if self._sender.enrolled or self._token is not None or ending.batch_id is not None or ending.manifest:
            # Once it was tried, an abort has to take the slot that the try may still take.
            self._sender.enrolled = True
            identity = ProducerIdentity(producer.producer_id, producer.epoch, self._token)
            ended = self._status.guard(lambda: self._coordinator.end(transactional_id, identity, ending))
            producer = ProducerEpoch(producer.producer_id, ended.next_epoch)
            # Decided: from here on nothing that fails may look like a failed commit.
            if ending.manifest:
                self._outbox.decided()
            self._coordinator.try_bring(transactional_id)
            self._outbox.deliver_decided()
        self._outbox.restart(producer)
        self._status.reach(ClientState.READY)
        self._sender.lost.decided(outcome)
        self._consumed.decided(outcome)
        self._note_end(outcome, transactional_id, producer)

    def _note_end(self, outcome: Outcome, transactional_id: str, producer: ProducerEpoch) -> None:
        self.counters.add(f"producer-metrics/txn-{outcome.value.lower()}-total")
        logger.debug(
            "transaction ended outcome=%s transactional_id=%s producer_id=%d producer_epoch=%d",
            outcome.value,
            transactional_id,
            producer.producer_id,
            producer.epoch,
        )

    def _ending(self, outcome: Outcome) -> Ending:
        if outcome is Outcome.ABORT:
            return Ending(outcome, repeated=self._status.unsure)
        return Ending(outcome, self._batch_id, self._outbox.manifest or NOTHING_CARRIED, self._status.unsure)

    def _tell_offsets(self, transactional_id: str) -> None:
        """Complete what an earlier commit has left to others, if its records' offsets are not told yet."""
        if not self._outbox.deliver_decided():
            self._coordinator.try_bring(transactional_id)
            self._outbox.deliver_decided()

    @contextmanager
    def transaction(self, batch_id: BatchId | None = None) -> Iterator[Transaction]:
        """Begin; commit at the end of the block, abort on an exception in it.

        A transaction that was prepared in the block stays prepared on an exception: the external database
        decides how it ends.

        Parameters
        ----------
        batch_id : str or int, optional
            See :meth:`begin_transaction`.
        """
        self.begin_transaction(batch_id)
        try:
            yield Transaction(self)
        except BaseException as error:
            self._abort_after(error)
            raise
        self.commit_transaction()

    def _abort_after(self, error: BaseException) -> None:
        if self._status.state in (ClientState.PREPARING, ClientState.PREPARED_TRANSACTION):
            error.add_note("the transaction is prepared: complete it with the token that the external database has")
        if self._status.state not in _UNDECIDED:
            return
        try:
            self.abort_transaction()
        except TxnTableError as second:
            error.add_note(f"the transaction could not be aborted; its timeout will end it: {second}")

    # -- closing ----------------------------------------------------------------------------

    @in_turn
    def close(self) -> None:
        """Close: abort an open transaction, keep a prepared one, flush records outside a transaction."""
        if self._status.state in _UNDECIDED:
            self.abort_transaction()
        elif self._status.state is ClientState.READY and not self._outbox.is_empty:
            self._sender.guarded(self._sender.send_waiting)
        if self.config.transactional_id is not None:
            self._tell_offsets(self.config.transactional_id)
            self._outbox.give_up_offsets()
            self._coordinator.try_record(self.config.transactional_id)
        self._sender.shut()
        self._sender.raise_lingering()

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self.close()
            return
        self._abort_after(error)
        if self.config.transactional_id is not None:
            self._coordinator.try_record(self.config.transactional_id)
        self._sender.shut()

    def _ending_within(self, timeout: float | None) -> AbstractContextManager[None]:
        """Return what bounds the attempts of a call; ``None``: only the store's own options do."""
        if timeout is None:
            return nullcontext()
        return ending_within(self._environment, max(timeout_ms_of(timeout), LEAST_BUDGET_MS))

    def _transactional_id(self, call: Call) -> str:
        if self.config.transactional_id is None:
            raise IllegalStateError(
                f"{call.value} needs a transactional id; create the producer with transactional_id=", call=call.value
            )
        return self.config.transactional_id


def _check_only_one(kafkas: object, row: object, rows: object) -> None:
    given = [name for name, part in (("value", kafkas), ("row", row), ("rows", rows)) if part is not None]
    if len(given) > 1:
        raise InvalidRequestError("give exactly one of: key and value, row, or rows", given=",".join(given))
