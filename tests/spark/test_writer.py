"""Distributed writes: what lands, what is refused, and that only collected segments count."""

from __future__ import annotations

import datetime as dt
import sys
import venv
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame

from txntable.errors import MissingDependencyError, SchemaMismatchError
from txntable.format.key import key_bytes, partition_of
from txntable.format.schema import KAFKA_SCHEMA
from txntable.format.topic import TopicSettings
from txntable.segments.segment import SegmentPlan, StagedSegment
from txntable.spark.writing.distribution import DistributionMode
from txntable.spark.writing.writer import FrameWrite, WriteTarget, write_together
from txntable.storage.object_store import StoreSpec

ROOT = "topics/flights/_segments"
SCHEMA = pa.schema(
    [
        pa.field("carrier", pa.string()),
        pa.field("number", pa.int64(), nullable=False),
        pa.field("fare", pa.decimal128(9, 2)),
        pa.field("at", pa.timestamp("us", tz="UTC")),
        pa.field("local", pa.timestamp("us")),
        pa.field("stops", pa.list_(pa.field("element", pa.struct([pa.field("name", pa.string())])))),
    ]
)
FRAME = """
    SELECT id AS number,
           element_at(array('UA', 'AA', 'DL', NULL), CAST(id % 4 + 1 AS INT)) AS carrier,
           CAST(id / 4 AS DECIMAL(9, 2)) AS fare,
           timestamp_micros(id) AS at,
           CAST(timestamp_micros(0) AS TIMESTAMP_NTZ) AS local,
           array(named_struct('name', CAST(id AS STRING))) AS stops
    FROM range(0, 1000, 1, 4)
"""


def target_of(folder: Path, key: tuple[str, ...] = ("carrier",), schema: pa.Schema = SCHEMA) -> WriteTarget:
    settings = TopicSettings("flights", "a" * 32, 3, schema, key)
    store = StoreSpec(str(folder), durability="page-cache")
    return WriteTarget(store, SegmentPlan(ROOT, settings, (7, 1), 1_357_000_000_000))


def write_segments(
    dataframe: DataFrame, target: WriteTarget, mode: DistributionMode = DistributionMode.NONE
) -> list[StagedSegment]:
    return write_together([FrameWrite(dataframe, target, mode)])[0]


def read(folder: Path, staged: StagedSegment) -> pa.Table:
    return pq.read_table(folder / ROOT / staged.path)


def segment_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.parquet"))


def test_each_record_lands_once_in_the_partition_of_its_key(spark: Any, tmp_path: Path) -> None:
    staged = write_segments(spark.sql(FRAME), target_of(tmp_path))

    rows = [(one, row) for one in staged for row in read(tmp_path, one).to_pylist()]
    assert sorted(row["number"] for _, row in rows) == list(range(1000))
    for one, row in rows:
        if row["carrier"] is None:
            assert one.partition_count is None
        else:
            assert (one.partition, one.partition_count) == (partition_of(row["carrier"].encode(), 3), 3)
    assert {one.path for one in staged} == {str(file.relative_to(tmp_path / ROOT)) for file in segment_files(tmp_path)}
    assert sum(one.size for one in staged) == sum(file.stat().st_size for file in segment_files(tmp_path))


def test_values_arrive_unchanged_whatever_the_sessions_time_zone(spark: Any, tmp_path: Path) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        frame = spark.sql(FRAME).where("number = 3")
        staged = write_segments(frame.union(frame), target_of(tmp_path))
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)

    row = read(tmp_path, staged[0]).select(SCHEMA.names).to_pylist()[0]
    assert row["at"] == dt.datetime(1970, 1, 1, 0, 0, 0, 3, tzinfo=dt.UTC)
    assert (str(row["fare"]), row["stops"], row["carrier"]) == ("0.75", [{"name": "3"}], None)
    assert row["local"].isoformat() == "1969-12-31T19:00:00"


