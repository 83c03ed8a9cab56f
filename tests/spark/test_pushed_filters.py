"""Predicates that ``format("txntable")`` answers itself, beside Spark's own answers over the same rows."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import datasource as predicates

from txntable.segments.record_filter import RecordFilter
from txntable.spark.datasource.pushed_filters import column_test
from txntable.warehouse.warehouse import Warehouse

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("Small", pa.int8()),
        pa.field("long", pa.int64()),
        pa.field("ratio", pa.float32()),
        pa.field("measure", pa.float64()),
        pa.field("name", pa.string()),
        pa.field("flag", pa.bool_()),
        pa.field("day", pa.date32()),
        pa.field("at", pa.timestamp("us", tz="UTC")),
        pa.field("local", pa.timestamp("us")),
        pa.field("price", pa.decimal128(9, 2)),
        pa.field("wide", pa.decimal128(30, 4)),
        pa.field("raw", pa.binary()),
        pa.field("inner", pa.struct([pa.field("v", pa.int64())])),
    ]
)
NOON = dt.datetime(2020, 1, 1, 12, 0, 0, 123456)  # noqa: DTZ001  its zone is added where there is one
COLUMNS: dict[str, list[Any]] = {
    "Small": [None, -128, 0, 127],
    "long": [None, -(2**63), 0, 5, 2**63 - 1],
    "ratio": [None, math.nan, -0.0, 0.0, 0.10000000149011612, math.inf],
    "measure": [None, math.nan, -0.0, 0.0, 0.1, 1.5, -math.inf],
    "name": [None, "", "a", "A", "ab", "a%b", "é", "\U0001f600"],
    "flag": [None, True, False],
    "day": [None, dt.date(1582, 10, 4), dt.date(2020, 1, 1)],
    "at": [None, NOON.replace(tzinfo=dt.UTC), dt.datetime(1, 1, 2, tzinfo=dt.UTC)],
    "local": [None, NOON, dt.datetime(1, 1, 2)],  # noqa: DTZ001
    "price": [None, Decimal("-1.50"), Decimal("1.50"), Decimal("1.51")],
    "wide": [None, Decimal("99999999999999999999999999.9999"), Decimal("0.0001")],
    "raw": [None, b"", b"\xff"],
    "inner": [None, {"v": None}, {"v": 5}],
}
ROWS = [
    {"id": row, **{name: values[row % len(values)] for name, values in COLUMNS.items()}}
    for row in range(2 * max(map(len, COLUMNS.values())))
]
# What a column is compared with: as SQL, and as Spark hands it over.
COMPARED: dict[str, list[tuple[str, Any]]] = {
    "Small": [("CAST(0 AS TINYINT)", 0), ("CAST(127 AS TINYINT)", 127)],
    "long": [("0L", 0), ("5L", 5), ("9223372036854775807L", 2**63 - 1)],
    "ratio": [
        ("CAST(0 AS FLOAT)", 0.0),
        ("CAST(0.1 AS FLOAT)", COLUMNS["ratio"][4]),
        ("CAST('NaN' AS FLOAT)", math.nan),
    ],
    "measure": [
        ("0.0D", 0.0),
        ("-0.0D", -0.0),
        ("0.1D", 0.1),
        ("CAST('NaN' AS DOUBLE)", math.nan),
        ("CAST('-Infinity' AS DOUBLE)", -math.inf),
    ],
    "name": [("''", ""), ("'a'", "a"), ("'A'", "A"), ("'é'", "é"), ("'😀'", "😀")],
    "flag": [("true", True), ("false", False)],
    "day": [("DATE '1582-10-04'", dt.date(1582, 10, 4)), ("DATE '2020-01-01'", dt.date(2020, 1, 1))],
    "at": [("TIMESTAMP '2020-01-01 12:00:00.123456 UTC'", NOON.replace(tzinfo=dt.UTC))],
    "local": [("TIMESTAMP_NTZ '2020-01-01 12:00:00.123456'", NOON)],
    "price": [("1.50BD", Decimal("1.50")), ("-1.5BD", Decimal("-1.5"))],
    "wide": [("0.0001BD", Decimal("0.0001"))],
}
OPERATORS: dict[str, Any] = {
    "=": predicates.EqualTo,
    "<": predicates.LessThan,
    "<=": predicates.LessThanOrEqual,
    ">": predicates.GreaterThan,
    ">=": predicates.GreaterThanOrEqual,
    "<=>": predicates.EqualNullSafe,
}
PARTS: dict[str, Any] = {
    "startswith": predicates.StringStartsWith,
    "endswith": predicates.StringEndsWith,
    "contains": predicates.StringContains,
}
PAIRS: list[tuple[str, predicates.Filter]] = [
    *(
        (f"{column} {sign} {text}", kind((column,), value))
        for column, values in COMPARED.items()
        for text, value in values
        for sign, kind in OPERATORS.items()
    ),
    *(
        (
            f"{column} IN ({', '.join(text for text, _ in values)})",
            predicates.In((column,), tuple(v for _, v in values)),
        )
        for column, values in COMPARED.items()
    ),
    *((f"{column} IS NULL", predicates.IsNull((column,))) for column in COLUMNS),
    *((f"{column} IS NOT NULL", predicates.IsNotNull((column,))) for column in COLUMNS),
    *(
        (f"{name}(name, {text})", kind(("name",), value))
        for name, kind in PARTS.items()
        for text, value in COMPARED["name"]
    ),
]
# What Spark does before it pushes: names, casts, escapes, and what it pushes in part or not at all.
PUSHED = [
    "SMALL = 127",
    "Small > 300",
    "long = 5.5",
    "ratio > 0.1D",
    "measure > CAST('NaN' AS FLOAT) OR measure > 1D",
    "price = 1.505",
    "day < TIMESTAMP '2020-01-01 00:00:01'",
    "at >= DATE '2020-01-01' AND local IS NOT NULL",
    "name LIKE 'a\\\\%%'",
    "name = 'A' COLLATE UTF8_LCASE",
    "long NOT IN (0, 5) AND NOT flag",
    "raw = X'FF' AND inner.v = 5",
    "_offset > 2 AND _partition = 0 AND measure > 0D",
]


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """A topic with every kind of value in some segments."""
    folder: Path = tmp_path_factory.mktemp("pushed")
    made = Warehouse.create(str(folder / "wh"), durability="page-cache")
    made.admin().create_topic("t", partitions=2, schema=SCHEMA)
    producer = made.producer("etl")
    producer.init_transactions()
    for first in range(0, len(ROWS), 5):
        with producer.transaction() as transaction:
            for row in ROWS[first : first + 5]:
                transaction.send("t", row=row, partition=row["id"] % 2)
    return made


def read(spark: Any, warehouse: Warehouse) -> Any:
    return spark.read.format("txntable").options(warehouse=warehouse.url, topic="t").load()


def answered(frame: Any, texts: list[str]) -> dict[str, set[int]]:
    """Return the ids that pass, as Spark says row by row."""
    flags = [f"coalesce({text}, false) AS p{number}" for number, text in enumerate(texts)]
    rows = frame.selectExpr("id", *flags).collect()
    return {text: {row["id"] for row in rows if row[f"p{number}"]} for number, text in enumerate(texts)}


def test_what_is_taken_is_answered_as_spark_does(spark: Any, warehouse: Warehouse) -> None:
    plain = read(spark, warehouse)
    schema = warehouse.read_arrow("t").schema
    rows = warehouse.read_arrow("t").read_all()
    signs = [("", lambda one: one), ("NOT ", predicates.Not)]
    pairs = [(f"{word}({text})", wrap(one)) for text, one in PAIRS for word, wrap in signs]
    expected = answered(plain, [text for text, _ in pairs])

    tests = [(text, column_test(one, schema)) for text, one in pairs]
    taken = [(text, test) for text, test in tests if test is not None]
    found = {text: set(rows.filter(RecordFilter(((test,),)).of_record())["id"].to_pylist()) for text, test in taken}

    assert found == {text: expected[text] for text, _ in taken}
    assert len(taken) > 0.8 * len(pairs)


def test_rows_are_those_of_plain_spark_whatever_it_pushes(spark: Any, warehouse: Warehouse) -> None:
    expected = answered(read(spark, warehouse), PUSHED)
    each = [read(spark, warehouse).where(text).selectExpr(f"{n} AS n", "id") for n, text in enumerate(PUSHED)]

    rows = reduce(lambda one, other: one.union(other), each).collect()

    assert {text: {row["id"] for row in rows if row["n"] == n} for n, text in enumerate(PUSHED)} == expected
    assert any(expected.values())


@pytest.mark.parametrize(
    ("text", "is_ours"),
    [
        ("long = 5", True),
        ("name LIKE 'a%'", True),
        ("at >= TIMESTAMP '2020-01-01 00:00:00'", True),
        ("local >= TIMESTAMP_NTZ '2020-01-01 00:00:00'", True),
        ("price < 1.50", True),
        ("raw = X'FF'", False),
        ("long % 2 = 1", False),
    ],
)
def test_spark_filters_only_what_was_not_taken(spark: Any, warehouse: Warehouse, text: str, is_ours: bool) -> None:
    plan = read(spark, warehouse).where(text)._jdf.queryExecution().optimizedPlan().toString()

    assert ("Filter (" in plan.replace("isnotnull", "(")) is not is_ours, plan


def test_session_that_pushes_nothing_reads_the_same(spark: Any, warehouse: Warehouse) -> None:
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")
    try:
        found = read(spark, warehouse).where("long = 5").count()
    finally:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")

    assert found == sum(row["long"] == 5 for row in ROWS)
