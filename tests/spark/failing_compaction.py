"""Compactions on a standalone cluster of two workers, each under a fault; run in a process of its own.

One after the other on one topic, each of new small segments.  Prints JSON: a report for each.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tests.spark.compacting import later_clock
from tests.spark.failing_cluster import PARTITIONS, SCHEMA, TOPIC, cluster, report, session
from tests.spark.faulty_store import Fault, arm
from txntable.compaction.compactor import compact
from txntable.compaction.spark_rewriter import spark_rewriter
from txntable.warehouse.warehouse import Warehouse

FAULTS = (Fault.FAILS_MIDWAY, Fault.FAILS_AFTERWARDS, Fault.KILLS_EXECUTOR, None)
SEGMENTS = 4
# Both partitions' tasks are worked on in one Spark task, or each in one of its own: the first one is lost with the
# second then.
CLUSTER = {"spark.executor.memory": "512m", "spark.cores.max": "2"}


def label_of(fault: Fault | None) -> str:
    """What the records of a compaction begin with."""
    return "NONE" if fault is None else fault.name


def append(warehouse: Warehouse, label: str) -> None:
    """Write small segments to every partition."""
    for number in range(SEGMENTS):
        with warehouse.producer() as producer:
            for partition in range(PARTITIONS):
                row = {"flight": f"{label}/{number * PARTITIONS + partition}", "number": number}
                producer.send(TOPIC, row=row, partition=partition)


def run(spark: Any, warehouse: Warehouse, fault: Fault | None) -> dict[str, Any]:
    """Compact once under a fault."""
    append(warehouse, label_of(fault))
    if fault is not None:
        arm(warehouse.url, fault)
    with pytest.MonkeyPatch.context() as monkeypatch:
        later_clock(monkeypatch)
        (done,) = compact(warehouse, rewriter=spark_rewriter(spark))
    return {**report(warehouse, label_of(fault), fault), **asdict(done)}


def main(url: str) -> None:
    """Compact under every fault; one without ends it."""
    warehouse = Warehouse.create(url, durability="page-cache")
    warehouse.admin().create_topic(TOPIC, partitions=PARTITIONS, schema=SCHEMA)
    with cluster(Path(f"{url}-work")) as master:
        spark = session(master, CLUSTER)
        reports = [run(spark, warehouse, fault) for fault in FAULTS]
        spark.stop()
    print(json.dumps(reports))  # noqa: T201  the answer


if __name__ == "__main__":
    main(sys.argv[1])
