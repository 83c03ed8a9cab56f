"""The producer: Kafka's, over a warehouse without a broker (PROTOCOL.md §6).

Idempotent by default, transactional with a transactional id, at-least-once on request.  Owns the
client's state and the order upload, enrol, append, decide, complete; every durable step is a
request to the transaction log or a commit of a partition log.  Not for use by two threads at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import pyarrow as pa

from coordinator.batch_memory import BatchId, check_batch
from coordinator.decision import Outcome
from txntable.client.client_state import Call, ClientState, next_client_state
from txntable.client.coordinator_client import CoordinatorClient
from txntable.client.outbox import Outbox
from txntable.client.producer_config import ProducerConfig
from txntable.client.records import RecordMetadata, header_structs
from txntable.errors import (
    CommitStateUnknownError,
    IllegalStateError,
    InvalidRequestError,
    RetriableError,
    TxnTableError,
)
from txntable.log.delta_log import LogContext
from txntable.partition.batch import ProducerEpoch
from txntable.schema import KAFKA_SCHEMA
from txntable.segment import SegmentPlan, StagedSegment
from txntable.topic import TopicSettings
from txntable.topic_log import TopicLog


class Producer:
    """Sends records; made by :meth:`txntable.Warehouse.producer`.

    Parameters
    ----------
    config : ProducerConfig
        Transactional id, timeout, idempotence.
    context : LogContext
        Of the warehouse.
    coordinator : CoordinatorClient
        The brain over the transaction log, and completion.
    """

    def __init__(self, config: ProducerConfig, context: LogContext, coordinator: CoordinatorClient) -> None:
        self.config = config
        self._context = context
        self._coordinator = coordinator
        transactional = config.transactional_id is not None
        self._outbox = Outbox(context, coordinator.topic_log, transactional=transactional)
        self._state = ClientState.UNINITIALIZED if transactional else ClientState.READY
        self._batch_id: BatchId | None = None
        self._enrolled = False
        # Whether commit or abort had an unknown answer: then only the same call may follow.
        self._unsure = False
        self._failure: TxnTableError | None = None

    # -- what it is -------------------------------------------------------------------------

    @property
    def state(self) -> str:
        """The client's state, in Kafka's words."""
        return self._state.value

    @property
    def producer_id(self) -> int | None:
        """The producer id; ``None`` before there is one."""
        return None if self._outbox.producer is None else self._outbox.producer.producer_id

    @property
    def producer_epoch(self) -> int | None:
        """The producer epoch; ``None`` before there is one."""
        return None if self._outbox.producer is None else self._outbox.producer.epoch

    # -- transactions -----------------------------------------------------------------------

    def init_transactions(self) -> None:
        """Take the transactional id: fence whoever had it, abort what that left open.

        Raises
        ------
        IllegalStateError
            Called twice, or without a transactional id.
        InvalidTransactionTimeoutError
            The timeout is out of bounds.
        CommitStateUnknownError, StoreUnavailableError
            Call again.
        """
        transactional_id = self._transactional_id(Call.INIT)
        next_client_state(self._state, Call.INIT)
        identity = self._coordinator.init(transactional_id, self.config.transaction_timeout_ms)
        self._outbox.restart(ProducerEpoch(identity.producer_id, identity.producer_epoch))
        self._state = ClientState.READY

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
        IllegalStateError
            Not initialised, or a transaction is open.
        """
        transactional_id = self._transactional_id(Call.BEGIN)
        if self._state is ClientState.IN_TRANSACTION:
            raise IllegalStateError("a transaction is open; commit or abort it first", state=self.state)
        following = next_client_state(self._state, Call.BEGIN)
        if batch_id is not None:
            memory = self._coordinator.memory(transactional_id, batch_id)
            check_batch(memory.last_integer, memory.name_known, batch_id)
        self._batch_id, self._enrolled, self._unsure, self._failure = batch_id, False, False, None
        self._outbox.restart(self._outbox.producer)
        self._state = following

    def is_committed(self, batch_id: BatchId) -> bool:
        """Return whether a run with this batch id has committed under the transactional id."""
        memory = self._coordinator.memory(self._transactional_id(Call.BEGIN), batch_id)
        if isinstance(batch_id, str):
            return memory.name_known
        return memory.last_integer is not None and batch_id <= memory.last_integer

    def commit_transaction(self) -> None:
        """Commit: everything sent since begin becomes visible, or nothing does.

        Raises
        ------
        AbortableError
            An earlier send failed, or the log refuses: abort.
        FatalError
            Fenced, or no longer in this transaction: close the producer.
        CommitStateUnknownError
            The store can not be reached: call again; never abort.
        """
        transactional_id = self._transactional_id(Call.COMMIT)
        following = self._following(Call.COMMIT)
        if not self._outbox.is_empty:
            # Still in the transaction: an append of unknown outcome leads to abort, never to a commit asked again.
            self._guarded(self._flush)
        self._state = following
        self._end(transactional_id, Outcome.COMMIT)

    def abort_transaction(self) -> None:
        """Abort: nothing sent since begin is ever visible.

        Raises
        ------
        FatalError
            Fenced: close the producer.
        CommitStateUnknownError
            The store can not be reached: call again.
        """
        transactional_id = self._transactional_id(Call.ABORT)
        self._state = self._following(Call.ABORT)
        self._batch_id = None
        self._end(transactional_id, Outcome.ABORT)

    def _following(self, call: Call) -> ClientState:
        if self._state is ClientState.ABORTABLE_ERROR and call is not Call.ABORT and self._failure is not None:
            raise self._failure
        return next_client_state(self._state, call)

    def _end(self, transactional_id: str, outcome: Outcome) -> None:
        producer = self._require_producer()
        if self._enrolled or (self._batch_id is not None and outcome is Outcome.COMMIT):
            decision = self._guarded(lambda: self._coordinator.end(transactional_id, producer, outcome, self._batch_id))
            producer = ProducerEpoch(producer.producer_id, decision.next_epoch)
            # Decided: from here on nothing that fails may look like a failed commit.
            self._coordinator.try_complete(transactional_id)
        self._outbox.restart(producer)
        self._state = ClientState.READY

    @contextmanager
    def transaction(self, batch_id: BatchId | None = None) -> Iterator[Transaction]:
        """Begin; commit at the end of the block, abort on an exception in it.

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
        if self._state not in (ClientState.IN_TRANSACTION, ClientState.ABORTABLE_ERROR):
            return
        try:
            self.abort_transaction()
        except TxnTableError as second:
            error.add_note(f"the transaction could not be aborted, its timeout will end it: {second}")

    # -- sending ----------------------------------------------------------------------------

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

        Returns
        -------
        RecordMetadata
            Knows its offset once flushed.

        Raises
        ------
        SchemaMismatchError, UnknownTopicOrPartitionError, InvalidRequestError
            Nothing was buffered; inside a transaction the call may be mended and made again.
        IllegalStateError
            No transaction is open, or the producer is closed.
        """
        self._check_sending()
        if timestamp_ms is not None and (type(timestamp_ms) is not int or timestamp_ms < 0):
            raise InvalidRequestError("a timestamp is an int of ms since 1970", timestamp_ms=repr(timestamp_ms))
        whole = {"value": key if value is None else value, "row": row, "rows": rows}
        given = [name for name, part in whole.items() if part is not None]
        if len(given) > 1:
            raise InvalidRequestError("give key and value, or row, or rows: one of them", given=",".join(given))
        accumulator = self._outbox.accumulator(topic)
        time_ms = self._context.clock.now_ms() if timestamp_ms is None else timestamp_ms
        if rows is not None:
            return accumulator.add_table(rows, partition, time_ms)
        if row is None:
            if accumulator.settings.schema != KAFKA_SCHEMA:
                raise InvalidRequestError("the topic has its own schema: give row= or rows=", topic=topic)
            row = {"key": key, "value": value, "headers": header_structs(headers)}
        return accumulator.add_row(row, partition, time_ms)

    def flush(self) -> None:
        """Upload and append what waits.  Outside of a transaction it is visible when this returns.

        Raises
        ------
        CommitStateUnknownError, StoreUnavailableError
            Call again; outside of a transaction exactly the same batches are appended.
        TxnTableError
            Whatever refuses: inside a transaction, abort.
        """
        self._check_sending()
        self._guarded(self._flush)

    def stage(
        self, topic: TopicLog, settings: TopicSettings, segments: Sequence[StagedSegment], metadata: RecordMetadata
    ) -> None:
        """Take segments that someone else uploaded for this producer (Spark's executors)."""
        self._check_sending()
        self._guarded(lambda: self._outbox.stage(topic, settings, segments, metadata))

    def segment_plan(self, topic: TopicLog, settings: TopicSettings) -> SegmentPlan:
        """Return what segments that are uploaded for this producer now have in common."""
        self._check_sending()
        return self._outbox.plan(topic, settings)

    def topic_log(self, topic: str) -> TopicLog:
        """Return the logs of a topic."""
        return self._outbox.topic_log(topic)

    def _check_sending(self) -> None:
        if self.config.transactional_id is not None:
            self._following(Call.SEND)
        elif self._state is not ClientState.READY:
            raise IllegalStateError("the producer can not be used any more; make a new one", state=self.state)
        elif self._outbox.producer is None and self.config.enable_idempotence:
            self._outbox.restart(ProducerEpoch(self._coordinator.new_producer_id(), 0))

    def _flush(self) -> None:
        self._outbox.upload()
        transactional_id = self.config.transactional_id
        if transactional_id is None:
            self._outbox.append_and_publish()
        elif self._outbox.staged:
            producer = self._require_producer()
            self._enrolled = True
            self._coordinator.enrol(transactional_id, producer, self._outbox.staged)
            self._outbox.append(self._coordinator.verifier(transactional_id, producer))

    # -- failing and closing ----------------------------------------------------------------

    def _guarded(self, step: Any) -> Any:
        """Run a step; move the client's state by what its error says the caller must do."""
        try:
            return step()
        except CommitStateUnknownError as error:
            # A decision of unknown outcome may only be asked again; an append of one only be aborted.
            if self.config.transactional_id is not None and self._state is ClientState.IN_TRANSACTION:
                self._fail(ClientState.ABORTABLE_ERROR, error)
            self._unsure = True
            raise
        except TxnTableError as error:
            self._refused(error)

    def _refused(self, error: TxnTableError) -> NoReturn:
        if self.config.transactional_id is None:
            self._restart_idempotent(error)
        elif error.fatal:
            self._fail(ClientState.FATAL_ERROR, error)
        elif not isinstance(error, RetriableError):
            self._fail(ClientState.ABORTABLE_ERROR, error)
        elif self._state is ClientState.COMMITTING and not self._unsure:
            # Nothing was decided: the store was unreachable before the decision was put.
            self._state = ClientState.IN_TRANSACTION
        raise error

    def _fail(self, state: ClientState, error: TxnTableError) -> None:
        self._state, self._failure = state, error

    def _restart_idempotent(self, error: TxnTableError) -> None:
        """Go on under a raised epoch from 0, as Kafka does: a refused batch leaves a hole in the sequence."""
        producer = self._outbox.producer
        if not error.retriable and producer is not None:
            self._outbox.restart(ProducerEpoch(producer.producer_id, producer.epoch + 1))

    def close(self) -> None:
        """Close: an open transaction is aborted; what waits outside of one is flushed."""
        if self._state in (ClientState.IN_TRANSACTION, ClientState.ABORTABLE_ERROR):
            self.abort_transaction()
        elif self._state is ClientState.READY and not self._outbox.is_empty:
            self.flush()
        self._state = ClientState.CLOSED

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self.close()
            return
        self._abort_after(error)
        self._state = ClientState.CLOSED

    def _transactional_id(self, call: Call) -> str:
        if self.config.transactional_id is None:
            raise IllegalStateError(
                f"{call.value} needs a transactional id; make the producer with transactional_id=", call=call.value
            )
        return self.config.transactional_id

    def _require_producer(self) -> ProducerEpoch:
        producer = self._outbox.producer
        if producer is None:
            raise IllegalStateError("the producer has no id yet; call init_transactions first", state=self.state)
        return producer


class Transaction:
    """One open transaction, inside ``with producer.transaction() as txn``."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self.send = producer.send
        self.flush = producer.flush

    def write(self, topic: str, dataframe: Any) -> RecordMetadata:
        """Write a Spark DataFrame, distributed; see :func:`txntable.spark.writer.write_dataframe`."""
        metadata: RecordMetadata = self._producer.config.write_dataframe(self._producer, topic, dataframe)
        return metadata
