"""Configurations of real applications: what is taken, what is refused, and that all of it is said at once."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from txntable.compat.confluent import Consumer, KafkaError, KafkaException, Producer, admin
from txntable.compat.confluent.kafka_error_codes import KafkaErrorCodes
from txntable.errors import InvalidCallError, UnsupportedAssignorError
from txntable.format.kafka_setting_names import ALIASES, ELSEWHERE, HARMLESS
from txntable.warehouse.warehouse import Warehouse

BOTH: dict[str, Any] = {
    "client.id": "shop",
    "error_cb": print,
    "logger": logging.getLogger("shop"),
    "stats_cb": print,
    "statistics.interval.ms": 0,
    "security.protocol": "PLAINTEXT",
    "socket.keepalive.enable": True,
    "request.timeout.ms": 30_000,
    "log_level": 6,
}
OF_PRODUCERS: dict[str, Any] = {
    "acks": "all",
    "enable.idempotence": True,
    "retries": 2_147_483_647,
    "max.in.flight.requests.per.connection": 5,
    "delivery.timeout.ms": 120_000,
    "linger.ms": 5,
    "compression.type": "zstd",
    "batch.size": "16384",
    "message.max.bytes": 1_000_000,
    "partitioner": "murmur2_random",
    "compression.level": -1,
    "delivery.report.only.error": False,
    "enable.gapless.guarantee": False,
    "receive.message.max.bytes": 100_000_000,
    "topic.metadata.refresh.sparse": True,
}
OF_CONSUMERS: dict[str, Any] = {
    "enable.partition.eof": False,
    "enable.auto.offset.store": True,
    "session.timeout.ms": 6_000,
    "max.poll.interval.ms": 300_000,
    "fetch.min.bytes": 1,
    "fetch.wait.max.ms": 500,
    "queued.min.messages": 100_000,
    "group.protocol": "classic",
    "group.protocol.type": "consumer",
    "offset.store.method": "broker",
    "coordinator.query.interval.ms": 600_000,
    "fetch.queue.backoff.ms": 1_000,
    "reconnect.backoff.jitter.ms": 0,
    "enable.metrics.push": True,
    "partition.assignment.strategy": "cooperative-sticky",
}


def refused(client: Any, config: dict[str, Any]) -> str:
    with pytest.raises(KafkaException) as caught:
        client(config)
    assert caught.value.args[0].code() == KafkaError.INVALID_CONFIG
    return str(caught.value.args[0].str())


@pytest.mark.parametrize(
    ("client", "config", "said"),
    [
        (Producer, {"batch.size": "many"}, "setting=batch.size"),
        (Producer, {"enable.idempotence": False}, "leave enable.idempotence on"),
        (Consumer, {"max.poll.interval.ms": -2}, "setting=max.poll.interval.ms"),
        (Consumer, {"max_poll_interval_ms": -2}, "setting=max.poll.interval.ms"),
    ],
)
def test_setting_is_named_with_its_dots_when_its_value_is_refused(
    reading: dict[str, Any], writing: dict[str, Any], client: Any, config: dict[str, Any], said: str
) -> None:
    assert said in refused(client, {**(writing if client is Producer else reading), **config})


def test_settings_of_a_real_application_are_taken_as_they_are(
    warehouse: Warehouse, reading: dict[str, Any], writing: dict[str, Any]
) -> None:
    told: list[bytes | None] = []

    def delivered(_: KafkaError | None, message: Any) -> None:
        told.append(message.value())

    producer = Producer({**writing, **BOTH, **OF_PRODUCERS, "on_delivery": delivered})
    consumer = Consumer({**reading, **BOTH, **OF_CONSUMERS})
    admin.AdminClient({"bootstrap.servers": warehouse.url, **BOTH})

    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce("orders", "a", partition=0)
    producer.commit_transaction()
    consumer.subscribe(["orders"])
    message = consumer.poll(5.0)

    assert told == [b"a"]
    assert message is not None
    assert message.value() == b"a"


@pytest.mark.parametrize(
    ("client", "setting", "value"),
    [
        (Producer, "acks", 1),
        (Producer, "retries", 0),
        (Producer, "security.protocol", "SASL_SSL"),
        (Producer, "statistics.interval.ms", 1_000),
        (Producer, "delivery.timeout.ms", "soon"),
        (Producer, "partitioner", "consistent_random"),
        (Producer, "queue.buffering.max.messages", 1_000),
        (Consumer, "enable.partition.eof", True),
        (Consumer, "enable.auto.offset.store", False),
        (Consumer, "fetch.min.bytes", 100_000),
        (Consumer, "sasl.mechanisms", "PLAIN"),
    ],
)
def test_value_that_asks_for_something_else_is_refused(
    reading: dict[str, Any], writing: dict[str, Any], client: Any, setting: str, value: object
) -> None:
    config = writing if client is Producer else reading

    assert setting.split(".")[0] in refused(client, {**config, setting: value})


@pytest.mark.parametrize("name", ["random", "consistent", "consistent_random", "murmur2", "fnv1a_random"])
def test_partitioner_of_librdkafka_is_answered_with_the_one_there_is(writing: dict[str, Any], name: str) -> None:
    assert "murmur2_random, Kafka's own, chooses by the key" in refused(Producer, {**writing, "partitioner": name})


def test_whoever_stores_offsets_is_not_told_to_commit_what_is_not_processed(reading: dict[str, Any]) -> None:
    said = refused(Consumer, {**reading, "enable.auto.offset.store": False})

    assert "set enable.auto.commit=false, and commit(offsets=" in said
    assert "true" not in said


def test_all_that_is_wrong_is_said_at_once(reading: dict[str, Any], writing: dict[str, Any]) -> None:
    said = refused(
        Producer,
        {**writing, "acks": 0, "sasl.password": "x", "compression.type": "brotli", "batch.size": 0, "bach.size": 1},
    )
    assert said.startswith("5 settings are wrong: (1) ")
    assert all(part in said for part in ("'acks'", "'sasl.password'", "compression.type", "batch.size", "'bach.size'"))

    said = refused(Consumer, {**reading, "check.crcs": True, "max.poll.records": -1, "isolation.level": "snapshot"})
    assert all(part in said for part in ("check.crcs", "max.poll.records", "isolation.level"))


def test_all_that_is_wrong_is_said_at_once_where_an_error_of_one_value_has_a_name_in_kafka(
    reading: dict[str, Any],
) -> None:
    wrong = {
        "isolation.level": "dirty",
        "auto.offset.reset": "newest",
        "partition.assignment.strategy": "fair",
        "session.timeout.ms": 5,
        "heartbeat.interval.ms": 60_000,
    }

    said = refused(Consumer, {**reading, **wrong})

    assert said.startswith("4 settings are wrong: (1) ")
    assert said.endswith("setting=auto.offset.reset,isolation.level,partition.assignment.strategy,session.timeout.ms")
    assert all(part in said for part in ("dirty", "newest", "fair", "session.timeout.ms=5"))


def test_what_was_given_by_name_is_said_once_beside_a_wrong_dictionary(warehouse: Warehouse) -> None:
    wrong = {"prefetch": "maybe", "max.poll.records": 0, "fetch.max.bytes": 1}

    with pytest.raises(InvalidCallError) as caught:
        warehouse.consumer(wrong, isolation_level="dirty")

    assert str(caught.value).count("dirty") == 1


def test_error_of_one_value_alone_keeps_its_kind(warehouse: Warehouse) -> None:
    with pytest.raises(UnsupportedAssignorError):
        warehouse.consumer({"group.id": "g", "partition.assignment.strategy": "fair"})


def test_what_a_client_of_this_shape_alone_takes_is_said_with_the_others(
    reading: dict[str, Any], writing: dict[str, Any]
) -> None:
    said = refused(
        Producer,
        {**writing, "bootstrap.servers": None, "delivery.timeout.ms": "soon", "on_delivery": 5, "partitioner": "fair"},
    )
    assert all(part in said for part in ("bootstrap.servers", "delivery.timeout.ms", "on_delivery", "partitioner"))

    said = refused(Consumer, {**reading, "group.id": None, "auto.offset.reset": "newest"})
    assert all(part in said for part in ("give group.id", "auto.offset.reset"))


def test_all_that_is_wrong_is_said_at_once_by_our_own_clients(warehouse: Warehouse) -> None:
    with pytest.raises(Exception, match=r"2 settings are wrong: .*'buffer.memory'.*'ssl.ca.location'"):
        warehouse.producer({"transactional.id": "etl", "buffer.memory": 1, "acks": "all", "ssl.ca.location": "x"})
    with pytest.raises(Exception, match=r"2 settings are wrong: .*'acks'.*'colour'"):
        warehouse.consumer(acks="all", colour=1)  # type: ignore[call-arg]


def test_session_timeout_alone_brings_a_heartbeat_that_fits(warehouse: Warehouse) -> None:
    assert warehouse.consumer({"group.id": "g", "session.timeout.ms": 6_000}).config.heartbeat_interval_ms == 2_000
    assert warehouse.consumer({"group.id": "g", "session.timeout.ms": 60_000}).config.heartbeat_interval_ms == 3_000


def test_each_name_is_decided_once() -> None:
    assert not HARMLESS.keys() & ELSEWHERE.keys()
    assert not ALIASES.keys() & ELSEWHERE.keys()


# -- what programs import and compare with ------------------------------------------------------


def test_names_of_confluent_kafkas_admin_are_where_programs_import_them_from(warehouse: Warehouse) -> None:
    client = admin.AdminClient({"bootstrap.servers": warehouse.url})

    client.create_topics([admin.NewTopic("new", 2)])["new"].result()

    assert list(client.list_topics().topics["new"].partitions) == [0, 1]


def test_producer_and_consumer_list_topics(reading: dict[str, Any], writing: dict[str, Any]) -> None:
    for client in (Producer(writing), Consumer(reading)):
        found = client.list_topics("orders").topics["orders"]
        assert (found.error, [each.id for each in found.partitions.values()]) == (None, [0, 1])
        assert list(client.list_topics().topics) == ["orders", "paid"]
        assert client.list_topics("none").topics["none"].error is not None


def test_number_and_name_of_an_error_belong_together(writing: dict[str, Any]) -> None:
    assert (KafkaErrorCodes._STATE, KafkaErrorCodes._MAX_POLL_EXCEEDED, KafkaErrorCodes.REBOOTSTRAP_REQUIRED) == (
        -172,
        -147,
        129,
    )
    with pytest.raises(KafkaException) as caught:
        Producer(writing).begin_transaction()

    error = caught.value.args[0]
    assert (error.code(), error.name()) == (-172, "_STATE")
