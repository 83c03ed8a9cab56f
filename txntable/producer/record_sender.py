"""Sending: records into the outbox, and the outbox into the partition logs (PROTOCOL.md §6.3).

Owns what a producer does with records, inside of a transaction or without one; who decides about
them is :mod:`txntable.producer.producer`'s, which calls under the lock, and documents what its users call.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

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
from txntable.format.records import RecordMetadata, SendOptions
from txntable.format.schema import KAFKA_SCHEMA
from txntable.format.topic import TopicSettings
from txntable.log.log_view import LogContext
from txntable.offsets.group_commit import GroupCommit
from txntable.partition.batch import ProducerEpoch
from txntable.producer.client_state import Call, ClientState
from txntable.producer.client_status import ClientStatus
from txntable.producer.coordinator_client import CoordinatorClient
from txntable.producer.linger import Linger
from txntable.producer.lost_readings import LostReadings
from txntable.producer.outbox import Outbox
from txntable.producer.producer_config import ProducerConfig
from txntable.runtime.environment import Instant
from txntable.segments.segment import SegmentPlan, StagedSegment
from txntable.topics.topic_log import TopicLog

T = TypeVar("T")

# Refusals that in Kafka come from the broker, or are its client's errors of a record: not mere wrong arguments.
_SPOILING = (UnknownTopicOrPartitionError, MissingKeyError)


class KafkaRecord(dict[str, Any]):
    """A row of Kafka's own columns, which only a topic of that schema takes."""


