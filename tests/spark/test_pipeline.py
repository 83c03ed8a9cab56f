"""Pipelines on Spark: input, output, state and offsets are one transaction."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its name everywhere

from txntable.errors import InvalidConfigError, InvalidRequestError, TxnTableError, UnknownTopicOrPartitionError
from txntable.format.records import TopicPartition
from txntable.spark.pipelines.latest_rows import latest_rows
from txntable.spark.pipelines.pipeline import Pipeline, PipelineRun
from txntable.spark.pipelines.pipeline_config import PipelineConfig
from txntable.spark.pipelines.transforms import by_function, by_sql
from txntable.warehouse.warehouse import Warehouse

TRIPS = pa.schema([pa.field("carrier", pa.string(), nullable=False), pa.field("miles", pa.int64())])
COPY = PipelineConfig("g", ("trips",), ("copies",), session_timeout_ms=6_000)
TOTALS = PipelineConfig("totals", ("trips",), ("copies",), state="totals", session_timeout_ms=6_000)


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    warehouse = Warehouse.create(str(tmp_path / "warehouse"), durability="page-cache")
    for topic in ("trips", "copies", "totals"):
        warehouse.admin().create_topic(topic, partitions=2, schema=TRIPS, key=["carrier"])
    return warehouse


def drive(warehouse: Warehouse, *trips: tuple[str, int]) -> None:
    """Send trips: UA's are in one partition, DL's in the other."""
    with warehouse.producer() as producer:
        for carrier, miles in trips:
            producer.send("trips", row={"carrier": carrier, "miles": miles})


def rows(warehouse: Warehouse, topic: str) -> list[tuple[str, int]]:
    table = warehouse.read_arrow(topic, columns=["carrier", "miles"]).read_all()
    return sorted(zip(table["carrier"].to_pylist(), table["miles"].to_pylist(), strict=True))


def run(
    warehouse: Warehouse,
    spark: SparkSession,
    function: Callable[..., Any],
    config: PipelineConfig = COPY,
    batch_id: str | None = None,
) -> PipelineRun:
    """Run once, as a process of its own would."""
    process = Warehouse.open(warehouse.url, durability="page-cache")
    with Pipeline(process, spark, config, by_function(function, config)) as pipeline:
        return pipeline.run_once(batch_id)


def same(trips: DataFrame) -> DataFrame:
    return trips


def add_up(trips: DataFrame, totals: DataFrame) -> dict[str, DataFrame]:
    new = trips.groupBy("carrier").agg(F.sum("miles").alias("new"))
    changed = new.join(totals, on="carrier", how="left")
    return {
        "copies": trips,
        "totals": changed.select("carrier", (F.col("new") + F.coalesce("miles", F.lit(0))).alias("miles")),
    }


def test_what_is_new_is_read_once(warehouse: Warehouse, spark: SparkSession) -> None:
    drive(warehouse, ("UA", 1), ("DL", 2))

    first = run(warehouse, spark, same)
    second = run(warehouse, spark, same)
    drive(warehouse, ("UA", 3))
    third = run(warehouse, spark, same)

    assert (first.offsets, second.offsets, third.offsets) == (2, 0, 1)
    assert rows(warehouse, "copies") == [("DL", 2), ("UA", 1), ("UA", 3)]
    assert str(second) == "there was nothing to read"


def test_pipeline_goes_on_when_its_output_has_a_column_more_than_its_input(
    warehouse: Warehouse, spark: SparkSession
) -> None:
    drive(warehouse, ("UA", 1))
    run(warehouse, spark, same)
    warehouse.admin().add_columns("copies", [pa.field("note", pa.string())])
    drive(warehouse, ("DL", 2))

    run(warehouse, spark, lambda trips: trips.selectExpr("carrier", "CAST(miles AS SMALLINT) AS miles"))

    assert rows(warehouse, "copies") == [("DL", 2), ("UA", 1)]


def test_run_writes_nothing_when_nothing_is_new(warehouse: Warehouse, spark: SparkSession) -> None:
    run(warehouse, spark, same)
    before = warehouse.topic_log("copies").segments.refresh().version

    run(warehouse, spark, same)

    assert warehouse.topic_log("copies").segments.refresh().version == before


def test_run_of_a_committed_batch_does_nothing_though_there_is_more_to_read(
    warehouse: Warehouse, spark: SparkSession
) -> None:
    drive(warehouse, ("UA", 1))
    run(warehouse, spark, same, batch_id="2026-11-20")
    drive(warehouse, ("UA", 2))

    again = run(warehouse, spark, same, batch_id="2026-11-20")

    assert again.already_committed
    assert rows(warehouse, "copies") == [("UA", 1)]


def test_batch_is_committed_when_there_was_nothing_to_read(warehouse: Warehouse, spark: SparkSession) -> None:
    assert not run(warehouse, spark, same, batch_id="2026-11-20").already_committed
    assert run(warehouse, spark, same, batch_id="2026-11-20").already_committed


def test_nothing_is_committed_and_the_offsets_are_told_when_the_function_fails(
    warehouse: Warehouse, spark: SparkSession
) -> None:
    drive(warehouse, ("UA", 1), ("UA", 2))

    def fail(trips: DataFrame) -> DataFrame:
        raise ValueError("poison")

    with pytest.raises(ValueError, match="poison") as raised:
        run(warehouse, spark, fail)

    assert any("=0..2" in note for note in raised.value.__notes__)
    assert rows(warehouse, "copies") == []
    assert run(warehouse, spark, same).offsets == 2


def test_same_pipeline_reads_the_same_again_after_the_function_failed(
    warehouse: Warehouse, spark: SparkSession
) -> None:
    drive(warehouse, ("UA", 1))
    failures = [ZeroDivisionError]

    def next_outcome(trips: DataFrame) -> DataFrame:
        if failures:
            raise failures.pop()
        return trips

    with Pipeline(warehouse, spark, COPY, by_function(next_outcome, COPY)) as pipeline:
        with pytest.raises(ZeroDivisionError):
            pipeline.run_once()
        assert pipeline.run_once().offsets == 1

    assert rows(warehouse, "copies") == [("UA", 1)]


def test_run_reads_no_more_offsets_than_it_may(warehouse: Warehouse, spark: SparkSession) -> None:
    drive(warehouse, *[("UA", number) for number in range(5)])
    bounded = PipelineConfig("g", ("trips",), ("copies",), max_offsets_per_partition=2)

    runs = [run(warehouse, spark, same, bounded).offsets for _ in range(4)]

    assert runs == [2, 2, 1, 0]
    assert rows(warehouse, "copies") == [("UA", number) for number in range(5)]


def test_state_is_of_the_same_transaction_and_restored_by_the_next_process(
    warehouse: Warehouse, spark: SparkSession
) -> None:
    drive(warehouse, ("UA", 1), ("DL", 10))
    run(warehouse, spark, add_up, TOTALS)
    drive(warehouse, ("UA", 2))

    def die_after(trips: DataFrame, totals: DataFrame) -> dict[str, DataFrame]:
        outputs = add_up(trips, totals)
        return {**outputs, "totals": outputs["totals"].withColumn("miles", F.expr("raise_error('out of order')"))}

    with pytest.raises(Exception, match="out of order"):
        run(warehouse, spark, die_after, TOTALS)
    run(warehouse, spark, add_up, TOTALS)

    latest = latest_rows(warehouse.read(spark, "totals"), warehouse.topic_log("totals").settings())
    assert sorted(map(tuple, latest.collect())) == [("DL", 10), ("UA", 3)]
    assert rows(warehouse, "copies") == [("DL", 10), ("UA", 1), ("UA", 2)]
    # DL has not changed: no row was written for it again.
    assert rows(warehouse, "totals") == [("DL", 10), ("UA", 1), ("UA", 3)]


def test_queries_write_several_topics_in_one_transaction(warehouse: Warehouse, spark: SparkSession) -> None:
    drive(warehouse, ("UA", 1), ("UA", 2))
    config = PipelineConfig("g", ("trips",), ("copies", "totals"))
    queries = {"copies": "SELECT * FROM trips", "totals": "SELECT carrier, sum(miles) AS miles FROM trips GROUP BY ALL"}

    with Pipeline(warehouse, spark, config, by_sql(queries)) as pipeline:
        pipeline.run_once()

    assert rows(warehouse, "copies") == [("UA", 1), ("UA", 2)]
    assert rows(warehouse, "totals") == [("UA", 3)]
    commits = {warehouse.read_arrow(topic, columns=["_commit"]).read_all()["_commit"][0].as_py() for topic in queries}
    assert len(commits) == 1


def test_several_sources_are_handed_over_in_their_order(warehouse: Warehouse, spark: SparkSession) -> None:
    drive(warehouse, ("UA", 1))
    run(warehouse, spark, same)
    config = PipelineConfig("both", ("copies", "trips"), ("totals",))

    done = run(warehouse, spark, lambda copies, trips: copies.union(trips), config)

    assert {partition.topic for partition in done.read} == {"copies", "trips"}
    assert rows(warehouse, "totals") == [("UA", 1), ("UA", 1)]


@pytest.mark.parametrize("bound", [None, 1])
def test_sources_may_be_joined_because_a_transaction_comes_in_one_run(
    warehouse: Warehouse, spark: SparkSession, bound: int | None
) -> None:
    web = warehouse.producer("web")
    web.init_transactions()
    web.begin_transaction()
    web.send("trips", row={"carrier": "UA", "miles": 1})
    web.flush()
    nightly = warehouse.producer("nightly")
    nightly.init_transactions()
    with nightly.transaction() as transaction:
        for miles in (5, 6):
            transaction.send("trips", row={"carrier": "UA", "miles": miles})
            transaction.send("copies", row={"carrier": "UA", "miles": miles})
    config = PipelineConfig("joined", ("trips", "copies"), ("totals",), max_offsets_per_partition=bound)

    def joined(trips: DataFrame, copies: DataFrame) -> DataFrame:
        return trips.join(copies.select("carrier", "miles"), ["carrier", "miles"]).select("carrier", "miles")

    before = run(warehouse, spark, joined, config)
    web.commit_transaction()
    # Markers take offsets, too.
    after = [run(warehouse, spark, joined, config) for _ in range(5)]

    assert before.offsets == 0
    assert rows(warehouse, "totals") == [("UA", 5), ("UA", 6)]
    assert after[-1].offsets == 0


def test_earlier_process_is_fenced_when_the_same_instance_starts_again(
    warehouse: Warehouse, spark: SparkSession
) -> None:
    drive(warehouse, ("UA", 1))

    def be_overtaken(trips: DataFrame) -> DataFrame:
        assert run(warehouse, spark, same).offsets == 1
        return trips

    with pytest.raises(TxnTableError) as raised:
        run(warehouse, spark, be_overtaken)

    assert raised.value.code in {"PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH", "FENCED_INSTANCE_ID"}
    assert rows(warehouse, "copies") == [("UA", 1)]


def test_instances_share_the_partitions(warehouse: Warehouse, spark: SparkSession) -> None:
    read: dict[str, set[TopicPartition]] = {"1": set(), "2": set()}
    done, told = threading.Event(), threading.Event()

    def work(instance: str) -> None:
        config = PipelineConfig(
            "g", ("trips",), ("copies",), instance=instance, session_timeout_ms=6_000, interval_ms=100
        )

        def tell(run: PipelineRun) -> None:
            read[instance] = set(run.read)
            told.set()

        process = Warehouse.open(warehouse.url, durability="page-cache")
        with Pipeline(process, spark, config, by_function(same, config)) as pipeline:
            pipeline.run(done.is_set, tell)

    with ThreadPoolExecutor() as threads:
        working = [threads.submit(work, instance) for instance in read]
        driven = 0
        while sorted(len(partitions) for partitions in read.values()) != [1, 1] and driven < 200:
            drive(warehouse, ("UA", driven), ("DL", driven))
            driven += 1
            told.wait(10)
            told.clear()
        done.set()
        for each in working:
            each.result()

    assert set().union(*read.values()) == {TopicPartition("trips", 0), TopicPartition("trips", 1)}
    run(warehouse, spark, same)
    assert rows(warehouse, "copies") == sorted((carrier, n) for n in range(driven) for carrier in ("UA", "DL"))


def test_loop_runs_until_it_is_stopped(warehouse: Warehouse, spark: SparkSession) -> None:
    drive(warehouse, ("UA", 1))
    told: list[int] = []

    def tell(done: PipelineRun) -> None:
        told.append(done.offsets)
        if len(told) < 3:
            drive(warehouse, ("UA", 1))

    config = PipelineConfig("g", ("trips",), ("copies",), interval_ms=1)
    with Pipeline(warehouse, spark, config, by_function(same, config)) as pipeline:
        pipeline.run(lambda: len(told) == 3, tell)

    assert told == [1, 1, 1]


@pytest.mark.parametrize(
    "function",
    [lambda trips: 3, lambda trips: {"copies": 3}, lambda trips: {"elsewhere": trips}],
    ids=["no DataFrame", "no DataFrames", "another topic"],
)
def test_result_of_the_function_is_refused_when_it_is_none(
    warehouse: Warehouse, spark: SparkSession, function: Callable[..., Any]
) -> None:
    drive(warehouse, ("UA", 1))

    with pytest.raises(InvalidRequestError, match="function"):
        run(warehouse, spark, function)


@pytest.mark.parametrize(
    ("query", "told"),
    [("SELEKT", "spark refuses the query"), ("DELETE FROM trips WHERE carrier = 'UA'", "topics are asked here")],
)
def test_query_is_refused_when_spark_refuses_it_or_it_would_change_a_topic(
    warehouse: Warehouse, spark: SparkSession, query: str, told: str
) -> None:
    drive(warehouse, ("UA", 1))

    with (
        Pipeline(warehouse, spark, COPY, by_sql({"copies": query})) as pipeline,
        pytest.raises(InvalidRequestError, match=told),
    ):
        pipeline.run_once()


def test_pipeline_is_refused_when_a_topic_is_missing_or_unfit(warehouse: Warehouse, spark: SparkSession) -> None:
    warehouse.admin().create_topic("unkeyed", partitions=1, schema=TRIPS)
    missing = PipelineConfig("g", ("nowhere",), ("copies",))
    unfit = PipelineConfig("g", ("trips",), (), state="unkeyed")

    with pytest.raises(UnknownTopicOrPartitionError):
        run(warehouse, spark, same, missing)
    with pytest.raises(InvalidConfigError, match="state topic has a key"):
        run(warehouse, spark, same, unfit)
