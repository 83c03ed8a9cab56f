"""Scans of a topic's two tables: which records, which columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from txntable.spark.reader import scan_public, scan_segments, spark_url

COLUMNS = ["carrier", "_partition", "_offset", "_timestamp", "_commit"]


def append(folder: Path, carriers: list[str], base_offset: int, **extra: pa.Array) -> str:
    """Append a stand-in for a segment to a stand-in for a topic's table."""
    count = len(carriers)
    rows = pa.table(
        {
            "carrier": carriers,
            "_offset_delta": pa.array(range(count), pa.int64()),
            "_timestamp": pa.array([0] * count, pa.timestamp("us", tz="UTC")),
            "_partition": pa.array([1] * count, pa.int32()),
            "_base_offset": pa.array([base_offset] * count, pa.int64()),
            "_last_offset": pa.array([base_offset + count - 1] * count, pa.int64()),
            **extra,
        }
    )
    partition_by = ["_partition", "_base_offset", "_last_offset", *extra]
    write_deltalake(folder, rows, partition_by=partition_by, mode="append")
    return str(folder)


def public_table(folder: Path) -> str:
    append(folder, ["UA", "AA"], 10, _commit=pa.array([0, 0], pa.int64()))
    return append(folder, ["DL"], 50, _commit=pa.array([7], pa.int64()))


def test_public_records_have_their_offsets_and_the_decision_that_made_them_visible(spark: Any, tmp_path: Path) -> None:
    url = public_table(tmp_path)

    found = scan_public(spark, url, version=1, position=7)

    assert found.columns == COLUMNS
    assert sorted(
        tuple(row[name] for name in ("carrier", "_partition", "_offset", "_commit")) for row in found.collect()
    ) == [
        ("AA", 1, 11, 0),
        ("DL", 1, 50, 7),
        ("UA", 1, 10, 0),
    ]


def test_records_of_later_decisions_are_left_out(spark: Any, tmp_path: Path) -> None:
    url = public_table(tmp_path)

    assert sorted(row.carrier for row in scan_public(spark, url, version=1, position=6).collect()) == ["AA", "UA"]


def test_a_scan_reads_the_version_that_it_was_given(spark: Any, tmp_path: Path) -> None:
    url = public_table(tmp_path)

    assert scan_public(spark, url, version=0, position=100).count() == 2
    assert scan_public(spark, url, version=1, position=100).count() == 3


def test_appended_records_are_scanned_without_markers(spark: Any, tmp_path: Path) -> None:
    append(tmp_path, ["UA", "AA"], 10, _control=pa.array([None, None], pa.string()))
    url = append(tmp_path, ["a marker"], 12, _control=pa.array(["ABORT"]))

    found = scan_segments(spark, url, version=1)

    assert found.columns == COLUMNS
    assert sorted((row.carrier, row._offset, row._commit) for row in found.collect()) == [
        ("AA", 11, None),
        ("UA", 10, None),
    ]


@pytest.mark.parametrize(
    ("url", "expected"),
    [("s3://bucket/wh", "s3a://bucket/wh"), ("s3a://bucket/wh", "s3a://bucket/wh"), ("/data/wh", "/data/wh")],
)
def test_a_stores_url_is_told_to_spark_in_its_own_words(url: str, expected: str) -> None:
    assert spark_url(url) == expected