class RecordSender:
    """The sending part of a producer.

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
    lock : threading.RLock
        Held by who calls.
    status : ClientStatus
        Where the producer is in its life.
    outbox : Outbox
        What was taken and is not handed on.
    lost : LostReadings
        What consumers have read and lost.
    enrolled : bool
        Whether the transaction log may know of the open transaction, or of its end.
    linger : Linger or None
        Flushes in the background.
    counters : Counters
        Of this producer.
    """

    def __init__(self, config: ProducerConfig, context: LogContext, coordinator: CoordinatorClient) -> None:
        self.lock = threading.RLock()
        self.status = ClientStatus()
        self.counters = context.counters.child()
        self.outbox = Outbox(config, context, coordinator.topic_log, self.counters)
        self.lost = LostReadings()
        self.enrolled = False
        self._config, self._coordinator = config, coordinator
        if config.transactional_id is None:
            self.status.reach(ClientState.READY)
            weakref.finalize(self, self.outbox.tell_of_unsent)
        self.linger: Linger | None = None
        if config.linger_ms is not None:
            self.linger = Linger(config.linger_ms, context.environment, self._flush_lingering, self._waiting_since)

    # -- taking records ---------------------------------------------------------------------

    def make_room(self) -> None:
        """Check that records may be sent now, and hand on what is worth a segment, before anything more is buffered."""
        self._check_sending()
        self.raise_lingering()
        self._hand_on_full()

    def buffer(
        self, topic: str, row: Mapping[str, Any] | None, rows: pa.Table | pa.RecordBatch | None, options: SendOptions
    ) -> RecordMetadata:
        """Take a row, or rows."""
        metadata = self._accumulated(topic, row, rows, options)
        # These records are taken: what can be tried again is raised where nothing is buffered yet.
        with contextlib.suppress(RetriableError):
            self._hand_on_full()
        if self.linger is not None:
            self.linger.wake()
        return metadata

    def _accumulated(
        self, topic: str, row: Mapping[str, Any] | None, rows: pa.Table | pa.RecordBatch | None, options: SendOptions
    ) -> RecordMetadata:
        try:
            accumulator = self.outbox.accumulator(topic)
            if isinstance(row, KafkaRecord) and accumulator.settings.schema != KAFKA_SCHEMA:
                raise InvalidRequestError("the topic has its own schema; use row= or rows=", topic=topic)
            return accumulator.add_table(rows, options) if row is None else accumulator.add_row(row, options)
        except (InvalidCallError, RecordTooLargeError) as error:
            self.spoil(error)
            raise

    def spoil(self, error: BaseException) -> None:
        """Let only abort follow where records of an open transaction were not sent."""
        is_wrong_argument = isinstance(error, InvalidCallError) and not isinstance(error, _SPOILING)
        if (
            is_wrong_argument
            or isinstance(error, RetriableError)
            or self.status.state is not ClientState.IN_TRANSACTION
        ):
            return
        if isinstance(error, TxnTableError):
            self.status.fail(error)
        else:
            self.status.fail(TransactionAbortableError("a write failed: abort", cause=type(error).__name__))

    def _hand_on_full(self) -> None:
        """Upload what is worth a segment; outside of a transaction append and publish it as well."""
        if self.outbox.is_full:
            self.guarded(self._upload_full)

    def _upload_full(self) -> None:
        self.outbox.upload(only_full=True)
        if self._config.transactional_id is None:
            self.outbox.append_and_publish()

    def stage(
        self, topic: TopicLog, settings: TopicSettings, segments: Sequence[StagedSegment], metadata: RecordMetadata
    ) -> None:
        """Take segments that someone else uploaded."""
        self._check_sending()
        self.guarded(lambda: self.outbox.stage(topic, settings, segments, metadata))

    def segment_plan(self, topic: TopicLog, settings: TopicSettings) -> SegmentPlan:
        """Return what segments that are uploaded for this producer now have in common."""
        self._check_sending()
        return self.outbox.plan(topic, settings)

    def _check_sending(self) -> None:
        if self._config.transactional_id is not None:
            self.status.check(Call.SEND)
        elif self.status.state is not ClientState.READY:
            raise IllegalStateError(
                "the producer can no longer be used; create a new one", state=self.status.state.value
            )
        elif self.outbox.producer is None and self._config.enable_idempotence:
            self.outbox.restart(ProducerEpoch(self._coordinator.new_producer_id(), 0))

    # -- handing them on --------------------------------------------------------------------

    def flush(self) -> None:
        """Upload and append what waits."""
        if self.status.state in (ClientState.UNINITIALIZED, ClientState.READY) and self.outbox.is_empty:
            # As Kafka's: outside of a transaction, or with nothing sent, there is nothing to wait for.
            self.raise_lingering()
            return
        self._check_sending()
        self.raise_lingering()
        self.guarded(self.send_waiting)

    def send_waiting(self) -> None:
        """Upload and append what waits; the caller guards it."""
        self.outbox.upload()
        transactional_id = self._config.transactional_id
        if transactional_id is None:
            self.outbox.append_and_publish()
        elif self.outbox.staged:
            producer = self.require_producer()
            self.enrolled = True
            self._coordinator.enrol(transactional_id, producer, self.outbox.staged)
            with self._coordinator.telling_who_ended(transactional_id, producer):
                self.outbox.append(self._coordinator.verifier(transactional_id, producer))

    def carry_waiting(self) -> None:
        """Upload what waits for the decision to carry; what it cannot carry is appended.  The caller guards it."""
        if not self._carry():
            self.send_waiting()

    def _carry(self) -> bool:
        producer, transactional_id = self.require_producer(), self._config.transactional_id
        if transactional_id is None:
            return self.outbox.carry(producer)
        with self._coordinator.telling_who_ended(transactional_id, producer):
            return self.outbox.carry(producer)

    def send_offsets(self, offsets: GroupCommit, transactional_id: str) -> None:
        """Append a group's offsets, if there are any, as pending ones of the transaction.

        Mostly the commit is next: so what waits is uploaded meanwhile, where the transaction was not enrolled before.
        """
        self.lost.check(offsets)
        if not offsets.offsets:
            return
        producer = self.require_producer()
        enrol = partial(self._coordinator.enrol, transactional_id, producer, {}, (offsets.group,))
        is_first, self.enrolled = not self.enrolled, True
        if is_first:
            self.outbox.prepare(producer, enrol)
        else:
            enrol()
        transaction = OffsetTransaction(transactional_id, producer.producer_id, producer.epoch)
        self._coordinator.send_offsets(transaction, offsets)
        self.lost.sent(offsets)

    def raise_lingering(self) -> None:
        """Raise what a flush in the background raised since the last call."""
        if self.linger is not None:
            self.linger.raise_failure()

    def _flush_lingering(self) -> None:
        with self.lock:
            if self.status.state is ClientState.READY:
                self.guarded(self.send_waiting)

    def _waiting_since(self) -> Instant | None:
        with self.lock:
            return self.outbox.waiting_since

    def guarded(self, step: Callable[[], T]) -> T:
        """Run a step; a failure leaves the producer where its error says."""
        if self._config.transactional_id is not None:
            return self.status.guard(step)
        try:
            return step()
        except TxnTableError as error:
            self._restart_idempotent(error)
            raise

    def _restart_idempotent(self, error: TxnTableError) -> None:
        """Go on under a raised epoch from 0, as Kafka does: a refused batch leaves a hole in the sequence."""
        if not error.retriable:
            producer = self.outbox.producer
            raised = None if producer is None else ProducerEpoch(producer.producer_id, producer.epoch + 1)
            self.outbox.restart(raised, error)

    def shut(self) -> None:
        """Send nothing any more; what waits is told so."""
        self.status.reach(ClientState.CLOSED)
        if self.linger is not None:
            self.linger.stop()
        unsent = IllegalStateError("the producer was closed before the record was sent; send it with a new one")
        self.outbox.restart(self.outbox.producer, unsent)

    def require_producer(self) -> ProducerEpoch:
        """Return the identity that everything goes out under."""
        producer = self.outbox.producer
        if producer is None:
            raise IllegalStateError(
                "the producer has no id yet; call init_transactions first", state=self.status.state.value
            )
        return producer
