"""``txntable compact``: what it answers, what works on the tasks, and what ends it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tests.simulation.site import TWO_COLUMNS
from txntable.cli.main import application
from txntable.compaction import rewriter as rewriting
from txntable.compaction.compactor import compact
from txntable.compaction.engine import Engine, chosen_rewriter
from txntable.compaction.rewriter import Rewriter, TopicWork
from txntable.compaction.spec import RewriteResult, RewriteTask, TopicReport
from txntable.errors import MissingDependencyError, StorePermissionError, StoreUnavailableError
from txntable.format.layout import segments_root
from txntable.format.topic import TopicSettings
from txntable.jobs import compact as job
from txntable.segments.segment import SegmentPlan
from txntable.segments.segment_columns import PlannedSegment
from txntable.storage.object_store import StoreSpec
from txntable.storage.store_clock import StoreClock
from txntable.warehouse.warehouse import Warehouse

TOPICS = ("orders", "payments")
TWO_HOURS_MS = 2 * 3600 * 1000


@pytest.fixture
def warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Warehouse:
    """Two topics of two partitions with three segments each; since then two hours have passed."""
    made = Warehouse.create(str(tmp_path / "wh"), durability="page-cache")
    for topic in TOPICS:
        made.admin().create_topic(topic, partitions=2, schema=TWO_COLUMNS)
        for account in ("ann", "ben", "cat"):
            with made.producer() as producer:
                for partition in range(2):
                    producer.send(topic, row={"account": account, "amount": 1}, partition=partition)
    now_ms = StoreClock.now_ms
    monkeypatch.setattr(StoreClock, "now_ms", lambda clock: now_ms(clock) + TWO_HOURS_MS)
    return made


def call(warehouse: Warehouse, *arguments: str) -> Result:
    return CliRunner(env={"TXNTABLE_WAREHOUSE": warehouse.url}).invoke(application, ["compact", *arguments])


def answer(warehouse: Warehouse, *arguments: str) -> dict[str, dict[str, Any]]:
    result = call(warehouse, "--output", "json", *arguments)
    assert result.exit_code == 0, result.stderr
    return {row["topic"]: row for row in json.loads(result.stdout)}


def segments(warehouse: Warehouse, topic: str) -> int:
    return len(list(warehouse.topic_log(topic).public.refresh().files))


def files(warehouse: Warehouse) -> dict[str, bytes]:
    root = Path(warehouse.url)
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file() and path.suffix != ".clock"}


def damage_a_segment(warehouse: Warehouse, topic: str) -> str:
    segment = min((Path(warehouse.url) / segments_root(topic)).glob("p*/*.parquet"))
    segment.write_bytes(b"")
    return segment.name


# -- one run --------------------------------------------------------------------------------


def test_once_merges_segments_and_tells_what_it_did(warehouse: Warehouse) -> None:
    rows = answer(warehouse, "--once")

    assert set(rows["orders"]) == {field.name for field in fields(TopicReport)}
    assert {name: value for name, value in rows["orders"].items() if value and not name.endswith("bytes")} == {
        "topic": "orders",
        "merged_segments": 6,
        "written_segments": 2,
    }
    assert [segments(warehouse, topic) for topic in TOPICS] == [2, 2]


def test_what_is_too_young_is_told_and_left_alone(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()

    rows = answer(warehouse, "--once")

    assert (rows["orders"]["merged_segments"], rows["orders"]["young_segments"]) == (0, 6)
    assert [segments(warehouse, topic) for topic in TOPICS] == [6, 6]


def test_only_the_topics_that_are_named_are_compacted(warehouse: Warehouse) -> None:
    rows = answer(warehouse, "--once", "--topic", "payments")

    assert list(rows) == ["payments"]
    assert [segments(warehouse, topic) for topic in TOPICS] == [6, 2]


def test_dry_run_tells_what_would_be_done_and_writes_nothing(warehouse: Warehouse) -> None:
    before = files(warehouse)

    rows = answer(warehouse, "--dry-run")

    assert [row["merged_segments"] for row in rows.values()] == [6, 6]
    assert "a dry run: nothing is written" in call(warehouse, "--dry-run").stderr.splitlines()
    assert files(warehouse) == before


def test_unknown_topic_is_one_line_and_exit_code_1(warehouse: Warehouse) -> None:
    result = call(warehouse, "--once", "--topic", "nothing")

    assert result.exit_code == 1
    assert result.stderr.startswith("error: UNKNOWN_TOPIC_OR_PARTITION")
    assert [segments(warehouse, topic) for topic in TOPICS] == [6, 6]


def test_other_partitions_and_topics_go_on_when_a_segment_is_damaged(warehouse: Warehouse) -> None:
    name = damage_a_segment(warehouse, "orders")

    result = call(warehouse, "--once", "--engine", "here", "--output", "json")

    assert result.exit_code == 1
    assert [row["failures"] for row in json.loads(result.stdout)] == [1, 0]
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: CORRUPT_MESSAGE a segment cannot be read")
    assert line.endswith(" topic=orders")
    assert name in line
    assert [segments(warehouse, topic) for topic in TOPICS] == [4, 2]


# -- run after run --------------------------------------------------------------------------


def stopping(monkeypatch: pytest.MonkeyPatch, number: signal.Signals) -> None:
    """Send this process a signal when the first task is done."""
    run_task = rewriting.run_task

    def run_and_interrupt(*arguments: Any) -> RewriteResult:
        result = run_task(*arguments)
        os.kill(os.getpid(), number)
        return result

    monkeypatch.setattr(rewriting, "run_task", run_and_interrupt)


@pytest.mark.parametrize("arguments", [["--once"], []], ids=["once", "again and again"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_is_done_is_registered_when_a_run_is_interrupted(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, arguments: list[str]
) -> None:
    before = signal.getsignal(number)
    stopping(monkeypatch, number)

    result = call(warehouse, *arguments)

    assert result.exit_code == 128 + number
    assert [segments(warehouse, topic) for topic in TOPICS] == [4, 6]
    assert signal.getsignal(number) is before


def after_runs(monkeypatch: pytest.MonkeyPatch, *between: Callable[[], None]) -> list[Sequence[TopicReport]]:
    """Do something after each run of the job; after the last, end it."""
    done: list[Sequence[TopicReport]] = []

    def compact_and_go_on(*arguments: Any, **named: Any) -> Sequence[TopicReport]:
        try:
            done.append(compact(*arguments, **named))
        finally:
            if len(done) == len(between):
                os.kill(os.getpid(), signal.SIGTERM)
            else:
                between[len(done)]()
        return done[-1]

    monkeypatch.setattr(job, "compact", compact_and_go_on)
    return done


def test_job_goes_on_until_it_is_stopped_and_tells_of_what_it_did_only(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = after_runs(monkeypatch, lambda: None, lambda: None, lambda: None)

    result = call(warehouse, "--interval-ms", "1")

    assert (result.exit_code, result.stdout, len(done)) == (143, "", 3)
    begun, *lines = result.stderr.removesuffix("terminated\n").splitlines()
    assert begun == "compaction goes on until it is stopped (Ctrl-C); --once is one run"
    told = [line.split()[:3] for line in lines]
    assert told == [[f"topic={topic}", "merged_segments=6", "written_segments=2"] for topic in TOPICS]


def test_job_goes_on_when_a_segment_is_damaged(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    damage_a_segment(warehouse, "orders")
    done = after_runs(monkeypatch, lambda: None, lambda: None)

    result = call(warehouse, "--interval-ms", "1")

    assert (result.exit_code, len(done)) == (143, 2)
    told = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert [line.rpartition(" topic=")[2] for line in told] == ["orders", "orders"]
    assert [segments(warehouse, topic) for topic in TOPICS] == [4, 2]


def test_job_ends_when_the_store_refuses_every_topic_and_goes_on_when_it_refuses_one(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def refused_in_more_topics_each_time(*arguments: Any, **named: Any) -> Sequence[TopicReport]:
        calls.append(arguments)
        failures = (f"{StorePermissionError.code} the store refused",)
        reports = compact(*arguments, **named)
        return [replace(each, failures=failures if number < len(calls) else ()) for number, each in enumerate(reports)]

    monkeypatch.setattr(job, "compact", refused_in_more_topics_each_time)

    result = call(warehouse, "--interval-ms", "1")

    assert (result.exit_code, len(calls)) == (1, len(TOPICS))


def test_job_goes_on_when_the_store_does_not_answer(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def unavailable_at_first(*arguments: Any, **named: Any) -> Sequence[TopicReport]:
        calls.append(arguments)
        if len(calls) == 1:
            raise StoreUnavailableError("the store does not answer; try again")
        os.kill(os.getpid(), signal.SIGTERM)
        return compact(*arguments, **named)

    monkeypatch.setattr(job, "compact", unavailable_at_first)

    result = call(warehouse, "--interval-ms", "1")

    assert (result.exit_code, len(calls)) == (143, 2)
    assert result.stderr.splitlines()[1].startswith("error: STORE_UNAVAILABLE")


@pytest.mark.parametrize("option", ["--interval-ms", "--parallelism", "--memory-mib"])
def test_nothing_of_something_is_a_usage_error(warehouse: Warehouse, option: str) -> None:
    assert call(warehouse, option, "0").exit_code == 2


# -- what works on the tasks ----------------------------------------------------------------


def named_rewriter(name: str, used: list[str]) -> Rewriter:
    def rewrite(work: TopicWork, tasks: Sequence[RewriteTask]) -> Generator[RewriteResult, None, None]:
        used.append(name)
        yield from ()

    return rewrite


def tasks(*sizes: int) -> list[RewriteTask]:
    return [RewriteTask(0, (PlannedSegment("s", 0, 0, 0, None, size, 1, 0, 1),)) for size in sizes]


WORK = TopicWork(StoreSpec("memory://"), SegmentPlan("root", TopicSettings("t", "0" * 32, 1, TWO_COLUMNS), None, 1), 1)
GIB = 1024**3


@pytest.mark.parametrize(
    ("engine", "sizes", "chosen"),
    [
        (Engine.AUTO, (GIB, GIB), "Spark"),
        (Engine.AUTO, (GIB, GIB - 1), "here"),
        (Engine.AUTO, (9 * GIB,), "here"),
        (Engine.SPARK, (1,), "Spark"),
        (Engine.HERE, (9 * GIB, 9 * GIB), "here"),
        (Engine.AUTO, (), None),
        (Engine.SPARK, (), None),
    ],
)
def test_spark_is_chosen_by_what_there_is_to_rewrite(
    engine: Engine, sizes: tuple[int, ...], chosen: str | None
) -> None:
    used: list[str] = []
    said: list[str] = []
    rewriter = chosen_rewriter(engine, named_rewriter("here", used), lambda: named_rewriter("Spark", used), said.append)

    list(rewriter(WORK, tasks(*sizes)))

    assert used == ([] if chosen is None else [chosen])
    assert [line.endswith("on Spark") for line in said] == [name == "Spark" for name in used]


def test_much_is_rewritten_here_when_spark_is_missing() -> None:
    used: list[str] = []
    said: list[str] = []

    def missing() -> Rewriter:
        raise MissingDependencyError("spark is not installed")

    rewriter = chosen_rewriter(Engine.AUTO, named_rewriter("here", used), missing, said.append)

    list(rewriter(WORK, tasks(GIB, GIB)))

    assert used == ["here"]
    assert said == ["t: 2.00 GiB to rewrite; spark is not installed, in this process"]


def test_topics_fail_when_spark_was_asked_for_and_is_missing(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "txntable.jobs.compaction_session", None)
    monkeypatch.setitem(sys.modules, "pyspark", None)

    result = call(warehouse, "--once", "--engine", "spark", "--topic", "orders")

    assert result.exit_code == 1
    assert result.stderr.startswith("error: MISSING_DEPENDENCY spark is not installed; pip install")
    assert segments(warehouse, "orders") == 6


PROGRAM = """
import sys
from txntable.jobs.compact import main
from txntable.storage.store_clock import StoreClock
now_ms = StoreClock.now_ms
StoreClock.now_ms = lambda clock: now_ms(clock) + 2 * 3600 * 1000
sys.argv[0] = "compact"
try:
    main()
finally:
    assert "pyspark" not in sys.modules
"""


def test_job_of_its_own_does_the_same_without_spark(warehouse: Warehouse) -> None:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, "--warehouse", warehouse.url, "--once", "--output", "json"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert [row["merged_segments"] for row in json.loads(run.stdout)] == [6, 6]
