"""A write by Spark's own Parquet writer that Ctrl-C interrupts; in a process of its own, since it is the process's end.

The tasks never end by themselves.  Prints JSON: what was raised, which jobs went on, and who made the segments of the
write after it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa

from tests.spark.failing_cluster import SHORT_LIVED
from tests.spark.test_spark_written_segments import FRAME, NUMBERS
from txntable.spark.session import build_session
from txntable.spark.writing.writer_choice import SWITCH, Wish
from txntable.warehouse.warehouse import Warehouse


def waiting(begun: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what rows go through and never come out of; whoever reads the pipe is told that a task has begun."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield next(batches)
        with Path(begun).open("w"):
            pass
        threading.Event().wait()

    return run


def main(url: str) -> None:
    """Interrupt a write, and write again."""
    warehouse = Warehouse.create(url, durability="page-cache")
    warehouse.admin().create_topic("numbers", partitions=3, schema=NUMBERS)
    settings = {
        SWITCH: Wish.ALWAYS.value,
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": SHORT_LIVED,
    }
    spark = build_session("interrupted", master="local[2]", settings=settings)
    begun = f"{url}-begun"
    os.mkfifo(begun)

    def interrupt() -> None:
        Path(begun).open().close()
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    producer = warehouse.producer("etl")
    producer.init_transactions()
    raised = "nothing"
    try:
        with producer.transaction() as transaction:
            transaction.write("numbers", spark.sql(FRAME).mapInArrow(waiting(begun), "number long, text string"))
    except BaseException as error:  # noqa: BLE001  what it is, is the question
        raised = type(error).__name__
    with producer.transaction() as transaction:
        # The interrupted tasks have all cores, so this one runs only when they have ended.
        by = transaction.write("numbers", spark.sql(FRAME)).segments_by
    active = list(spark.sparkContext.statusTracker().getActiveJobsIds())
    spark.stop()
    print(json.dumps({"raised": raised, "active": active, "by": by}))  # noqa: T201  the answer


if __name__ == "__main__":
    main(sys.argv[1])
