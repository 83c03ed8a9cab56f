"""A filter of delta-spark finds what a full scan finds, whatever the values: bounds never hide a record."""

from __future__ import annotations

import datetime as dt
from functools import reduce
from typing import Any

import pytest
from pyspark.sql import functions as F  # noqa: N812  its usual name

from tests.integration.hostile_values import HOSTILE, check, is_nan, make_hostile, values_of
from txntable.warehouse.warehouse import Warehouse


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    return make_hostile(tmp_path_factory.mktemp("hostile"))


def literal(limit: Any) -> Any:
    # A time travels as text: Python cannot bring the first and the last year into a zone.
    if isinstance(limit, dt.datetime):
        kind = "timestamp_ntz" if limit.tzinfo is None else "timestamp"
        return F.lit(limit.isoformat()).cast(kind)
    if isinstance(limit, dt.date):
        return F.lit(limit.isoformat()).cast("date")
    return F.lit(limit)


# Planning is slow: of the types that have bounds of the same kind one.
TOPICS = [
    "decimal-16-0",
    "decimal-38-6",
    "decimal-38-38",
    "last-character",
    "far-planes",
    "timestamp",
    "timestamp-ntz",
    "not-finite",
    "boolean",
]


@pytest.mark.parametrize("name", TOPICS)
def test_filter_of_delta_spark_finds_what_a_full_scan_finds(spark: Any, warehouse: Warehouse, name: str) -> None:
    values = values_of(name)
    table = spark.read.format("delta").load(f"{warehouse.url}/topics/{name}")
    column = F.col("v")
    limits = [limit for limit in HOSTILE[name][1] if not is_nan(limit)]
    conditions = [column.isNull(), *(column == literal(limit) for limit in limits)]
    parts = [table.where(condition).select(F.lit(i).alias("i"), "n") for i, condition in enumerate(conditions)]

    rows = reduce(lambda one, other: one.union(other), parts).collect()

    found = [[row["n"] for row in rows if row["i"] == i] for i in range(len(conditions))]
    assert sorted(found[0]) == [n for n, value in enumerate(values) if value is None]
    for limit, numbers in zip(limits, found[1:], strict=True):
        check(name, "=", limit, numbers)


def test_isnan_finds_every_nan_in_delta_spark(spark: Any, warehouse: Warehouse) -> None:
    """``v = NaN`` does not: Parquet's footers leave NaN out, and Spark passes over row groups by them."""
    table = spark.read.format("delta").load(f"{warehouse.url}/topics/not-finite")

    found = [row["n"] for row in table.where(F.isnan("v")).collect()]

    assert sorted(found) == [n for n, value in enumerate(values_of("not-finite")) if is_nan(value)]
