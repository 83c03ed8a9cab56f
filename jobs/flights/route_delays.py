"""The demo's second pipeline: delays by route and day, kept up to date from the flights that are new.

Owns the topic ``delays_by_route``, which is the pipeline's state and its output in one: of a route and day, the latest
counts.  The pipeline reads as a consumer group: what a run read, and what came of it, are one transaction.  So a flight
counts once, also where a day is cut between two runs, and where a run is killed.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its name everywhere

from txntable.format.isolation import IsolationLevel
from txntable.jobs.flights.loading import TOPIC as FLIGHTS
from txntable.jobs.flights.story import Event, Story
from txntable.producer.transaction import Transaction
from txntable.spark.pipelines.latest_rows import latest_rows
from txntable.spark.pipelines.pipeline import Pipeline, PipelineRun
from txntable.spark.pipelines.pipeline_config import PipelineConfig
from txntable.spark.pipelines.transforms import by_function
from txntable.warehouse.warehouse import Warehouse

TOPIC = "delays_by_route"
PARTITIONS = 2
KEY = ("day", "origin", "dest")
COUNTS = ("flights", "cancelled", "departures", "departure_delay", "arrivals", "arrival_delay")
SCHEMA = pa.schema(
    [
        pa.field("day", pa.date32(), nullable=False),
        pa.field("origin", pa.string(), nullable=False),
        pa.field("dest", pa.string(), nullable=False),
        *(pa.field(name, pa.int64(), nullable=False) for name in COUNTS),
    ]
)
CONFIG = PipelineConfig("delays-by-route", sources=(FLIGHTS,), state=TOPIC)
# So few that the first run leaves something to the next ones.
OFFSETS_OF_THE_FIRST_RUN = 3_500


def create_topic(warehouse: Warehouse) -> None:
    """Create the topic unless it is there."""
    warehouse.admin().create_topic(TOPIC, partitions=PARTITIONS, schema=SCHEMA, key=KEY, exist_ok=True)


# -- what comes of flights ------------------------------------------------------------------


def delays_of(flights: DataFrame) -> DataFrame:
    """Return the delays of each route and day, in minutes, as sums: a mean is ``arrival_delay / arrivals``."""
    return flights.groupBy(F.make_date("year", "month", "day").alias("day"), "origin", "dest").agg(
        F.count(F.lit(1)).alias("flights"),
        F.count_if(F.col("dep_time").isNull()).alias("cancelled"),
        F.count("dep_delay").alias("departures"),
        F.coalesce(F.sum("dep_delay"), F.lit(0)).alias("departure_delay"),
        F.count("arr_delay").alias("arrivals"),
        F.coalesce(F.sum("arr_delay"), F.lit(0)).alias("arrival_delay"),
    )


def add_flights(flights: DataFrame, delays: DataFrame) -> DataFrame:
    """Return the rows that change when flights are added to the delays."""
    new, old = delays_of(flights).alias("new"), delays.alias("old")
    together = new.join(old, on=list(KEY), how="left")
    sums = (F.col(f"new.{name}") + F.coalesce(F.col(f"old.{name}"), F.lit(0)) for name in COUNTS)
    return together.select(*KEY, *(total.alias(name) for total, name in zip(sums, COUNTS, strict=True)))


def current_delays(warehouse: Warehouse, spark: SparkSession) -> DataFrame:
    """Return the delays as they are now: the latest row of each route and day."""
    return latest_rows(warehouse.read(spark, TOPIC), warehouse.topic_log(TOPIC).settings())


# -- the runs -------------------------------------------------------------------------------


def derive_delays(warehouse: Warehouse, spark: SparkSession, months: Sequence[int], story: Story) -> int:
    """Run the pipeline: once with bounded input, once more, which is killed, and again for the rest.

    Parameters
    ----------
    warehouse : Warehouse
        Has both topics.
    spark : SparkSession
        With Delta.
    months : sequence of int
        That were loaded: they say how much the first run reads.
    story : Story
        Is told what happens.

    Returns
    -------
    int
        How many runs committed something.
    """
    story.step("bounded input")
    first = run(warehouse, spark, story, OFFSETS_OF_THE_FIRST_RUN * len(months))
    story.advance()
    if not first.read:
        return 0
    story.step("killed")
    _be_killed(warehouse, spark, story)
    story.advance()
    story.step("the rest")
    rest = run(warehouse, spark, story)
    story.advance()
    return 1 + bool(rest.read)


def run(warehouse: Warehouse, spark: SparkSession, story: Story, bound: int | None = None) -> PipelineRun:
    """Run the pipeline once; `bound`: the most offsets of a partition."""
    config = PipelineConfig(CONFIG.group, CONFIG.sources, state=TOPIC, max_offsets_per_partition=bound)
    with Pipeline(warehouse, spark, config, by_function(add_flights, config)) as pipeline:
        done = pipeline.run_once()
    what = f"reads {done.offsets:,} offsets" if done.read else "finds nothing to read, and writes nothing"
    story.tell(Event(CONFIG.transactional_id, "", f"a run {what}", "COMMIT" if done.read else ""))
    return done


def _be_killed(warehouse: Warehouse, spark: SparkSession, story: Story) -> None:
    """Leave a run as a killed process does: everything is written, nothing is decided, and nobody cleans up."""
    before = _records(warehouse, spark, IsolationLevel.SNAPSHOT)
    process = Warehouse.open(warehouse.url, warehouse.store.spec.options)
    producer = process.producer(CONFIG.transactional_id)
    producer.init_transactions()
    producer.begin_transaction()
    transaction = Transaction(producer)
    with process.consumer(
        group_id=CONFIG.group, group_instance_id=CONFIG.instance, enable_auto_commit=False
    ) as consumer:
        consumer.subscribe(CONFIG.sources)
        transaction.write(TOPIC, add_flights(consumer.read(spark), current_delays(process, spark)))
        transaction.flush()
        transaction.send_offsets(consumer)
    written = _records(warehouse, spark, IsolationLevel.READ_UNCOMMITTED) - before
    shown = _records(warehouse, spark, IsolationLevel.SNAPSHOT) - before
    story.check("records that a killed run shows to a snapshot", 0, shown)
    what = (
        f"a run is killed with {written:,} records and its offsets sent; the next one aborts it, and reads them again"
    )
    story.tell(Event(CONFIG.transactional_id, "", what, "ABORT"))


def _records(warehouse: Warehouse, spark: SparkSession, level: IsolationLevel) -> int:
    return warehouse.read(spark, TOPIC, isolation_level=level.value).count()
