"""Which records are sought, by values of columns; and what statistics leave open."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from txntable.compaction.sought_records import sought_records
from txntable.errors import InvalidRequestError, SchemaMismatchError
from txntable.format.topic import TopicSettings

SCHEMA = pa.schema(
    [
        pa.field("name", pa.string()),
        pa.field("number", pa.int32()),
        pa.field("key", pa.binary()),
        pa.field("day", pa.date32()),
        pa.field("price", pa.decimal128(10, 2)),
        pa.field("good", pa.bool_()),
        pa.field("at", pa.timestamp("us", "UTC")),
        pa.field("ratio", pa.float64()),
    ]
)
NOON = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC)
ROWS = [
    {"name": "ann", "number": 1, "key": b"k", "day": dt.date(2026, 1, 2), "price": Decimal("9.90"), "good": True},
    {"name": "bob", "number": 2, "key": b"\xff", "day": None, "price": None, "good": False, "at": NOON},
    {"name": None, "number": 1, "key": None},
]
BATCH = pa.RecordBatch.from_pylist(ROWS, SCHEMA)
SETTINGS = TopicSettings("t", "0" * 32, 1, SCHEMA)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"name": "ann"}, [True, False, False]),
        ({"name": ["ann", "bob"]}, [True, True, False]),
        ({"number": 1}, [True, False, True]),
        ({"number": "1"}, [True, False, True]),
        ({"name": ["ann", "bob"], "number": 1}, [True, False, False]),
        ({"key": "k"}, [True, False, False]),
        ({"key": b"\xff"}, [False, True, False]),
        ({"day": "2026-01-02"}, [True, False, False]),
        ({"day": dt.date(2026, 1, 2)}, [True, False, False]),
        ({"price": "9.90"}, [True, False, False]),
        ({"price": Decimal("9.9")}, [True, False, False]),
        ({"good": False}, [False, True, False]),
        ({"good": "true"}, [True, False, False]),
        ({"at": "2026-11-20T12:00:00Z"}, [False, True, False]),
        ({"at": "2026-11-20T14:00:00+02:00"}, [False, True, False]),
        ({"at": NOON.astimezone(dt.timezone(dt.timedelta(hours=-5)))}, [False, True, False]),
        ({"price": 9}, [False, False, False]),
        ({"name": ""}, [False, False, False]),
        ({"name": b"ann"}, [True, False, False]),
        ({"name": "an"}, [False, False, False]),
    ],
)
def test_records_are_sought_by_any_value_of_a_column_and_all_columns(where: Any, expected: list[bool]) -> None:
    sought = sought_records(where)
    sought.check(SETTINGS)

    assert sought.chosen(BATCH).to_pylist() == expected


def test_file_without_the_column_or_with_another_type_of_it_holds_nothing_sought() -> None:
    sought = sought_records({"number": "one"})

    assert sought.chosen(BATCH).to_pylist() == [False] * 3
    assert sought.chosen(BATCH.select(["name"])).to_pylist() == [False] * 3
    assert sought.chosen(BATCH.slice(0, 0)).to_pylist() == []


@pytest.mark.parametrize(
    ("where", "column"),
    [
        ({"key": "k"}, pa.array([b"k", b"l"], pa.large_binary())),
        ({"name": "ann"}, pa.array(["ann", "bob"], pa.large_string())),
        ({"number": "1"}, pa.array([1, 2], pa.int64())),
        ({"name": "1.5"}, pa.array([1.5, 2.5])),
        ({"name": "ann"}, pa.array([["ann"], []])),
    ],
)
def test_file_of_other_software_is_asked_by_its_own_types(where: Any, column: pa.Array) -> None:
    (name,) = where
    chosen = sought_records(where).chosen(pa.RecordBatch.from_arrays([column], [name])).to_pylist()

    assert chosen == [pa.types.is_integer(column.type) or "large" in str(column.type), False]


@pytest.mark.parametrize("where", [{}, {"name": []}, {"name": None}, {"name": ["ann", None]}, "name=ann", None])
def test_condition_that_seeks_nothing_is_refused(where: Any) -> None:
    with pytest.raises(InvalidRequestError):
        sought_records(where)


@pytest.mark.parametrize(
    ("where", "error"),
    [
        ({"other": "ann"}, SchemaMismatchError),
        ({"ratio": 1.0}, SchemaMismatchError),
        ({"number": "one"}, InvalidRequestError),
        ({"number": 1 << 40}, InvalidRequestError),
        ({"number": True}, InvalidRequestError),
        ({"name": 1}, InvalidRequestError),
        ({"day": "yesterday"}, InvalidRequestError),
        ({"good": 1}, InvalidRequestError),
        ({"number": 1.5}, InvalidRequestError),
        ({"number": 1.0}, InvalidRequestError),
        ({"number": Decimal("1.5")}, InvalidRequestError),
        ({"price": 9.9}, InvalidRequestError),
        ({"price": "9.905"}, InvalidRequestError),
        ({"price": "NaN"}, InvalidRequestError),
        ({"day": NOON}, InvalidRequestError),
        ({"day": 5}, InvalidRequestError),
        ({"at": NOON.replace(tzinfo=None)}, InvalidRequestError),
        ({"at": "2026-11-20T12:00:00"}, InvalidRequestError),
        ({"at": dt.date(2026, 11, 20)}, InvalidRequestError),
        ({"number": ""}, InvalidRequestError),
        ({"number": "null"}, InvalidRequestError),
    ],
)
def test_topic_that_cannot_be_asked_is_refused(where: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        sought_records(where).check(SETTINGS)


@pytest.mark.parametrize(
    ("where", "stats", "expected"),
    [
        ({"name": "ann"}, '{"minValues":{"name":"ann"},"maxValues":{"name":"bob"}}', True),
        ({"name": "ann"}, '{"minValues":{"name":"anna"},"maxValues":{"name":"bob"}}', False),
        ({"name": "zoe"}, '{"minValues":{"name":"ann"},"maxValues":{"name":"bob"}}', False),
        ({"name": ["zoe", "bob"]}, '{"minValues":{"name":"ann"},"maxValues":{"name":"bob"}}', True),
        (
            {"name": "x" * 40},
            '{"minValues":{"name":"' + "x" * 32 + '"},"maxValues":{"name":"' + "x" * 31 + 'y"}}',
            True,
        ),
        ({"number": "7"}, '{"minValues":{"number":1},"maxValues":{"number":6}}', False),
        ({"number": "6"}, '{"minValues":{"number":1},"maxValues":{"number":6}}', True),
        ({"number": 6, "name": "ann"}, '{"minValues":{"number":1,"name":"b"},"maxValues":{"number":6}}', False),
        ({"day": "2026-01-02"}, '{"minValues":{"day":"2030-01-01"}}', True),
        ({"key": "k"}, '{"minValues":{"name":"a"},"maxValues":{"name":"b"}}', True),
        ({"name": "ann"}, '{"numRecords":1}', True),
        ({"name": "ann"}, None, True),
        ({"name": "ann"}, "no json", True),
        ({"name": "ann"}, "[]", True),
        ({"name": "ann"}, '{"minValues":[]}', True),
    ],
)
def test_statistics_exclude_only_what_lies_outside_of_bounds_that_are_there(
    where: Any, stats: str | None, expected: bool
) -> None:
    assert sought_records(where).may_be_in(stats, SCHEMA) is expected


def test_texts_and_bytes_are_what_other_places_are_looked_through_for() -> None:
    assert sought_records({"name": ["ann", "zü"], "key": b"\xff", "number": 7}).texts == {
        b"ann",
        "zü".encode(),
        b"\xff",
    }
