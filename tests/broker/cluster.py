"""Kafka as its own client sees it, with nothing of the mirror: what tests write there, and what they find."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

TIMEOUT_S = 60
_ATTEMPTS = 10_000
_NUMBERS = itertools.count()


class Message(NamedTuple):
    """A record, without its offset."""

    partition: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int = 1_700_000_000_000


class Cluster:
    """A broker and its clients."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._kafka = importlib.import_module("confluent_kafka")
        self._admin_module = importlib.import_module("confluent_kafka.admin")
        self._config = {"bootstrap.servers": address, "log_level": 0}
        self._admin = self._admin_module.AdminClient(self._config)

    def new_topic(self, partitions: int = 2) -> str:
        """Create a topic under a new name."""
        name = f"topic-{next(_NUMBERS)}"
        self.create(name, partitions)
        return name

    def create(self, name: str, partitions: int) -> None:
        # The messages of tests are old: the broker would delete them in its next look at retention.
        kept = {"retention.ms": "-1"}
        self._done(self._admin.create_topics([self._admin_module.NewTopic(name, partitions, 1, config=kept)]))
        self._await_partitions(name, partitions)

    def delete(self, name: str) -> None:
        self._done(self._admin.delete_topics([name]))

    def add_partitions(self, name: str, total: int) -> None:
        self._done(self._admin.create_partitions([self._admin_module.NewPartitions(name, total)]))
        self._await_partitions(name, total)

    def partitions(self, name: str) -> int:
        found = self._admin.list_topics(timeout=TIMEOUT_S).topics.get(name)
        return 0 if found is None else len(found.partitions)

    def _await_partitions(self, name: str, total: int) -> None:
        """Ask until the broker tells others what it has answered to us."""
        assert any(self.partitions(name) == total for _ in range(_ATTEMPTS)), name

    def delete_records(self, name: str, partition: int, before: int) -> None:
        """Let the log begin later, as retention does."""
        self._done(self._admin.delete_records([self._kafka.TopicPartition(name, partition, before)]))

    def delete_group(self, group: str) -> None:
        self._done(self._admin.delete_consumer_groups([group]))

    def _done(self, futures: Any) -> None:
        for each in futures.values():
            each.result(TIMEOUT_S)

    def send(self, topic: str, messages: Iterable[Message], *, commit: bool = True) -> None:
        """Send messages in one transaction, all of which reach the broker, and end it."""
        producer = self._open(topic, messages)
        if commit:
            producer.commit_transaction(TIMEOUT_S)
        else:
            producer.abort_transaction(TIMEOUT_S)

    def _open(self, topic: str, messages: Iterable[Message]) -> Any:
        producer = self._kafka.Producer({**self._config, "transactional.id": f"test-{next(_NUMBERS)}"})
        producer.init_transactions(TIMEOUT_S)
        producer.begin_transaction()
        for each in messages:
            producer.produce(
                topic,
                value=each.value,
                key=each.key,
                partition=each.partition,
                headers=list(each.headers),
                timestamp=each.timestamp_ms,
            )
        producer.flush(TIMEOUT_S)
        return producer

    def open_transaction(self, topic: str, messages: Sequence[Message]) -> Any:
        """Send messages and leave the transaction open; returns its producer."""
        return self._open(topic, messages)

    def committed(self, topic: str) -> list[list[Message]]:
        """Return the committed messages of each partition, in order."""
        consumer = self._kafka.Consumer(
            {
                **self._config,
                "group.id": f"test-{next(_NUMBERS)}",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "enable.auto.commit": False,
            }
        )
        found: list[list[Message]] = [[] for _ in range(self.partitions(topic))]
        consumer.assign([self._kafka.TopicPartition(topic, number, 0) for number in range(len(found))])
        waiting = len(found)
        while waiting:
            message = consumer.poll(TIMEOUT_S)
            assert message is not None, "the broker does not answer"
            if message.error() is not None:
                assert message.error().code() == self._kafka.KafkaError._PARTITION_EOF, message.error()
                waiting -= 1
                continue
            headers = tuple(message.headers() or ())
            time = message.timestamp()[1]
            found[message.partition()].append(
                Message(message.partition(), message.key(), message.value(), headers, time)
            )
        consumer.close()
        return found
