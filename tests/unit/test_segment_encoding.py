"""Encodings chosen by a segment's first rows: what repeats keeps its dictionary, every value survives."""

from __future__ import annotations

import datetime as dt
import decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from txntable.format.conform import conform
from txntable.format.topic import TopicSettings
from txntable.segments.segment import SegmentPlan
from txntable.segments.segment_encoding import choose_encodings, dictionary_encodings
from txntable.segments.segment_writer import SegmentWriter
from txntable.segments.statistics import leaves
from txntable.storage.object_store import StoreSpec
from txntable.storage.open import open_store

ROWS = 20_000
DAY = dt.date(2026, 1, 1)


def table_of(column: pa.Array) -> pa.Table:
    return pa.table({"it": column})


def chosen(table: pa.Table) -> tuple[bool, str | None]:
    encodings = choose_encodings(leaves(table.schema), table)
    return "it" in encodings.use_dictionary, encodings.column_encoding.get("it")


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array(range(ROWS)), (False, "DELTA_BINARY_PACKED")),
        (pa.array(range(ROWS), pa.int32()), (False, "DELTA_BINARY_PACKED")),
        (pa.array(range(ROWS), pa.timestamp("us", tz="UTC")), (False, "DELTA_BINARY_PACKED")),
        (pa.array([number % 9_000 for number in range(ROWS)]), (True, None)),
        (pa.array([f"name {number}" for number in range(ROWS)]), (False, None)),
        (pa.array([f"name {number % 300}" for number in range(ROWS)]), (True, None)),
        (pa.array([number / 7 for number in range(ROWS)]), (False, None)),
        (pa.array([decimal.Decimal(number) / 100 for number in range(ROWS)], pa.decimal128(15, 2)), (False, None)),
        (pa.array([decimal.Decimal(number % 50) for number in range(ROWS)], pa.decimal128(15, 2)), (True, None)),
        (pa.array([DAY + dt.timedelta(number % 400) for number in range(ROWS)]), (True, None)),
        (pa.array([number % 2 == 0 for number in range(ROWS)]), (True, None)),
        (pa.array([str(number).encode() for number in range(ROWS)]), (False, None)),
        (pa.array([None] * ROWS, pa.int64()), (True, None)),
        (pa.array([number if number % 9 == 0 else None for number in range(ROWS)]), (True, None)),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else str(value),
)
def test_only_what_repeats_begins_with_a_dictionary(column: pa.Array, expected: tuple[bool, str | None]) -> None:
    assert chosen(table_of(column)) == expected


def test_few_rows_do_not_show_whether_values_repeat() -> None:
    assert chosen(table_of(pa.array(range(1_000)))) == (True, None)


def test_columns_inside_of_others_keep_their_dictionaries() -> None:
    table = table_of(pa.array([{"a": number} for number in range(ROWS)]))

    assert choose_encodings(leaves(table.schema), table) == dictionary_encodings(leaves(table.schema))


def test_another_engine_reads_every_value_of_a_segment_so_encoded(tmp_path: Path) -> None:
    columns = {
        "unique": pa.array(range(-ROWS, 0)),
        "word": pa.array([f"word {number}" for number in range(ROWS)]),
        "price": pa.array([decimal.Decimal(number) / 100 for number in range(ROWS)], pa.decimal128(15, 2)),
        "day": pa.array([DAY + dt.timedelta(number) for number in range(ROWS)]),
        "kind": pa.array([f"kind {number % 5}" for number in range(ROWS)]),
    }
    table = pa.table(columns)
    settings = TopicSettings("t", "a" * 32, 1, table.schema, ())
    store = open_store(StoreSpec(str(tmp_path), durability="page-cache"))
    writer = SegmentWriter(store, SegmentPlan("r", settings, (1, 0), 1), 0, "0" * 32, keyed=False)

    writer.write(conform(table, settings))
    writer.flush()
    path = tmp_path / "r" / writer.close().path

    stored = pq.ParquetFile(path).metadata.row_group(0)
    encodings = {stored.column(each).path_in_schema: stored.column(each).encodings for each in range(5)}
    assert "DELTA_BINARY_PACKED" in encodings["unique"]
    assert "RLE_DICTIONARY" in encodings["kind"]
    assert "RLE_DICTIONARY" not in encodings["word"]
    found = duckdb.read_parquet(str(path)).project("* EXCLUDE (_offset_delta, _timestamp)").to_arrow_table()
    assert found.to_pylist() == table.to_pylist()