def test_spark_reads_a_segment_as_it_was_written(spark: Any, tmp_path: Path) -> None:
    frame = spark.sql(FRAME)

    staged = write_segments(frame, target_of(tmp_path))

    paths = [f"file://{tmp_path / ROOT / one.path}" for one in staged]
    found = spark.read.parquet(*paths).select(frame.columns)
    assert found.count() == 1000
    assert found.exceptAll(frame).count() == 0


def test_records_without_a_key_begin_in_another_partition_in_each_task(spark: Any, tmp_path: Path) -> None:
    staged = write_segments(spark.sql(FRAME), target_of(tmp_path, key=()))

    assert [one.partition for one in staged] == [0, 1, 2, 0]
    assert {one.records for one in staged} == {250}
    assert {one.partition_count for one in staged} == {None}


def test_nothing_is_uploaded_for_an_empty_dataframe(spark: Any, tmp_path: Path) -> None:
    assert write_segments(spark.sql(FRAME).where("number < 0"), target_of(tmp_path)) == []
    assert segment_files(tmp_path) == []


def test_kafkas_schema_and_timestamps_are_written_from_a_dataframe(spark: Any, tmp_path: Path) -> None:
    frame = spark.sql(
        """SELECT CAST('v' AS BINARY) AS value, CAST('k' AS BINARY) AS key, timestamp_millis(id) AS _timestamp,
                  array(named_struct('key', 'h', 'value', CAST(NULL AS BINARY))) AS headers FROM range(5)"""
    )

    staged = write_segments(frame.coalesce(1), target_of(tmp_path, ("key",), KAFKA_SCHEMA))

    assert [(one.records, one.first_timestamp_ms, one.max_timestamp_ms) for one in staged] == [(5, 0, 4)]
    assert read(tmp_path, staged[0]).column("headers").to_pylist()[0] == [{"key": "h", "value": None}]


def test_a_column_of_nulls_is_taken_for_any_type(spark: Any, tmp_path: Path) -> None:
    frame = spark.sql(FRAME).selectExpr("* EXCEPT (fare)", "NULL AS fare")

    staged = write_segments(frame, target_of(tmp_path))

    assert read(tmp_path, staged[0]).column("fare").null_count == staged[0].records


@pytest.mark.parametrize(
    ("change", "facts"),
    [
        ("* EXCEPT (number)", {"missing": "number"}),
        ("*, 1 AS speed", {"unknown": "speed"}),
        (
            "* EXCEPT (number), CAST(number AS DOUBLE) AS number",
            {"column": "number", "expected": "int64", "found": "double"},
        ),
        ("* EXCEPT (fare), number AS fare", {"column": "fare", "expected": "decimal128(9, 2)", "found": "int64"}),
        ("* EXCEPT (at), current_date() AS at", {"column": "at", "found": "date32[day]"}),
        (
            "* EXCEPT (stops), array(named_struct('title', 'x')) AS stops",
            {"unknown": "stops.element.title"},
        ),
        ("* EXCEPT (at), local AS at", {"column": "at", "found": "timestamp[us]"}),
        ("* EXCEPT (number), INTERVAL 1 DAY AS number", {"column": "number", "found": "interval day"}),
        ("*, 'now' AS _timestamp", {"column": "_timestamp", "found": "string"}),
    ],
)
def test_a_dataframe_is_refused_before_the_job_runs_when_its_columns_differ(
    change: str, facts: dict[str, str], spark: Any, tmp_path: Path
) -> None:
    frame = spark.sql(FRAME).where("raise_error('the job ran') IS NULL").selectExpr(*split_columns(change))

    with pytest.raises(SchemaMismatchError) as refused:
        write_segments(frame, target_of(tmp_path))

    assert {name: refused.value.facts.get(name) for name in facts} == facts


