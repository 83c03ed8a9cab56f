"""Sending: records into the outbox, and the outbox into the partition logs (PROTOCOL.md §6.3).

Owns what a producer does with records, inside of a transaction or without one; who decides about
them is :mod:`txntable.producer.producer`'s.  Threads may share one: its calls run one after the other.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

import pyarrow as pa

from txntable.coordinator.offset_request import OffsetTransaction
from txntable.errors import (
    IllegalStateError,
    InvalidCallError,
    InvalidRequestError,
    MissingKeyError,
    RecordTooLargeError,
    RetriableError,
    TransactionAbortableError,
    TxnTableError,
    UnknownTopicOrPartitionError,
)
from txntable.format.records import OnDelivery, RecordMetadata, SendOptions, header_structs
from txntable.format.schema import KAFKA_SCHEMA
from txntable.format.topic import TopicSettings
from txntable.log.log_view import LogContext
from txntable.offsets.group_commit import GroupCommit
from txntable.partition.batch import ProducerEpoch
from txntable.producer.client_state import Call, ClientState
from txntable.producer.client_status import ClientStatus
from txntable.producer.coordinator_client import CoordinatorClient
from txntable.producer.linger import Linger
from txntable.producer.outbox import Outbox
from txntable.producer.producer_config import ProducerConfig
from txntable.runtime.environment import Instant
from txntable.runtime.one_process import OfOneProcess
from txntable.segments.segment import SegmentPlan, StagedSegment
from txntable.topics.topic_log import TopicLog

P = ParamSpec("P")
T = TypeVar("T")
SenderT = TypeVar("SenderT", bound="RecordSender")

# Refusals that in Kafka come from the broker, or are its client's errors of a record: not mere wrong arguments.
_SPOILING = (UnknownTopicOrPartitionError, MissingKeyError)


def in_turn(call: Callable[Concatenate[SenderT, P], T]) -> Callable[Concatenate[SenderT, P], T]:
    """Let the calls of one producer run one after the other."""

    @functools.wraps(call)
    def run(sender: SenderT, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with sender.lock:
            return call(sender, *args, **kwargs)

    return run


class _KafkaRecord(dict[str, Any]):
    """A row of Kafka's own columns, which only a topic of that schema takes."""


