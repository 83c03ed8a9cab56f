"""Real Spark under real failures: each record of the source is committed once, and no log names what was left behind.

Executors and drivers are processes, and die by SIGKILL.  Each program runs once, in a session of processes of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, QueryBuilder

from tests.spark.failing_cluster import FAULTS, PARTITIONS, ROWS, SCHEMA, TOPIC, WAYS, report
from tests.spark.failing_driver import Death, job_count
from tests.spark.faulty_store import SECONDS_AT_MOST, Fault
from txntable.format.layout import public_root
from txntable.warehouse.warehouse import Warehouse

ROOT = Path(__file__).parents[2]
ALL_DEATHS = [*Death.__members__, "NONE"]


def run_program(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program; nothing that it has started outlives it."""
    command = [sys.executable, "-m", f"tests.spark.{name}", *arguments]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            out, err = process.communicate(timeout=SECONDS_AT_MOST)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def public_records(url: str, version: int | None = None) -> Counter[str]:
    """The records of a version of the public table, by default the newest, as deltalake reads it."""
    table = DeltaTable(f"{url}/{public_root(TOPIC)}", version=version)
    batches = QueryBuilder().register("x", table).execute("select flight from x")
    return Counter(str(flight) for batch in batches for flight in batch["flight"].to_pylist())


def source(*labels: str) -> Counter[str]:
    """The records of writes."""
    return Counter(f"{label}/{number}" for label in labels for number in range(ROWS))


# -- tasks and executors --------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, dict[str, Any]]]:
    """The warehouse, and the report of each write."""
    url = str(tmp_path_factory.mktemp("cluster") / "wh")
    program = run_program("failing_cluster", url)
    assert program.returncode == 0, program.stderr[-3000:]
    return url, {each["label"]: each for each in json.loads(program.stdout.splitlines()[-1])}


LABELS = [f"{way}-{'none' if fault is None else fault.name}" for way in WAYS for fault in FAULTS]


@pytest.mark.parametrize("label", LABELS)
def test_each_record_is_committed_once_when_a_task_meets_a_fault(label: str, cluster: Any) -> None:
    url, reports = cluster

    written = source(*LABELS[: LABELS.index(label) + 1])

    assert public_records(url, reports[label]["version"]) == written
    assert reports[label]["missing"] == []


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("case", "is_there"),
    [
        (Fault.FAILS_MIDWAY.name, False),
        (Fault.FAILS_AFTERWARDS.name, True),
        (Fault.HANGS_AFTERWARDS.name, True),
        (Fault.LANDS_LATE.name, False),
        (f"{Fault.LANDS_LATE.name}-landed", True),
        (Fault.KILLS_EXECUTOR.name, False),
    ],
)
def test_what_a_lost_attempt_left_is_named_by_no_log(way: str, case: str, is_there: bool, cluster: Any) -> None:
    _, reports = cluster
    labels = list(reports)

    left = reports[f"{way}-{case}"]

    before = labels.index(left["label"]) - 1
    earlier = set(reports[labels[before]]["orphans"]) if before >= 0 else set()
    assert left["met"]
    assert (left["victim_is_there"], left["victim_is_named"]) == (is_there, False)
    assert set(left["orphans"]) > earlier, "the attempt had uploaded another segment before"


def test_an_object_that_lands_late_changes_no_table(cluster: Any) -> None:
    _, reports = cluster

    for way in WAYS:
        before, after = (reports[f"{way}-{Fault.LANDS_LATE.name}{suffix}"] for suffix in ("", "-landed"))
        assert before["version"] == after["version"]
        assert len(after["orphans"]) == len(before["orphans"]) + 1


# -- drivers --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Counter[str]]]:
    """The warehouse, and the records that were visible when each driver had died: each recovers what the last left."""
    url = str(tmp_path_factory.mktemp("drivers") / "wh")
    warehouse = Warehouse.create(url, durability="page-cache")
    warehouse.admin().create_topic(TOPIC, partitions=PARTITIONS, schema=SCHEMA, key=["flight"])
    visible = {}
    for number, label in enumerate(ALL_DEATHS):
        program = run_program("failing_driver", url, *ALL_DEATHS[: number + 1])
        expected = 0 if label == "NONE" else -signal.SIGKILL
        assert program.returncode == expected, program.stderr[-3000:]
        visible[label] = public_records(url)
    return url, visible


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("death", "is_visible"),
    [(death, death is Death.AFTER_COMPLETION) for death in Death],
    ids=[death.name for death in Death],
)
def test_a_batch_is_visible_whole_or_not_at_all_when_its_driver_is_dead(
    death: Death, is_visible: bool, drivers: Any
) -> None:
    _, visible = drivers
    earlier = ALL_DEATHS[: ALL_DEATHS.index(death.name)]

    assert visible[death.name] == source(*earlier, *([death.name] if is_visible else []))


@pytest.mark.parametrize(
    ("death", "jobs"),
    [
        (Death.BEFORE_THE_JOB, 1),
        (Death.IN_A_TASK, 2),
        (Death.BEFORE_DECISION, 2),
        (Death.AFTER_DECISION, 1),
        (Death.AFTER_APPEND, 1),
        (Death.AFTER_COMPLETION, 1),
    ],
    ids=[death.name for death in Death],
)
def test_a_batch_runs_again_only_when_its_driver_died_before_the_decision(
    death: Death, jobs: int, drivers: Any
) -> None:
    url, _ = drivers

    assert job_count(url, death.name) == jobs


def test_each_batch_is_committed_once_after_the_next_driver_has_recovered(drivers: Any) -> None:
    url, visible = drivers

    left = report(Warehouse.open(url, durability="page-cache"), "NONE", Fault.KILLS_DRIVER)

    assert visible["NONE"] == source(*ALL_DEATHS)
    assert left["missing"] == []
    assert (left["met"], left["victim_is_there"], left["unfinished"]) == (True, False, 1)
    # Of the first partition's segment in the task, and of two tasks' segments in the job that was never decided.
    assert len(left["orphans"]) >= 1 + PARTITIONS
