"""Consumers: seeking, resetting, and what they tell of offsets without moving."""

from __future__ import annotations

import pytest

from tests.doubles.fault_plan import Fault, Operation, on
from tests.doubles.stepping_store import ProcessKilled
from tests.simulation.site import Site
from tests.unit.consumer.consuming import (
    FIRST,
    SECOND,
    abort,
    commit,
    consumer_at,
    offsets,
    poll_all,
    read_only,
    send,
    values,
)
from tests.unit.producer.producing import started
from txntable.consumer.consumer_record import OffsetAndTimestamp
from txntable.consumer.fetch_position import AutoOffsetReset, FetchPosition
from txntable.errors import IllegalStateError, InvalidRequestError, OffsetOutOfRangeError, UnknownTopicOrPartitionError
from txntable.format.records import TopicPartition
from txntable.log.actions import Txn
from txntable.partition.offsets import LOG_START, per_partition
from txntable.partition.topic_view import Bounds
from txntable.warehouse.warehouse import Warehouse

BOUNDS = Bounds(start=10, end=20, last_stable_offset=20, high_watermark=25)
UNKNOWN = [TopicPartition("nowhere", 0), TopicPartition("raw", 2), TopicPartition("raw", -1)]


def advance_log_start(warehouse: Warehouse, offset: int) -> None:
    """What retention does to the first partition's log start."""
    topic = warehouse.topic_log("raw")
    name = per_partition(LOG_START, topic.settings().topic_id, 0)
    topic.segments.commit("DELETE RECORDS", lambda _: [Txn(name, offset)])
    topic.project()


# -- where reading begins -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("offset", "reset", "begins_at"),
    [
        (None, AutoOffsetReset.EARLIEST, 10),
        (None, AutoOffsetReset.LATEST, 20),
        (None, AutoOffsetReset.NONE, None),
        (9, AutoOffsetReset.EARLIEST, None),
        (10, AutoOffsetReset.NONE, 10),
        (20, AutoOffsetReset.NONE, 20),
        (25, AutoOffsetReset.NONE, 25),
        (26, AutoOffsetReset.LATEST, None),
    ],
)
def test_offset_can_be_read_between_log_start_and_high_watermark(
    offset: int | None, reset: AutoOffsetReset, begins_at: int | None
) -> None:
    assert FetchPosition(offset, reset).begins_at(BOUNDS) == begins_at


def test_latest_is_the_default_and_begins_at_the_last_stable_offset(site: Site) -> None:
    commit(started(site.open()), "before")
    open_producer = started(site.open(), "open")
    open_producer.begin_transaction()
    send(open_producer, "undecided then")
    consumer = site.open().consumer()
    consumer.assign([FIRST])
    assert consumer.poll() == {}

    open_producer.commit_transaction()
    send(site.open().producer(), "after")

    assert poll_all(consumer) == ["undecided then", "after"]


@pytest.mark.parametrize(
    ("reset", "returned"),
    [("earliest", ["c", "d"]), ("latest", [])],
)
@pytest.mark.parametrize("offset", [0, 99])
def test_position_out_of_range_is_reset_by_the_policy(site: Site, reset: str, offset: int, returned: list[str]) -> None:
    warehouse = site.open()
    send(warehouse.producer(), "a", "b")
    send(warehouse.producer(), "c", "d")
    advance_log_start(warehouse, 2)
    consumer = consumer_at(site.open(), auto_offset_reset=reset)
    consumer.seek(FIRST, offset)

    assert poll_all(consumer) == returned
    assert consumer.position(FIRST) == 4


@pytest.mark.parametrize("offset", [0, 99])
def test_position_out_of_range_is_an_error_with_the_policy_none_until_it_is_sought(site: Site, offset: int) -> None:
    warehouse = site.open()
    send(warehouse.producer(), "a", "b")
    advance_log_start(warehouse, 1)
    consumer = consumer_at(site.open(), auto_offset_reset="none")
    consumer.seek(FIRST, offset)

    for _ in range(2):
        with pytest.raises(OffsetOutOfRangeError, match=rf"seek.* offset={offset} log_start=1 high_watermark=2"):
            consumer.poll()
    consumer.seek(FIRST, 1)
    assert poll_all(consumer) == ["b"]


def test_consumer_without_a_position_and_a_policy_says_so(site: Site) -> None:
    consumer = consumer_at(site.open(), auto_offset_reset="none")

    with pytest.raises(OffsetOutOfRangeError, match="seek"):
        consumer.poll()
    with pytest.raises(OffsetOutOfRangeError, match="seek"):
        consumer.position(FIRST)


def test_log_start_that_moves_past_the_position_is_met_by_the_policy(site: Site) -> None:
    warehouse = site.open()
    producer = warehouse.producer()
    send(producer, "a")
    consumer = consumer_at(site.open())
    assert poll_all(consumer) == ["a"]
    consumer.seek(FIRST, 0)
    send(producer, "b", "c")

    advance_log_start(warehouse, 2)
    consumer.end_offsets([FIRST])

    assert poll_all(consumer) == ["c"]


def test_position_between_the_last_stable_offset_and_the_high_watermark_waits_there(site: Site) -> None:
    producer = started(site.open())
    producer.begin_transaction()
    send(producer, "a", "b")
    consumer = consumer_at(site.open(), auto_offset_reset="none")
    consumer.seek(FIRST, 1)

    assert consumer.poll() == {}
    assert consumer.position(FIRST) == 1

    producer.commit_transaction()
    assert poll_all(consumer) == ["b"]


