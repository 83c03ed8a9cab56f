"""A write by Spark's own Parquet writer as Spark's user sees it: cancelled, listed, and with tasks of any size."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark import InheritableThread
from pyspark.errors import PySparkException
from pyspark.java_gateway import ensure_callback_server_started

from tests.spark.interrupted_writer import waiting
from tests.spark.test_failures import run_program
from tests.spark.test_spark_written_segments import FRAME, NUMBERS, ROWS, adds, files_below, write
from txntable.warehouse.warehouse import Warehouse

TAG, GROUP = "nightly", "nightly-group"
DESCRIPTION = "txntable write numbers"


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Warehouse]:
    """With a topic of numbers, in which nothing is damaged whatever a test has written."""
    warehouse = Warehouse.create(str(tmp_path / "wh"))
    warehouse.admin().create_topic("numbers", partitions=3, schema=NUMBERS)
    yield warehouse
    assert warehouse.verify().damages == ()


def active_jobs(spark: Any) -> list[int]:
    return list(spark.sparkContext.statusTracker().getActiveJobsIds())


# -- cancelled ------------------------------------------------------------------------------


def tagged(spark: Any) -> str:
    """Tag what this thread runs; return the tag by which ``interruptTag`` in this thread would find its jobs."""
    spark.addTag(TAG)
    return str(spark._jsparkSession.managedJobTags().get().apply(TAG))


def grouped(spark: Any) -> str:
    spark.sparkContext.setJobGroup(GROUP, "the night's")
    return GROUP


def job_tagged(spark: Any) -> str:
    spark.sparkContext.addJobTag(TAG)
    return TAG


@pytest.mark.parametrize(
    ("mark", "cancel"),
    [
        (tagged, lambda spark, name: spark.sparkContext.cancelJobsWithTag(name)),
        (grouped, lambda spark, name: spark.sparkContext.cancelJobGroup(name)),
        (job_tagged, lambda spark, name: spark.sparkContext.cancelJobsWithTag(name)),
        (lambda spark: None, lambda spark, name: spark.interruptAll()),
    ],
    ids=["interruptTag", "cancelJobGroup", "cancelJobsWithTag", "interruptAll"],
)
def test_no_job_goes_on_and_nothing_is_registered_of_a_write_that_is_cancelled(
    mark: Callable[[Any], str | None],
    cancel: Callable[[Any, str | None], None],
    always: Any,
    warehouse: Warehouse,
    tmp_path: Path,
) -> None:
    begun = tmp_path / "begun"
    os.mkfifo(begun)
    names: list[str | None] = []
    told: list[str] = []

    def cancelled() -> None:
        names.append(mark(always))
        frame = always.sql(FRAME).mapInArrow(waiting(str(begun)), "number long, text string")
        try:
            told.append(f"written by {write(warehouse, 'numbers', frame)}")
        except (PySparkException, Py4JError) as error:
            told.append(str(error))

    thread = InheritableThread(target=cancelled, session=always)
    thread.start()
    # Opened when a task has opened its end.
    begun.open().close()
    cancel(always, names[0])
    thread.join()

    assert "cancelled" in told[0].lower()
    assert active_jobs(always) == []
    assert adds(warehouse, "numbers") == []
    assert write(warehouse, "numbers", always.sql(FRAME)) == "spark"
    assert warehouse.read_arrow("numbers").read_all().num_rows == ROWS


def test_ctrl_c_ends_the_jobs_and_the_transaction_is_aborted(tmp_path: Path) -> None:
    url = str(tmp_path / "wh")

    program = run_program("interrupted_writer", url)

    assert program.returncode == 0, program.stderr[-3000:]
    told = json.loads(program.stdout.splitlines()[-1])
    assert told == {"raised": "KeyboardInterrupt", "active": [], "by": "spark"}
    warehouse = Warehouse.open(url)
    assert [add.partition_values["_partition"] for add in adds(warehouse, "numbers")] != []
    assert warehouse.read_arrow("numbers").read_all().num_rows == ROWS


# -- listed ---------------------------------------------------------------------------------


class Listener:
    """Takes what Spark tells of each query that has ended."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    def onSuccess(self, name: str, execution: Any, duration: int) -> None:  # noqa: N802  Spark's names
        self.told.append((name, str(execution.analyzed().schema().simpleString())))

    def onFailure(self, name: str, execution: Any, error: Any) -> None:  # noqa: N802  Spark's names
        self.told.append((f"failed: {name}", ""))

    class Java:
        """Which interface of the JVM this is."""

        implements = ("org.apache.spark.sql.util.QueryExecutionListener",)


