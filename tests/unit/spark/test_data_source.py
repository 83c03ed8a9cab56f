"""``format("txntable")`` without Spark's processes: options, pinning, tasks, pushed predicates."""

from __future__ import annotations

import datetime as dt
import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import datasource as predicates
from pyspark.sql.types import StructType

from tests.simulation.site import TWO_COLUMNS
from txntable.errors import InvalidRequestError, SchemaMismatchError, UnknownTopicOrPartitionError
from txntable.format.isolation import IsolationLevel
from txntable.segments.segment_columns import PlannedSegment
from txntable.segments.segment_reader import RECORD_COLUMNS
from txntable.spark.datasource.data_source import DataSourceTopicReader, TxnTableSource
from txntable.spark.datasource.pinned_read import balanced, pin
from txntable.spark.datasource.pushed_filters import column_test, narrowed
from txntable.spark.datasource.read_options import read_options
from txntable.spark.scan.offset_bounds import OffsetBounds
from txntable.warehouse.warehouse import Warehouse

WHERE = {"warehouse": "/wh", "topic": "t"}
SCHEMA = pa.schema(
    [
        *TWO_COLUMNS,
        pa.field("ratio", pa.float64()),
        pa.field("raw", pa.binary()),
        pa.field("s", pa.struct([pa.field("a", pa.int64())])),
        *RECORD_COLUMNS,
    ]
)
RANGES = {0: OffsetBounds(0, 10), 1: OffsetBounds(5, 20), 2: OffsetBounds(0, 0)}


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


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (predicates.EqualTo(("_partition",), 1), {1: (5, 20)}),
        (predicates.In(("_partition",), (0, 1)), {0: (0, 10), 1: (5, 20)}),
        (predicates.GreaterThan(("_partition",), 0), {1: (5, 20), 2: (0, 0)}),
        (predicates.EqualTo(("_offset",), 7), {0: (7, 8), 1: (7, 8), 2: (7, 0)}),
        (predicates.In(("_offset",), (3, 7)), {0: (3, 8), 1: (5, 8), 2: (3, 0)}),
        (predicates.GreaterThan(("_offset",), 6), {0: (7, 10), 1: (7, 20), 2: (7, 0)}),
        (predicates.GreaterThanOrEqual(("_offset",), 6), {0: (6, 10), 1: (6, 20), 2: (6, 0)}),
        (predicates.LessThan(("_offset",), 6), {0: (0, 6), 1: (5, 6), 2: (0, 0)}),
        (predicates.LessThanOrEqual(("_offset",), 6), {0: (0, 7), 1: (5, 7), 2: (0, 0)}),
        (predicates.EqualTo(("amount",), 7), {0: (0, 10), 1: (5, 20), 2: (0, 0)}),
        (predicates.EqualTo(("account",), "x"), {0: (0, 10), 1: (5, 20), 2: (0, 0)}),
        (predicates.IsNotNull(("_offset",)), {0: (0, 10), 1: (5, 20), 2: (0, 0)}),
        (predicates.In(("_offset",), ()), {0: (0, 10), 1: (5, 20), 2: (0, 0)}),
        (predicates.Not(predicates.EqualTo(("_offset",), 7)), {0: (0, 10), 1: (5, 20), 2: (0, 0)}),
    ],
)
def test_predicates_narrow_what_is_read(predicate: Any, expected: dict[int, tuple[int, int]]) -> None:
    test = column_test(predicate, SCHEMA)
    assert test is not None

    found = narrowed(RANGES, test)

    assert {partition: (wanted.start, wanted.end) for partition, wanted in found.items()} == expected


def rows(reader: Any) -> list[tuple[int, int, int]]:
    batches = (batch for task in reader.partitions() for batch in reader.read(task))
    found = (batch.select(["_partition", "_offset", "amount"]).to_pylist() for batch in batches)
    return [tuple(row.values()) for batch in found for row in batch]