def test_position_that_was_appended_but_not_published_is_not_reset_for_who_may_not_publish(site: Site) -> None:
    send(site.open().producer(), "a")
    reader, _ = read_only(site)
    consumer = consumer_at(reader, auto_offset_reset="none")
    killed = site.open(on(Operation.PUT_IF_ABSENT, "topics/raw/_delta_log", Fault.KILL_BEFORE))
    with pytest.raises(ProcessKilled):
        send(killed.producer(), "b", "c")
    consumer.seek(FIRST, 2)

    assert consumer.poll() == {}
    assert consumer.position(FIRST) == 2

    site.open().complete()
    assert poll_all(consumer) == ["c"]


# -- seeking --------------------------------------------------------------------------------


def test_seek_moves_back_and_forth_also_into_what_was_read_ahead(site: Site) -> None:
    send(site.open().producer(), "a", "b", "c", "d")
    consumer = consumer_at(site.open())
    consumer.poll(max_records=1)

    consumer.seek(FIRST, 3)
    assert values(consumer.poll()) == ["d"]
    consumer.seek(FIRST, 1)
    assert values(consumer.poll()) == ["b", "c", "d"]


def test_seek_into_a_transaction_returns_its_rest(site: Site) -> None:
    commit(started(site.open()), "a", "b", "c")
    consumer = consumer_at(site.open())

    consumer.seek(FIRST, 1)

    assert offsets(consumer.poll()) == [1, 2]


def test_seek_to_the_end_and_the_beginning_go_to_the_bounds(site: Site) -> None:
    commit(started(site.open()), "a")
    consumer = consumer_at(site.open(), FIRST, SECOND)

    consumer.seek_to_end()
    assert (consumer.position(FIRST), consumer.position(SECOND)) == (2, 0)
    assert consumer.poll() == {}
    consumer.seek_to_beginning(FIRST)
    assert consumer.position(FIRST) == 0
    assert poll_all(consumer) == ["a"]


@pytest.mark.parametrize("offset", [-1, 1.0, True, None, "0"])
def test_seek_refuses_what_is_no_offset(site: Site, offset: object) -> None:
    with pytest.raises(InvalidRequestError, match="an offset is an int"):
        consumer_at(site.open()).seek(FIRST, offset)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "call",
    [
        lambda c: c.seek(SECOND, 0),
        lambda c: c.seek_to_beginning(SECOND),
        lambda c: c.seek_to_end(SECOND),
        lambda c: c.position(SECOND),
        lambda c: c.pause(FIRST, SECOND),
        lambda c: c.resume(SECOND),
        lambda c: c.current_lag(SECOND),
    ],
)
def test_partition_that_is_not_assigned_is_refused_and_nothing_changes(site: Site, call) -> None:
    consumer = consumer_at(site.open())

    with pytest.raises(IllegalStateError, match="not assigned"):
        call(consumer)

    assert consumer.paused() == set()


# -- asking ---------------------------------------------------------------------------------


def test_ends_are_the_last_stable_offset_or_the_high_watermark_by_level(site: Site) -> None:
    commit(started(site.open()), "a")
    abort(started(site.open()), "b")
    producer = started(site.open(), "open")
    producer.begin_transaction()
    send(producer, "c", "d")

    committed, everything = (
        consumer_at(site.open(), isolation_level=level) for level in ("read_committed", "read_uncommitted")
    )

    assert committed.end_offsets([FIRST, SECOND]) == {FIRST: 4, SECOND: 0}
    assert everything.end_offsets([FIRST, SECOND]) == {FIRST: 6, SECOND: 0}
    assert committed.beginning_offsets([FIRST]) == everything.beginning_offsets([FIRST]) == {FIRST: 0}
    assert (committed.last_stable_offset(FIRST), everything.last_stable_offset(FIRST)) == (4, 4)


def test_offsets_are_told_of_partitions_that_are_not_assigned(site: Site) -> None:
    send(site.open().producer(), "a", partition=1)
    consumer = site.open().consumer()

    assert consumer.end_offsets([SECOND]) == {SECOND: 1}
    assert consumer.assignment() == set()


def test_time_lookup_finds_the_first_record_shown_and_never_an_aborted_one(site: Site) -> None:
    producer = started(site.open())
    for value, time_ms, end in [("a", 100, "commit"), ("b", 200, "abort"), ("c", 300, "commit")]:
        producer.begin_transaction()
        producer.send("raw", value=value.encode(), partition=0, timestamp_ms=time_ms)
        producer.flush()
        getattr(producer, f"{end}_transaction")()
    consumer = consumer_at(site.open())

    found = [consumer.offsets_for_times({FIRST: time_ms})[FIRST] for time_ms in (0, 101, 300, 301)]

    assert found == [OffsetAndTimestamp(0, 100), OffsetAndTimestamp(4, 300), OffsetAndTimestamp(4, 300), None]


@pytest.mark.parametrize("time_ms", [-1, 1.5, None, True])
def test_time_lookup_refuses_what_is_no_time(site: Site, time_ms: object) -> None:
    with pytest.raises(InvalidRequestError, match="ms since 1970"):
        consumer_at(site.open()).offsets_for_times({FIRST: time_ms})  # type: ignore[dict-item]


@pytest.mark.parametrize("partition", UNKNOWN)
@pytest.mark.parametrize(
    "call",
    [
        lambda c, p: c.assign([p]),
        lambda c, p: c.beginning_offsets([p]),
        lambda c, p: c.end_offsets([p]),
        lambda c, p: c.last_stable_offset(p),
        lambda c, p: c.offsets_for_times({p: 0}),
    ],
)
def test_unknown_topic_or_partition_is_refused(site: Site, call, partition: TopicPartition) -> None:
    consumer = consumer_at(site.open())

    with pytest.raises(UnknownTopicOrPartitionError):
        call(consumer, partition)

    assert consumer.assignment() == {FIRST}