class RecordSender(OfOneProcess):
    """The sending half of a producer.

    Parameters
    ----------
    config : ProducerConfig
        Transactional id, timeout, idempotence.
    context : LogContext
        Of the warehouse.
    coordinator : CoordinatorClient
        The state machine over the transaction log, and completion.
    """

    def __init__(self, config: ProducerConfig, context: LogContext, coordinator: CoordinatorClient) -> None:
        self.config = config
        self.lock = threading.RLock()
        self._context = context
        self._coordinator = coordinator
        self._outbox = Outbox(config, context, coordinator.topic_log)
        self._status = ClientStatus()
        if config.transactional_id is None:
            self._status.reach(ClientState.READY)
        self._enrolled = False
        self._linger: Linger | None = None
        if config.linger_ms is not None:
            self._linger = Linger(config.linger_ms, context.environment, self._flush_lingering, self._waiting_since)

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
        self._check_sending()
        self._raise_lingering()
        self._hand_on_full()
        whole = {"value": key if value is None else value, "row": row, "rows": rows}
        given = [name for name, part in whole.items() if part is not None]
        if len(given) > 1:
            raise InvalidRequestError("give key and value, or row, or rows: one of them", given=",".join(given))
        time_ms = self._context.clock.now_ms() if timestamp_ms is None else timestamp_ms
        options = SendOptions(time_ms, partition, on_delivery)
        if row is None and rows is None:
            row = _KafkaRecord(key=key, value=value, headers=header_structs(headers))
        metadata = self._buffer(topic, row, rows, options)
        # These records are taken: what can be tried again is raised where nothing is buffered yet.
        with contextlib.suppress(RetriableError):
            self._hand_on_full()
        if self._linger is not None:
            self._linger.wake()
        return metadata

    def _buffer(
        self, topic: str, row: Mapping[str, Any] | None, rows: pa.Table | pa.RecordBatch | None, options: SendOptions
    ) -> RecordMetadata:
        try:
            accumulator = self._outbox.accumulator(topic)
            if isinstance(row, _KafkaRecord) and accumulator.settings.schema != KAFKA_SCHEMA:
                raise InvalidRequestError("the topic has its own schema: give row= or rows=", topic=topic)
            return accumulator.add_table(rows, options) if row is None else accumulator.add_row(row, options)
        except (InvalidCallError, RecordTooLargeError) as error:
            self.spoil(error)
            raise

    @in_turn
    def spoil(self, error: BaseException) -> None:
        """Let only abort follow where records of an open transaction were not sent; a wrong argument spoils nothing.

        Kafka's rule: who goes on would commit a transaction that lacks them.  What can be tried again is no failure.
        """
        is_wrong_argument = isinstance(error, InvalidCallError) and not isinstance(error, _SPOILING)
        if (
            is_wrong_argument
            or isinstance(error, RetriableError)
            or self._status.state is not ClientState.IN_TRANSACTION
        ):
            return
        if isinstance(error, TxnTableError):
            self._status.fail(error)
        else:
            self._status.fail(TransactionAbortableError("a write failed: abort", cause=type(error).__name__))

    def _hand_on_full(self) -> None:
        """Upload what is worth a segment; outside of a transaction append and publish it as well."""
        if self._outbox.is_full:
            self._guarded(self._upload_full)

    def _upload_full(self) -> None:
        self._outbox.upload(only_full=True)
        if self.config.transactional_id is None:
            self._outbox.append_and_publish()

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
        if self._status.state in (ClientState.UNINITIALIZED, ClientState.READY) and self._outbox.is_empty:
            # As Kafka's: outside of a transaction, or with nothing sent, there is nothing to wait for.
            self._raise_lingering()
            return
        self._check_sending()
        self._raise_lingering()
        self._guarded(self._flush)

    def _raise_lingering(self) -> None:
        """Raise what a flush in the background raised since the last call."""
        if self._linger is not None:
            self._linger.raise_failure()

    @in_turn
    def _flush_lingering(self) -> None:
        if self._status.state is ClientState.READY:
            self._guarded(self._flush)

    @in_turn
    def _waiting_since(self) -> Instant | None:
        return self._outbox.waiting_since

    @in_turn
    def stage(
        self, topic: TopicLog, settings: TopicSettings, segments: Sequence[StagedSegment], metadata: RecordMetadata
    ) -> None:
        """Take segments that someone else uploaded for this producer (Spark's executors)."""
        self._check_sending()
        self._guarded(lambda: self._outbox.stage(topic, settings, segments, metadata))

    @in_turn
    def segment_plan(self, topic: TopicLog, settings: TopicSettings) -> SegmentPlan:
        """Return what segments that are uploaded for this producer now have in common."""
        self._check_sending()
        return self._outbox.plan(topic, settings)

    def topic_log(self, topic: str) -> TopicLog:
        """Return the logs of a topic."""
        return self._outbox.topic_log(topic)

    def _check_sending(self) -> None:
        if self.config.transactional_id is not None:
            self._status.check(Call.SEND)
        elif self._status.state is not ClientState.READY:
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

    def _flush_with(self, offsets: GroupCommit, transactional_id: str) -> None:
        """Upload and append what waits, and a group's offsets with it: one enrolment for all."""
        self._outbox.upload()
        producer = self._require_producer()
        self._enrolled = True
        self._coordinator.enrol(transactional_id, producer, self._outbox.staged, (offsets.group,))
        self._outbox.append(self._coordinator.verifier(transactional_id, producer))
        transaction = OffsetTransaction(transactional_id, producer.producer_id, producer.epoch)
        self._coordinator.send_offsets(transaction, offsets)

    def _guarded(self, step: Callable[[], T]) -> T:
        """Run a step; a failure leaves the producer where its error says."""
        if self.config.transactional_id is not None:
            return self._status.guard(step)
        try:
            return step()
        except TxnTableError as error:
            self._restart_idempotent(error)
            raise

    def _restart_idempotent(self, error: TxnTableError) -> None:
        """Go on under a raised epoch from 0, as Kafka does: a refused batch leaves a hole in the sequence."""
        if not error.retriable:
            producer = self._outbox.producer
            raised = None if producer is None else ProducerEpoch(producer.producer_id, producer.epoch + 1)
            self._outbox.restart(raised, error)

    def _shut(self) -> None:
        self._status.reach(ClientState.CLOSED)
        if self._linger is not None:
            self._linger.stop()
        unsent = IllegalStateError("the producer was closed before the record was sent; send it by a new one")
        self._outbox.restart(self._outbox.producer, unsent)

    def _require_producer(self) -> ProducerEpoch:
        producer = self._outbox.producer
        if producer is None:
            raise IllegalStateError("the producer has no id yet; call init_transactions first", state=self.state)
        return producer
