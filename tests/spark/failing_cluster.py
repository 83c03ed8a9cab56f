"""Writes on a standalone cluster of two workers, each under a fault; run in a process of its own.

Two ways of writing and all faults of tasks, one after the other on one topic.  Prints JSON: a report for each write.
"""

from __future__ import annotations

import collections
import itertools
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
from pyspark.sql import SparkSession

from tests.spark.faulty_store import Fault, arm, land, met
from txntable.format.layout import log_folder, public_root, segments_root
from txntable.spark.session import SETTINGS
from txntable.warehouse.warehouse import Warehouse

TOPIC, PARTITIONS, ROWS, TASKS = "flights", 2, 300, 3
SCHEMA = pa.schema([pa.field("flight", pa.string()), pa.field("number", pa.int64())])
WAYS = ("transaction", "format")
FAULTS = (*(fault for fault in Fault if fault is not Fault.KILLS_DRIVER), None)
_NEEDS_DELTA = ("spark.sql.extensions", "spark.sql.catalog.spark_catalog", "spark.jars.excludes")
# Every JVM lives for seconds: what compiles well only costs.
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
# An attempt that hangs is given up soon: its twin has begun, and it is killed when that has ended.
CLUSTER = {
    "spark.executor.extraJavaOptions": SHORT_LIVED,
    "spark.executor.memory": "512m",
    "spark.cores.max": "2",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.minTaskRuntime": "1s",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.3",
    "spark.python.task.killTimeout": "50ms",
}


@contextmanager
def cluster(work: Path) -> Iterator[str]:
    """A master and two workers, each with one core; a twin runs on another host only, hence two names of this one."""
    program = [str(Path(pyspark.__file__).parent / "bin" / "spark-class")]
    environment = {
        **os.environ,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": SHORT_LIVED,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
    }
    ports = ["--port", "0", "--webui-port", "0"]
    with ExitStack() as started:

        def start(kind: str, *arguments: str, told: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
            command = [*program, f"org.apache.spark.deploy.{kind}", *ports, *arguments]
            process = subprocess.Popen(command, env=environment, stdout=told, stderr=told, text=True)
            started.callback(process.wait)
            started.callback(process.terminate)
            return process

        master = start("master.Master", "--host", "localhost", told=subprocess.PIPE)
        assert master.stderr is not None
        found = (re.search(r"spark://\S+:\d+", line) for line in master.stderr)
        url = next(match[0] for match in found if match)
        threading.Thread(target=collections.deque, args=(master.stderr, 0), daemon=True).start()
        for host in ("localhost", "127.0.0.1"):
            start(
                "worker.Worker", "--host", host, "--cores", "1", "--memory", "1g", "--work-dir", str(work / host), url
            )
        yield url


def session(master: str, settings: Mapping[str, str]) -> Any:
    """A session without Delta, whose tasks meet the faults that are armed."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    plain = {name: value for name, value in SETTINGS.items() if name not in _NEEDS_DELTA}
    builder = SparkSession.builder.appName("failures").master(master)
    for name, value in {
        **plain,
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": SHORT_LIVED,
        "spark.python.daemon.module": "tests.spark.faulty_daemon",
        **settings,
    }.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def frame(spark: Any, label: str) -> Any:
    """The records of one write: ``label/0``, ``label/1`` …"""
    return spark.range(0, ROWS, 1, TASKS).selectExpr(f"concat('{label}/', id) AS flight", "id AS number")


def write(spark: Any, warehouse: Warehouse, way: str, label: str) -> None:
    """Write one batch, named by its label."""
    if way == "transaction":
        producer = warehouse.producer("etl")
        producer.init_transactions()
        with producer.transaction(batch_id=label) as transaction:
            transaction.write(TOPIC, frame(spark, label))
    else:
        options = {"warehouse": warehouse.url, "topic": TOPIC, "durability": "page-cache"}
        options |= {"transactionalId": "etl", "batchId": label}
        frame(spark, label).write.format("txntable").mode("append").options(**options).save()


def report(warehouse: Warehouse, label: str, fault: Fault | None) -> dict[str, Any]:
    """What the write left: the version of the public table, and objects by what the logs say of them."""
    root = Path(warehouse.url)
    below = root / segments_root(TOPIC)
    there = {str(file.relative_to(below)) for file in below.glob("p*/**/*.parquet")}
    logs = [root / log_folder(table) for table in (segments_root(TOPIC), public_root(TOPIC))]
    told = "".join(file.read_text() for log in logs for file in log.glob("*.json"))
    path = None if fault is None else met(warehouse.url, fault)
    victim = None if path is None else str((root / path).relative_to(below))
    return {
        "label": label,
        "version": warehouse.topic_log(TOPIC).public.refresh().version,
        "met": victim is not None,
        "victim_is_there": victim in there,
        "victim_is_named": victim is not None and victim in told,
        "orphans": sorted(path for path in there if path not in told),
        "missing": sorted(
            add.path for add in warehouse.topic_log(TOPIC).segments.refresh().files if not (below / add.path).exists()
        ),
        "unfinished": sum(1 for _ in below.glob("p*/.*")),
    }


def run(spark: Any, warehouse: Warehouse, way: str, fault: Fault | None) -> Iterator[dict[str, Any]]:
    """Write once under a fault."""
    label = f"{way}-{'none' if fault is None else fault.name}"
    if fault is not None:
        arm(warehouse.url, fault)
    write(spark, warehouse, way, label)
    yield report(warehouse, label, fault)
    if fault is Fault.LANDS_LATE:
        land(warehouse.url)
        yield report(warehouse, f"{label}-landed", fault)


def main(url: str) -> None:
    """Write under every fault, in every way; a write without one ends each."""
    warehouse = Warehouse.create(url, durability="page-cache")
    warehouse.admin().create_topic(TOPIC, partitions=PARTITIONS, schema=SCHEMA, key=["flight"])
    with cluster(Path(f"{url}-work")) as master:
        spark = session(master, CLUSTER)
        reports = [each for way, fault in itertools.product(WAYS, FAULTS) for each in run(spark, warehouse, way, fault)]
        spark.stop()
    print(json.dumps(reports))  # noqa: T201  the answer


if __name__ == "__main__":
    main(sys.argv[1])
