"""Calls as users of Kafka's Python clients type them: accepted with the same meaning, or refused with what to type."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence
from typing import Any

import pytest

from tests.simulation.site import Site
from tests.unit.consumer.consuming import FIRST, SECOND, commit, consumer_at, send, values
from tests.unit.consumer.members import BEAT_MS, SESSION_MS, member, numbers, settle
from tests.unit.producer.producing import started
from txntable.consumer.consumer import Consumer
from txntable.consumer.rebalance_listener import ConsumerRebalanceListener
from txntable.errors import (
    IllegalStateError,
    InvalidConfigError,
    InvalidRequestError,
    UnknownTopicOrPartitionError,
)
from txntable.offsets.group_commit import OffsetAndMetadata

# -- timeouts -----------------------------------------------------------------------------------


@pytest.mark.parametrize("unnamed", [(1.0,), (1,), (1_000,), (1_000, 5), (None,)])
@pytest.mark.parametrize("call", ["poll", "poll_batches"])
def test_poll_refuses_a_timeout_whose_unit_is_not_said(site: Site, call: str, unnamed: tuple[Any, ...]) -> None:
    send(site.open().producer(), "a")
    consumer = consumer_at(site.open())

    with pytest.raises(InvalidRequestError, match="say the unit"):
        getattr(consumer, call)(*unnamed)

    assert values(consumer.poll(timeout_ms=1_000)) == ["a"], "the refused call has read nothing"


# -- one or many --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given", [(FIRST, SECOND), ([FIRST, SECOND],), ({FIRST, SECOND},), (FIRST, [SECOND]), ((FIRST, SECOND),)]
)
def test_partitions_are_named_one_by_one_or_in_lists(site: Site, given: tuple[Any, ...]) -> None:
    consumer = consumer_at(site.open(), FIRST, SECOND)

    consumer.pause(*given)
    assert consumer.paused() == {FIRST, SECOND}
    consumer.resume(*given)
    assert consumer.paused() == set()
    consumer.seek_to_end(*given)
    consumer.seek_to_beginning(*given)
    assert consumer.position([FIRST, SECOND]) == {FIRST: 0, SECOND: 0}


def test_pause_of_an_empty_list_pauses_nothing(site: Site) -> None:
    consumer = consumer_at(site.open(), FIRST, SECOND)

    consumer.pause([])

    assert consumer.paused() == set()


@pytest.mark.parametrize("given", ["raw", 7, [FIRST, 7], ["raw"], None])
def test_what_is_no_partition_is_refused(site: Site, given: Any) -> None:
    with pytest.raises(InvalidRequestError):
        consumer_at(site.open()).pause(given)


def test_position_and_committed_answer_for_one_partition_or_for_several(site: Site) -> None:
    commit(started(site.open()), "a", "b")
    consumer = consumer_at(site.open(), FIRST, SECOND, group_id="g", enable_auto_commit=False)
    consumer.commit({FIRST: OffsetAndMetadata(2, "note")})

    assert consumer.committed(FIRST) == OffsetAndMetadata(2, "note")
    assert consumer.committed(SECOND) is None
    assert consumer.committed([FIRST, SECOND]) == {FIRST: OffsetAndMetadata(2, "note"), SECOND: None}
    assert consumer.position(FIRST) == 2
    assert consumer.position([FIRST]) == {FIRST: 2}


def test_one_partition_may_be_a_plain_pair(site: Site) -> None:
    consumer = consumer_at(site.open())

    pair: Any = ("raw", 0)

    assert consumer.position(pair) == 0


# -- callables in place of a listener -----------------------------------------------------------


def test_callables_are_told_with_the_consumer_what_is_got_and_given_up(site: Site) -> None:
    first, second = member(site, subscribed=False), member(site)
    told: list[tuple[str, Consumer, list[int]]] = []

    def noting(word: str) -> Any:
        return lambda consumer, partitions: told.append((word, consumer, [each.partition for each in partitions]))

    first.subscribe(["raw"], on_assign=noting("assigned"), on_revoke=noting("revoked"))
    first.poll()
    second.poll()
    settle(site, first, second)
    given = numbers(second)

    assert told == [("assigned", first, [0, 1]), ("revoked", first, given)]


@pytest.mark.parametrize("with_lost", [True, False])
def test_lost_partitions_are_told_to_on_lost_or_else_to_on_revoke(site: Site, with_lost: bool) -> None:
    silent, other = member(site, subscribed=False), member(site)
    told: list[str] = []
    lost = (lambda consumer, partitions: told.append("lost")) if with_lost else None
    silent.subscribe(["raw"], on_revoke=lambda consumer, partitions: told.append("revoked"), on_lost=lost)
    settle(site, silent, other)
    told.clear()
    site.advance_ms(SESSION_MS + BEAT_MS)
    other.poll()

    silent.poll()

    assert told == ["lost" if with_lost else "revoked"]


def test_callables_do_not_keep_a_consumer_that_was_dropped(site: Site) -> None:
    consumer = member(site, subscribed=False)
    consumer.subscribe(["raw"], on_assign=lambda consumer, partitions: None)
    dropped = weakref.ref(consumer)
    gc.disable()
    try:
        del consumer
        assert dropped() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "given",
    [{"on_assign": 7}, {"on_lost": "told"}, {"listener": ConsumerRebalanceListener(), "on_revoke": print}],
)
def test_subscribe_refuses_what_can_not_be_called_and_two_ways_at_once(site: Site, given: dict[str, Any]) -> None:
    consumer = site.open().consumer()

    with pytest.raises(InvalidRequestError):
        consumer.subscribe(["raw"], **given)

    assert consumer.subscription() == set()


def test_partitions_are_asked_of_one_by_one_in_lists_or_side_by_side(site: Site) -> None:
    """Bug: two of them side by side were a bare TypeError."""
    consumer = member(site)
    consumer.poll()
    first, second = FIRST, SECOND

    assert consumer.committed(first) is None
    assert consumer.committed(first, second) == {first: None, second: None} == consumer.committed([first, second])
    assert consumer.position(first) == 0
    assert consumer.position(first, second) == {first: 0, second: 0}
    assert consumer.committed([first]) == {first: None}


def test_offsets_of_a_topic_are_refused_with_what_a_partition_is(site: Site) -> None:
    with pytest.raises(InvalidRequestError, match=r"TopicPartition\(topic, number\); a topic alone is none"):
        member(site).commit({"raw": 5})  # type: ignore[dict-item]


# -- what there is, and where it ends -----------------------------------------------------------


def test_topics_and_their_partitions_are_named_whether_they_are_read_or_not(site: Site) -> None:
    warehouse = site.open()
    warehouse.admin().create_topic("gone")
    warehouse.admin().delete_topic("gone")
    consumer = warehouse.consumer()

    assert consumer.topics() == set(warehouse.admin().list_topics())
    assert consumer.partitions_for_topic("raw") == {0, 1} == warehouse.producer().partitions_for("raw")
    for client in (consumer.partitions_for_topic, warehouse.producer().partitions_for):
        with pytest.raises(UnknownTopicOrPartitionError):
            client("gone")


def test_watermarks_are_above_what_an_open_transaction_holds_back(site: Site) -> None:
    warehouse = site.open()
    send(warehouse.producer(), "a", "b")
    producer = started(warehouse)
    producer.begin_transaction()
    send(producer, "open")
    consumer = consumer_at(site.open())
    consumer.poll()

    assert consumer.get_watermark_offsets(FIRST) == (0, 3)
    assert consumer.highwater(FIRST) == 3
    assert consumer.last_stable_offset(FIRST) == 2
    with pytest.raises(IllegalStateError):
        consumer.highwater(SECOND)


def test_record_has_its_time_under_kafka_pythons_name(site: Site) -> None:
    producer = site.open().producer()
    producer.send("raw", b"a", partition=0, timestamp_ms=1_700_000_000_000)
    producer.flush()

    ((record,),) = consumer_at(site.open()).poll().values()

    assert record.timestamp == record.timestamp_ms == 1_700_000_000_000


def test_group_metadata_has_both_names(site: Site) -> None:
    consumer = member(site)

    assert consumer.consumer_group_metadata() == consumer.group_metadata()


# -- committing with a callback -----------------------------------------------------------------


def test_commit_async_is_durable_when_its_callback_is_called(site: Site) -> None:
    consumer = consumer_at(site.open(), group_id="g")
    told: list[object] = []

    def call(offsets: object, error: object) -> None:
        told.append((offsets, error, site.open().admin().list_consumer_group_offsets("g")[FIRST]))

    consumer.commit_async({FIRST: 0}, call)

    assert told == [({FIRST: 0}, None, OffsetAndMetadata(0))]


def test_commit_async_tells_its_callback_the_positions_where_no_offsets_are_given(site: Site) -> None:
    send(site.open().producer(), "a", "b", partition=0)
    consumer = consumer_at(site.open(), FIRST, group_id="g", auto_offset_reset="earliest")
    consumer.poll()
    told: list[object] = []

    consumer.commit_async(callback=lambda offsets, error: told.append((offsets, error)))

    assert told == [({FIRST: OffsetAndMetadata(2)}, None)]


def test_commit_async_tells_its_callback_what_failed_and_raises_what_is_wrong_with_the_call(site: Site) -> None:
    silent, other = member(site), member(site)
    settle(site, silent, other)
    (mine,) = silent.assignment()
    told: list[Any] = []
    site.advance_ms(SESSION_MS + BEAT_MS)
    other.poll()

    silent.commit_async({mine: 0}, lambda offsets, error: told.append(error))

    assert [error.code for error in told] == ["UNKNOWN_MEMBER_ID"]
    wrong: list[dict[str, Any]] = [{"offsets": {mine: -1}}, {"callback": 7}]
    for given in wrong:
        with pytest.raises(InvalidRequestError):
            other.commit_async(**given)


# -- configuration dictionaries -----------------------------------------------------------------


@pytest.mark.parametrize("dot", [".", "_"])
def test_consumer_takes_kafkas_configuration_dictionaries(site: Site, dot: str) -> None:
    given = {
        "group.id": "reports",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": "false",
        "max.poll.records": "7",
        "partition.assignment.strategy": "range, sticky",
    }

    config = site.open().consumer({name.replace(".", dot): value for name, value in given.items()}).config

    assert (config.group_id, config.auto_offset_reset, config.enable_auto_commit) == ("reports", "earliest", False)
    assert (config.max_poll_records, config.partition_assignment_strategy) == (7, ("range", "sticky"))


@pytest.mark.parametrize("dot", [".", "_"])
def test_producer_takes_kafkas_configuration_dictionaries(site: Site, dot: str) -> None:
    given = {
        "transactional.id": "etl",
        "transaction.timeout.ms": 30_000,
        "batch.size": "4096",
        "enable.idempotence": "true",
    }

    config = site.open().producer({name.replace(".", dot): value for name, value in given.items()}).config

    assert (config.transactional_id, config.transaction_timeout_ms) == ("etl", 30_000)
    assert (config.batch_size, config.enable_idempotence, config.compression_type) == (4_096, True, "zstd")


def test_settings_by_name_and_in_a_dictionary_go_together_but_none_is_said_twice(site: Site) -> None:
    warehouse = site.open()

    assert warehouse.producer({"transactional.id": "etl"}, batch_size=1).config.batch_size == 1
    assert warehouse.consumer({"group.id": "g"}, max_poll_records=1).config.max_poll_records == 1
    with pytest.raises(InvalidConfigError, match="twice"):
        warehouse.producer({"batch.size": 2}, batch_size=1)
    with pytest.raises(InvalidConfigError, match="twice"):
        warehouse.consumer({"group.id": "g"}, group_id="h")
    with pytest.raises(InvalidConfigError, match="twice"):
        warehouse.consumer({"group.id": "g", "group_id": "g"})


@pytest.mark.parametrize(
    ("setting", "remedy"),
    [
        ("bootstrap.servers", "the warehouse's URL"),
        ("bootstrap_servers", "the warehouse's URL"),
        ("acks", "durable"),
        ("sasl.mechanism", "storage options"),
        ("ssl.ca.location", "storage options"),
        ("delivery.timeout.ms", "retry_timeout"),
        ("value.serializer", "bytes"),
        ("message.timeout.ms", "retry_timeout"),
        ("transactional.idd", "did you mean transactional.id"),
        ("never.heard.of", "known=batch.size"),
    ],
)
def test_producer_refuses_a_setting_by_its_name_with_what_to_do(site: Site, setting: str, remedy: str) -> None:
    with pytest.raises(InvalidConfigError, match=remedy) as refused:
        site.open().producer({"transactional.id": "etl", setting: "1"})

    assert refused.value.facts["setting"] == repr(setting)


@pytest.mark.parametrize(
    ("setting", "remedy"),
    [
        ("acks", "durable"),
        ("bootstrap_servers", "the warehouse's URL"),
        ("value_serializer", "bytes"),
        ("transactional_idd", "did you mean transactional.id"),
    ],
)
@pytest.mark.parametrize("config", [None, "etl", {"transactional.id": "etl"}])
def test_producer_refuses_an_argument_of_kafkas_as_in_a_dictionary(
    site: Site, setting: str, remedy: str, config: Any
) -> None:
    named: dict[str, Any] = {setting: "1"}

    with pytest.raises(InvalidConfigError, match=remedy):
        site.open().producer(config, **named)


def test_producer_takes_arguments_of_kafkas_that_change_nothing(site: Site) -> None:
    producer = site.open().producer("etl", acks="all", retries=3, compression_type="lz4")

    assert (producer.config.transactional_id, producer.config.compression_type) == ("etl", "lz4")


def test_topics_given_to_a_consumer_are_refused_with_where_they_are_named(site: Site) -> None:
    with pytest.raises(InvalidConfigError, match="call subscribe or assign"):
        site.open().consumer("in", group_id="g")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("setting", "remedy"),
    [
        ("bootstrap.servers", "the warehouse's URL"),
        ("enable.partition.eof", "leave it out"),
        ("max.poll.recods", "did you mean max.poll.records"),
        ("transactional.id", "no such setting"),
    ],
)
@pytest.mark.parametrize("by_name", [True, False])
def test_consumer_refuses_a_setting_by_its_name_with_what_to_do(
    site: Site, setting: str, remedy: str, by_name: bool
) -> None:
    given: Sequence[Any] = () if by_name else ({setting: "1"},)
    named: dict[str, Any] = {setting.replace(".", "_"): "1"} if by_name else {}

    with pytest.raises(InvalidConfigError, match=remedy):
        site.open().consumer(*given, **named)


@pytest.mark.parametrize(
    "given", [{"max.poll.records": "many"}, {"enable.auto.commit": "maybe"}, {7: 1}, "g", [("group.id", "g")]]
)
def test_consumer_refuses_a_dictionary_whose_values_or_names_are_none(site: Site, given: Any) -> None:
    with pytest.raises(InvalidConfigError):
        site.open().consumer(given)
