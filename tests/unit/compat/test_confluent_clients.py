"""Calls of confluent-kafka's clients one by one: what they take, and what they return."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from txntable.compat.confluent import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    TIMESTAMP_CREATE_TIME,
    AdminClient,
    Consumer,
    KafkaError,
    KafkaException,
    NewPartitions,
    NewTopic,
    Producer,
    TopicPartition,
)
from txntable.compat.confluent.elsewhere import ELSEWHERE
from txntable.compat.confluent.kafka_error import kafka_error
from txntable.errors import TxnTableError
from txntable.runtime.environment import SystemEnvironment
from txntable.warehouse.warehouse import Warehouse

FIRST = TopicPartition("orders", 0)


@pytest.fixture
def filled(warehouse: Warehouse) -> Warehouse:
    """Three messages in orders-0."""
    producer = Producer({"bootstrap.servers": warehouse.url, "linger.ms": 3_600_000})
    for number, value in enumerate(("a", "b", "c")):
        headers = {"name": "x"} if number else [("name", b"y"), ("none", None)]
        producer.produce("orders", value, "k", partition=0, timestamp=1_000 + number, headers=headers)
    assert len(producer) == 3
    assert producer.flush() == 0
    return warehouse


@pytest.fixture
def consumer(filled: Warehouse, reading: dict[str, Any]) -> Consumer:
    made = Consumer(reading)
    made.assign([FIRST])
    return made


def values(consumer: Consumer) -> list[bytes | None]:
    return [message.value() for message in consumer.consume(10, timeout=0.1)]


def test_message_tells_all_that_was_produced(consumer: Consumer) -> None:
    message, other = consumer.poll(1.0), consumer.poll(1.0)

    assert message is not None
    assert other is not None
    assert (message.topic(), message.partition(), message.offset()) == ("orders", 0, 0)
    assert (message.key(), message.value(), len(message), message.error()) == (b"k", b"a", 1, None)
    assert message.timestamp() == (TIMESTAMP_CREATE_TIME, 1_000)
    assert message.headers() == [("name", b"y"), ("none", None)]
    assert other.headers() == [("name", b"x")]


def test_poll_returns_none_when_there_is_nothing_within_the_timeout(consumer: Consumer) -> None:
    assert values(consumer) == [b"a", b"b", b"c"]
    assert consumer.poll(0) is None
    assert consumer.poll(0.01) is None


def test_consume_waits_for_so_many_messages_or_until_the_time_is_over(
    filled: Warehouse, reading: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    def sleep_ms(_: object, milliseconds: float) -> None:
        waits.append(milliseconds)
        producer = Producer({"bootstrap.servers": filled.url})
        producer.produce("orders", f"late {len(waits)}", partition=0)
        producer.flush()

    consumer = Consumer(reading)
    consumer.assign([FIRST])
    monkeypatch.setattr(SystemEnvironment, "sleep_ms", sleep_ms)

    assert len(consumer.consume(3)) == 3
    assert waits == []
    assert [message.value() for message in consumer.consume(2)] == [b"late 1", b"late 2"]
    assert [each.offset for each in consumer.position([FIRST])] == [5]
    assert consumer.consume(100, timeout=0) == []


@pytest.mark.parametrize(
    ("offset", "read"), [(1, [b"b", b"c"]), (OFFSET_BEGINNING, [b"a", b"b", b"c"]), (OFFSET_END, [])]
)
def test_assign_and_seek_begin_at_the_offset_of_the_partition(
    filled: Warehouse, reading: dict[str, Any], offset: int, read: list[bytes]
) -> None:
    consumer = Consumer(reading)
    consumer.assign([TopicPartition("orders", 0, offset)])
    assert values(consumer) == read

    consumer.seek(TopicPartition("orders", 0, offset))
    assert values(consumer) == read


def test_commit_takes_a_message_or_offsets_or_the_positions(consumer: Consumer) -> None:
    message = consumer.poll(1.0)
    assert message is not None

    assert consumer.commit(message, asynchronous=False) == [FIRST]
    assert [each.offset for each in consumer.committed([FIRST, TopicPartition("orders", 1)])] == [1, OFFSET_INVALID]
    assert consumer.commit(offsets=[TopicPartition("orders", 0, 2, "note")]) is None
    assert [(each.offset, each.metadata) for each in consumer.committed([FIRST])] == [(2, "note")]
    values(consumer)
    committed = consumer.commit(asynchronous=False) or []
    assert [(each, each.offset) for each in committed] == [(FIRST, 3)]
    with pytest.raises(ValueError, match="either a message or offsets"):
        consumer.commit(message, offsets=[FIRST])


@pytest.mark.parametrize("offset", [-1, -5, OFFSET_INVALID])
def test_commit_of_what_has_no_offset_is_not_answered_as_if_it_were_committed(consumer: Consumer, offset: int) -> None:
    without, other = TopicPartition("orders", 0, offset), TopicPartition("orders", 1, 0)

    with pytest.raises(KafkaException) as told:
        consumer.commit(offsets=[without], asynchronous=False)

    assert told.value.args[0].code() == KafkaError._NO_OFFSET
    assert consumer.commit(offsets=[without, other], asynchronous=False) == [other]
    assert [each.offset for each in consumer.committed([without, other])] == [OFFSET_INVALID, 0]


def test_positions_watermarks_and_times_are_told(consumer: Consumer) -> None:
    assert [each.offset for each in consumer.position([FIRST])] == [OFFSET_INVALID]
    consumer.poll(1.0)

    assert [each.offset for each in consumer.position([FIRST])] == [1]
    assert consumer.get_watermark_offsets(FIRST) == (0, 3)
    times = [TopicPartition("orders", 0, 1_001), TopicPartition("orders", 1, 1_001)]
    assert [each.offset for each in consumer.offsets_for_times(times)] == [1, OFFSET_END]


def test_paused_partitions_return_nothing_until_they_are_resumed(consumer: Consumer) -> None:
    consumer.pause([FIRST])
    assert values(consumer) == []

    consumer.resume([FIRST])

    assert values(consumer) == [b"a", b"b", b"c"]


def test_callbacks_get_the_consumer_and_may_move_what_they_are_given(
    filled: Warehouse, reading: dict[str, Any]
) -> None:
    told: list[tuple[str, Consumer, list[TopicPartition]]] = []

    def assigned(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        told.append(("assigned", consumer, partitions))
        for each in partitions:
            each.offset = 2
        consumer.assign([each for each in partitions if each.partition == 0])

    def revoked(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        told.append(("revoked", consumer, partitions))
        consumer.unassign()

    consumer = Consumer(reading)
    consumer.subscribe(["orders"], on_assign=assigned, on_revoke=revoked)
    message = consumer.poll(5.0)
    assert message is not None
    assert message.value() == b"c"
    assert consumer.memberid()
    consumer.close()

    both = [FIRST, TopicPartition("orders", 1)]
    assert told == [("assigned", consumer, both), ("revoked", consumer, both)]


def test_callback_can_not_choose_partitions_that_the_group_has_not_given(
    filled: Warehouse, reading: dict[str, Any]
) -> None:
    consumer = Consumer(reading)
    consumer.subscribe(["orders"], on_assign=lambda consumer, _: consumer.assign([TopicPartition("paid", 0)]))

    with pytest.raises(KafkaException) as caught:
        consumer.poll(5.0)

    assert caught.value.args[0].code() == KafkaError._STATE


def test_one_topic_that_begins_with_a_caret_is_a_pattern(filled: Warehouse, reading: dict[str, Any]) -> None:
    consumer = Consumer(reading)
    consumer.subscribe(["^ord.*"])

    assert values(consumer) == [b"a", b"b", b"c"]
    assert {each.topic for each in consumer.assignment()} == {"orders"}


def test_closed_consumer_says_so_and_closing_twice_does_nothing(consumer: Consumer) -> None:
    consumer.close()
    consumer.close()

    with pytest.raises(KafkaException) as caught:
        consumer.poll(0)

    assert caught.value.args[0].code() == KafkaError._STATE


@pytest.mark.parametrize(("word", "read"), [("smallest", 3), ("beginning", 3), ("largest", 0), ("end", 0)])
def test_librdkafkas_words_for_where_to_start_are_known(
    filled: Warehouse, reading: dict[str, Any], word: str, read: int
) -> None:
    consumer = Consumer({**reading, "auto.offset.reset": word})
    consumer.assign([FIRST])

    assert len(values(consumer)) == read


@pytest.mark.parametrize("word", ["error", "none"])
def test_consumer_that_may_not_choose_where_to_start_says_so_with_librdkafkas_number(
    filled: Warehouse, reading: dict[str, Any], word: str
) -> None:
    consumer = Consumer({**reading, "auto.offset.reset": word})
    consumer.assign([FIRST])

    with pytest.raises(KafkaException) as caught:
        consumer.poll(1.0)

    assert caught.value.args[0].code() == KafkaError._AUTO_OFFSET_RESET == -140


# -- configurations -----------------------------------------------------------------------------


def test_settings_may_be_given_as_keywords(warehouse: Warehouse) -> None:
    consumer = Consumer({"bootstrap.servers": warehouse.url}, group_id="g", storage_options={})

    assert consumer.consumer_group_metadata().group == "g"


@pytest.mark.parametrize(
    ("client", "change", "code"),
    [
        (Consumer, {"group.id": None}, KafkaError.INVALID_CONFIG),
        (Consumer, {"enable.partition.eof": True}, KafkaError.INVALID_CONFIG),
        (Consumer, {"bootstrap.servers": None}, KafkaError.INVALID_CONFIG),
        (Consumer, {"bootstrap.servers": "/nowhere/at/all"}, KafkaError._RESOLVE),
        (Producer, {"acks": "all", "group.id": None}, KafkaError.INVALID_CONFIG),
        (AdminClient, {}, KafkaError.INVALID_CONFIG),
    ],
)
def test_configuration_that_can_not_be_used_is_an_error(
    reading: dict[str, Any], client: Any, change: dict[str, Any], code: int
) -> None:
    with pytest.raises(KafkaException) as caught:
        client({**reading, **change})

    assert caught.value.args[0].code() == code


# -- errors -------------------------------------------------------------------------------------


def all_errors(kind: type[TxnTableError]) -> set[type[TxnTableError]]:
    return {kind}.union(*map(all_errors, kind.__subclasses__()))


def test_every_error_has_a_number_and_those_of_kafka_its_own() -> None:
    codes = {kind.code: kafka_error(kind("what happened")).code() for kind in all_errors(TxnTableError)}

    assert all(code != KafkaError.NO_ERROR for code in codes.values())
    assert codes["INVALID_PRODUCER_EPOCH"] == 47
    assert codes["UNKNOWN_TOPIC_OR_PARTITION"] == 3
    assert codes["BATCH_OUT_OF_ORDER"] == KafkaError.UNKNOWN


# -- admins -------------------------------------------------------------------------------------


def test_admin_creates_grows_lists_and_deletes_topics(warehouse: Warehouse) -> None:
    admin = AdminClient({"bootstrap.servers": warehouse.url})

    created = admin.create_topics([NewTopic("new", 2, 3, {"retention.ms": "86400000"}), NewTopic("orders")])
    assert created["new"].result() is None
    error = created["orders"].exception()
    assert isinstance(error, KafkaException)
    assert error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS
    assert admin.create_partitions([NewPartitions("new", 3)])["new"].result() is None
    assert list(admin.list_topics().topics) == ["new", "orders", "paid"]
    assert set(admin.list_topics("new").topics["new"].partitions) == {0, 1, 2}
    assert admin.delete_topics(["new"])["new"].result() is None
    missing = admin.list_topics("new").topics["new"]
    assert missing.error is not None
    assert (missing.error.code(), dict(missing.partitions)) == (KafkaError.UNKNOWN_TOPIC_OR_PART, {})


def test_admin_changes_nothing_where_it_is_to_validate_only(warehouse: Warehouse) -> None:
    admin = AdminClient({"bootstrap.servers": warehouse.url})
    before = {name: len(topic.partitions) for name, topic in admin.list_topics().topics.items()}

    looked = admin.create_topics([NewTopic("new", 2), NewTopic("orders")], validate_only=True)
    grown = admin.create_partitions([NewPartitions("orders", 9), NewPartitions("paid", 1)], validate_only=True)

    assert looked["new"].result() is None
    assert grown["orders"].result() is None
    assert isinstance(looked["orders"].exception(), KafkaException)
    assert isinstance(grown["paid"].exception(), KafkaException)
    assert {name: len(topic.partitions) for name, topic in admin.list_topics().topics.items()} == before
    with pytest.raises(TypeError):
        admin.create_topics([NewTopic("new", 2)], validat_only=True)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        (Consumer, "store_offsets", "what has been processed"),
        (Consumer, "incremental_assign", "leave it out"),
        (Producer, "purge", "abort_transaction"),
        (AdminClient, "list_consumer_groups", r"Warehouse\.admin\(\)"),
        (AdminClient, "create_acls", "there are no brokers"),
        (Producer, "never_heard_of", "'Producer' object has no attribute 'never_heard_of'$"),
    ],
)
def test_method_that_is_not_here_is_told_with_what_to_do(kind: type, name: str, said: str) -> None:
    client: object = object.__new__(kind)

    assert not hasattr(client, name)
    with pytest.raises(AttributeError, match=said):
        getattr(client, name)


def test_methods_that_are_told_of_are_those_of_the_documentation_and_none_of_ours() -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "migrate-from-kafka.md").read_text()

    assert [name for name in ELSEWHERE if f"{name}`" not in page] == []
    assert [name for name in ELSEWHERE for kind in (Producer, Consumer, AdminClient) if name in dir(kind)] == []


def test_error_of_a_mistyped_topic_says_which_was_meant(warehouse: Warehouse) -> None:
    with pytest.raises(KafkaException) as refused:
        Producer({"bootstrap.servers": warehouse.url}).produce("order", b"1")

    assert "did you mean orders?" in refused.value.args[0].str()
    assert "did you mean orders?" in str(refused.value)
