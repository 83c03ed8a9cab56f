"""Bounds as predicates: none where nothing is hidden, files before records, short for any number of partitions."""

from __future__ import annotations

import pytest

from tests.simulation.site import TWO_COLUMNS, Site
from txntable.format.isolation import IsolationLevel
from txntable.partition.topic_view import TopicView
from txntable.spark.scan.offset_bounds import offset_bounds, range_predicates

FILES_FROM, FILES_BEFORE = "_last_offset >= ", "_base_offset < "
RECORDS_FROM, RECORDS_BEFORE = "_base_offset + _offset_delta >= ", "_base_offset + _offset_delta < "


def view(level: IsolationLevel = IsolationLevel.SNAPSHOT, partitions: int = 3) -> TopicView:
    """Partitions 0 and 1 have two segments of two records at 0 and 3, and an open one at 6; the others are empty."""
    warehouse = Site().create()
    warehouse.admin().create_topic("t", partitions=partitions, schema=TWO_COLUMNS)
    producer = warehouse.producer("etl")
    producer.init_transactions()
    for number in range(3):
        producer.begin_transaction()
        for partition in (0, 0, 1, 1):
            producer.send("t", row={"account": "ann", "amount": number}, partition=partition)
        producer.flush()
        if number < 2:
            producer.commit_transaction()
    reader = warehouse.topic_reader("t")
    reader.catch_up()
    return warehouse.snapshot().view("t") if level is IsolationLevel.SNAPSHOT else reader.view(level)


def begins(predicates: list[str]) -> list[str]:
    return [predicate.split("get(")[0] for predicate in predicates]


@pytest.mark.parametrize("level", IsolationLevel)
def test_no_predicate_where_everything_is_wanted(level: IsolationLevel) -> None:
    seen = view(level)

    assert range_predicates(seen.columns, offset_bounds(seen, None, None)) == []


@pytest.mark.parametrize(
    ("starting", "ending", "expected"),
    [
        ({0: 3}, None, [FILES_FROM]),
        ({0: 2}, None, [FILES_FROM]),
        ({0: 4}, None, [FILES_FROM, RECORDS_FROM]),
        (None, {1: 3}, [FILES_BEFORE]),
        (None, {1: 2}, [FILES_BEFORE]),
        (None, {1: 4}, [FILES_BEFORE, RECORDS_BEFORE]),
        ({0: 1}, {1: 1}, [FILES_FROM, FILES_BEFORE, RECORDS_FROM, RECORDS_BEFORE]),
        ({2: 0}, {2: 0}, []),
        ("earliest", "latest", []),
        ("latest", None, [FILES_FROM]),
        (None, "earliest", [FILES_BEFORE]),
    ],
)
def test_records_are_tested_only_where_a_bound_runs_through_a_file(starting, ending, expected) -> None:
    seen = view()

    assert begins(range_predicates(seen.columns, offset_bounds(seen, starting, ending))) == expected


def test_open_data_is_bounded_only_where_it_is_in_the_table() -> None:
    """The public table holds no open segment: below the last stable offset is all that it has there."""
    seen = view(IsolationLevel.READ_COMMITTED)

    assert {partition: bounds.end for partition, bounds in seen.bounds.items()} == {0: 6, 1: 6, 2: 0}
    assert range_predicates(seen.columns, offset_bounds(seen, None, None)) == []


def test_predicates_stay_short_when_there_are_1000_partitions() -> None:
    seen = view(partitions=1_000)

    predicates = range_predicates(seen.columns, offset_bounds(seen, {0: 1}, {1: 4}))

    assert len(predicates) == 4
    assert max(map(len, predicates)) < 4_000


def test_ranges_name_every_partition() -> None:
    seen = view()

    ranges = offset_bounds(seen, {0: 3, 1: "latest"}, {1: "latest"})

    assert {partition: (wanted.start, wanted.end) for partition, wanted in ranges.items()} == {
        0: (3, 8),
        1: (8, 8),
        2: (0, 0),
    }
