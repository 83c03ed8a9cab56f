"""Compaction on Spark: the same result as in one process, whatever happens to tasks; Delta's readers notice nothing."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.spark.compacting import CLEANED, MERGED, append_all, create, later_clock
from tests.spark.failing_cluster import PARTITIONS
from tests.spark.failing_compaction import FAULTS, SEGMENTS, label_of
from tests.spark.faulty_store import Fault
from tests.spark.stream_source import NUMBERS, drain
from tests.spark.test_failures import ROOT, public_records, run_program
from txntable.compaction import spark_rewriter as sharing
from txntable.compaction.compactor import compact
from txntable.compaction.spark_rewriter import spark_rewriter
from txntable.format.layout import public_root
from txntable.partition.batch import batch_of
from txntable.warehouse.warehouse import Warehouse


def opened(url: Path) -> Warehouse:
    return Warehouse.open(str(url), durability="page-cache")


# -- the same result ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A topic with committed, aborted and open transactions; and one that keeps the latest record of each key."""
    warehouse = create(tmp_path_factory.mktemp("history") / "wh")
    append_all(warehouse)
    return Path(warehouse.url)


@pytest.fixture
def copies(history: Path, tmp_path: Path) -> tuple[Path, Path]:
    """The same warehouse twice."""
    one, other = tmp_path / "one", tmp_path / "other"
    for copy in (one, other):
        shutil.copytree(history, copy)
    return one, other


def rows(warehouse: Warehouse, topic: str) -> list[Any]:
    """The data rows of the partition logs, but for their names."""
    live = [
        row for row in warehouse.topic_log(topic).segments.refresh().files if row.partition_values["_control"] is None
    ]
    found = [(replace(batch_of(row), path="", uploaded_at_ms=None), row.size, row.stats) for row in live]
    return sorted(found, key=lambda row: (row[0].partition, row[0].base_offset))


def records(warehouse: Warehouse, topic: str) -> list[Any]:
    """Every record with its offset and timestamp."""
    columns = ["_partition", "_offset", "_timestamp", "account", "amount"]
    found = warehouse.read_arrow(topic, columns=columns, isolation_level="read_committed").read_all()
    return sorted(tuple(record.values()) for record in found.to_pylist())


def test_executors_and_this_process_leave_the_same(
    spark: Any, copies: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each task is one of Spark's.
    monkeypatch.setattr(sharing, "_SHARE_BYTES", 1)
    there, here = map(opened, copies)
    # Before hours pass: who reads then ends the transaction that is open, in one of the two.
    before = {topic: records(there, topic) for topic in (MERGED, CLEANED)}
    later_clock(monkeypatch)

    reports = compact(there, rewriter=spark_rewriter(spark))

    assert reports == compact(here)
    assert [(report.merged_segments > 0, (report.dropped_records or 0) > 0) for report in reports] == [
        (True, True),
        (True, False),
    ]
    for topic in (MERGED, CLEANED):
        assert rows(there, topic) == rows(here, topic)
        assert records(there, topic) == records(here, topic)
    assert records(there, MERGED) == before[MERGED]
    assert len(records(there, CLEANED)) < len(before[CLEANED])


# -- tasks and executors that fail ----------------------------------------------------------


@pytest.fixture(scope="module")
def failures(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, dict[str, Any]]]:
    """The warehouse, and the report of each compaction on a cluster of processes."""
    url = str(tmp_path_factory.mktemp("failures") / "wh")
    program = run_program("failing_compaction", url)
    assert program.returncode == 0, program.stderr[-3000:]
    return url, {each["label"]: each for each in json.loads(program.stdout.splitlines()[-1])}


@pytest.mark.parametrize("fault", FAULTS, ids=label_of)
def test_each_record_is_there_once_when_a_task_of_a_compaction_meets_a_fault(
    fault: Fault | None, failures: Any
) -> None:
    url, reports = failures
    found = reports[label_of(fault)]

    expected = source(*FAULTS[: FAULTS.index(fault) + 1])

    assert public_records(url, found["version"]) == expected
    assert (found["missing"], found["failures"], found["lost"]) == ([], [], 0)
    assert found["merged_segments"] >= SEGMENTS * PARTITIONS
    assert found["written_segments"] == PARTITIONS


