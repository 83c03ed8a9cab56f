"""What a micro-batch costs in our two sinks, in Spark's Parquet file sink and in Delta's: tiny batches of one source.

Rounds alternate; each is a query of its own.  Wall time is the median of a query's batches, as Spark reports them; CPU
is that of the whole process tree, the JVM and Python's workers included, for each batch of the query.
"""

from __future__ import annotations

import itertools
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa

from benchmarks.measurement import Figure, cpu_seconds, paired_ratio, rounds
from benchmarks.spark_session import session
from txntable.warehouse.warehouse import Warehouse

ROUNDS = rounds(9)
BATCHES = 20
WARM_UP = 5
RECORDS = 1000
SCHEMA = pa.schema([pa.field("timestamp", pa.timestamp("us", tz="UTC")), pa.field("value", pa.int64())])
SECONDS_AT_MOST = 300
_names = itertools.count()


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one micro-batch, in seconds."""

    wall: float
    cpu: float


def measure(folder: Path) -> list[Figure]:
    """Return the ratios of wall time and of CPU time."""
    spark = session()
    try:
        warehouse = Warehouse.create(str(folder / "wh"), durability="page-cache")
        for topic in ("each", "sunk"):
            warehouse.admin().create_topic(topic, partitions=2, schema=SCHEMA)
        source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", RECORDS).option("numPartitions", 2)

        def each(stream: Any) -> Any:
            writer = warehouse.batch_writer(f"bench-{next(_names)}", lambda txn, frame: txn.write("each", frame))
            return stream.foreachBatch(writer)

        def sink(stream: Any) -> Any:
            options = {"warehouse": warehouse.url, "topic": "sunk", "durability": "page-cache"}
            return stream.format("txntable").options(**options)

        def files(format_name: str) -> Callable[[Any], Any]:
            return lambda stream: stream.format(format_name).option("path", str(folder / f"out-{next(_names)}"))

        sinks = (each, sink, files("parquet"), files("delta"))
        return _figures(_alternate(source.load(), sinks, folder))
    finally:
        spark.stop()


def _alternate(stream: Any, sinks: tuple[Callable[[Any], Any], ...], folder: Path) -> list[list[Cost]]:
    costs: list[list[Cost]] = [[] for _ in sinks]
    for number in range(ROUNDS + 1):
        for index, sink in enumerate(sinks):
            cost = _cost(sink(stream.writeStream), folder / f"checkpoint-{next(_names)}")
            if number:
                costs[index].append(cost)
    return costs


def _cost(writer: Any, checkpoint: Path) -> Cost:
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(processingTime="0 seconds").start()
    try:
        _wait_for(query, WARM_UP)
        before, first = cpu_seconds(), query.lastProgress.batchId
        _wait_for(query, WARM_UP + BATCHES)
        after, last = cpu_seconds(), query.lastProgress.batchId
        spent = [each.durationMs["triggerExecution"] / 1000 for each in query.recentProgress if each.batchId > first]
    finally:
        query.stop()
        shutil.rmtree(checkpoint)
    return Cost(median(spent), (after - before) / (last - first))


def _wait_for(query: Any, batch: int) -> None:
    deadline = time.perf_counter() + SECONDS_AT_MOST
    while query.lastProgress is None or query.lastProgress.batchId < batch:
        if not query.isActive or time.perf_counter() > deadline:
            raise RuntimeError(f"the query does not go on: {query.exception()}")
        time.sleep(0.05)


def _figures(costs: list[list[Cost]]) -> list[Figure]:
    each, sink, parquet, delta = costs
    named = [("foreachBatch, one topic", each), ('format("txntable")', sink), ("Delta's sink", delta)]
    figures = []
    for name, ours in named:
        for kind in ("wall", "cpu"):
            mine, theirs = ([getattr(cost, kind) for cost in costs] for costs in (ours, parquet))
            figures.append(paired_ratio(f"{name} ÷ Parquet file sink, {kind} per micro-batch", mine, theirs))
    return figures
