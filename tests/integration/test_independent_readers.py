"""Readers that know nothing of us see exactly the committed records of a public table; what one of them cannot do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import daft
import duckdb
import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError

from tests.integration.varied_topic import COLUMNS, HISTORIES, TOPIC, VariedTopic, canonical, make

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module", params=HISTORIES)
def topic(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> VariedTopic:
    return make(tmp_path_factory.mktemp("independent"), request.param)


def with_offsets(rows: Rows) -> Rows:
    """Add what SQL computes: the offset of each record; it lies in its segment."""
    for row in rows:
        row["_offset"] = row["_base_offset"] + row["_offset_delta"]
        assert row["_base_offset"] <= row["_offset"] <= row["_last_offset"]
    return rows


def by_deltalake(topic: VariedTopic, condition: str) -> Rows:
    query = QueryBuilder().register("x", DeltaTable(topic.url)).execute(f"SELECT * FROM x WHERE {condition}")
    return with_offsets(pa.table(query).to_pylist())


def by_polars(topic: VariedTopic, condition: str) -> Rows:
    frame = pl.scan_delta(topic.url, use_pyarrow=True)
    return with_offsets(frame.filter(pl.sql_expr(condition)).collect().to_dicts())


def by_daft(topic: VariedTopic, condition: str) -> Rows:
    return with_offsets(daft.read_deltalake(topic.url).where(condition).to_pylist())


def by_duckdb(topic: VariedTopic, condition: str) -> Rows:
    records = duckdb.from_arrow(topic.warehouse.read_arrow(TOPIC))
    return records.filter(condition).to_arrow_table().to_pylist()


READERS: dict[str, Callable[[VariedTopic, str], Rows]] = {
    "deltalake": by_deltalake,
    "polars": by_polars,
    "daft": by_daft,
    "duckdb": by_duckdb,
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_reader_sees_the_committed_records_and_nothing_else(
    topic: VariedTopic, read: Callable[[VariedTopic, str], Rows]
) -> None:
    assert canonical(read(topic, "amount >= 0"), COLUMNS) == canonical(topic.expected)


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_reader_sees_the_snapshot_at_every_decision_with_a_filter(
    topic: VariedTopic, read: Callable[[VariedTopic, str], Rows]
) -> None:
    for position in sorted({row["_commit"] for row in topic.expected}):
        wanted = [row for row in topic.expected if row["_commit"] <= position]
        assert canonical(read(topic, f"_commit <= {position}"), COLUMNS) == canonical(wanted)


CONDITIONS = {
    "_partition = 1": lambda row: row["_partition"] == 1,
    "amount > 9 AND amount <= 101": lambda row: 9 < row["amount"] <= 101,
    "account = 'a2'": lambda row: row["account"] == "a2",
    "price < 0": lambda row: row["price"] is not None and row["price"] < 0,
    "paid IS NULL": lambda row: row["paid"] is None,
}


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_reader_finds_the_same_records_where_it_prunes_files(
    topic: VariedTopic, read: Callable[[VariedTopic, str], Rows], condition: str
) -> None:
    wanted = [row for row in topic.expected if CONDITIONS[condition](row)]

    assert wanted
    assert canonical(read(topic, condition), COLUMNS) == canonical(wanted)


def test_native_reader_of_polars_sees_the_records_without_their_place(topic: VariedTopic) -> None:
    """It takes partition columns from paths, and ours are in the log only: hence ``use_pyarrow=True``."""
    frame = pl.scan_delta(topic.url)

    found = frame.collect()

    assert sorted(found["amount"].to_list()) == sorted(row["amount"] for row in topic.expected)
    assert [found[name].null_count() for name in ("_partition", "_base_offset", "_commit")] == [found.height] * 3
    assert frame.filter(pl.col("_commit") >= 0).collect().height == 0, "and a snapshot's filter drops all"


def test_polars_counts_after_it_has_read_beside_another_aggregate_or_by_its_native_reader(topic: VariedTopic) -> None:
    """A bare count over Arrow's dataset reads no column, and is 0, also of a plain Delta table (docs/how-to/sql.md)."""
    frame, records = pl.scan_delta(topic.url, use_pyarrow=True), len(topic.expected)

    assert frame.collect().height == records
    assert frame.select(pl.len(), pl.col("amount").sum()).collect()["len"].item() == records
    assert pl.scan_delta(topic.url).select(pl.len()).collect().item() == records
    assert frame.select(pl.len()).collect().item() == 0, "it was mended: take the warning out of the page"


def test_relation_of_duckdb_is_read_once_unless_the_records_are_taken_first(topic: VariedTopic) -> None:
    once = duckdb.from_arrow(topic.warehouse.read_arrow(TOPIC))
    often = duckdb.from_arrow(topic.warehouse.read_arrow(TOPIC).read_all())

    count = [(len(topic.expected),)]
    assert [often.aggregate("count(*)").fetchall() for _ in range(2)] == [count, count]
    assert once.aggregate("count(*)").fetchall() == count
    with pytest.raises(duckdb.InvalidInputException, match="already been consumed"):
        once.aggregate("count(*)").fetchall()


def test_polars_is_refused_to_write(topic: VariedTopic) -> None:
    records = pa.table(QueryBuilder().register("x", DeltaTable(topic.url)).execute("SELECT * FROM x LIMIT 1"))
    version = DeltaTable(topic.url).version()

    with pytest.raises(DeltaError, match=r"txntable\.exclusiveWriter"):
        pl.DataFrame(records).write_delta(topic.url, mode="append")

    assert DeltaTable(topic.url).version() == version
