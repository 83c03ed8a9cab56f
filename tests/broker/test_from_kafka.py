"""Kafka's records in a topic, by Spark: each once, in order, with Kafka's offsets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from pyspark.sql import DataFrame

import txntable
from tests.broker.cluster import Cluster, Message
from txntable.errors import (
    OffsetOutOfRangeError,
    ProducerFencedError,
    TransactionAbortableError,
    UnknownTopicOrPartitionError,
)
from txntable.jobs.mirror.inbound import GROUP, FromKafka
from txntable.jobs.mirror.spark_kafka import PACKAGE, SparkKafka
from txntable.jobs.session import spark_session

Settings = dict[str, str]


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    settings = {"spark.master": "local[2]", "spark.driver.memory": "1g", "spark.jars.packages": PACKAGE}
    with spark_session("tests", settings=settings) as session:
        yield session


@pytest.fixture(scope="module")
def kafka(spark: Any, cluster: Cluster) -> Iterator[SparkKafka]:
    found = SparkKafka(spark, {"bootstrap.servers": cluster.address})
    yield found
    found.close()


@pytest.fixture
def warehouse(folder: str) -> txntable.Warehouse:
    return txntable.Warehouse.create(folder)


def numbered(first: int, count: int = 6) -> list[Message]:
    return [Message(number % 2, b"k%d" % (number % 2), b"%d" % number) for number in range(first, first + count)]


def catch_up(mirror: FromKafka) -> None:
    goal = mirror.ends()
    while mirror.run(goal).read:
        pass


def mirrored(warehouse: txntable.Warehouse, topic: str) -> list[list[tuple[int, Message]]]:
    """Return of each of Kafka's partitions what is committed of it, in the order of our offsets, with Kafka's."""
    rows = warehouse.read_arrow(topic).read_all().to_pylist()
    rows.sort(key=lambda row: (row["_partition"], row["_offset"]))
    found: dict[int, list[tuple[int, Message]]] = {}
    for row in rows:
        headers = tuple((header["key"], header["value"]) for header in row["headers"] or ())
        time_ms = round(row["_timestamp"].timestamp() * 1000)
        message = Message(row["kafka_partition"], row["key"], row["value"], headers, time_ms)
        assert row["kafka_topic"] == topic
        found.setdefault(message.partition, []).append((row["kafka_offset"], message))
    return [found.get(number, []) for number in range(max(found, default=-1) + 1)]


def values(warehouse: txntable.Warehouse, topic: str) -> list[list[bytes | None]]:
    return [[message.value for _, message in partition] for partition in mirrored(warehouse, topic)]


def test_records_arrive_whole_with_nulls_headers_times_and_kafkas_offsets(
    cluster: Cluster, warehouse: txntable.Warehouse, kafka: SparkKafka
) -> None:
    topic = cluster.new_topic()
    messages = [
        Message(0, b"k", b"v", (("a", b"1"), ("a", b"2"), ("n", None)), 1_600_000_000_123),
        Message(0, b"k", None),
        Message(0, b"", b""),
        Message(1, None, b"without a key"),
        Message(1, None, None),
    ]
    cluster.send(topic, messages)
    mirror = FromKafka(warehouse, kafka, topic, topic)

    catch_up(mirror)
    mirror.close()

    assert mirrored(warehouse, topic) == [
        [(0, messages[0]), (1, messages[1]), (2, messages[2])],
        [(0, messages[3]), (1, messages[4])],
    ]


def test_records_of_one_partition_stay_in_order_over_transactions_of_any_size(
    cluster: Cluster, warehouse: txntable.Warehouse, kafka: SparkKafka
) -> None:
    topic = cluster.new_topic()
    cluster.send(topic, numbered(0, 14))
    mirror = FromKafka(warehouse, kafka, topic, topic, most_offsets=3)
    first = mirror.run()
    cluster.send(topic, numbered(14))

    catch_up(mirror)
    mirror.close()

    assert first.read == {0: (0, 3), 1: (0, 3)}
    assert values(warehouse, topic) == [[b"%d" % number for number in range(first, 20, 2)] for first in (0, 1)]
    assert [[message.key for _, message in partition] for partition in mirrored(warehouse, topic)] == [
        [b"k0"] * 10,
        [b"k1"] * 10,
    ]


def test_aborted_transactions_are_invisible_and_open_ones_wait(
    cluster: Cluster, warehouse: txntable.Warehouse, kafka: SparkKafka
) -> None:
    topic = cluster.new_topic()
    cluster.send(topic, numbered(100), commit=False)
    cluster.send(topic, numbered(0))
    opened = cluster.open_transaction(topic, numbered(6))
    mirror = FromKafka(warehouse, kafka, topic, topic)

    catch_up(mirror)
    before = values(warehouse, topic)
    opened.commit_transaction()
    catch_up(mirror)
    mirror.close()

    assert before == [[b"0", b"2", b"4"], [b"1", b"3", b"5"]]
    assert values(warehouse, topic) == [[b"0", b"2", b"4", b"6", b"8", b"10"], [b"1", b"3", b"5", b"7", b"9", b"11"]]


def test_partitions_added_in_kafka_are_mirrored_from_their_first_record(
    cluster: Cluster, warehouse: txntable.Warehouse, kafka: SparkKafka
) -> None:
    topic = cluster.new_topic()
    cluster.send(topic, numbered(0))
    mirror = FromKafka(warehouse, kafka, topic, topic)
    catch_up(mirror)
    cluster.add_partitions(topic, 3)
    cluster.send(topic, [Message(2, b"new", b"6")])

    catch_up(mirror)
    mirror.close()

    assert values(warehouse, topic) == [[b"0", b"2", b"4"], [b"1", b"3", b"5"], [b"6"]]
    assert warehouse.topic_log(topic).settings().partitions == 3


def test_records_that_kafka_deleted_before_they_were_mirrored_are_told_and_not_passed_over(
    cluster: Cluster, warehouse: txntable.Warehouse, kafka: SparkKafka
) -> None:
    topic = cluster.new_topic()
    cluster.send(topic, numbered(0))
    mirror = FromKafka(warehouse, kafka, topic, topic)
    catch_up(mirror)
    cluster.send(topic, numbered(6))
    cluster.delete_records(topic, 0, 6)

    with pytest.raises(OffsetOutOfRangeError, match=r"records are gone .* --at PARTITION=OFFSET"):
        mirror.run()
    before = values(warehouse, topic)
    mirror.seek({0: 6})
    catch_up(mirror)
    mirror.close()

    assert before == [[b"0", b"2", b"4"], [b"1", b"3", b"5"]]
    # Three records, a marker, one record that is gone, two more.
    assert values(warehouse, topic)[0] == [b"0", b"2", b"4", b"10"]
    assert values(warehouse, topic)[1] == [b"1", b"3", b"5", b"7", b"9", b"11"]


def test_nothing_is_committed_when_records_are_deleted_while_they_are_read(
    cluster: Cluster, warehouse: txntable.Warehouse, kafka: SparkKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = cluster.new_topic()
    cluster.send(topic, numbered(0))
    mirror = FromKafka(warehouse, kafka, topic, topic)
    with monkeypatch.context() as patch:
        whole = kafka.records
        # As after a deletion: part of what is to be read is not there.
        patch.setattr(kafka, "records", lambda name, _: whole(name, {0: (0, 50), 1: (0, 4)}))

        with pytest.raises(TransactionAbortableError, match="nothing of it was mirrored"):
            mirror.run()
        before = values(warehouse, topic)
    catch_up(mirror)
    mirror.close()

    assert before == []
    assert values(warehouse, topic) == [[b"0", b"2", b"4"], [b"1", b"3", b"5"]]


def test_positions_that_are_gone_are_told_and_nothing_is_mirrored_again(
    cluster: Cluster, warehouse: txntable.Warehouse, kafka: SparkKafka
) -> None:
    topic = cluster.new_topic()
    cluster.send(topic, numbered(0))
    mirror = FromKafka(warehouse, kafka, topic, topic)
    catch_up(mirror)
    warehouse.admin().delete_consumer_groups([GROUP])

    with pytest.raises(OffsetOutOfRangeError, match="no positions of this mirror"):
        mirror.run()
    mirror.close()

    assert values(warehouse, topic) == [[b"0", b"2", b"4"], [b"1", b"3", b"5"]]


def test_topic_that_was_created_again_in_kafka_is_refused(
    cluster: Cluster, warehouse: txntable.Warehouse, kafka: SparkKafka
) -> None:
    topic = cluster.new_topic()
    mirror = FromKafka(warehouse, kafka, topic, topic)
    catch_up(mirror)
    cluster.delete(topic)
    cluster.create(topic, 2)

    with pytest.raises(UnknownTopicOrPartitionError, match="created again"):
        mirror.run()

    mirror.close()


def test_nothing_is_committed_when_the_topic_is_created_again_while_it_is_read(
    cluster: Cluster, warehouse: txntable.Warehouse, kafka: SparkKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = cluster.new_topic()
    cluster.send(topic, numbered(0))
    mirror = FromKafka(warehouse, kafka, topic, topic)
    whole = kafka.records

    def of_another(name: str, bounds: Mapping[int, tuple[int, int]]) -> DataFrame:
        cluster.delete(topic)
        cluster.create(topic, 2)
        cluster.send(topic, numbered(100))
        cluster.send(topic, numbered(106))
        return whole(name, bounds)

    monkeypatch.setattr(kafka, "records", of_another)
    with pytest.raises(UnknownTopicOrPartitionError, match="created again while it was read"):
        mirror.run()
    mirror.close()

    assert values(warehouse, topic) == []


def test_mirror_is_fenced_when_another_takes_over(
    cluster: Cluster, warehouse: txntable.Warehouse, kafka: SparkKafka
) -> None:
    topic = cluster.new_topic()
    first = FromKafka(warehouse, kafka, topic, topic)
    first.run()
    cluster.send(topic, numbered(0))
    second = FromKafka(warehouse, kafka, topic, topic)
    catch_up(second)
    cluster.send(topic, numbered(6))

    with pytest.raises(ProducerFencedError):
        first.run()

    catch_up(second)
    second.close()
    assert values(warehouse, topic) == [[b"0", b"2", b"4", b"6", b"8", b"10"], [b"1", b"3", b"5", b"7", b"9", b"11"]]


def test_topic_with_kafkas_columns_only_is_mirrored_into_and_back(
    cluster: Cluster, warehouse: txntable.Warehouse, kafka: SparkKafka
) -> None:
    topic = cluster.new_topic()
    cluster.send(topic, numbered(0))
    warehouse.admin().create_topic("plain", partitions=2)
    mirror = FromKafka(warehouse, kafka, topic, "plain")

    catch_up(mirror)
    mirror.close()

    with warehouse.consumer(auto_offset_reset="earliest") as consumer:
        consumer.assign([txntable.TopicPartition("plain", number) for number in range(2)])
        found = [record for records in consumer.poll(timeout_ms=1_000).values() for record in records]
    assert sorted(int(record.value or b"") for record in found) == list(range(6))
    assert {record.key for record in found} == {b"k0", b"k1"}


def test_topic_that_kafka_does_not_have_is_unknown(warehouse: txntable.Warehouse, kafka: SparkKafka) -> None:
    with pytest.raises(UnknownTopicOrPartitionError, match="check its name topic=nowhere"):
        FromKafka(warehouse, kafka, "nowhere", "nowhere")

    assert warehouse.admin().list_topics() == []
