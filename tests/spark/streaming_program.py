"""A program with two streams of the same source: ``foreachBatch`` into two topics, the sink into a third.

``python -m tests.spark.streaming_program FOLDER``: they go on from the checkpoints in the folder, and end when the
source has no more.  Each has a trap in the folder (see :mod:`tests.spark.crashing`), which kills the whole program.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.spark.crashing import AFTER_COMMIT, TRAP, CrashingSource, reached, walk_in
from tests.spark.stream_source import SETTLE_SECONDS, numbers_stream, started
from txntable.warehouse.warehouse import Warehouse

EACH, SINK = "each", "sink"
UPLOADS = "the uploads"


def write_both(transaction: Any, numbers: Any) -> None:
    """Write a micro-batch to two topics."""
    transaction.write("all", numbers)
    transaction.write("even", numbers.where("number % 2 = 0"))
    reached(UPLOADS)


def session() -> Any:
    """A session without Delta, which streams into topics do not need."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
        # It lives for a few micro-batches: starting is all that it does.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    builder = SparkSession.builder.appName("streams").master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def run(folder: Path) -> None:
    """Run both streams at once."""
    spark = session()
    warehouse = Warehouse.open(str(folder / "wh"), durability="page-cache")
    stream = numbers_stream(spark, folder / "source")
    spark.dataSource.register(CrashingSource)
    walk_in(folder / EACH)
    writer = warehouse.batch_writer("each", write_both)

    def each(frame: Any, batch_id: int) -> None:
        writer(frame, batch_id)
        reached(AFTER_COMMIT)

    options = {"warehouse": warehouse.url, "durability": "page-cache", "topic": "sunk", TRAP: str(folder / SINK)}
    queries = [
        started(stream.writeStream.foreachBatch(each), folder / f"checkpoint-{EACH}"),
        started(stream.writeStream.format(CrashingSource.name()).options(**options), folder / f"checkpoint-{SINK}"),
    ]
    for query in queries:
        query.awaitTermination(SETTLE_SECONDS)
    spark.stop()


if __name__ == "__main__":
    run(Path(sys.argv[1]))