def segments(reader: Any) -> list[tuple[int, int]]:
    return [(each.partition, each.base_offset) for task in reader.partitions() for each in task.segments]


def pushing(warehouse: Warehouse, *pushed: predicates.Filter, **options: str) -> tuple[Any, list[predicates.Filter]]:
    source = TxnTableSource(asked(warehouse, **options))
    reader = source.reader(source.schema())
    return reader, list(reader.pushFilters(list(pushed)))


def test_pushed_predicates_leave_out_segments_by_offsets_and_are_not_given_back(warehouse: Warehouse) -> None:
    reader, given_back = pushing(
        warehouse, predicates.EqualTo(("_partition",), 1), predicates.GreaterThan(("_offset",), 1)
    )

    assert given_back == []
    assert segments(reader) == [(1, 2), (1, 4)]
    assert rows(pickle.loads(pickle.dumps(reader))) == [(1, 2, 1), (1, 4, 2)]


@pytest.mark.parametrize(
    ("predicate", "left"),
    [
        (predicates.EqualTo(("amount",), 1), [(0, 2), (1, 2)]),
        (predicates.GreaterThan(("amount",), 1), [(0, 4), (1, 4)]),
        (predicates.In(("amount",), (0, 0)), [(0, 0), (1, 0)]),
        (predicates.EqualTo(("account",), "bob"), []),
        (predicates.StringStartsWith(("account",), "b"), []),
        (predicates.IsNull(("amount",)), []),
        (predicates.Not(predicates.IsNull(("amount",))), [(0, 0), (0, 2), (0, 4), (1, 0), (1, 2), (1, 4)]),
        (predicates.LessThan(("_timestamp",), dt.datetime(2000, 1, 1, tzinfo=dt.UTC)), []),
        (predicates.EqualTo(("_commit",), 0), []),
    ],
)
def test_segments_are_left_out_by_the_logs_statistics(
    warehouse: Warehouse, predicate: predicates.Filter, left: list[tuple[int, int]]
) -> None:
    reader, given_back = pushing(warehouse, predicate)

    assert (given_back, segments(reader)) == ([], left)
    assert [(partition, offset) for partition, offset, _ in rows(reader)] == left


def test_predicate_on_a_column_that_is_compared_and_read_alone_leaves_its_rows(warehouse: Warehouse) -> None:
    reader, _ = pushing(warehouse, predicates.EqualTo(("amount",), 1), columns="amount")

    assert [batch.to_pydict() for task in reader.partitions() for batch in reader.read(task)] == [
        {"amount": [1]},
        {"amount": [1]},
    ]


@pytest.mark.parametrize(
    "predicate",
    [
        predicates.EqualTo(("s", "a"), 7),
        predicates.EqualTo(("nothing",), 7),
        predicates.EqualTo(("amount",), None),
        predicates.EqualTo(("amount",), 2**80),
        predicates.EqualTo(("amount",), "7"),
        predicates.In(("amount",), (1, None)),
        predicates.Not(predicates.In(("amount",), (1, None))),
        predicates.Not(predicates.EqualNullSafe(("amount",), 7)),
        predicates.Not(predicates.Not(predicates.EqualTo(("amount",), 7))),
        predicates.EqualTo(("ratio",), math.nan),
        predicates.LessThan(("ratio",), math.nan),
        predicates.In(("ratio",), (0.0,)),
        predicates.EqualTo(("raw",), b"b"),
        predicates.StringContains(("amount",), "7"),
    ],
)
def test_predicate_is_given_back_when_our_answer_may_be_another(predicate: predicates.Filter) -> None:
    assert column_test(predicate, SCHEMA) is None


def test_pushing_looks_to_spark_as_if_it_were_its_own() -> None:
    # Spark refuses another one where its session pushes nothing.
    reader: Any = DataSourceTopicReader.__new__(DataSourceTopicReader)

    assert reader.pushFilters.__func__ is predicates.DataSourceReader.pushFilters
