"""Programs as users of confluent-kafka write them: consume, transform, produce, exactly once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest

from txntable.compat.confluent import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from txntable.coordinator.group_request import GroupMetadata
from txntable.warehouse.warehouse import Warehouse


def fill(warehouse: Warehouse, *values: str) -> None:
    with Producer({"bootstrap.servers": warehouse.url}) as producer:
        for value in values:
            producer.produce("orders", value=value, key=value)
        assert producer.flush(10) == 0


def paid(warehouse: Warehouse) -> list[str]:
    return sorted(value.decode() for value in warehouse.read_arrow("paid").read_all()["value"].to_pylist())


def run(reading: dict[str, Any], writing: dict[str, Any], *, fails_at: str | None = None) -> None:
    """Copy what is there in transactions of two messages, in capitals; fail once at a value."""
    producer, consumer = Producer(writing), Consumer(reading)
    producer.init_transactions(10.0)
    consumer.subscribe(["orders"])
    failing = {fails_at}
    while True:
        messages = consumer.consume(2, timeout=0.1)
        if not messages:
            break
        producer.begin_transaction()
        try:
            for message in messages:
                value = (message.value() or b"").decode()
                if value in failing:
                    failing.clear()
                    raise ValueError(value)
                producer.produce("paid", value.upper(), message.key())
            positions = consumer.position(consumer.assignment())
            producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata())
            producer.commit_transaction()
        except ValueError:
            producer.abort_transaction()
            for each in consumer.committed(consumer.assignment()):
                each.offset = max(each.offset, 0)
                consumer.seek(each)
    consumer.close()
    producer.close()


def test_loop_copies_each_message_once_however_often_it_runs(
    warehouse: Warehouse, reading: dict[str, Any], writing: dict[str, Any]
) -> None:
    fill(warehouse, "a", "b", "c", "d", "e")
    run(reading, writing)
    run(reading, writing)
    fill(warehouse, "f")

    run(reading, writing)

    assert paid(warehouse) == ["A", "B", "C", "D", "E", "F"]


def test_committed_in_a_transaction_ends_with_its_timeout_and_leaves_the_transaction_alone(
    reading: dict[str, Any], writing: dict[str, Any]
) -> None:
    consumer, producer = Consumer(reading), Producer(writing)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send_offsets_to_transaction([TopicPartition("orders", 0, 1)], consumer.consumer_group_metadata())

    with pytest.raises(KafkaException) as raised:
        consumer.committed([TopicPartition("orders", 0)], timeout=0.05)
    producer.commit_transaction()

    assert raised.value.args[0].code() == KafkaError.UNSTABLE_OFFSET_COMMIT
    assert [each.offset for each in consumer.committed([TopicPartition("orders", 0)])] == [1]


@pytest.mark.parametrize("value", ["a", "c", "e"])
def test_loop_that_aborts_and_goes_back_to_what_is_committed_loses_and_doubles_nothing(
    warehouse: Warehouse, reading: dict[str, Any], writing: dict[str, Any], value: str
) -> None:
    fill(warehouse, "a", "b", "c", "d", "e")

    run(reading, writing, fails_at=value)

    assert paid(warehouse) == ["A", "B", "C", "D", "E"]


Recovery = Callable[[Consumer], object]


def as_documented(consumer: Consumer) -> None:
    for partition in consumer.committed(consumer.assignment()):
        consumer.seek(partition)


def from_the_beginning(consumer: Consumer) -> None:
    for partition in consumer.assignment():
        partition.offset = OFFSET_BEGINNING
        consumer.seek(partition)


def of_one_partition(consumer: Consumer) -> None:
    consumer.seek(consumer.committed(consumer.assignment())[0])


@pytest.mark.parametrize("recover", [as_documented, from_the_beginning, of_one_partition])
@pytest.mark.parametrize("stopped_by", ["a bad record", "a refusal"])
def test_transaction_after_an_abort_is_taken_only_where_the_program_went_back_in_all_that_it_is_assigned(
    warehouse: Warehouse, reading: dict[str, Any], writing: dict[str, Any], stopped_by: str, recover: Recovery
) -> None:
    """Bug: what was lost before the abort was held against the next transaction, which had nothing of it."""
    warehouse.admin().create_partitions({"orders": 4})
    fill(warehouse, *map(str, range(30)))
    quick = {**reading, "heartbeat.interval.ms": 1, "partition.assignment.strategy": "cooperative-sticky"}
    first, second, producer = Consumer(quick), Consumer(quick), Producer(writing)
    producer.init_transactions()
    first.subscribe(["orders"])
    producer.begin_transaction()
    assert len(first.consume(30, 5.0)) == 30
    everything = first.position(first.assignment())
    second.subscribe(["orders"])
    while len(first.assignment()) != 2 or len(second.assignment()) != 2:
        second.poll(0.05)
        first.poll(0.05)
    if stopped_by == "a refusal":
        with pytest.raises(KafkaException):
            producer.send_offsets_to_transaction(everything, first.consumer_group_metadata())
    producer.abort_transaction()
    recover(first)

    producer.begin_transaction()
    first.consume(30, 0.2)
    refused = recover is of_one_partition
    expected = pytest.raises(KafkaException, match="seek back to it in all that is assigned")
    with expected if refused else nullcontext():
        producer.send_offsets_to_transaction(first.position(first.assignment()), first.consumer_group_metadata())
    (producer.abort_transaction if refused else producer.commit_transaction)()


def test_second_producer_fences_the_first_which_learns_it_from_its_error(
    warehouse: Warehouse, writing: dict[str, Any]
) -> None:
    """Bug: the number was the brokers', and a program that asks for librdkafka's did not see that it was fenced."""
    first, second = Producer(writing), Producer(writing)
    first.init_transactions()
    first.begin_transaction()
    first.produce("paid", "first")
    second.init_transactions()

    with pytest.raises(KafkaException) as caught:
        first.commit_transaction()

    error = caught.value.args[0]
    assert isinstance(error, KafkaError)
    assert error.code() == KafkaError._FENCED == -144
    assert (error.fatal(), error.retriable(), error.txn_requires_abort()) == (True, False, False)
    assert error.name() == "_FENCED"
    assert "a newer producer" in error.str()
    second.begin_transaction()
    second.produce("paid", "second")
    second.commit_transaction()
    assert paid(warehouse) == ["second"]


@pytest.mark.parametrize(("topic", "partition"), [("nowhere", -1), ("paid", 7)])
def test_error_of_a_transaction_says_that_it_must_be_aborted(
    warehouse: Warehouse, writing: dict[str, Any], topic: str, partition: int
) -> None:
    """Bug: of the first one it was not said, and a program that asks it raised instead of aborting."""
    producer = Producer(writing)
    producer.init_transactions()
    producer.begin_transaction()
    with pytest.raises(KafkaException) as caught:
        producer.produce(topic, "x", partition=partition)
    assert caught.value.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    assert caught.value.args[0].txn_requires_abort()

    with pytest.raises(KafkaException) as caught:
        producer.commit_transaction()

    assert caught.value.args[0].txn_requires_abort()
    producer.abort_transaction()
    producer.begin_transaction()
    producer.produce("paid", "next")
    producer.commit_transaction()
    assert paid(warehouse) == ["next"]


def test_error_outside_of_a_transaction_requires_no_abort(warehouse: Warehouse) -> None:
    with pytest.raises(KafkaException) as caught:
        Producer({"bootstrap.servers": warehouse.url}).produce("nowhere", "x")

    assert not caught.value.args[0].txn_requires_abort()


@pytest.mark.parametrize(
    ("ready", "call", "remedy"),
    [
        (False, lambda producer: producer.begin_transaction(), "begin_transaction is .* init_transactions first"),
        (False, lambda producer: producer.produce("paid", "x"), "produce is .* call=produce"),
        (True, lambda producer: producer.produce("paid", "x"), "begin_transaction first .* call=produce"),
        (True, lambda producer: producer.init_transactions(), "once is enough"),
        (
            True,
            lambda producer: producer.send_offsets_to_transaction([], GroupMetadata("g", "", -1)),
            "send_offsets_to_transaction is .* begin_transaction first",
        ),
    ],
)
def test_call_out_of_order_is_an_error_of_state_and_is_named_as_it_was_typed(
    writing: dict[str, Any], ready: bool, call: Callable[[Producer], object], remedy: str
) -> None:
    producer = Producer(writing)
    if ready:
        producer.init_transactions()

    with pytest.raises(KafkaException, match=remedy) as caught:
        call(producer)

    assert caught.value.args[0].code() == KafkaError._STATE


def test_delivery_callbacks_are_told_of_commit_and_abort(warehouse: Warehouse, writing: dict[str, Any]) -> None:
    told: list[tuple[str, str | None, bool]] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        name = None if error is None else error.name()
        told.append(((message.value() or b"").decode(), name, message.offset() is not None))

    producer = Producer(writing)
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("paid", "kept", on_delivery=delivered)
    assert (len(producer), told) == (1, [])
    producer.commit_transaction()
    producer.begin_transaction()
    producer.produce("paid", "dropped", callback=delivered)
    producer.abort_transaction()

    assert [each[0] for each in told] == ["kept", "dropped"]
    assert told[0][1:] == (None, True)
    assert told[1][1] is not None
    assert (len(producer), producer.poll(0), producer.poll(0)) == (0, 2, 0)
