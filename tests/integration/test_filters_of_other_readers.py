"""A filter of another reader finds what a full scan finds, whatever the values: bounds never hide a record."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import daft
import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable, QueryBuilder

from tests.integration.hostile_values import COMPARISONS, HOSTILE, check, is_nan, make_hostile, values_of
from txntable.warehouse.warehouse import Warehouse

# A reader takes a topic's url, and answers the numbers of the records by comparison and limit, or by null or not.
Ask = Callable[[str, Any], list[int]]
NULL, NOT_NULL = "is null", "is not null"


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    return make_hostile(tmp_path_factory.mktemp("hostile"))


def _arrow_filter(comparison: str, limit: Any, kind: pa.DataType) -> ds.Expression:
    column = ds.field("v")
    if comparison in (NULL, NOT_NULL):
        return column.is_null() if comparison == NULL else column.is_valid()
    return COMPARISONS[comparison](column, pa.scalar(limit, kind))


def by_table(url: str, kind: pa.DataType) -> Ask:
    table = DeltaTable(url)
    return lambda comparison, limit: table.to_pyarrow_table(filters=_arrow_filter(comparison, limit, kind))[
        "n"
    ].to_pylist()


def by_dataset(url: str, kind: pa.DataType) -> Ask:
    dataset = DeltaTable(url).to_pyarrow_dataset()
    return lambda comparison, limit: dataset.to_table(filter=_arrow_filter(comparison, limit, kind))["n"].to_pylist()


def by_polars(url: str, kind: pa.DataType) -> Ask:
    frame = pl.scan_delta(url, use_pyarrow=True)
    dtype = pl.Series(pa.array([], kind)).dtype

    def ask(comparison: str, limit: Any) -> list[int]:
        column: Any = pl.col("v")
        if comparison in (NULL, NOT_NULL):
            condition = column.is_null() if comparison == NULL else column.is_not_null()
        else:
            condition = COMPARISONS[comparison](column, pl.lit(limit, dtype))
        return frame.filter(condition).select("n").collect()["n"].to_list()

    return ask


def by_daft(url: str, kind: pa.DataType) -> Ask:
    frame = daft.read_deltalake(url)
    dtype = daft.DataType.from_arrow_type(kind)

    def ask(comparison: str, limit: Any) -> list[int]:
        column: Any = daft.col("v")
        if comparison in (NULL, NOT_NULL):
            condition = column.is_null() if comparison == NULL else column.not_null()
        else:
            condition = COMPARISONS[comparison](column, daft.lit(limit).cast(dtype))
        return frame.where(condition).select("n").to_pydict()["n"]

    return ask


_LITERALS: tuple[tuple[type, Callable[[Any], str]], ...] = (
    (bool, lambda limit: str(limit).lower()),
    (bytes, lambda limit: f"X'{limit.hex()}'"),
    (float, lambda limit: f"CAST('{limit!r}' AS DOUBLE)"),
    (dt.datetime, lambda limit: f"CAST('{limit.isoformat()}' AS TIMESTAMP{'' if limit.tzinfo is None else 'TZ'})"),
    (dt.date, lambda limit: f"CAST('{limit.isoformat()}' AS DATE)"),
    (str, lambda limit: "'" + limit.replace("'", "''") + "'"),
    (Decimal, lambda limit: f"CAST('{limit:f}' AS DECIMAL(38,{-limit.as_tuple().exponent}))"),
    (int, str),
)


def _sql(limit: Any) -> str:
    return next(literal(limit) for kind, literal in _LITERALS if isinstance(limit, kind))


def by_query(url: str, kind: pa.DataType) -> Ask:
    query = QueryBuilder().register("t", DeltaTable(url))

    def ask(comparison: str, limit: Any) -> list[int]:
        condition = comparison if comparison in (NULL, NOT_NULL) else f"{comparison} {_sql(limit)}"
        if isinstance(limit, dt.datetime):
            arrow = "Timestamp(Microsecond, None)" if kind.tz is None else 'Timestamp(Microsecond, Some("UTC"))'
            condition = f"{comparison} arrow_cast('{limit.replace(tzinfo=None).isoformat()}', '{arrow}')"
        return pa.table(query.execute(f"SELECT n FROM t WHERE v {condition}"))["n"].to_pylist()

    return ask


def by_duckdb(url: str, kind: pa.DataType) -> Ask:
    dataset = DeltaTable(url).to_pyarrow_dataset()

    def ask(comparison: str, limit: Any) -> list[int]:
        if comparison in (NULL, NOT_NULL):
            found = duckdb.from_arrow(dataset).filter(f"v {comparison}")
        else:
            found = duckdb.from_arrow(dataset).filter(
                duckdb.SQLExpression(f"v {comparison} {_sql(limit) if not isinstance(limit, bytes) else _blob(limit)}")
            )
        return [n for (n,) in found.select("n").fetchall()]

    return ask


def _blob(limit: bytes) -> str:
    return f"from_hex('{limit.hex()}')"


READERS: dict[str, Callable[[str, pa.DataType], Ask]] = {
    "deltalake": by_table,
    "deltalake dataset": by_dataset,
    "deltalake query": by_query,
    "polars": by_polars,
    "daft": by_daft,
    "duckdb": by_duckdb,
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("reader", READERS)
def test_filter_finds_what_a_full_scan_finds(warehouse: Warehouse, reader: str, name: str) -> None:
    kind, limits = HOSTILE[name]
    values = values_of(name)

    ask = READERS[reader](f"{warehouse.url}/topics/{name}", kind)

    assert sorted(ask(NULL, None)) == [n for n, value in enumerate(values) if value is None]
    assert sorted(ask(NOT_NULL, None)) == [n for n, value in enumerate(values) if value is not None]
    for limit in limits:
        for comparison in COMPARISONS:
            if not is_nan(limit):
                check(name, comparison, limit, ask(comparison, limit))


def test_rows_from_before_a_column_was_added_are_missed_by_deltalakes_arrow_filters_only(tmp_path: Path) -> None:
    """Their statistics cannot have it: docs/how-to/sql.md says so, and what to do instead."""
    made = Warehouse.create(str(tmp_path / "wh"), durability="page-cache")
    made.admin().create_topic("t", partitions=1, schema=pa.schema([("n", pa.int64())]))
    with made.producer() as producer:
        producer.send("t", row={"n": 0})
        producer.flush()
        made.admin().add_columns("t", [pa.field("v", pa.int64())])
        producer.send("t", row={"n": 1, "v": None})
    url = f"{made.url}/topics/t"

    found = {reader: sorted(ask(url, pa.int64())(NULL, None)) for reader, ask in READERS.items()}

    assert {reader for reader, numbers in found.items() if numbers != [0, 1]} == {
        "deltalake",
        "deltalake dataset",
        "polars",
        "duckdb",
    }
    everything = DeltaTable(url).to_pyarrow_table()
    assert everything.filter(_arrow_filter(NULL, None, pa.int64()))["n"].to_pylist() == [1, 0]


def test_bounds_of_a_column_behind_lists_and_maps_hide_no_row(tmp_path: Path) -> None:
    nested = [pa.field(f"m{i}", pa.map_(pa.string(), pa.int64())) for i in range(10)]
    schema = pa.schema([*nested, *(pa.field(f"c{i}", pa.int64()) for i in range(30))])
    made = Warehouse.create(str(tmp_path / "wh"), durability="page-cache")
    made.admin().create_topic("t", partitions=1, schema=schema)
    with made.producer() as producer:
        producer.send("t", row={field.name: None for field in nested} | {f"c{i}": i for i in range(30)})

    dataset = DeltaTable(f"{made.url}/topics/t").to_pyarrow_dataset()

    assert [dataset.count_rows(filter=ds.field(f"c{i}") == i) for i in range(30)] == [1] * 30


def test_struct_of_nulls_is_found(tmp_path: Path) -> None:
    made = Warehouse.create(str(tmp_path / "wh"), durability="page-cache")
    made.admin().create_topic("t", partitions=1, schema=pa.schema([("s", pa.struct([("x", pa.float64())]))]))
    with made.producer() as producer:
        producer.send("t", row={"s": None})
        producer.send("t", row={"s": {"x": float("nan")}})

    dataset = DeltaTable(f"{made.url}/topics/t").to_pyarrow_dataset()

    assert dataset.count_rows(filter=ds.field("s").is_null()) == 1
    assert dataset.count_rows(filter=ds.field("s").is_valid()) == 1
