"""DataFrames of several topics in one transaction: one Spark job, one decision, and one end when any of them fails."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from txntable.errors import SchemaMismatchError, TransactionAbortableError
from txntable.producer.producer import Producer
from txntable.warehouse.warehouse import Warehouse

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("text", pa.string())])
TOPICS = ("first", "second", "third")
ROWS = 10
# Longer than any test: only a cancelled job ends.
ENDLESS = "SELECT id, 'x' AS text FROM range(0, 1000000000000, 1, 2) WHERE id < 0"
SECONDS_AT_MOST = 60


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    made = Warehouse.create(str(tmp_path / "wh"), durability="page-cache")
    for topic in TOPICS:
        made.admin().create_topic(topic, partitions=2, schema=SCHEMA)
    return made


@pytest.fixture
def producer(warehouse: Warehouse) -> Iterator[Producer]:
    made = warehouse.producer("nightly")
    made.init_transactions()
    yield made
    made.close()


@pytest.fixture
def group(spark: Any, request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of the job group of whatever this thread runs."""
    spark.sparkContext.setJobGroup(request.node.name, "a test")
    yield request.node.name
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)


def rows(spark: Any, number: int, tasks: int = 1) -> Any:
    return spark.sql(f"SELECT id, 'from {number}' AS text FROM range(0, {ROWS}, 1, {tasks})")


def texts(warehouse: Warehouse, topic: str) -> list[str]:
    return sorted(warehouse.read_arrow(topic, columns=["text"]).read_all()["text"].to_pylist())


def tasks_of(spark: Any, group: str) -> list[int]:
    """How many tasks each job of a group had."""
    tracker = spark.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in sorted(tracker.getJobIdsForGroup(group))]
    return [sum(tracker.getStageInfo(stage).numTasks for stage in job.stageIds) for job in jobs]


def test_dataframes_of_several_topics_are_one_job_in_the_callers_group_with_tasks_for_each(
    spark: Any, warehouse: Warehouse, producer: Producer, group: str
) -> None:
    frames = {topic: rows(spark, number) for number, topic in enumerate(TOPICS)}

    with producer.transaction() as transaction:
        written = transaction.write_all(frames)

    assert tasks_of(spark, group) == [len(TOPICS)]
    for number, topic in enumerate(TOPICS):
        assert texts(warehouse, topic) == [f"from {number}"] * ROWS
        assert sum(each.last_offset - each.base_offset + 1 for each in written[topic].ranges) == ROWS


def test_one_dataframe_can_go_to_several_topics_and_shuffled_ones_stand_beside_others(
    spark: Any, warehouse: Warehouse, producer: Producer
) -> None:
    same = rows(spark, 0)

    with producer.transaction() as transaction:
        transaction.write_all({"first": same, "second": same.repartition(3), "third": same.where("id < 0")})

    assert [len(texts(warehouse, topic)) for topic in TOPICS] == [ROWS, ROWS, 0]


def test_nothing_is_committed_when_one_of_the_dataframes_fails(
    spark: Any, warehouse: Warehouse, producer: Producer
) -> None:
    failing = rows(spark, 1).selectExpr("id", "raise_error('broken') AS text")

    with producer.transaction() as transaction:
        with pytest.raises(Exception, match="broken"):
            transaction.write_all({"first": rows(spark, 0), "second": failing})
        with pytest.raises(TransactionAbortableError):
            producer.commit_transaction()
        producer.abort_transaction()
        producer.begin_transaction()

    assert [texts(warehouse, topic) for topic in TOPICS] == [[], [], []]


@pytest.mark.parametrize(
    "change", ["nullif(id, 9) AS id", "CAST(id AS DOUBLE) AS id"], ids=["found by a task", "before anything runs"]
)
def test_refusal_names_the_topic_whose_rows_do_not_fit(
    change: str, spark: Any, warehouse: Warehouse, producer: Producer
) -> None:
    unfit = rows(spark, 1).selectExpr(change, "text")

    with pytest.raises(SchemaMismatchError) as refused, producer.transaction() as transaction:
        transaction.write_all({"first": rows(spark, 0), "second": unfit, "third": rows(spark, 2)})

    assert (refused.value.facts["topic"], refused.value.facts["column"]) == ("second", "id")
    assert [texts(warehouse, topic) for topic in TOPICS] == [[], [], []]


def test_no_job_goes_on_and_only_abort_is_possible_when_the_callers_job_group_is_cancelled(
    spark: Any, warehouse: Warehouse, producer: Producer, group: str
) -> None:
    context, tracker = spark.sparkContext, spark.sparkContext.statusTracker()
    ended = threading.Event()

    def cancel_once_it_runs() -> None:
        while not ended.wait(0.05):
            if any(tracker.getJobInfo(job).status == "RUNNING" for job in tracker.getJobIdsForGroup(group)):
                context.cancelJobGroup(group)

    canceller = threading.Thread(target=cancel_once_it_runs)
    canceller.start()
    try:
        with pytest.raises(Exception, match="cancelled"), producer.transaction() as transaction:
            transaction.write_all({"first": rows(spark, 0), "second": spark.sql(ENDLESS)})
    finally:
        ended.set()
        canceller.join(SECONDS_AT_MOST)

    assert tracker.getActiveJobsIds() == []
    assert [texts(warehouse, topic) for topic in TOPICS] == [[], [], []]


def test_nothing_is_a_transaction_of_nothing(spark: Any, warehouse: Warehouse, producer: Producer, group: str) -> None:
    with producer.transaction() as transaction:
        assert transaction.write_all({}) == {}

    assert tasks_of(spark, group) == []