def split_columns(change: str) -> list[str]:
    """Split at the commas between columns, not at those inside of parentheses."""
    parts: list[str] = [""]
    for character in change:
        if character == "," and parts[-1].count("(") == parts[-1].count(")"):
            parts.append("")
        else:
            parts[-1] += character
    return parts


@pytest.mark.parametrize("mode", DistributionMode)
def test_columns_left_out_are_null_and_narrower_ones_are_widened(
    mode: DistributionMode, spark: Any, tmp_path: Path
) -> None:
    frame = spark.sql("SELECT CAST(id AS TINYINT) AS number, CAST(id AS DECIMAL(3, 1)) AS fare FROM range(0, 9, 1, 3)")

    staged = write_segments(frame, target_of(tmp_path, key=("number", "carrier")), mode)

    rows = [(one.partition, row) for one in staged for row in read(tmp_path, one).select(SCHEMA.names).to_pylist()]
    types = [SCHEMA.field("number").type, SCHEMA.field("carrier").type]
    assert sorted((row["number"], str(row["fare"])) for _, row in rows) == [(n, f"{n}.00") for n in range(9)]
    assert {row[name] for _, row in rows for name in ("carrier", "at", "local", "stops")} == {None}
    for partition, row in rows:
        key = key_bytes([row["number"], None], types)
        assert key is not None
        assert partition == partition_of(key, 3)


def test_records_have_no_key_when_their_only_key_column_is_left_out(spark: Any, tmp_path: Path) -> None:
    frame = spark.sql("SELECT id AS number FROM range(0, 9, 1, 3)")

    for mode in DistributionMode:
        staged = write_segments(frame, target_of(tmp_path), mode)
        assert {one.partition_count for one in staged} == {None}
        assert sum(one.records for one in staged) == 9


def test_nested_columns_are_taken_by_name_as_well(spark: Any, tmp_path: Path) -> None:
    stop = pa.struct([("name", pa.string()), ("miles", pa.int64()), ("gates", pa.map_(pa.int64(), pa.float64()))])
    schema = pa.schema([pa.field("stops", pa.list_(pa.field("element", stop)))])
    frame = spark.sql("SELECT array(named_struct('gates', map(1, 2Y), 'name', 'x')) AS stops FROM range(1)")

    staged = write_segments(frame, target_of(tmp_path, (), schema))

    (row,) = read(tmp_path, staged[0]).to_pylist()
    assert row["stops"] == [{"name": "x", "miles": None, "gates": [(1, 2.0)]}]


def test_a_null_is_refused_as_a_schema_mismatch_when_a_task_finds_it(spark: Any, tmp_path: Path) -> None:
    frame = spark.sql(FRAME).selectExpr("* EXCEPT (number)", "nullif(number, 999) AS number")

    with pytest.raises(SchemaMismatchError, match="must not be null") as refused:
        write_segments(frame, target_of(tmp_path))

    assert (refused.value.facts["column"], refused.value.facts["topic"]) == ("number", "flights")


def test_python_to_set_is_told_when_the_workers_run_one_without_our_code(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    venv.create(tmp_path / "bare", symlinks=True)
    bare = str(tmp_path / "bare" / "bin" / "python")
    monkeypatch.setattr(spark.sparkContext, "pythonExec", bare)

    with pytest.raises(MissingDependencyError, match="set PYSPARK_PYTHON") as refused:
        write_segments(spark.sql(FRAME), target_of(tmp_path))

    assert refused.value.facts == {"workers": bare, "program": sys.executable}


def test_orphans_of_a_failed_attempt_are_not_among_the_segments(spark: Any, tmp_path: Path) -> None:
    target = target_of(tmp_path)
    write_segments(spark.sql(FRAME), target)
    orphans = set(segment_files(tmp_path))

    staged = write_segments(spark.sql(FRAME), target)

    assert {tmp_path / ROOT / one.path for one in staged}.isdisjoint(orphans)
    assert sum(one.records for one in staged) == 1000
