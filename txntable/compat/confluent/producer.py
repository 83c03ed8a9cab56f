"""confluent-kafka's Producer over :class:`txntable.Producer`.

Owns which messages wait for their delivery, which ``flush`` and ``len`` count.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from txntable.compat.confluent.arguments import check_callables, int_of, of_type, seconds_or_none
from txntable.compat.confluent.cluster_metadata import ClusterMetadata, listed_topics
from txntable.compat.confluent.connection import connection
from txntable.compat.confluent.elsewhere import ELSEWHERE
from txntable.compat.confluent.kafka_error import KafkaError, kafka_error, kafka_errors
from txntable.compat.confluent.message import (
    PARTITION_UNASSIGNED,
    Headers,
    Message,
    TopicPartition,
    encoded,
    header_pairs,
    offsets_of,
)
from txntable.consumer.consumer_config import no_dataframes
from txntable.consumer.consumer_record import ConsumerRecord
from txntable.coordinator.group_request import GroupMetadata
from txntable.errors import InvalidConfigError, RetriableError, TxnTableError
from txntable.format.kafka_call_names import TRANSACTIONS
from txntable.format.records import OnDelivery, RecordMetadata
from txntable.producer.producer_config import DEFAULT_TRANSACTION_TIMEOUT_MS, ProducerConfig, with_kafka_settings
from txntable.runtime.other_names import answering

Callback: TypeAlias = "Callable[[KafkaError | None, Message], object]"
_LINGER_MS = 1_000
_UNKNOWN = -1
# librdkafka's name of what is the default here, and in Java.
_PARTITIONER = "murmur2_random"
_OTHER_PARTITIONERS = ("random", "consistent", "consistent_random", "murmur2", "fnv1a", "fnv1a_random")


@answering({**ELSEWHERE, **TRANSACTIONS})
class Producer:
    """Sends messages; see :mod:`txntable.compat.confluent` for what differs.

    Parameters
    ----------
    config : Mapping, optional
        confluent-kafka's settings; keywords are taken too.

    Raises
    ------
    KafkaException
        A setting is unknown or has no counterpart, or there is no such warehouse.
    """

    def __init__(self, config: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        with kafka_errors():
            given = connection(config, named, sends=True)
            settings = given.settings
            self._on_delivery: Callback | None = settings.pop("on.delivery", None)
            if self._on_delivery is not None and not callable(self._on_delivery):
                given.wrong.append(InvalidConfigError("on_delivery must be a callable; give one, or leave it out"))
            if settings.get("partitioner") == _PARTITIONER:
                del settings["partitioner"]
            elif settings.get("partitioner") in _OTHER_PARTITIONERS:
                given.wrong.append(
                    InvalidConfigError(
                        f"there is no such partitioner here; {_PARTITIONER}, Kafka's own, chooses by the key",
                        partitioner=settings.pop("partitioner"),
                    )
                )
            if not settings.keys() & {"transactional.id", "queue.buffering.max.ms"}:
                settings.setdefault("linger.ms", _LINGER_MS)
            plain = ProducerConfig(None, DEFAULT_TRANSACTION_TIMEOUT_MS, True, no_dataframes)
            warehouse = given.opened(lambda settings: with_kafka_settings(plain, settings))
            self._admin = warehouse.admin()
            self._producer = warehouse.producer(settings)
        # What was produced and neither delivered nor given up; a set, since another thread may deliver.
        self._waiting: set[object] = set()
        self._served, self._lock = 0, threading.Lock()

    def produce(  # noqa: PLR0913  confluent-kafka's signature
        self,
        topic: str,
        value: str | bytes | None = None,
        key: str | bytes | None = None,
        partition: int = PARTITION_UNASSIGNED,
        callback: Callback | None = None,
        on_delivery: Callback | None = None,
        timestamp: int = 0,
        headers: Headers | None = None,
    ) -> None:
        """Buffer a message; `on_delivery`, or `callback`, is called with an error or ``None``, and the message.

        Raises
        ------
        KafkaException
            Nothing was buffered.
        TypeError
            An argument is of the wrong type: nothing was buffered.
        """
        of_type(str, topic, "topic")
        partition, timestamp = int_of(partition, "partition"), int_of(timestamp, "timestamp")
        check_callables([("callback", callback), ("on_delivery", on_delivery)])
        with kafka_errors("produce"):
            data, name, pairs = encoded(value), encoded(key), header_pairs(headers)
            sent = ConsumerRecord(topic, _UNKNOWN, _UNKNOWN, _UNKNOWN, name, data, list(pairs or ()), {}, None)
            waits = object()
            self._waiting.add(waits)
            try:
                self._producer.send(
                    topic,
                    data,
                    key=name,
                    headers=pairs,
                    partition=None if partition == PARTITION_UNASSIGNED else partition,
                    timestamp_ms=timestamp or None,
                    on_delivery=self._told(waits, sent, on_delivery or callback or self._on_delivery),
                )
            except BaseException:
                self._waiting.discard(waits)
                raise

    def _told(self, waits: object, sent: ConsumerRecord, call: Callback | None) -> OnDelivery:
        def delivered(metadata: RecordMetadata, error: TxnTableError | None) -> None:
            self._waiting.discard(waits)
            if call is None:
                return
            with self._lock:
                self._served += 1
            place = (metadata.partition, metadata.offset) if metadata.is_delivered else (_UNKNOWN, _UNKNOWN)
            time_ms = _UNKNOWN if metadata.timestamp_ms is None else metadata.timestamp_ms
            record = ConsumerRecord(sent.topic, *place, time_ms, sent.key, sent.value, sent.headers, {}, None)
            failure = None if error is None else kafka_error(error)
            call(failure, Message(record, failure))

        return delivered

    def poll(self, timeout: float = 0) -> int:
        """Return how many delivery callbacks were called since the last poll; calls none, and waits for nothing."""
        seconds_or_none(timeout)
        with self._lock:
            served, self._served = self._served, 0
        return served

    def flush(self, timeout: float = -1) -> int:
        """Send what is buffered; return how many messages still wait, because the store did not answer in time.

        Raises
        ------
        KafkaException
            The messages were refused: in a transaction, abort.
        """
        with kafka_errors():
            try:
                self._producer.flush(seconds_or_none(timeout))
            except RetriableError:
                if not self._waiting:
                    raise
        return len(self._waiting)

    def __len__(self) -> int:
        return len(self._waiting)

    def __bool__(self) -> bool:
        return True

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> ClusterMetadata:
        """Return all topics, or one; one that there is not has an error.  The timeout is taken and not heeded."""
        return listed_topics(self._admin, topic, timeout)

    def init_transactions(self, timeout: float = -1) -> None:
        """See :meth:`txntable.Producer.init_transactions`."""
        with kafka_errors():
            self._producer.init_transactions(seconds_or_none(timeout))

    def begin_transaction(self) -> None:
        """See :meth:`txntable.Producer.begin_transaction`."""
        with kafka_errors():
            self._producer.begin_transaction()

    def send_offsets_to_transaction(
        self, positions: Sequence[TopicPartition], group_metadata: GroupMetadata, timeout: float = -1
    ) -> None:
        """See :meth:`txntable.Producer.send_offsets_to_transaction`; positions without an offset are left out."""
        seconds_or_none(timeout)
        of_type(GroupMetadata, group_metadata, "group_metadata")
        with kafka_errors():
            self._producer.send_offsets_to_transaction(offsets_of(positions), group_metadata)

    def commit_transaction(self, timeout: float = -1) -> None:
        """See :meth:`txntable.Producer.commit_transaction`.

        Raises
        ------
        KafkaException
            Its error says what follows: ``retriable()``: the same call; ``txn_requires_abort()``: an abort;
            ``fatal()``: close the producer.
        """
        with kafka_errors():
            self._producer.commit_transaction(seconds_or_none(timeout))

    def abort_transaction(self, timeout: float = -1) -> None:
        """See :meth:`txntable.Producer.abort_transaction`."""
        with kafka_errors():
            self._producer.abort_transaction(seconds_or_none(timeout))

    def close(self) -> None:
        """See :meth:`txntable.Producer.close`."""
        with kafka_errors():
            self._producer.close()

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        with kafka_errors():
            self._producer.__exit__(kind, error, trace)
