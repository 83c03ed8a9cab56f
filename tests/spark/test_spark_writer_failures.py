"""Spark's own Parquet writer under real failures: each record is committed once, and no log names what was left."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.spark.failing_spark_writer import ROWS, Fault
from tests.spark.test_failures import run_program
from txntable.format.layout import parse_file_name
from txntable.warehouse.warehouse import Warehouse


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, dict[str, Any]]]:
    """The warehouse, and the report of each write."""
    url = str(tmp_path_factory.mktemp("cluster") / "wh")
    program = run_program("failing_spark_writer", url)
    assert program.returncode == 0, program.stderr[-3000:]
    return url, {each["label"]: each for each in json.loads(program.stdout.splitlines()[-1])}


def test_each_record_is_committed_once_whatever_a_task_met(reports: Any) -> None:
    url, _ = reports

    flights = Warehouse.open(url).read_arrow("flights", columns=["flight"]).read_all()["flight"].to_pylist()

    assert sorted(flights) == sorted(f"{fault.name}/{number}" for fault in Fault for number in range(ROWS))


@pytest.mark.parametrize("fault", Fault)
def test_a_lost_attempt_of_sparks_writer_is_an_orphan_that_vacuum_knows(fault: Fault, reports: Any) -> None:
    _, told = reports
    labels = list(told)

    left = told[fault.name]

    before = labels.index(fault.name) - 1
    earlier = set(told[labels[before]]["orphans"]) if before >= 0 else set()
    new = set(left["orphans"]) - earlier
    assert (left["by"], left["missing"]) == ("spark", [])
    assert left["attempts"] >= (1 if fault is Fault.NONE else 2)
    # An executor that dies at once may not have made the file yet.
    assert fault in (Fault.NONE, Fault.KILLS_EXECUTOR) or new
    assert all(parse_file_name(path) is not None for path in new)
