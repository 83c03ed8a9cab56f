"""The demo's second pipeline: from the committed flights, the delays of each route and month.

Owns the topic ``delays_by_route``.  Its transform is ``DataFrame -> DataFrame``; that a run twice
changes nothing is the batch id's doing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its name everywhere

from jobs.flights_loading import TOPIC as FLIGHTS
from jobs.flights_source import month_name
from jobs.flights_story import Event, Story
from txntable.errors import BatchAlreadyCommittedError
from txntable.warehouse import Warehouse

TOPIC = "delays_by_route"
PARTITIONS = 2
KEY = ("origin", "dest")
TRANSACTIONAL_ID = "delays-by-route"
SCHEMA = pa.schema(
    [
        pa.field("month", pa.string(), nullable=False),
        pa.field("origin", pa.string(), nullable=False),
        pa.field("dest", pa.string(), nullable=False),
        pa.field("flights", pa.int64(), nullable=False),
        pa.field("cancelled", pa.int64(), nullable=False),
        pa.field("mean_departure_delay", pa.float64()),
        pa.field("mean_arrival_delay", pa.float64()),
        pa.field("worst_arrival_delay", pa.int32()),
    ]
)


@dataclass(frozen=True, slots=True)
class Run:
    """What one run of the pipeline did.

    Attributes
    ----------
    written, skipped : int
        Months.
    """

    written: int
    skipped: int


def create_topic(warehouse: Warehouse) -> None:
    """Create the topic unless it is there."""
    warehouse.admin().create_topic(TOPIC, partitions=PARTITIONS, schema=SCHEMA, key=KEY, exist_ok=True)


def write_delays(warehouse: Warehouse, spark: SparkSession, months: Sequence[int], story: Story) -> Run:
    """Run the pipeline once: each month is one transaction, with the month as its batch id.

    Parameters
    ----------
    warehouse : Warehouse
        Has both topics.
    spark : SparkSession
        With Delta.
    months : sequence of int
        1 to 12.
    story : Story
        Is told what happens.
    """
    producer = warehouse.producer(transactional_id=TRANSACTIONAL_ID)
    producer.init_transactions()
    flights = warehouse.snapshot().read(spark, FLIGHTS)
    written = 0
    for month in months:
        batch = month_name(month)
        story.step(batch)
        try:
            with producer.transaction(batch_id=batch) as transaction:
                transaction.write(TOPIC, delays_of(flights, month))
            written += 1
        except BatchAlreadyCommittedError:
            # Somebody's earlier run did it: that is what the batch id is for.
            story.step(f"{batch}: skipped")
        story.advance()
    producer.close()
    run = Run(written, len(months) - written)
    if run.written:
        story.tell(Event(TRANSACTIONAL_ID, f"{run.written} months", "one transaction a month: written", "COMMIT"))
    if run.skipped:
        code = BatchAlreadyCommittedError.code
        story.tell(Event(TRANSACTIONAL_ID, f"{run.skipped} months", "the run is repeated: skipped", code))
    return run


def delays_of(flights: DataFrame, month: int) -> DataFrame:
    """Return the delays of each route in one month."""
    is_of_month = F.col("month") == month
    was_cancelled = F.col("dep_time").isNull()
    return (
        flights.select("month", "origin", "dest", "dep_time", "dep_delay", "arr_delay")
        .where(is_of_month)
        .groupBy("origin", "dest")
        .agg(
            F.count(F.lit(1)).alias("flights"),
            F.count_if(was_cancelled).alias("cancelled"),
            F.round(F.avg("dep_delay"), 2).alias("mean_departure_delay"),
            F.round(F.avg("arr_delay"), 2).alias("mean_arrival_delay"),
            F.max("arr_delay").alias("worst_arrival_delay"),
        )
        .select(F.lit(month_name(month)).alias("month"), *SCHEMA.names[1:])
    )
