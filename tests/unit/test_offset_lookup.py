"""Offsets by time against a naive search, and without the offsets that Kafka would answer by mistake."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.producer.producing import store_of
from tests.unit.reading import TOPIC, leave_open, plain, segments_of, send, site_with_topic, transactional
from txntable.errors import DamagedDataError, InvalidRequestError, UnknownTopicOrPartitionError
from txntable.format.isolation import IsolationLevel
from txntable.format.records import TopicPartition
from txntable.partition.topic_view import TopicView
from txntable.snapshot.offset_lookup import first_offset_at, latest_offset
from txntable.snapshot.topic_reader import TopicReader
from txntable.warehouse.warehouse import Warehouse

LEVELS = [IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED]


def looking(warehouse: Warehouse, level: IsolationLevel) -> tuple[TopicReader, TopicView]:
    reader = warehouse.topic_reader(TOPIC)
    reader.catch_up()
    return reader, reader.view(level, 0 if level is IsolationLevel.SNAPSHOT else None)


def write(warehouse: Warehouse, times: list[int], end: str) -> None:
    """Write records with these timestamps, as one segment, in a transaction that ends so."""
    if end == "plain":
        with warehouse.producer() as producer:
            for time in times:
                send(producer, "x", at_ms=time)
        return
    producer = transactional(warehouse)
    producer.begin_transaction()
    for time in times:
        send(producer, "x", at_ms=time)
    producer.flush()
    producer.commit_transaction() if end == "commit" else producer.abort_transaction()


def naive(warehouse: Warehouse, level: IsolationLevel) -> list[tuple[int, int]]:
    table = warehouse.read_arrow(TOPIC, isolation_level=level, columns=["_offset", "_timestamp"]).read_all()
    return [(row["_offset"], int(row["_timestamp"].timestamp() * 1000)) for row in table.to_pylist()]


segments = st.lists(
    st.tuples(
        st.lists(st.integers(0, 9), min_size=1, max_size=3), st.sampled_from(["commit", "abort", "plain", "commit"])
    ),
    max_size=5,
)


@pytest.mark.parametrize("level", LEVELS)
@settings(max_examples=25)
@given(segments)
def test_lookups_equal_a_naive_search_over_what_the_level_shows(level: IsolationLevel, written: list) -> None:
    _, warehouse = site_with_topic(partitions=1)
    for times, end in written:
        write(warehouse, times, end)
    reader, view = looking(warehouse, level)
    shown = naive(warehouse, level)

    for time in range(11):
        wanted = next(((offset, found) for offset, found in shown if found >= time), None)
        assert first_offset_at(reader, view, 0, time) == wanted
    newest = max(shown, key=lambda record: (record[1], -record[0]), default=None)
    assert latest_offset(reader, view, 0) == newest


def test_lookup_never_answers_an_aborted_record_a_marker_or_one_behind_an_open_transaction() -> None:
    _, warehouse = site_with_topic(partitions=1)
    write(warehouse, [10], "commit")
    write(warehouse, [20], "abort")
    leave_open(warehouse, "open")
    plain(warehouse, "late", at_ms=1 << 42)

    reader, view = looking(warehouse, IsolationLevel.READ_COMMITTED)

    assert first_offset_at(reader, view, 0, 11) is None
    assert latest_offset(reader, view, 0) == (0, 10)


def test_lookup_reads_the_one_segment_that_can_have_the_answer() -> None:
    _, warehouse = site_with_topic(partitions=1)
    for time in range(10, 60, 10):
        write(warehouse, [time, time + 1], "plain")
    reader, view = looking(warehouse, IsolationLevel.READ_COMMITTED)
    before = len(store_of(warehouse).steps)

    found = first_offset_at(reader, view, 0, 31), latest_offset(reader, view, 0)

    assert found == ((5, 31), (9, 51))
    assert len(store_of(warehouse).steps) - before == 2


def test_lookup_tells_microseconds_from_the_millisecond_asked_for() -> None:
    """The statistics round up: 5.5 ms is not 6 ms, though its segment's bound is."""
    _, warehouse = site_with_topic(partitions=1)
    times = pa.array([4500, 5500], pa.timestamp("us", "UTC"))
    with warehouse.producer() as producer:
        rows = pa.table({"account": ["a", "b"], "amount": [1, 2], "_timestamp": times})
        producer.send(TOPIC, rows=rows, partition=0)
    reader, view = looking(warehouse, IsolationLevel.READ_COMMITTED)

    assert first_offset_at(reader, view, 0, 5) == (1, 5)
    assert first_offset_at(reader, view, 0, 6) is None
    assert latest_offset(reader, view, 0) == (1, 5)