def source(*faults: Fault | None) -> Counter[str]:
    """The records that were written before compactions."""
    return Counter(f"{label_of(fault)}/{number}" for fault in faults for number in range(SEGMENTS * PARTITIONS))


@pytest.mark.parametrize(
    ("fault", "is_there"),
    [(Fault.FAILS_MIDWAY, False), (Fault.FAILS_AFTERWARDS, True), (Fault.KILLS_EXECUTOR, False)],
    ids=["FAILS_MIDWAY", "FAILS_AFTERWARDS", "KILLS_EXECUTOR"],
)
def test_what_a_lost_task_of_a_compaction_left_is_named_by_no_log(fault: Fault, is_there: bool, failures: Any) -> None:
    _, reports = failures

    left = reports[fault.name]

    assert left["met"]
    assert (left["victim_is_there"], left["victim_is_named"]) == (is_there, False)


# -- Delta's readers ------------------------------------------------------------------------


def delta(spark: Any, warehouse: Warehouse, topic: str, version: int | None = None) -> list[Any]:
    reader = spark.read.format("delta")
    if version is not None:
        reader = reader.option("versionAsOf", version)
    frame = reader.load(f"{warehouse.url}/{public_root(topic)}")
    found = frame.selectExpr("_partition", "_base_offset + _offset_delta AS _offset", "_timestamp", "account", "amount")
    return [tuple(row) for row in found.orderBy("_partition", "_offset").collect()]


def test_delta_spark_reads_the_same_before_and_after(
    spark: Any, copies: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    later_clock(monkeypatch)
    warehouse = opened(copies[0])
    version = warehouse.topic_log(MERGED).public.refresh().version
    before = delta(spark, warehouse, MERGED)

    compact(warehouse)

    assert warehouse.topic_log(MERGED).public.refresh().version != version
    assert delta(spark, warehouse, MERGED) == delta(spark, warehouse, MERGED, version) == before
    assert len(before) == len(records(warehouse, MERGED))


def test_stream_of_the_public_table_sees_each_record_once_across_compaction_and_retention(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse = Warehouse.create(str(tmp_path / "wh"), durability="page-cache")
    warehouse.admin().create_topic("numbers", partitions=2, schema=NUMBERS)

    def append(*numbers: int) -> None:
        for number in numbers:
            with warehouse.producer() as producer:
                producer.send("numbers", row={"number": number}, partition=number % 2)

    def seen_by(name: str) -> list[int]:
        """What a stream finds since it ended last."""
        found: list[int] = []
        writer = warehouse.read_stream(spark, "numbers").writeStream
        collecting = writer.foreachBatch(
            lambda frame, _: found.extend(row["number"] for row in frame.select("number").collect())
        )
        drain(collecting, tmp_path / name)
        return sorted(found)

    append(*range(6))
    assert seen_by("old") == list(range(6))
    append(*range(6, 12))
    later_clock(monkeypatch)

    (merged,) = compact(warehouse)
    after_compaction = seen_by("old"), seen_by("new")
    warehouse.admin().alter_configs("numbers", {"retention.ms": 3_600_000})
    (expired,) = compact(warehouse)
    append(12, 13)
    after_retention = seen_by("old"), seen_by("new"), seen_by("newest")

    assert (merged.merged_segments, expired.expired_segments) == (12, 2)
    assert after_compaction == (list(range(6, 12)), list(range(12)))
    assert after_retention == ([12, 13], [12, 13], [12, 13])


# -- the job --------------------------------------------------------------------------------

JOB = """
import os, signal, sys
from txntable.jobs import compact as job
from tests.spark.compacting import let_time_pass

compact = job.compact

def compact_and_interrupt(*arguments, **named):
    reports = compact(*arguments, **named)
    os.kill(os.getpid(), signal.SIGINT)
    return reports

job.compact = compact_and_interrupt
let_time_pass()
sys.argv[0] = "compact"
job.main()
"""


def test_job_starts_spark_and_still_ends_well_when_it_is_interrupted(copies: tuple[Path, Path]) -> None:
    arguments = ["--warehouse", str(copies[0]), "--engine", "spark", "--topic", MERGED, "--once", "--output", "json"]

    job = subprocess.run(
        [sys.executable, "-c", JOB, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )

    assert job.returncode == 128 + signal.SIGINT, job.stderr
    (row,) = json.loads(job.stdout)
    assert (row["merged_segments"] > 0, row["failures"]) == (True, 0)
