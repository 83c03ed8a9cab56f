"""``format("txntable")`` without Spark's processes: options, pinning, tasks, filters."""

from __future__ import annotations

import datetime as dt
import json
import pickle
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from tests.simulation.site import TWO_COLUMNS
from txntable.errors import InvalidRequestError, SchemaMismatchError, UnknownTopicOrPartitionError
from txntable.format.isolation import IsolationLevel
from txntable.segments.segment_columns import PlannedSegment
from txntable.segments.segment_reader import RECORD_COLUMNS
from txntable.spark.datasource.data_source import TxnTableSource
from txntable.spark.datasource.pinned_read import balanced, pin
from txntable.spark.datasource.read_filters import read_filters
from txntable.spark.datasource.read_options import read_options
from txntable.warehouse.warehouse import Warehouse

WHERE = {"warehouse": "/wh", "topic": "t"}
SCHEMA = pa.schema(
    [
        *TWO_COLUMNS,
        pa.field("day", pa.date32()),
        pa.field("local", pa.timestamp("us")),
        pa.field("price", pa.decimal128(9, 2)),
        *RECORD_COLUMNS,
    ]
)


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    """A topic of two partitions with three segments each."""
    made = Warehouse.create(str(tmp_path / "wh"), durability="page-cache")
    made.admin().create_topic("t", partitions=2, schema=TWO_COLUMNS)
    producer = made.producer("etl")
    producer.init_transactions()
    for number in range(3):
        with producer.transaction() as transaction:
            for partition in (0, 1):
                transaction.send("t", row={"account": "ann", "amount": number}, partition=partition)
    return made


def asked(warehouse: Warehouse, **options: str) -> dict[str, str]:
    return {"warehouse": warehouse.url, "topic": "t", **options}


def test_options_are_read_whatever_their_case() -> None:
    found = read_options(
        {
            "WAREHOUSE": "/wh",
            "topic": "t",
            "isolationlevel": "read_committed",
            "startingOffsets": '{"0": 5, "1": "latest"}',
            "endingoffsets": "latest",
            "columns": "account, _offset",
            "storage.aws_region": "eu-central-1",
        }
    )

    assert (found.store.url, found.store.options) == ("/wh", {"aws_region": "eu-central-1"})
    assert (found.level, found.as_of, found.columns) == (IsolationLevel.READ_COMMITTED, None, ("account", "_offset"))
    assert (found.starting, found.ending) == ({0: 5, 1: "latest"}, "latest")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("17", 17), ("2026-11-20T12:00:00+00:00", dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC))],
)
def test_as_of_is_a_position_or_a_time(text: str, expected: object) -> None:
    assert read_options({**WHERE, "asOf": text}).as_of == expected


@pytest.mark.parametrize(
    "options",
    [
        {"topic": "t"},
        {"warehouse": "/wh"},
        {**WHERE, "isolation_level": "read_committed"},
        {**WHERE, "isolationLevel": "serializable"},
        {**WHERE, "isolationLevel": "read_committed", "asOf": "3"},
        {**WHERE, "asOf": "yesterday"},
        {**WHERE, "startingOffsets": "first"},
        {**WHERE, "startingOffsets": "[1]"},
        {**WHERE, "endingOffsets": '{"a": 1}'},
        {**WHERE, "maxBytesPerTask": "0"},
        {**WHERE, "pushFilters": "true"},
        {**WHERE, "path": "/wh"},
    ],
)
def test_options_are_refused_when_they_say_nothing_known(options: dict[str, str]) -> None:
    with pytest.raises(InvalidRequestError):
        read_options(options)


def test_secrets_are_not_printed() -> None:
    found = read_options({**WHERE, "storage.aws_secret_access_key": "s3cr3t"})

    assert "s3cr3t" not in repr(found)


def test_source_travels_with_what_it_pinned(warehouse: Warehouse) -> None:
    source = TxnTableSource(asked(warehouse))
    schema = source.schema()
    with warehouse.producer() as plain:
        plain.send("t", row={"account": "later", "amount": 9}, partition=0)

    reader = pickle.loads(pickle.dumps(source)).reader(schema)

    (task,) = reader.partitions()
    assert len(pickle.loads(pickle.dumps(task)).segments) == 6


