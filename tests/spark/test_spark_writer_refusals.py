"""What Spark's own Parquet writer does not write, what is refused of its files, and whose settings count."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark.test_spark_written_segments import FRAME, NUMBERS, ROWS, adds, write
from tests.spark.test_write_shapes import VARIED, frame_of, varied_row
from txntable.errors import MissingKeyError, SchemaMismatchError
from txntable.format.layout import segments_root
from txntable.spark.writing import writer_choice
from txntable.warehouse.warehouse import Warehouse


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse.create(str(tmp_path / "wh"))


@pytest.mark.parametrize(
    ("columns", "column"),
    [
        ("nullif(number, 999) AS number, text", "number"),
        ("number, text, timestamp_millis(nullif(number, 5)) AS _timestamp", "_timestamp"),
    ],
)
def test_nulls_where_none_may_be_are_refused_before_anything_is_registered(
    columns: str, column: str, always: Any, warehouse: Warehouse
) -> None:
    warehouse.admin().create_topic("numbers", schema=NUMBERS)
    frame = always.sql(f"SELECT {columns} FROM ({FRAME})")

    with pytest.raises(SchemaMismatchError, match="must not be null") as refused:
        write(warehouse, "numbers", frame)

    assert (refused.value.facts["column"], refused.value.facts["topic"]) == (column, "numbers")
    assert adds(warehouse, "numbers") == []


def test_a_compacted_topic_takes_no_record_without_a_key(always: Any, warehouse: Warehouse) -> None:
    config = {"cleanup.policy": "compact"}
    warehouse.admin().create_topic("latest", partitions=2, schema=NUMBERS, key=["text"], config=config)

    with pytest.raises(MissingKeyError):
        write(warehouse, "latest", always.sql(FRAME).selectExpr("number", "nullif(text, 'text 7') AS text"), "hash")

    assert adds(warehouse, "latest") == []


def test_settings_of_the_user_change_no_file_and_are_left_alone(always: Any, warehouse: Warehouse) -> None:
    settings = {
        "parquet.enable.dictionary": "false",
        "parquet.block.size": "1024",
        "parquet.page.write-checksum.enabled": "false",
        "parquet.writer.version": "v2",
        "spark.sql.parquet.outputTimestampType": "INT96",
        "spark.sql.parquet.writeLegacyFormat": "true",
        "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
        "spark.sql.parquet.compression.codec": "gzip",
    }
    warehouse.admin().create_topic("varied", schema=VARIED)
    for name, value in settings.items():
        always.conf.set(name, value)
    try:
        frame = frame_of(always, pa.Table.from_pylist([varied_row(number) for number in range(45)], schema=VARIED))
        assert write(warehouse, "varied", frame.coalesce(1)) == "spark"
        assert {name: always.conf.get(name) for name in settings} == settings
    finally:
        for name in settings:
            always.conf.unset(name)

    (add,) = adds(warehouse, "varied")
    footer = pq.read_metadata(Path(warehouse.url) / segments_root("varied") / add.path)
    columns = [footer.row_group(0).column(index) for index in range(footer.num_columns)]
    assert footer.num_row_groups == 1
    assert {column.compression for column in columns} == {"ZSTD"}
    assert {"RLE_DICTIONARY", "PLAIN_DICTIONARY"} & {name for column in columns for name in column.encodings}


def test_files_are_left_to_python_where_parquet_is_encrypted(always: Any, warehouse: Warehouse) -> None:
    warehouse.admin().create_topic("numbers", schema=NUMBERS)
    always.conf.set("parquet.crypto.factory.class", "org.example.Factory")
    try:
        by = write(warehouse, "numbers", always.sql(FRAME))
    finally:
        always.conf.unset("parquet.crypto.factory.class")

    assert by == "python: parquet files are to be encrypted"
    assert warehouse.read_arrow("numbers").read_all().num_rows == ROWS


def test_a_file_that_is_no_segment_is_left_to_nobody_and_python_writes(
    always: Any, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("txntable.format.parquet_bounds.LARGEST_ROW_GROUP_BYTES", 5_000)
    warehouse.admin().create_topic("numbers", schema=NUMBERS)

    by = write(warehouse, "numbers", always.sql(FRAME))
    monkeypatch.undo()

    assert by is not None
    assert by.startswith("python: a file of spark's writer is no segment: it would decode to more than can be")
    assert warehouse.read_arrow("numbers").read_all().num_rows == ROWS
    assert not any(add.path.startswith("parts/") for add in adds(warehouse, "numbers"))


def test_small_dataframes_are_left_to_python_unless_the_user_says_otherwise(
    spark: Any, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse.admin().create_topic("numbers", schema=NUMBERS)

    assert write(warehouse, "numbers", spark.sql(FRAME)) == "python: a small dataframe"
    monkeypatch.setattr(writer_choice, "SMALLEST_BYTES", 1)
    assert write(warehouse, "numbers", spark.sql(FRAME)) == "spark"
