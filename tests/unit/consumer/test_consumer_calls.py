"""Consumers: assigning and subscribing, waiting, iterating, threads, closing, settings."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from tests.simulation.site import Site
from tests.unit.consumer.consuming import FIRST, SECOND, commit, consumer_at, poll_all, send, values
from tests.unit.producer.producing import started
from txntable.consumer.consumer import Consumer
from txntable.consumer.fetch_position import AutoOffsetReset, FetchPosition
from txntable.consumer.subscription import Subscription
from txntable.errors import (
    IllegalStateError,
    InvalidConfigError,
    InvalidRequestError,
    InvalidTopicError,
    UnknownTopicOrPartitionError,
)
from txntable.format.records import TopicPartition

# -- assigning and subscribing --------------------------------------------------------------


def test_subscription_reads_all_partitions_of_its_topics(site: Site) -> None:
    send(site.open().producer(), "a")
    send(site.open().producer(), "b", partition=1)
    consumer = site.open().consumer(auto_offset_reset="earliest")

    consumer.subscribe(["raw", "u"])

    assert sorted(poll_all(consumer)) == ["a", "b"]
    assert consumer.subscription() == {"raw", "u"}
    assert consumer.assignment() == {FIRST, SECOND, TopicPartition("u", 0)}


def test_partition_that_a_subscribed_topic_gets_later_is_read_from_its_beginning() -> None:
    subscription = Subscription(AutoOffsetReset.LATEST)
    subscription.replace_by([FIRST], frozenset({"raw"}))

    subscription.grow("raw", 2)

    assert subscription.positions == {
        FIRST: FetchPosition(None, AutoOffsetReset.LATEST),
        SECOND: FetchPosition(None, AutoOffsetReset.EARLIEST),
    }


def test_assignment_does_not_grow_with_its_topic() -> None:
    subscription = Subscription(AutoOffsetReset.LATEST)
    subscription.replace_by([FIRST])

    subscription.grow("raw", 2)

    assert list(subscription.positions) == [FIRST]


def test_partition_assigned_again_goes_on_where_it_stands(site: Site) -> None:
    producer = site.open().producer()
    send(producer, "a", "b")
    send(producer, "c", partition=1)
    consumer = consumer_at(site.open())
    consumer.poll(max_records=1)

    consumer.assign([FIRST, SECOND])

    assert sorted(poll_all(consumer)) == ["b", "c"]


def test_assigning_and_subscribing_exclude_each_other_until_unsubscribed(site: Site) -> None:
    consumer = consumer_at(site.open())
    with pytest.raises(IllegalStateError, match="unsubscribe"):
        consumer.subscribe(["raw"])
    consumer.unsubscribe()
    consumer.subscribe(["raw"])
    with pytest.raises(IllegalStateError, match="unsubscribe"):
        consumer.assign([FIRST])
    consumer.subscribe([])

    assert (consumer.assignment(), consumer.subscription()) == (set(), set())
    consumer.assign([FIRST])


@pytest.mark.parametrize("partitions", ["raw", None, [("raw",)], [("raw", "0")], [("raw", True)], ["raw"], 1])
def test_assign_refuses_what_are_no_partitions(site: Site, partitions: object) -> None:
    with pytest.raises(InvalidRequestError, match="list of TopicPartition"):
        site.open().consumer().assign(partitions)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("topics", "error"),
    [
        ("raw", InvalidRequestError),
        (None, InvalidRequestError),
        ([1], InvalidTopicError),
        (["nowhere"], UnknownTopicOrPartitionError),
    ],
)
def test_subscribe_refuses_what_are_no_topics(site: Site, topics: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        site.open().consumer().subscribe(topics)  # type: ignore[arg-type]


def test_poll_of_nothing_is_refused(site: Site) -> None:
    with pytest.raises(IllegalStateError, match="assign"):
        site.open().consumer().poll()


@pytest.mark.parametrize("remake", [False, True])
def test_topic_that_was_deleted_while_polled_is_an_error_and_never_the_new_one(site: Site, remake: bool) -> None:
    send(site.open().producer(), "old")
    consumer = consumer_at(site.open())
    assert poll_all(consumer) == ["old"]
    admin = site.open().admin()
    admin.delete_topic("raw")
    if remake:
        admin.create_topic("raw", partitions=2)
        send(site.open().producer(), "new")

    for _ in range(2):
        with pytest.raises(UnknownTopicOrPartitionError):
            consumer.poll()
    if remake:
        consumer.assign([FIRST])
        assert poll_all(consumer) == ["new"]


# -- waiting --------------------------------------------------------------------------------


def test_poll_waits_no_longer_than_it_was_told(site: Site) -> None:
    warehouse = site.open()
    consumer = consumer_at(warehouse)
    began = warehouse.context.environment.instant()

    assert consumer.poll(timeout_ms=5_000) == {}

    assert warehouse.context.environment.since_ms(began) == 5_000


def test_waiting_poll_asks_less_and_less_often(site: Site) -> None:
    warehouse = site.open()
    consumer = consumer_at(warehouse)
    waits: list[float] = []
    environment = warehouse.context.environment
    environment.sleep_ms = _noting(waits, environment.sleep_ms)  # type: ignore[method-assign, assignment]

    consumer.poll(timeout_ms=4_000)

    assert waits == [50, 100, 200, 400, 800, 1000, 1000, 450]


def _noting(waits: list[float], sleep_ms: Callable[[float], None]) -> Callable[[float], None]:
    def sleep(milliseconds: float) -> None:
        waits.append(milliseconds)
        sleep_ms(milliseconds)

    return sleep


def test_waiting_poll_returns_as_soon_as_there_is_something(site: Site) -> None:
    warehouse, producer = site.open(), site.open().producer()
    consumer = consumer_at(warehouse)
    environment = warehouse.context.environment
    began, sleep_ms = environment.instant(), environment.sleep_ms

    def sleep(milliseconds: float) -> None:
        sleep_ms(milliseconds)
        send(producer, "woke")

    environment.sleep_ms = sleep  # type: ignore[method-assign]

    assert values(consumer.poll(timeout_ms=60_000)) == ["woke"]
    assert environment.since_ms(began) == 50


def test_wakeup_ends_the_poll_that_waits_or_else_the_next_one(site: Site) -> None:
    warehouse = site.open()
    consumer = consumer_at(warehouse)
    began = warehouse.context.environment.instant()

    consumer.wakeup()

    assert consumer.poll(timeout_ms=60_000) == {}
    assert warehouse.context.environment.since_ms(began) == 0
    consumer.poll(timeout_ms=1_000)
    assert warehouse.context.environment.since_ms(began) == 1_000


@pytest.mark.parametrize(
    ("timeout_ms", "max_records"), [(-1, None), ("1", None), (True, None), (0, 0), (0, True), (0, 1.5)]
)
def test_poll_refuses_what_is_no_timeout_or_number(site: Site, timeout_ms: object, max_records: object) -> None:
    with pytest.raises(InvalidRequestError):
        consumer_at(site.open()).poll(timeout_ms=timeout_ms, max_records=max_records)  # type: ignore[arg-type]


# -- iterating ------------------------------------------------------------------------------


def test_iteration_yields_every_record_and_ends_after_its_timeout(site: Site) -> None:
    commit(started(site.open()), *"abcde")
    consumer = consumer_at(site.open(), max_poll_records=2, consumer_timeout_ms=1_000)

    assert [record.value for record in consumer] == [b"a", b"b", b"c", b"d", b"e"]


def test_iteration_ends_when_it_is_woken(site: Site) -> None:
    consumer = consumer_at(site.open())
    consumer.wakeup()

    assert list(consumer) == []


def test_record_that_iteration_did_not_hand_out_is_polled(site: Site) -> None:
    send(site.open().producer(), *"abcd")
    consumer = consumer_at(site.open())

    assert next(consumer).value == b"a"
    assert consumer.position(FIRST) == 1
    assert values(consumer.poll(max_records=1)) == ["b"]
    assert next(consumer).value == b"c"
    consumer.pause(FIRST)
    assert consumer.current_lag(FIRST) == 1
    consumer.resume(FIRST)
    assert poll_all(consumer) == ["d"]


# -- threads and closing --------------------------------------------------------------------


def test_second_thread_is_refused_while_the_first_is_in_a_call(site: Site) -> None:
    warehouse = site.open()
    consumer = consumer_at(warehouse)
    errors: list[Exception] = []

    def from_another_thread() -> None:
        try:
            consumer.poll()
        except IllegalStateError as error:
            errors.append(error)

    def sleep(milliseconds: float) -> None:
        thread = threading.Thread(target=from_another_thread)
        thread.start()
        thread.join()
        warehouse.context.environment.instant()
        consumer.wakeup()

    warehouse.context.environment.sleep_ms = sleep  # type: ignore[method-assign]
    consumer.poll(timeout_ms=100)

    assert ["another thread" in str(error) for error in errors] == [True]


def test_closed_consumer_refuses_every_call(site: Site) -> None:
    with consumer_at(site.open()) as consumer:
        pass
    consumer.close()

    calls: list[Callable[[Consumer], object]] = [
        lambda c: c.poll(),
        lambda c: c.poll_batches(),
        lambda c: c.assign([FIRST]),
        lambda c: c.subscribe(["raw"]),
        lambda c: c.unsubscribe(),
        lambda c: c.seek(FIRST, 0),
        lambda c: c.position(FIRST),
        lambda c: c.end_offsets([FIRST]),
        next,
    ]
    for call in calls:
        with pytest.raises(IllegalStateError, match="closed"):
            call(consumer)


# -- settings -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"group_id": ""}, "group_id"),
        ({"group_instance_id": "i"}, "group_id"),
        ({"enable_auto_commit": 1}, "enable_auto_commit"),
        ({"heartbeat_interval_ms": 22_500}, "half"),
        ({"max_poll_interval_ms": 0}, "max_poll_interval_ms"),
        ({"default_api_timeout_ms": -1}, "default_api_timeout_ms"),
        ({"client_id": None}, "client_id"),
        ({"isolation_level": "snapshot"}, r"Warehouse\.snapshot\(\)"),
        ({"isolation_level": "serializable"}, r"allowed=read_committed\|read_uncommitted"),
        ({"isolation_level": None}, "isolation_level"),
        ({"auto_offset_reset": "smallest"}, "earliest"),
        ({"auto_offset_reset": None}, "earliest"),
        ({"max_poll_records": 0}, "max_poll_records"),
        ({"max_poll_records": True}, "max_poll_records"),
        ({"fetch_max_bytes": 0}, "fetch_max_bytes"),
        ({"max_partition_fetch_bytes": 1.5}, "max_partition_fetch_bytes"),
        ({"consumer_timeout_ms": -1}, "consumer_timeout_ms"),
        ({"prefetch": "yes"}, "prefetch"),
    ],
)
def test_setting_that_is_not_allowed_is_refused_with_what_is(site: Site, settings: dict, message: str) -> None:
    with pytest.raises(InvalidConfigError, match=message):
        site.open().consumer(**settings)
