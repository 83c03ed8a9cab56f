"""Queries of ``format("txntable")``: each is answered by itself, with filters or without, whatever was asked before."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from txntable.warehouse.warehouse import Warehouse

PUSHES = "spark.sql.python.filterPushdown.enabled"
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("name", pa.string()),
        pa.field("measure", pa.float64()),
        pa.field("flag", pa.bool_()),
        pa.field("day", pa.date32()),
        pa.field("price", pa.decimal128(9, 2)),
        pa.field(
            "place", pa.struct([("city", pa.string()), ("deep", pa.struct([("n", pa.int64()), ("day", pa.date32())]))])
        ),
    ]
)
ROWS: list[dict[str, Any]] = [
    {
        "id": number,
        "name": [None, "a", "b"][number % 3],
        "measure": [None, math.nan, 0.0, -0.0, 1.5][number % 5],
        "flag": [None, True, False][number % 3],
        "day": [None, dt.date(1582, 10, 4), dt.date(2020, 1, 1)][number % 3],
        "price": [None, Decimal("-1.50"), Decimal("1.50")][number % 3],
        "place": [None, {"city": "b"}, {"city": None, "deep": {"n": number}}, {"deep": {"day": dt.date(2020, 1, 1)}}][
            number % 4
        ],
    }
    for number in range(20)
]
# One after the other on one DataFrame: Spark pushes some of them, some in part, and some not at all.
QUERIES = [
    "id < 0",
    "true",
    "id >= 0 OR name IS NULL",
    "id < 10",
    "measure IS NULL OR name IS NULL",
    "id < 3 AND measure IS NULL",
    "name = 'a' AND _offset > 2",
    "id % 2 = 1",
    "_partition = 1",
    "true",
]
FILTERS: list[tuple[list[Any], str]] = [
    ([["id", "<", 10]], "id < 10"),
    ([["name", "in", ["a", "b"]], ["flag", "=", True]], "name IN ('a', 'b') AND flag"),
    ([[["id", "=", 1]], [["measure", "=", 0]]], "id = 1 OR measure = 0"),
    ([["day", ">=", "2020-01-01"]], "day >= DATE '2020-01-01'"),
    ([["price", "!=", "1.50"]], "price <> 1.50"),
    ([["_partition", "=", 1], ["_offset", ">", 2]], "_partition = 1 AND _offset > 2"),
    ([["name", "is", None], ["id", "<", 9]], "name IS NULL AND id < 9"),
    ([["day", "is not", None]], "day IS NOT NULL"),
    ([["place", "is", None]], "place IS NULL"),
    ([["place.city", "=", "b"]], "place.city = 'b'"),
    ([["place.city", "is", None]], "place.city IS NULL"),
    ([["place.deep", "is not", None]], "place.deep IS NOT NULL"),
    ([["place.deep.n", ">", 9]], "place.deep.n > 9"),
    ([["place.deep.day", "=", "2020-01-01"]], "place.deep.day = DATE '2020-01-01'"),
    ([["place.deep.n", "not in", [2, 6]]], "place.deep.n NOT IN (2, 6)"),
]


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """A topic with every kind of value in some segments."""
    made = Warehouse.create(str(tmp_path_factory.mktemp("filters") / "wh"), durability="page-cache")
    made.admin().create_topic("t", partitions=2, schema=SCHEMA)
    producer = made.producer("etl")
    producer.init_transactions()
    for first in range(0, len(ROWS), 5):
        with producer.transaction() as transaction:
            for row in ROWS[first : first + 5]:
                transaction.send("t", row=row, partition=row["id"] % 2)
    return made


@pytest.fixture(params=["false", "true"])
def pushes(request: Any, spark: Any) -> Iterator[None]:
    """A session that pushes predicates to sources in Python, and one that does not."""
    before = spark.conf.get(PUSHES)
    spark.conf.set(PUSHES, request.param)
    yield
    spark.conf.set(PUSHES, before)


def read(spark: Any, warehouse: Warehouse, **options: str) -> Any:
    return spark.read.format("txntable").options(warehouse=warehouse.url, topic="t", **options).load()


def ids(frame: Any) -> list[int]:
    return sorted(row["id"] for row in frame.select("id").collect())


@pytest.mark.usefixtures("pushes")
def test_frame_answers_each_query_whatever_it_was_asked_before(spark: Any, warehouse: Warehouse) -> None:
    frame, by_scan = read(spark, warehouse), warehouse.read(spark, "t")

    found = {number: ids(frame.where(query)) for number, query in enumerate(QUERIES)}

    assert found == {number: ids(by_scan.where(query)) for number, query in enumerate(QUERIES)}


@pytest.mark.parametrize(("filters", "query"), FILTERS, ids=[query for _, query in FILTERS])
def test_filters_leave_the_rows_that_spark_would(
    spark: Any, warehouse: Warehouse, filters: list[Any], query: str
) -> None:
    found = ids(read(spark, warehouse, filters=json.dumps(filters)))

    assert found == ids(warehouse.read(spark, "t").where(query))
    assert 0 < len(found) < len(ROWS)
