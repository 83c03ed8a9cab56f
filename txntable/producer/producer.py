"""The producer: Kafka's, over a warehouse without a broker (PROTOCOL.md §6).

Idempotent by default, transactional with a transactional id, at-least-once on request.  Owns the
life of a transaction: init, begin, prepare, decide; each decision is a request to the transaction
log.  What becomes of records is :mod:`txntable.producer.record_sender`'s.  Threads may share one: its calls run
one after the other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import pyarrow as pa

from txntable.coordinator.batch_memory import BatchId, check_batch, check_batch_id
from txntable.coordinator.decision import Outcome
from txntable.coordinator.group_request import GroupMetadata
from txntable.coordinator.row_json import check_name
from txntable.coordinator.transaction_request import ProducerIdentity
from txntable.errors import IllegalStateError, InvalidRequestError, TxnTableError
from txntable.format.records import OnDelivery, RecordMetadata, SendOptions, TopicPartition, header_structs
from txntable.format.topic import TopicSettings
from txntable.log.log_view import LogContext
from txntable.offsets.group_commit import GroupCommit, OffsetAndMetadata, new_offsets, topics_of
from txntable.partition.batch import ProducerEpoch
from txntable.producer.client_state import Call, ClientState
from txntable.producer.coordinator_client import CoordinatorClient
from txntable.producer.producer_config import ProducerConfig, check_identity
from txntable.producer.record_sender import KafkaRecord, RecordSender
from txntable.producer.transaction import Transaction
from txntable.runtime.one_process import OfOneProcess
from txntable.segments.segment import SegmentPlan, StagedSegment
from txntable.topics.topic_log import TopicLog

if TYPE_CHECKING:
    from txntable.consumer.consumer import Consumer

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


class Producer(OfOneProcess):
    """Sends records, and decides about them; made by :meth:`txntable.Warehouse.producer`.

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
    """

    def __init__(self, config: ProducerConfig, context: LogContext, coordinator: CoordinatorClient) -> None:
        self.config = config
        self._clock, self._coordinator = context.clock, coordinator
        self._sender = RecordSender(config, context, coordinator)
        self._status, self._outbox, self.lock = self._sender.status, self._sender.outbox, self._sender.lock
        self._batch_id: BatchId | None = None
        self._token: str | None = None
        self._took_over = False

    # -- what it is -------------------------------------------------------------------------

    @property
    def state(self) -> str:
        """The client's state, in Kafka's words."""
        return self._status.state.value

    @property
    def producer_id(self) -> int | None:
        """The producer id; ``None`` before there is one."""
        return None if self._outbox.producer is None else self._outbox.producer.producer_id

    @property
    def producer_epoch(self) -> int | None:
        """The producer epoch; ``None`` before there is one."""
        return None if self._outbox.producer is None else self._outbox.producer.epoch

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
            Many records, columns by name.
        partition : int, optional
            Overrides the key.
        timestamp_ms : int, optional
            ms since 1970; default: the store's time.
        on_delivery : callable, optional
            (metadata, error or None) -> None; called once: when the records are appended (in a transaction: before
            it is decided), or will never be.  What it raises is logged.

        Returns
        -------
        RecordMetadata
            Knows its offset once flushed.

        Raises
        ------
        SchemaMismatchError, InvalidRequestError
            Nothing was buffered; inside a transaction the call may be mended and made again.
        UnknownTopicOrPartitionError, RecordTooLargeError, MissingKeyError
            Nothing was buffered; a transaction must be aborted, as in Kafka.
        IllegalStateError
            No transaction is open, or the producer is closed.
        StoreUnavailableError, CommitStateUnknownError
            Nothing was buffered: full batches of earlier sends could not be handed on; call again.
        """
        self._sender.make_room()
        whole = {"value": key if value is None else value, "row": row, "rows": rows}
        given = [name for name, part in whole.items() if part is not None]
        if len(given) > 1:
            raise InvalidRequestError("give key and value, or row, or rows: one of them", given=",".join(given))
        time_ms = self._clock.now_ms() if timestamp_ms is None else timestamp_ms
        if row is None and rows is None:
            row = KafkaRecord(key=key, value=value, headers=header_structs(headers))
        return self._sender.buffer(topic, row, rows, SendOptions(time_ms, partition, on_delivery))

    @in_turn
    def spoil(self, error: BaseException) -> None:
        """Let only abort follow where records of an open transaction were not sent; a wrong argument spoils nothing.

        Kafka's rule: who goes on would commit a transaction that lacks them.  What can be tried again is no failure.
        """
        self._sender.spoil(error)

    @in_turn
    def flush(self) -> None:
        """Upload and append what waits.  Outside of a transaction it is visible when this returns.

        Raises
        ------
        CommitStateUnknownError, StoreUnavailableError
            Call again; outside of a transaction exactly the same batches are appended.
        TxnTableError
            Whatever refuses: inside a transaction, abort.
        """
        self._sender.flush()

    @in_turn
    def stage(
        self, topic: TopicLog, settings: TopicSettings, segments: Sequence[StagedSegment], metadata: RecordMetadata
    ) -> None:
        """Take segments that someone else uploaded for this producer (Spark's executors)."""
        self._sender.stage(topic, settings, segments, metadata)

    @in_turn
    def segment_plan(self, topic: TopicLog, settings: TopicSettings) -> SegmentPlan:
        """Return what segments that are uploaded for this producer now have in common."""
        return self._sender.segment_plan(topic, settings)

    def topic_log(self, topic: str) -> TopicLog:
        """Return the logs of a topic."""
        return self._outbox.topic_log(topic)

    # -- transactions -----------------------------------------------------------------------

    @in_turn
    def init_transactions(self, *, keep_prepared: bool = False) -> None:
        """Take the transactional id: fence whoever had it, abort what that left open.

        Parameters
        ----------
        keep_prepared : bool
            Whether a prepared transaction is taken over, to be ended by :meth:`complete_transaction`.

        Raises
        ------
        IllegalStateError
            Called twice, or without a transactional id.
        InvalidTxnStateError
            A transaction is prepared, and `keep_prepared` was not said.
        InvalidTransactionTimeoutError
            The timeout is out of bounds.
        CommitStateUnknownError, StoreUnavailableError
            Call again.
        """
        transactional_id = self._transactional_id(Call.INIT)
        self._status.check(Call.INIT)
        self._token = self._take(transactional_id, keep_prepared=keep_prepared)
        self._took_over = self._token is not None
        self._status.reach(ClientState.PREPARED_TRANSACTION if self._took_over else ClientState.READY)

    @in_turn
    def resume(self, identity: ProducerEpoch) -> None:
        """Go on with the identity that a producer in another process got, instead of asking for one.

        For a driver whose steps run in different processes: one plans what others upload, one commits it.

        Parameters
        ----------
        identity : ProducerEpoch
            Its producer id and epoch.  They name one transaction: only one process may resume it, once, and
            the other producer must send nothing.  One that a newer producer has fenced is refused by the logs.

        Raises
        ------
        IllegalStateError, InvalidRequestError
            This producer has an identity, or needs none (``enable_idempotence=False``); or `identity` is none.
        """
        check_identity(identity)
        if self.config.transactional_id is not None:
            self._status.check(Call.INIT)
        elif self._outbox.producer is not None or not self.config.enable_idempotence:
            raise IllegalStateError("the producer cannot take an identity any more; make a new one", state=self.state)
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
    def begin_transaction(self, batch_id: BatchId | None = None) -> None:
        """Begin a transaction; nothing is written yet.

        Parameters
        ----------
        batch_id : str or int, optional
            Names the run: a string is refused once it has committed, an integer must rise.

        Raises
        ------
        BatchAlreadyCommittedError
            That run has committed: skip it.
        BatchOutOfOrderError
            An integer below the last committed one.
        InvalidRequestError
            It is no batch id: give another.
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
        self._batch_id, self._token, self._sender.enrolled = batch_id, None, False
        self._outbox.restart(self._outbox.producer)
        self._status.reach(ClientState.IN_TRANSACTION)

    @in_turn
    def check_batch(self, batch_id: BatchId) -> None:
        """Return when a run with this batch id may still commit; needs no init, and so fences nobody.

        Raises
        ------
        BatchAlreadyCommittedError, BatchOutOfOrderError, InvalidRequestError
            As :meth:`begin_transaction`, which asks again.
        """
        memory = self._coordinator.memory(self._transactional_id(Call.BEGIN), check_batch_id(batch_id))
        check_batch(memory.last_integer, memory.name_known, batch_id)

    @in_turn
    def is_committed(self, batch_id: BatchId) -> bool:
        """Return whether a run with this batch id has committed under the transactional id; raises for no batch id."""
        memory = self._coordinator.memory(self._transactional_id(Call.BEGIN), check_batch_id(batch_id))
        if isinstance(batch_id, str):
            return memory.name_known
        return memory.last_integer is not None and batch_id <= memory.last_integer

    @in_turn
    def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int], group: GroupMetadata | str
    ) -> None:
        """Let the transaction commit a consumer group's offsets: they count when it commits, and only then.

        What was sent before goes out with them.  A later call for the same partition takes the earlier one's place.

        Parameters
        ----------
        offsets : Mapping of TopicPartition to OffsetAndMetadata or int
            The next record to read of each partition; may be empty.
        group : GroupMetadata or str
            :meth:`Consumer.group_metadata`, taken *when the records were read*: then a consumer that has lost a
            partition since cannot commit it.  A name alone skips that check, as in Kafka.

        Raises
        ------
        StaleMemberEpochError, UnknownMemberIdError, IllegalGenerationError, FencedInstanceIdError, GroupIdNotFoundError
            The consumer does not own the partitions any more: abort, and read again.
        OffsetMetadataTooLargeError, InvalidRequestError, UnknownTopicOrPartitionError
            Nothing was sent: mend the arguments.
        UnstableOffsetCommitError
            Another transaction has offsets of these partitions: call again.
        AbortableError
            Abort.
        FatalError
            Fenced: close the producer.
        """
        transactional_id = self._transactional_id(Call.SEND)
        self._status.check(Call.SEND)
        member, name = (group, group.group) if isinstance(group, GroupMetadata) else (None, group)
        check_name(name, "a group")
        topics = {topic: self.topic_log(topic).settings() for topic in topics_of(offsets)}
        # Who says no member id is none: as Kafka's, a consumer that assigns its partitions itself is not checked.
        commit = GroupCommit(name, new_offsets(offsets, topics), member if member and member.member_id else None)
        self._send_offsets(commit, transactional_id)

    @in_turn
    def send_offsets_of(self, consumer: Consumer) -> None:
        """Let the transaction commit the offsets of everything that a consumer has read since its last commit.

        After an abort :meth:`Consumer.seek_to_committed` lets polls begin there again; :meth:`Consumer.read` always
        does.  Raises as :meth:`send_offsets_to_transaction`, :class:`IllegalStateError` where the consumer has no group
        or commits by itself, and :class:`CommitFailedError` where someone else committed a range that was read.
        """
        transactional_id = self._transactional_id(Call.SEND)
        self._status.check(Call.SEND)
        offsets = consumer.offsets_to_send()
        try:
            self._send_offsets(offsets, transactional_id)
        except TxnTableError as error:
            consumer.refused(error, offsets)
            raise
        consumer.offsets_sent(offsets)

    def _send_offsets(self, offsets: GroupCommit, transactional_id: str) -> None:
        if offsets.offsets:
            self._status.guard(lambda: self._sender.flush_with(offsets, transactional_id))

    @in_turn
    def commit_transaction(self) -> None:
        """Commit: everything sent since begin becomes visible, or nothing does.

        Raises
        ------
        AbortableError
            An earlier send failed, or the log refuses: abort.
        FatalError
            Fenced, or no longer in this transaction: close the producer; nothing of it was committed.
        TransactionOutcomeUnknownError
            Asked again so late that the outcome is not kept any more: look whether its records are there.
        CommitStateUnknownError
            The store cannot be reached: call again; never abort.
        """
        self._transactional_id(Call.COMMIT)
        self._status.check(Call.COMMIT)
        if not self._outbox.is_empty:
            # Still in the transaction: an append of unknown outcome leads to abort, never to a commit asked again.
            self._status.guard(self._sender.send_waiting)
        self._status.enter(Call.COMMIT)
        self._end(Outcome.COMMIT)

    @in_turn
    def abort_transaction(self) -> None:
        """Abort: nothing sent since begin is ever visible.

        Raises
        ------
        FatalError
            Fenced: close the producer.
        CommitStateUnknownError
            The store cannot be reached: call again.
        """
        self._transactional_id(Call.ABORT)
        self._status.enter(Call.ABORT)
        self._end(Outcome.ABORT)

    @in_turn
    def prepare_transaction(self) -> str:
        """First phase of a commit together with an outside database: make the transaction wait for its token.

        From here on the transaction cannot time out, and survives this process; nothing can be
        added.  Store the token in the outside database's own transaction, commit that, then call
        :meth:`complete_transaction` (KIP-939; durable here).

        Returns
        -------
        str
            The token.

        Raises
        ------
        AbortableError, BatchAlreadyCommittedError, BatchOutOfOrderError
            Abort, and roll the outside database back.
        CommitStateUnknownError
            The store cannot be reached: call again.
        FatalError
            Fenced: roll the outside database back, close the producer.
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
        """Second phase: end the prepared transaction as the outside database ended its own.

        Parameters
        ----------
        token : str, optional
            The last token that the outside database committed; ``None``: none ever.  That of the
            prepared transaction commits it, an earlier one aborts it.  Read it after init, in a way that
            makes the outside commit of an earlier process fail.

        Raises
        ------
        InvalidTxnStateError
            The token's transaction was aborted here, by an admin, or never prepared: the two differ.
        TransactionOutcomeUnknownError
            It was ended so long ago that nobody knows how: look whether its records are there.
        InvalidRequestError
            It is no token, or of another producer id: nothing has changed.
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
        batch_id = self._batch_id if outcome is Outcome.COMMIT else None
        if self._sender.enrolled or self._token is not None or batch_id is not None:
            identity = ProducerIdentity(producer.producer_id, producer.epoch, self._token)
            repeated = self._status.unsure
            ended = self._status.guard(
                lambda: self._coordinator.end(transactional_id, identity, outcome, batch_id, repeated=repeated)
            )
            producer = ProducerEpoch(producer.producer_id, ended.next_epoch)
            # Decided: from here on nothing that fails may look like a failed commit.
            self._coordinator.try_complete(transactional_id)
        self._outbox.restart(producer)
        self._status.reach(ClientState.READY)

    @contextmanager
    def transaction(self, batch_id: BatchId | None = None) -> Iterator[Transaction]:
        """Begin; commit at the end of the block, abort on an exception in it.

        A transaction that was prepared in the block stays prepared on an exception: how it ends is
        the outside database's to say.

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
            error.add_note("the transaction is prepared: complete it with the token that the outside database has")
        if self._status.state not in _UNDECIDED:
            return
        try:
            self.abort_transaction()
        except TxnTableError as second:
            error.add_note(f"the transaction could not be aborted, its timeout will end it: {second}")

    # -- closing ----------------------------------------------------------------------------

    @in_turn
    def close(self) -> None:
        """Close: an open transaction is aborted, a prepared one stays; what waits outside of one is flushed."""
        if self._status.state in _UNDECIDED:
            self.abort_transaction()
        elif self._status.state is ClientState.READY and not self._outbox.is_empty:
            self._sender.guarded(self._sender.send_waiting)
        self._sender.shut()
        self._sender.raise_lingering()

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self.close()
            return
        self._abort_after(error)
        self._sender.shut()

    def _transactional_id(self, call: Call) -> str:
        if self.config.transactional_id is None:
            raise IllegalStateError(
                f"{call.value} needs a transactional id; make the producer with transactional_id=", call=call.value
            )
        return self.config.transactional_id
