"""Errors that programs make themselves, and arguments of wrong types: as confluent-kafka has both."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from operator import lt
from typing import Any

import pytest

from txntable.compat.confluent import (
    AdminClient,
    Consumer,
    KafkaError,
    KafkaException,
    NewPartitions,
    NewTopic,
    Producer,
    TopicPartition,
)
from txntable.compat.confluent.kafka_error import kafka_error
from txntable.errors import StoreFullError, StoreUnavailableError, TxnTableError
from txntable.warehouse.warehouse import Warehouse

DOWN = KafkaError(KafkaError._ALL_BROKERS_DOWN, "no broker answers")


def test_error_that_a_program_makes_says_what_it_was_given() -> None:
    plain, given = DOWN, KafkaError(KafkaError._FENCED, "fenced", True, retriable=True, txn_requires_abort=True)

    assert (plain.code(), plain.name(), plain.str()) == (-187, "_ALL_BROKERS_DOWN", "no broker answers")
    assert (plain.fatal(), plain.retriable(), plain.txn_requires_abort()) == (False, False, False)
    assert (given.fatal(), given.retriable(), given.txn_requires_abort()) == (True, True, True)
    assert str(plain) == 'KafkaError{code=_ALL_BROKERS_DOWN,val=-187,str="no broker answers"}'
    assert repr(given) == 'KafkaError{FATAL,code=_FENCED,val=-144,str="fenced"}'


def test_error_without_a_reason_or_with_an_unknown_number_is_named() -> None:
    assert KafkaError(KafkaError.LEADER_NOT_AVAILABLE).str() == "LEADER_NOT_AVAILABLE"
    assert KafkaError(9_999).name() == "ERR_9999?"


@pytest.mark.parametrize("kind", [StoreUnavailableError, StoreFullError])
def test_store_that_does_not_answer_or_is_full_is_a_failed_transport(kind: type[TxnTableError]) -> None:
    assert kafka_error(kind("the store failed")).code() == KafkaError._TRANSPORT


def test_error_is_compared_and_hashed_by_its_number() -> None:
    assert KafkaError(5, "one") == KafkaError(5, "other", fatal=True) == KafkaError.LEADER_NOT_AVAILABLE
    assert KafkaError(5) != KafkaError(6)
    assert KafkaError(5) != "5"
    assert KafkaError(5) < 6 <= KafkaError(6)
    assert {KafkaError(5): "found"}[5] == "found"  # type: ignore[index]
    with pytest.raises(TypeError):
        lt(KafkaError(5), "6")


def test_exception_with_an_error_that_a_program_made_is_caught_and_copied_as_its_own() -> None:
    with pytest.raises(KafkaException) as caught:
        raise KafkaException(DOWN)

    assert caught.value.args[0].code() == KafkaError._ALL_BROKERS_DOWN
    assert pickle.loads(pickle.dumps(caught.value)).args[0] == DOWN


@pytest.mark.parametrize("given", [(), ("x",), (None,), (1.5,), (5, 5), (5, b"reason"), (5, "r", 0, 0, 0, 0)])
def test_error_with_arguments_of_wrong_types_is_a_type_error(given: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError):
        KafkaError(*given)


# -- arguments ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda producer: producer.produce(5),
        lambda producer: producer.produce(None),
        lambda producer: producer.produce(b"orders"),
        lambda producer: producer.produce("orders", 5),
        lambda producer: producer.produce("orders", key=[]),
        lambda producer: producer.produce("orders", bytearray(b"x")),
        lambda producer: producer.produce("orders", partition="x"),
        lambda producer: producer.produce("orders", partition=1.5),
        lambda producer: producer.produce("orders", timestamp="now"),
        lambda producer: producer.produce("orders", headers=5),
        lambda producer: producer.produce("orders", headers="ab"),
        lambda producer: producer.produce("orders", headers=[5]),
        lambda producer: producer.produce("orders", headers=["ab"]),
        lambda producer: producer.produce("orders", headers=[("a",)]),
        lambda producer: producer.produce("orders", headers=[(5, b"x")]),
        lambda producer: producer.produce("orders", headers={"a": 5}),
        lambda producer: producer.produce("orders", callback=5),
        lambda producer: producer.poll("x"),
        lambda producer: producer.flush("x"),
        lambda producer: producer.init_transactions("x"),
        lambda producer: producer.commit_transaction("x"),
        lambda producer: producer.abort_transaction("x"),
        lambda producer: producer.send_offsets_to_transaction("orders", None),
        lambda producer: producer.send_offsets_to_transaction([TopicPartition("orders", 0, 1)], 5),
        lambda producer: producer.list_topics(5),
    ],
)
def test_argument_of_a_producer_of_the_wrong_type_is_a_type_error_and_sends_nothing(
    warehouse: Warehouse, call: Callable[[Any], object]
) -> None:
    producer = Producer({"bootstrap.servers": warehouse.url})

    with pytest.raises(TypeError):
        call(producer)

    assert len(producer) == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda consumer: consumer.subscribe("orders"),
        lambda consumer: consumer.subscribe(5),
        lambda consumer: consumer.subscribe([5]),
        lambda consumer: consumer.subscribe(["orders"], 5),
        lambda consumer: consumer.subscribe(["orders"], on_lost="x"),
        lambda consumer: consumer.poll("x"),
        lambda consumer: consumer.consume("x"),
        lambda consumer: consumer.consume(1.5, 0),
        lambda consumer: consumer.assign("orders"),
        lambda consumer: consumer.assign([("orders", 0)]),
        lambda consumer: consumer.seek(5),
        lambda consumer: consumer.position(TopicPartition("orders", 0)),
        lambda consumer: consumer.pause([5]),
        lambda consumer: consumer.resume(5),
        lambda consumer: consumer.get_watermark_offsets("orders"),
        lambda consumer: consumer.offsets_for_times([5]),
        lambda consumer: consumer.commit(5),
        lambda consumer: consumer.commit(offsets=5),
        lambda consumer: consumer.commit(offsets=TopicPartition("orders", 0, 1)),
        lambda consumer: consumer.committed("orders"),
        lambda consumer: consumer.committed([TopicPartition("orders", 0)], "x"),
        lambda consumer: consumer.list_topics("orders", "x"),
    ],
)
def test_argument_of_a_consumer_of_the_wrong_type_is_a_type_error(
    reading: dict[str, Any], call: Callable[[Any], object]
) -> None:
    with pytest.raises(TypeError):
        call(Consumer(reading))


@pytest.mark.parametrize("most", [-1, 1_000_001])
def test_more_messages_than_a_call_returns_are_a_value_error(reading: dict[str, Any], most: int) -> None:
    with pytest.raises(ValueError, match="num_messages"):
        Consumer(reading).consume(most, 0)


@pytest.mark.parametrize(
    "call",
    [
        lambda admin: admin.create_topics("orders"),
        lambda admin: admin.create_topics(["orders"]),
        lambda admin: admin.create_topics(NewTopic("orders", 1)),
        lambda admin: admin.delete_topics("orders"),
        lambda admin: admin.create_partitions([5]),
        lambda admin: admin.list_topics(5),
        lambda _: NewTopic(5),  # type: ignore[arg-type]
        lambda _: NewTopic("orders", "x"),  # type: ignore[arg-type]
        lambda _: NewTopic("orders", config="x"),  # type: ignore[arg-type]
        lambda _: NewPartitions("orders", None),  # type: ignore[arg-type]
        lambda _: TopicPartition(5),  # type: ignore[arg-type]
        lambda _: TopicPartition("orders", "x"),  # type: ignore[arg-type]
        lambda _: TopicPartition("orders", 0, None),  # type: ignore[arg-type]
        lambda _: TopicPartition("orders", 0, 1, 5),  # type: ignore[arg-type]
    ],
)
def test_argument_of_an_admin_of_the_wrong_type_is_a_type_error_and_changes_nothing(
    warehouse: Warehouse, call: Callable[[Any], object]
) -> None:
    with pytest.raises(TypeError):
        call(AdminClient({"bootstrap.servers": warehouse.url}))

    assert warehouse.admin().list_topics() == ["orders", "paid"]


@pytest.mark.parametrize("client", [Producer, Consumer, AdminClient])
@pytest.mark.parametrize("given", [(), (None,), ("x",), (5,), ([],)])
def test_configuration_that_is_no_dict_is_a_type_error(client: Any, given: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError):
        client(*given)
