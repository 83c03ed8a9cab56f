"""Kafka as confluent-kafka reaches it: a transactional producer, and what a group has committed.

Owns that the library is loaded when it is used, for it is no dependency of this project, and that what it raises
arrives as an error of ours.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from txntable.errors import (
    InvalidRequestError,
    MissingDependencyError,
    ProducerFencedError,
    TransactionAbortableError,
)
from txntable.jobs.mirror.positions import Position
from txntable.runtime.environment import Environment

TIMEOUT_S = 60.0
"""For how long Kafka may be silent."""
_FULL_QUEUE_WAIT_S = 0.1
_RETRY_WAIT_MS = 100
# Of a group's coordinator that is on its way, as in a cluster where nobody committed an offset yet. A list of ours:
# what confluent-kafka raises for committed offsets says of no error that it is retriable.
_RETRIABLE = {"NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS"}
_FENCED = {"_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"}
# Of a record: sent again, it is refused again.
_REFUSED = {"MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE", "INVALID_RECORD", "INVALID_TIMESTAMP", "POLICY_VIOLATION"}


def confluent_kafka(part: str = "") -> Any:
    """Return confluent-kafka, or a module of it (``.admin``).

    Raises
    ------
    MissingDependencyError
        It is not installed.
    """
    try:
        return importlib.import_module(f"confluent_kafka{part}")
    except ImportError as error:
        raise MissingDependencyError(
            "a mirror to kafka needs confluent-kafka; pip install confluent-kafka", missing=error.name
        ) from error


@contextmanager
def kafkas_errors(topic: str) -> Iterator[None]:
    """Raise what Kafka refuses as an error of ours.

    Raises
    ------
    ProducerFencedError
        A newer mirror has taken over.
    InvalidRequestError
        Kafka will never take it.
    TransactionAbortableError
        Anything else.
    """
    try:
        yield
    except confluent_kafka().KafkaException as error:
        refused = error.args[0]
        if refused.name() in _FENCED:
            raise ProducerFencedError(
                "another process mirrors into the same topic of kafka, or this one was silent for longer than"
                " transaction.timeout.ms; leave it to that one, or start this one again",
                topic=topic,
            ) from error
        if refused.name() in _REFUSED or refused.name().endswith("AUTHORIZATION_FAILED"):
            raise InvalidRequestError(
                "kafka does not take this, and will not later; change the topic's settings or the rights, or go on"
                " behind the record by --at",
                topic=topic,
                error=refused.name(),
                reason=refused.str(),
            ) from error
        raise TransactionAbortableError(
            "kafka refused, or did not answer; run the mirror again, it goes on from what is committed",
            topic=topic,
            error=refused.name(),
            reason=refused.str(),
        ) from error


class KafkaTarget:
    """A topic of Kafka that one mirror writes, and the mirror's positions beside it.

    The positions are offsets of a group in the topic's partitions, as many as the source has, committed by the
    producer's transactions.

    Parameters
    ----------
    topic : str
        Kafka's.
    name : str
        The transactional id, and the group.
    settings : Mapping of str to str
        Of librdkafka; ``bootstrap.servers`` among them.
    environment : Environment
        Waits for a coordinator.
    """

    def __init__(self, topic: str, name: str, settings: Mapping[str, str], environment: Environment) -> None:
        kafka = confluent_kafka()
        self._topic, self._settings, self._environment = topic, {"log_level": "0", **settings}, environment
        with kafkas_errors(topic):
            # read_committed: positions of a transaction that is not ended yet are waited for, and not passed over.
            group = {"group.id": name, "enable.auto.commit": "false", "isolation.level": "read_committed"}
            self._consumer = kafka.Consumer({**self._settings, **group})
            self.producer = kafka.Producer({**self._settings, "transactional.id": name})

    def grow(self, partitions: int) -> None:
        """Create the topic, or let it have more partitions, where it has fewer."""
        admin_module = confluent_kafka(".admin")
        with kafkas_errors(self._topic):
            admin = admin_module.AdminClient(self._settings)
            known = admin.list_topics(timeout=TIMEOUT_S).topics.get(self._topic)
            count = 0 if known is None else len(known.partitions)
            if count == 0:
                made = admin.create_topics([admin_module.NewTopic(self._topic, partitions)])
            elif count < partitions:
                made = admin.create_partitions([admin_module.NewPartitions(self._topic, partitions)])
            else:
                made = {}
            # The client ends these itself.
            for each in made.values():
                each.result()
            self._wait_for(partitions)

    def _wait_for(self, partitions: int) -> None:
        """Wait until the producer knows so many partitions, each with a leader: others it would refuse."""
        began = self._environment.instant()
        while True:
            found = self.producer.list_topics(self._topic, timeout=TIMEOUT_S).topics[self._topic].partitions
            if sum(each.leader >= 0 for each in found.values()) >= partitions:
                return
            if self._environment.since_ms(began) >= TIMEOUT_S * 1000:
                raise TransactionAbortableError(
                    "kafka's topic has not got its partitions yet; run the mirror again",
                    topic=self._topic,
                    partitions=partitions,
                    found=len(found),
                )
            self._environment.sleep_ms(_RETRY_WAIT_MS)

    def take_over(self) -> None:
        """Fence whoever mirrored into the topic before, and end what it left open; positions are read after this."""
        with kafkas_errors(self._topic):
            self.producer.init_transactions(TIMEOUT_S)

    def positions(self, partitions: int) -> dict[int, Position]:
        """Return the positions that are committed, waiting for the coordinator that knows them."""
        began = self._environment.instant()
        with kafkas_errors(self._topic):
            while True:
                try:
                    return self._committed(partitions)
                except confluent_kafka().KafkaException as error:
                    is_over = self._environment.since_ms(began) >= TIMEOUT_S * 1000
                    if is_over or error.args[0].name() not in _RETRIABLE:
                        raise
                self._environment.sleep_ms(_RETRY_WAIT_MS)

    def _committed(self, partitions: int) -> dict[int, Position]:
        wanted = [confluent_kafka().TopicPartition(self._topic, number) for number in range(partitions)]
        found = self._consumer.committed(wanted, timeout=TIMEOUT_S)
        for each in found:
            if each.error is not None:
                raise confluent_kafka().KafkaException(each.error)
        return {each.partition: Position(each.offset, each.metadata or "") for each in found if each.offset >= 0}

    def is_empty(self, partitions: int) -> bool:
        """Return whether nothing was ever written to the topic."""
        kind = confluent_kafka().TopicPartition
        with kafkas_errors(self._topic):
            ends = [
                self._consumer.get_watermark_offsets(kind(self._topic, number), timeout=TIMEOUT_S)[1]
                for number in range(partitions)
            ]
        return not any(ends)

    def send(self, partition: int, timestamp_ms: int, row: Mapping[str, Any]) -> None:
        """Let the open transaction have a record, waiting while the producer's queue is full.

        Parameters
        ----------
        partition : int
            Where to.
        timestamp_ms : int
            ms since 1970.
        row : Mapping of str to object
            The columns ``key``, ``value`` and, where there is one, ``headers``.
        """
        headers = [(header["key"], header["value"]) for header in row.get("headers") or ()]
        record = {"key": row["key"], "value": row["value"], "headers": headers}
        while True:
            try:
                self.producer.produce(self._topic, partition=partition, timestamp=timestamp_ms, **record)
            except BufferError:
                self.producer.poll(_FULL_QUEUE_WAIT_S)
            else:
                self.producer.poll(0)
                return

    def send_positions(self, positions: Mapping[int, int], origin: str) -> None:
        """Let the open transaction commit positions."""
        kind = confluent_kafka().TopicPartition
        offsets = [kind(self._topic, number, offset, origin) for number, offset in positions.items()]
        self.producer.send_offsets_to_transaction(offsets, self._consumer.consumer_group_metadata(), TIMEOUT_S)

    def close(self) -> None:
        """Close the consumer; an open transaction of the producer is aborted by its successor."""
        self._consumer.close()
