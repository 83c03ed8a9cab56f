"""Spark's own Parquet writer on a standalone cluster of two workers, each write under a fault; in a process of its own.

One attempt of one task meets the fault, half-way: it fails, kills its executor, or hangs until its speculative twin has
come in.  Prints JSON: a report for each write.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext

from tests.spark.failing_cluster import CLUSTER, PARTITIONS, SHORT_LIVED, TOPIC, cluster, report
from txntable.spark.session import build_session
from txntable.spark.writing.writer_choice import SWITCH, Wish
from txntable.warehouse.warehouse import Warehouse

ROWS, TASKS, VICTIM = 300_000, 3, 1
SCHEMA = pa.schema([pa.field("flight", pa.string()), pa.field("number", pa.int64())])
_DDL = "flight string, number long"


class Fault(Enum):
    """What becomes of the first attempt of one task, once it has written half of its rows."""

    NONE = "nothing"
    FAILS = "it fails"
    KILLS_EXECUTOR = "its executor dies"
    HANGS = "it hangs, and a speculative twin comes in"


def attempts_of(url: str, fault: Fault) -> Path:
    """Return where the attempts of the victim leave a file each."""
    return Path(f"{url}-attempts-{fault.name}")


def met_half_way(place: str, fault: Fault) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what rows go through: it does to the victim's first attempt what the fault says."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        is_victim = context.partitionId() == VICTIM
        attempt = context.attemptNumber()
        if is_victim:
            Path(place, str(attempt)).touch()
        passed = 0
        for batch in batches:
            passed += batch.num_rows
            if is_victim and attempt == 0 and passed > ROWS // TASKS // 2:
                break_down(fault)
            yield batch

    return run


def break_down(fault: Fault) -> None:
    """Do what the fault says."""
    if fault is Fault.FAILS:
        raise ValueError("the test's plan ended this attempt")
    if fault is Fault.KILLS_EXECUTOR:
        # The daemon of the workers is a child of its executor.
        daemon = int(Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(daemon, signal.SIGKILL)
    if fault in (Fault.KILLS_EXECUTOR, Fault.HANGS):
        threading.Event().wait()


def write(spark: Any, warehouse: Warehouse, fault: Fault) -> dict[str, Any]:
    """Write once under a fault; return what it left."""
    attempts = attempts_of(warehouse.url, fault)
    attempts.mkdir()
    rows = spark.range(0, ROWS, 1, TASKS).selectExpr(f"concat('{fault.name}/', id) AS flight", "id AS number")
    producer = warehouse.producer("etl")
    producer.init_transactions()
    with producer.transaction(batch_id=fault.name) as transaction:
        written = transaction.write(TOPIC, rows.mapInArrow(met_half_way(str(attempts), fault), _DDL))
    tried = len(list(attempts.iterdir()))
    return {**report(warehouse, fault.name, None), "by": written.segments_by, "attempts": tried}


def main(url: str) -> None:
    """Write under every fault."""
    warehouse = Warehouse.create(url, durability="page-cache")
    warehouse.admin().create_topic(TOPIC, partitions=PARTITIONS, schema=SCHEMA)
    settings = {
        **CLUSTER,
        SWITCH: Wish.ALWAYS.value,
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": SHORT_LIVED,
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
    }
    with cluster(Path(f"{url}-work")) as master:
        spark = build_session("faults", master=master, settings=settings)
        reports = [write(spark, warehouse, fault) for fault in Fault]
        spark.stop()
    print(json.dumps(reports))  # noqa: T201  the answer


if __name__ == "__main__":
    main(sys.argv[1])
