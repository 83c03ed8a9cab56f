"""A topic's committed records in Kafka: each once, in order, whatever is killed."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import txntable
from tests.broker.cluster import Cluster, Message
from txntable.errors import (
    OffsetOutOfRangeError,
    ProducerFencedError,
    SchemaMismatchError,
    UnknownTopicOrPartitionError,
)
from txntable.jobs.mirror.kafka_client import KafkaTarget
from txntable.jobs.mirror.outbound import ToKafka

ROOT = Path(__file__).parents[2]
TARGET = "txntable.jobs.mirror.kafka_client:KafkaTarget"
PRODUCER = "confluent_kafka:Producer"
STEPS = [
    (f"{TARGET}.take_over", "before"),
    (f"{TARGET}.take_over", "after"),
    (f"{TARGET}.positions", "after"),
    (f"{PRODUCER}.begin_transaction", "after"),
    (f"{PRODUCER}.produce", "after"),
    (f"{PRODUCER}.send_offsets_to_transaction", "flushed"),
    (f"{PRODUCER}.send_offsets_to_transaction", "after"),
    (f"{PRODUCER}.commit_transaction", "flushed"),
    (f"{PRODUCER}.commit_transaction", "after"),
]


def send(warehouse: txntable.Warehouse, topic: str, messages: list[Message], *, commit: bool = True) -> None:
    producer = warehouse.producer("shop")
    producer.init_transactions()
    producer.begin_transaction()
    for each in messages:
        headers: list[Any] = list(each.headers)
        producer.send(
            topic,
            each.value,
            key=each.key,
            headers=headers or None,
            partition=each.partition,
            timestamp_ms=each.timestamp_ms,
        )
    if commit:
        producer.commit_transaction()
    else:
        producer.flush()
        producer.abort_transaction()
    producer.close()


def numbered(first: int, count: int = 6) -> list[Message]:
    return [Message(number % 2, b"k%d" % (number % 3), b"%d" % number) for number in range(first, first + count)]


def by_partition(messages: list[Message], partitions: int = 2) -> list[list[Message]]:
    return [[each for each in messages if each.partition == number] for number in range(partitions)]


@pytest.fixture
def warehouse(folder: str) -> txntable.Warehouse:
    made = txntable.Warehouse.create(folder)
    made.admin().create_topic("orders", partitions=2)
    return made


class Mirrored:
    """A mirror of ``orders`` into a topic of Kafka, each time by a new client."""

    def __init__(self, cluster: Cluster, warehouse: txntable.Warehouse, into: str) -> None:
        self.into, self.name = into, f"mirror-{into}"
        self._cluster, self._warehouse = cluster, warehouse

    def begin(self, source: str = "orders", most_records: int = 4) -> ToKafka:
        environment = self._warehouse.context.environment
        target = KafkaTarget(self.into, self.name, {"bootstrap.servers": self._cluster.address}, environment)
        return ToKafka(self._warehouse, source, target, most_records)

    def catch_up(self) -> None:
        mirror = self.begin()
        goal = mirror.ends()
        while mirror.run(goal).read:
            pass
        mirror.close()


@pytest.fixture
def mirrored(cluster: Cluster, warehouse: txntable.Warehouse) -> Mirrored:
    return Mirrored(cluster, warehouse, cluster.new_topic())


def test_records_arrive_whole_and_in_order_with_their_nulls_headers_and_times(
    cluster: Cluster, warehouse: txntable.Warehouse, mirrored: Mirrored
) -> None:
    messages = [
        Message(0, b"k", b"v", (("a", b"1"), ("a", b"2"), ("n", None)), 1_600_000_000_123),
        Message(0, b"k", None),
        Message(1, None, b"without a key"),
        Message(1, b"", b""),
        Message(1, None, None),
    ]
    send(warehouse, "orders", messages)

    mirrored.catch_up()

    assert cluster.committed(mirrored.into) == by_partition(messages)


def test_aborted_records_never_arrive_and_later_ones_do(
    cluster: Cluster, warehouse: txntable.Warehouse, mirrored: Mirrored
) -> None:
    send(warehouse, "orders", numbered(0))
    send(warehouse, "orders", numbered(100), commit=False)
    mirrored.catch_up()
    send(warehouse, "orders", numbered(200), commit=False)
    send(warehouse, "orders", numbered(6))

    mirrored.catch_up()

    assert cluster.committed(mirrored.into) == by_partition(numbered(0, 12))


def test_topic_is_created_in_kafka_and_grows_with_ours(
    cluster: Cluster, warehouse: txntable.Warehouse, mirrored: Mirrored
) -> None:
    mirrored.into = "made-by-the-mirror"
    send(warehouse, "orders", [Message(0, b"old", b"0")])
    mirror = mirrored.begin()
    while mirror.run({0: 1}).read:
        pass
    warehouse.admin().create_partitions({"orders": 3})
    send(warehouse, "orders", [Message(2, b"new", b"1")])

    goal = {0: 1, 2: 1}
    while mirror.run(goal).read:
        pass
    mirror.close()

    assert cluster.committed(mirrored.into) == [[Message(0, b"old", b"0")], [], [Message(2, b"new", b"1")]]


@pytest.mark.parametrize("name", [None, "a\0b"])
def test_record_is_refused_when_kafka_would_change_a_headers_name(
    cluster: Cluster, warehouse: txntable.Warehouse, mirrored: Mirrored, name: str | None
) -> None:
    with warehouse.producer("shop") as producer:
        producer.init_transactions()
        with producer.transaction() as transaction:
            row = {"key": b"k", "value": b"v", "headers": [{"key": name, "value": b"x"}]}
            transaction.send("orders", row=row, partition=0)
    mirror = mirrored.begin()

    with pytest.raises(SchemaMismatchError, match="partition=0 offset=0"):
        mirror.run({0: 1})

    mirror.close()
    assert cluster.committed(mirrored.into) == [[], []]


def test_topic_is_not_mirrored_when_it_is_created_again_while_the_mirror_begins(
    cluster: Cluster, warehouse: txntable.Warehouse, mirrored: Mirrored
) -> None:
    send(warehouse, "orders", [Message(0, b"k", b"of the first")])
    mirror = mirrored.begin()
    settings = warehouse.topic_log("orders").settings()
    warehouse.admin().delete_topic("orders")
    warehouse.admin().create_topic("orders", partitions=settings.partitions, schema=settings.schema)
    send(warehouse, "orders", [Message(0, b"k", b"of the second")])

    with pytest.raises(UnknownTopicOrPartitionError, match="created again"):
        mirror.run({0: 1})

    mirror.close()
    assert cluster.committed(mirrored.into) == [[], []]


def test_each_record_arrives_once_when_the_mirror_is_killed_between_any_two_steps(
    cluster: Cluster, warehouse: txntable.Warehouse, folder: str
) -> None:
    into = cluster.new_topic()
    arguments = ["mirror", "to-kafka", "orders", "--bootstrap-servers", cluster.address, "--into", into]
    arguments += ["--once", "--max-records", "4", "--warehouse", folder]
    expected: list[Message] = []

    def run(call: str, when: str) -> int:
        command = [sys.executable, "-m", "tests.broker.killed_mirror", call, when, *arguments]
        return subprocess.run(command, cwd=ROOT, check=False).returncode

    # Twice: the first time nothing is there, and some steps are those of a mirror that takes its stand.
    for call, when in [*STEPS, *STEPS]:
        new = numbered(len(expected))
        send(warehouse, "orders", new)
        expected += new
        assert run(call, when) == -signal.SIGKILL, (call, when)

    assert run("-", "") == 0
    assert cluster.committed(into) == by_partition(expected)


def test_mirror_is_fenced_when_another_takes_over(
    cluster: Cluster, warehouse: txntable.Warehouse, mirrored: Mirrored
) -> None:
    first = mirrored.begin()
    first.run()
    send(warehouse, "orders", numbered(0))
    mirrored.catch_up()

    with pytest.raises(ProducerFencedError, match="another process mirrors"):
        first.run()

    first.close()
    assert cluster.committed(mirrored.into) == by_partition(numbered(0))


def test_records_that_retention_took_before_they_were_mirrored_are_told_and_not_passed_over(
    cluster: Cluster, warehouse: txntable.Warehouse, mirrored: Mirrored
) -> None:
    send(warehouse, "orders", numbered(0))
    mirrored.catch_up()
    send(warehouse, "orders", numbered(6))
    warehouse.admin().delete_records({txntable.TopicPartition("orders", 0): 5})
    mirror = mirrored.begin()

    with pytest.raises(OffsetOutOfRangeError, match=r"records are gone .* --at PARTITION=OFFSET"):
        mirror.run()
    mirror.seek({0: 5})
    mirror.close()
    mirrored.catch_up()

    assert [each.value for each in cluster.committed(mirrored.into)[0]] == [b"0", b"2", b"4", b"8", b"10"]
    assert [each.value for each in cluster.committed(mirrored.into)[1]] == [b"1", b"3", b"5", b"7", b"9", b"11"]


def test_positions_that_expired_in_kafka_are_told_and_nothing_is_sent_again(
    cluster: Cluster, warehouse: txntable.Warehouse, mirrored: Mirrored
) -> None:
    send(warehouse, "orders", numbered(0))
    mirrored.catch_up()
    cluster.delete_group(mirrored.name)
    mirror = mirrored.begin()

    with pytest.raises(OffsetOutOfRangeError, match="no positions of this mirror"):
        mirror.run()

    mirror.close()
    assert cluster.committed(mirrored.into) == by_partition(numbered(0))


def test_topic_that_was_created_again_is_refused(warehouse: txntable.Warehouse, mirrored: Mirrored) -> None:
    mirrored.catch_up()
    warehouse.admin().delete_topic("orders")
    warehouse.admin().create_topic("orders", partitions=2)
    mirror = mirrored.begin()

    with pytest.raises(UnknownTopicOrPartitionError, match="created again"):
        mirror.run()

    mirror.close()


def test_topic_without_bytes_is_refused_before_kafka_is_touched(
    warehouse: txntable.Warehouse, mirrored: Mirrored
) -> None:
    schema = pa.schema([("key", pa.string()), ("value", pa.binary()), ("headers", pa.int64())])
    warehouse.admin().create_topic("columns", schema=schema)

    with pytest.raises(SchemaMismatchError, match="columns=key,headers"):
        mirrored.begin("columns")