@pytest.fixture
def listener(always: Any) -> Iterator[Listener]:
    ensure_callback_server_started(always.sparkContext._gateway)
    made = Listener()
    manager = always._jsparkSession.listenerManager()
    manager.register(made)
    yield made
    manager.clear()


def executions(spark: Any) -> list[Any]:
    """All SQL executions, as the tab lists them, when Spark has told all."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    found = spark._jsparkSession.sharedState().statusStore().executionsList()
    return [found.apply(index) for index in range(found.size())]


@pytest.mark.parametrize(("given", "shown"), [(None, DESCRIPTION), ("the night's", "the night's")])
def test_a_write_is_one_named_execution_of_the_sql_tab_and_of_listeners(
    given: str | None, shown: str, always: Any, warehouse: Warehouse, listener: Listener
) -> None:
    before = {each.executionId() for each in executions(always)}
    context = always.sparkContext
    context.setLocalProperty("spark.job.description", given)
    try:
        write(warehouse, "numbers", always.sql(FRAME))
        left = context.getLocalProperty("spark.job.description")
    finally:
        context.setLocalProperty("spark.job.description", None)

    new = [each for each in executions(always) if each.executionId() not in before]
    assert [each.description() for each in new] == [shown]
    assert new[0].jobs().size() >= 1
    assert left == given
    assert [name for name, _ in listener.told] == [DESCRIPTION]
    assert "_offset_delta" in listener.told[0][1]


def test_a_write_that_fails_is_a_failed_execution_to_listeners(
    always: Any, warehouse: Warehouse, listener: Listener
) -> None:
    failing = always.sql(FRAME).selectExpr("number", "IF(number = 9, raise_error('no'), text) AS text")

    with pytest.raises((PySparkException, Py4JError)):
        write(warehouse, "numbers", failing)

    executions(always)
    assert [name for name, _ in listener.told] == [f"failed: {DESCRIPTION}"]


# -- tasks of any size ----------------------------------------------------------------------


@pytest.mark.parametrize("condition", ["id < 0", "id >= 250", "true"])
def test_a_task_without_rows_leaves_no_file(condition: str, always: Any, warehouse: Warehouse) -> None:
    frame = always.sql(f"{FRAME} WHERE {condition}")

    assert write(warehouse, "numbers", frame) == "spark"

    assert files_below(warehouse, "numbers") == {add.path for add in adds(warehouse, "numbers")}
    assert warehouse.read_arrow("numbers").read_all().num_rows == frame.count()


def test_many_tiny_tasks_make_a_segment_each(always: Any, warehouse: Warehouse) -> None:
    frame = always.sql(f"SELECT id AS number, 'x' AS text FROM range(0, {ROWS}, 1, 100) WHERE id % 20 < 10")

    write(warehouse, "numbers", frame)

    assert len(adds(warehouse, "numbers")) == ROWS // 20
    rows = warehouse.read_arrow("numbers", columns=["number", "_partition", "_offset"]).read_all().to_pylist()
    assert sorted(row["number"] for row in rows) == [number for number in range(ROWS) if number % 20 < 10]
    assert len({(row["_partition"], row["_offset"]) for row in rows}) == len(rows)


def test_one_huge_key_stays_in_its_partition_whatever_adaptive_execution_would_split(
    always: Any, warehouse: Warehouse
) -> None:
    warehouse.admin().create_topic("keyed", partitions=5, schema=NUMBERS, key=["number"])
    frame = always.sql(f"SELECT IF(id % 20 = 0, id, 7L) AS number, uuid() AS text FROM range(0, {ROWS * 20}, 1, 4)")
    settings = {
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.adaptive.advisoryPartitionSizeInBytes": "16384",
        "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": "1",
    }
    before = {name: always.conf.get(name) for name in settings}
    for name, value in settings.items():
        always.conf.set(name, value)
    try:
        by = write(warehouse, "keyed", frame, "hash")
    finally:
        for name, value in before.items():
            always.conf.set(name, value)

    assert by == "spark"
    rows = warehouse.read_arrow("keyed", columns=["number", "_partition"]).read_all()
    places: dict[int, set[int]] = {}
    for number, partition in zip(rows["number"].to_pylist(), rows["_partition"].to_pylist(), strict=True):
        places.setdefault(number, set()).add(partition)
    assert rows.num_rows == ROWS * 20
    assert all(len(found) == 1 for found in places.values())
    assert set().union(*places.values()) == set(range(5))