def test_tasks_show_what_was_pinned_when_more_came_meanwhile(warehouse: Warehouse) -> None:
    pinned = pin(read_options(asked(warehouse)))
    with warehouse.producer() as plain:
        plain.send("t", row={"account": "later", "amount": 9}, partition=0)

    batches = [batch for task in pinned.tasks() for batch in pinned.read(task)]

    assert sum(batch.num_rows for batch in batches) == 6


def test_read_is_refused_when_the_topic_was_made_again(warehouse: Warehouse) -> None:
    pinned = pin(read_options(asked(warehouse, isolationLevel="read_uncommitted")))
    warehouse.admin().delete_topic("t")
    warehouse.admin().create_topic("t", partitions=2, schema=TWO_COLUMNS)

    with pytest.raises(UnknownTopicOrPartitionError, match="created again"):
        pinned.tasks()


@pytest.mark.parametrize("options", [{}, {"asOf": "2"}, {"isolationLevel": "read_committed"}])
def test_mistyped_topic_is_answered_with_the_one_that_was_meant(warehouse: Warehouse, options: dict[str, str]) -> None:
    warehouse.admin().create_topic("orders", partitions=1)

    with pytest.raises(UnknownTopicOrPartitionError) as refused:
        TxnTableSource({**asked(warehouse, **options), "topic": "order"}).schema()

    assert refused.value.__notes__ == ["(did you mean orders?)"]


def test_columns_are_those_that_were_named(warehouse: Warehouse) -> None:
    assert TxnTableSource(asked(warehouse, columns="_offset,account")).schema().names == ["_offset", "account"]


def test_schema_of_the_user_is_refused_when_it_is_another(warehouse: Warehouse) -> None:
    with pytest.raises(SchemaMismatchError):
        TxnTableSource(asked(warehouse)).reader(StructType().add("account", "string"))


def test_schema_of_the_user_is_taken_when_it_is_the_topics(warehouse: Warehouse) -> None:
    schema = StructType().add("account", "string")

    assert TxnTableSource(asked(warehouse, columns="account")).reader(schema).partitions()


@pytest.mark.parametrize(
    "ask",
    [lambda stream: stream.initialOffset(), lambda stream: stream.latestOffset(), lambda stream: stream.read(None)],
)
def test_stream_is_refused_with_what_to_call_whatever_spark_asks_of_it(ask: Callable[[Any], object]) -> None:
    stream = TxnTableSource(WHERE).streamReader(StructType())

    with pytest.raises(InvalidRequestError, match=r"call Warehouse\.read_stream.* topic=t"):
        ask(stream)


@pytest.mark.parametrize(
    ("sizes", "tasks"),
    [([], []), ([1], [[0]]), ([40, 40, 40], [[0, 1], [2]]), ([200, 1], [[0], [1]]), ([1, 200, 1], [[0], [1], [2]])],
)
def test_tasks_are_runs_of_about_as_many_bytes(sizes: list[int], tasks: list[list[int]]) -> None:
    mebi = 1024 * 1024
    planned = [PlannedSegment("p", 0, row, row, 0, size * mebi, 1, 0, 9) for row, size in enumerate(sizes)]

    assert [[segment.base_offset for segment in task] for task in balanced(planned, 100 * mebi)] == tasks


def rows(reader: Any) -> list[tuple[int, int, int]]:
    batches = (batch for task in reader.partitions() for batch in reader.read(task))
    found = (batch.select(["_partition", "_offset", "amount"]).to_pylist() for batch in batches)
    return [tuple(row.values()) for batch in found for row in batch]


def segments(reader: Any) -> list[tuple[int, int]]:
    return [(each.partition, each.base_offset) for task in reader.partitions() for each in task.segments]


def filtering(warehouse: Warehouse, filters: list[Any], **options: str) -> Any:
    source = TxnTableSource(asked(warehouse, filters=json.dumps(filters), **options))
    return source.reader(source.schema())


