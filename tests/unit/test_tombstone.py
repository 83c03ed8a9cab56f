"""What a tombstone is, by a topic's columns and by a segment's statistics (PROTOCOL.md §5.8)."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from txntable.format.schema import KAFKA_SCHEMA
from txntable.format.tombstone import is_tombstone, may_hold_tombstones, value_columns
from txntable.format.topic import TopicSettings

KEY, DAY = pa.field("k", pa.string()), pa.field("day", pa.int32())
AMOUNT, NOTE = pa.field("amount", pa.int64()), pa.field("note", pa.string())
NEVER_NULL = pa.field("never_null", pa.int64(), nullable=False)


def topic(*columns: pa.Field, key: tuple[str, ...] = ("k",)) -> TopicSettings:
    return TopicSettings("t", "a" * 32, 1, pa.schema(columns), key)


KAFKA = TopicSettings("t", "a" * 32, 1, KAFKA_SCHEMA, ("key",))


@pytest.mark.parametrize(
    ("settings", "columns"),
    [
        (KAFKA, ("value",)),
        (topic(KEY, AMOUNT, NOTE), ("amount", "note")),
        (topic(KEY, DAY, AMOUNT, key=("day", "k")), ("amount",)),
        (topic(KEY, AMOUNT, NEVER_NULL), ()),
        (topic(KEY), ()),
    ],
)
def test_values_are_the_columns_that_are_no_key_if_all_of_them_can_be_null(
    settings: TopicSettings, columns: tuple[str, ...]
) -> None:
    assert value_columns(settings) == columns


ROWS = [
    {"k": "a", "amount": 1, "note": "x"},
    {"k": "b", "amount": None, "note": "x"},
    {"k": "c", "amount": 1, "note": None},
    {"k": "d", "amount": None, "note": None},
]


def test_tombstone_has_null_in_every_column_that_is_no_key() -> None:
    settings = topic(KEY, AMOUNT, NOTE)
    batch = pa.RecordBatch.from_pylist(ROWS, settings.schema)

    assert is_tombstone(batch, settings).tolist() == [False, False, False, True]


def test_tombstone_of_kafkas_columns_may_have_headers() -> None:
    headers = [{"key": "h", "value": b"x"}]
    rows = [{"key": b"k", "value": value, "headers": headers} for value in (b"", None)]

    assert is_tombstone(pa.RecordBatch.from_pylist(rows, KAFKA_SCHEMA), KAFKA).tolist() == [False, True]


def test_topic_that_can_have_no_tombstones_has_none() -> None:
    settings = topic(KEY)

    assert is_tombstone(pa.RecordBatch.from_pylist([{"k": "a"}], settings.schema), settings).tolist() == [False]


@pytest.mark.parametrize(
    ("nulls", "may"),
    [
        ({"amount": 1, "note": 1}, True),
        ({"amount": 1, "note": 0}, False),
        ({"amount": 0, "note": 0}, False),
        ({"amount": 2}, True),
        ({"note": 0}, False),
        ({}, True),
        (None, True),
    ],
)
def test_segment_may_hold_tombstones_unless_its_statistics_say_that_a_column_is_never_null(
    nulls: dict[str, int] | None, may: bool
) -> None:
    stats = None if nulls is None else json.dumps({"numRecords": 3, "nullCount": nulls})

    assert may_hold_tombstones(stats, topic(KEY, AMOUNT, NOTE)) == may


def test_segment_of_a_topic_without_tombstones_holds_none() -> None:
    assert not may_hold_tombstones(None, topic(KEY, NEVER_NULL))
