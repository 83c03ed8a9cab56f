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
    "ratio": [None, math.nan, -0.0, 0.0, 0.1, math.inf],
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
COMPARED = {
    "Small": ["0", "127", "128", "300"],
    "SMALL": ["0"],
    "long": ["0", "5", "9223372036854775807", "5.0", "5.5"],
    "ratio": ["0", "CAST(0.1 AS FLOAT)", "0.1D", "CAST('NaN' AS FLOAT)", "CAST('Infinity' AS FLOAT)"],
    "measure": ["0.0D", "-0.0D", "0.1D", "1.5D", "CAST('NaN' AS DOUBLE)", "CAST('-Infinity' AS DOUBLE)"],
    "name": ["''", "'a'", "'A'", "'é'", "'\U0001f600'"],
    "flag": ["true", "false"],
    "day": ["DATE '1582-10-04'", "DATE '2020-01-01'", "TIMESTAMP '2020-01-01 00:00:00'"],
    "at": ["TIMESTAMP '2020-01-01 12:00:00.123456'", "DATE '2020-01-01'", "TIMESTAMP '0001-01-02 00:00:00'"],
    "local": ["TIMESTAMP_NTZ '2020-01-01 12:00:00.123456'", "TIMESTAMP_NTZ '2020-01-01 12:00:00'"],
    "price": ["1.50", "1.505", "-1.5", "1"],
    "wide": ["0.0001", "99999999999999999999999999.9999"],
    "raw": ["X'FF'", "X''"],
    "inner.v": ["5"],
}
PREDICATES = [
    *(f"{column} {operator} {values[0]}" for column, values in COMPARED.items() for operator in ("<", ">=", "<>")),
    *(
        f"{column} {operator} {value}"
        for column, values in COMPARED.items()
        for value in values[1:]
        for operator in ("=" if column in ("name", "raw") else "<=", ">")
    ),
    *(f"{column} <=> {COMPARED[column][0]}" for column in ("long", "measure", "name")),
    *(f"NOT ({column} <=> {COMPARED[column][0]})" for column in ("long", "measure", "name")),
    *(f"{column} IN ({', '.join(values)})" for column, values in COMPARED.items() if column not in ("SMALL", "day")),
    *(f"{column} NOT IN ({', '.join(COMPARED[column][:2])})" for column in ("long", "measure", "name", "price")),
    *(f"{column} IS {word}" for column in ("long", "measure", "raw") for word in ("NULL", "NOT NULL")),
    "long IN (0, NULL)",
    "long NOT IN (0, NULL)",
    "name LIKE 'a%'",
    "name LIKE '%b'",
    "name LIKE '%a%'",
    "name NOT LIKE 'a%'",
    "name LIKE 'a\\\\%%'",
    "startswith(name, '')",
    "name = 'A' COLLATE UTF8_LCASE",
    "flag",
    "NOT flag",
    "long = 0 AND name = 'a'",
    "long = 0 OR name = 'a'",
    "_offset = 3",
    "_offset > 2 AND _partition = 0",
    "_partition = 1 AND long > 0",
    "_commit > 0 AND measure > 1D",
    "_timestamp > TIMESTAMP '2000-01-01 00:00:00'",
    "_timestamp < TIMESTAMP '2000-01-01 00:00:00'",
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


def test_rows_are_those_of_plain_spark_for_every_predicate(spark: Any, warehouse: Warehouse, tmp_path: Path) -> None:
    # As a file, whose own pushing is off: nothing else is asked than Spark's row by row.
    read(spark, warehouse).write.parquet(str(tmp_path / "plain"))
    spark.conf.set("spark.sql.parquet.filterPushdown", "false")
    try:
        plain = spark.read.parquet(str(tmp_path / "plain")).cache()
        both = {}
        for name, rows in (("plain", plain), ("pushed", read(spark, warehouse))):
            each = [rows.where(text).selectExpr(f"{n} AS n", "id") for n, text in enumerate(PREDICATES)]
            chunks = [each[first : first + 40] for first in range(0, len(each), 40)]
            found = [row for chunk in chunks for row in reduce(lambda a, b: a.union(b), chunk).coalesce(2).collect()]
            both[name] = {(PREDICATES[n], id_) for n, id_ in found}
    finally:
        spark.conf.unset("spark.sql.parquet.filterPushdown")

    assert both["pushed"] == both["plain"]
    assert {id_ for _, id_ in both["plain"]} == {row["id"] for row in ROWS}


@pytest.mark.parametrize(
    ("text", "is_ours"),
    [
        ("long = 5", True),
        ("measure > 1.0D", True),
        ("name LIKE 'a%'", True),
        ("at >= TIMESTAMP '2020-01-01 00:00:00'", True),
        ("local >= TIMESTAMP_NTZ '2020-01-01 00:00:00'", True),
        ("price < 1.50", True),
        ("day = DATE '2020-01-01'", True),
        ("_offset < 3", True),
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