def test_filters_leave_out_segments_by_offsets(warehouse: Warehouse) -> None:
    reader = filtering(warehouse, [["_partition", "=", 1], ["_offset", ">", 1]])

    assert segments(reader) == [(1, 2), (1, 4)]
    assert rows(pickle.loads(pickle.dumps(reader))) == [(1, 2, 1), (1, 4, 2)]


@pytest.mark.parametrize(
    ("filters", "left"),
    [
        ([["amount", "=", 1]], [(0, 2), (1, 2)]),
        ([["amount", ">", 1]], [(0, 4), (1, 4)]),
        ([["amount", "in", [0, 0]]], [(0, 0), (1, 0)]),
        ([["account", "=", "bob"]], []),
        ([[["amount", "=", 1], ["_partition", "=", 0]], [["amount", "=", 2]]], [(0, 2), (0, 4), (1, 4)]),
        ([["_timestamp", "<", "2000-01-01T00:00:00Z"]], []),
        ([["_commit", "=", 0]], []),
    ],
)
def test_segments_are_left_out_by_the_logs_statistics(
    warehouse: Warehouse, filters: list[Any], left: list[tuple[int, int]]
) -> None:
    reader = filtering(warehouse, filters)

    assert segments(reader) == left
    assert [(partition, offset) for partition, offset, _ in rows(reader)] == left


def test_filter_on_a_column_that_is_compared_and_read_alone_leaves_its_rows(warehouse: Warehouse) -> None:
    reader = filtering(warehouse, [["amount", "=", 1]], columns="amount")

    assert [batch.to_pydict() for task in reader.partitions() for batch in reader.read(task)] == [
        {"amount": [1]},
        {"amount": [1]},
    ]


@pytest.mark.parametrize(
    ("column", "text", "value"),
    [
        ("day", "2026-11-20", dt.date(2026, 11, 20)),
        ("local", "2026-11-20T12:00:00.5", dt.datetime(2026, 11, 20, 12, 0, 0, 500_000)),  # noqa: DTZ001  as its column
        ("_timestamp", "2026-11-20T12:00:00+01:00", dt.datetime(2026, 11, 20, 11, tzinfo=dt.UTC)),
        ("price", "1.50", Decimal("1.50")),
        ("account", "2026-11-20", "2026-11-20"),
    ],
)
def test_text_in_json_is_a_value_of_the_columns_type(column: str, text: str, value: object) -> None:
    ((test,),) = read_filters(json.dumps([[column, "=", text]]), SCHEMA).alternatives

    assert test.values.to_pylist() == [value]


@pytest.mark.parametrize(
    "text",
    [
        *(
            '"amount > 1"',
            "{}",
            "[",
            "[]",
            "[1]",
            "[[]]",
            "[[[]]]",
            '[["amount"]]',
            '[["amount", ">"]]',
            '["amount", ">", 1]',
        ),
        *('[["amount", "like", 1]]', '[["amount", "=", null]]', '[["amount", "=", "7"]]', '[["amount", "=", 1.5]]'),
        *('[["amount", "in", 1]]', '[["day", "=", "yesterday"]]', '[["_timestamp", "=", "2026-11-20T12:00:00"]]'),
        *('[["amount", "=", 1], [["amount", "=", 2]]]', '[["amount", "=", 1, 2]]', '[[["amount", "=", 1], 5]]'),
    ],
)
def test_filters_are_refused_when_they_say_nothing_certain(text: str) -> None:
    with pytest.raises(InvalidRequestError):
        read_filters(text, SCHEMA)


def test_filter_of_a_column_of_bytes_says_who_can_test_it() -> None:
    with pytest.raises(InvalidRequestError, match="leaves this term to the query column=b type=binary"):
        read_filters('[["b", "=", "text"]]', pa.schema([pa.field("b", pa.binary())]))


def test_filter_of_a_column_that_is_not_there_is_refused_when_it_is_loaded(warehouse: Warehouse) -> None:
    with pytest.raises(SchemaMismatchError, match="no such column"):
        filtering(warehouse, [["nothing", "=", 1]])