def test_latest_is_found_when_the_bound_cuts_the_segment_with_the_highest_time() -> None:
    _, warehouse = site_with_topic(partitions=1)
    write(warehouse, [80, 10], "plain")
    write(warehouse, [15], "plain")
    reader, view = looking(warehouse, IsolationLevel.READ_COMMITTED)

    cut = replace(view, bounds={0: replace(view.bounds_of(0), start=1)})

    assert latest_offset(reader, cut, 0) == (2, 15)
    assert first_offset_at(reader, cut, 0, 16) is None


def test_damaged_segment_is_told() -> None:
    site, warehouse = site_with_topic(partitions=1)
    write(warehouse, [10], "plain")
    reader, view = looking(warehouse, IsolationLevel.READ_COMMITTED)
    site.objects.delete(segments_of(site)[0])

    with pytest.raises(DamagedDataError, match="base_offset=0"):
        first_offset_at(reader, view, 0, 5)


# -- Admin.list_offsets -------------------------------------------------------------------------


@pytest.fixture
def listed() -> Warehouse:
    """Partition 0: 10 ms, aborted 90, 30, open 50, plain 20; partition 1 is empty."""
    _, warehouse = site_with_topic()
    write(warehouse, [10], "commit")
    write(warehouse, [90], "abort")
    write(warehouse, [30], "commit")
    opened = transactional(warehouse, "open")
    opened.begin_transaction()
    send(opened, "x", at_ms=50)
    opened.flush()
    write(warehouse, [20], "plain")
    return warehouse


@pytest.mark.parametrize(
    ("spec", "committed", "uncommitted"),
    [
        ("earliest", (0, None), (0, None)),
        ("latest", (6, None), (8, None)),
        ("max-timestamp", (4, 30), (2, 90)),
        (-1, (6, None), (8, None)),
        (-2, (0, None), (0, None)),
        (-3, (4, 30), (2, 90)),
        (0, (0, 10), (0, 10)),
        (11, (4, 30), (2, 90)),
        (91, None, None),
    ],
)
def test_list_offsets_answers_kafkas_specs_by_level(
    listed: Warehouse, spec: str | int, committed: tuple | None, uncommitted: tuple | None
) -> None:
    place = TopicPartition(TOPIC, 0)

    assert listed.admin().list_offsets({place: spec}, "read_committed") == {place: committed}
    assert listed.admin().list_offsets({place: spec}, "read_uncommitted") == {place: uncommitted}
    assert listed.admin().list_offsets({place: spec}) == {place: uncommitted}


@pytest.mark.parametrize(("spec", "found"), [("earliest", (0, None)), ("latest", (0, None)), ("max-timestamp", None)])
def test_list_offsets_of_an_empty_partition(listed: Warehouse, spec: str, found: tuple | None) -> None:
    place = TopicPartition(TOPIC, 1)

    assert listed.admin().list_offsets({place: spec}) == {place: found}


@pytest.mark.parametrize(
    ("asked", "error", "facts"),
    [
        ((TOPIC, 2, "latest", "read_committed"), UnknownTopicOrPartitionError, "partition=2"),
        (("nowhere", 0, "latest", "read_committed"), UnknownTopicOrPartitionError, "topic=nowhere"),
        ((TOPIC, 0, "newest", "read_committed"), InvalidRequestError, "known=earliest,latest,max-time"),
        ((TOPIC, 0, -4, "read_committed"), InvalidRequestError, "found=-4"),
        ((TOPIC, 0, True, "read_committed"), InvalidRequestError, "offset=True"),
        ((TOPIC, 0, 1.5, "read_committed"), InvalidRequestError, "offset=1.5"),
        ((TOPIC, 0, "latest", "snapshot"), InvalidRequestError, "isolation_level=snapshot"),
        ((TOPIC, 0, "latest", "none"), InvalidRequestError, "known=snapshot,"),
    ],
)
def test_list_offsets_refuses_what_it_can_not_answer(
    listed: Warehouse, asked: tuple, error: type[Exception], facts: str
) -> None:
    topic, partition, spec, level = asked

    with pytest.raises(error, match=facts):
        listed.admin().list_offsets({TopicPartition(topic, partition): spec}, level)


def test_list_offsets_of_many_partitions_catches_up_once_a_topic(listed: Warehouse) -> None:
    places = [TopicPartition(TOPIC, number) for number in (0, 1)]
    listed.admin().list_offsets(dict.fromkeys(places, "latest"))
    before = len(store_of(listed).steps)

    listed.admin().list_offsets(dict.fromkeys(places[:1], "latest"))
    one = len(store_of(listed).steps) - before
    listed.admin().list_offsets(dict.fromkeys(places, "latest"))

    assert len(store_of(listed).steps) - before == 2 * one
