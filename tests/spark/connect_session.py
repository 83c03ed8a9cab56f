"""What a person does over Spark Connect, in a process of its own; prints what was seen as JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from delta.pip_utils import configure_spark_with_delta_pip
from pyspark.sql import SparkSession

from tests.spark.compacting import later_clock
from tests.spark.stream_source import create_topics, drain, numbers_in, numbers_stream, write_files
from txntable.compaction.compactor import compact
from txntable.compaction.spark_rewriter import spark_rewriter
from txntable.errors import TxnTableError
from txntable.spark.session import SETTINGS
from txntable.spark.writing.transactional_write import write_dataframes
from txntable.warehouse.warehouse import Warehouse

SCHEMA = pa.schema([pa.field("carrier", pa.string(), nullable=False), pa.field("delay", pa.int64())])
COLUMNS = "carrier string, delay bigint"


def session() -> Any:
    """A session of Spark Connect, and its server, on two cores."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.appName("connect")
    settings = {**SETTINGS, "spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "2"}
    for name, value in settings.items():
        builder = builder.config(name, value)
    return configure_spark_with_delta_pip(builder).remote("local[2]").getOrCreate()


def refusal(call: Callable[[], object]) -> str:
    """The error of a call, and the column that it is about."""
    try:
        call()
    except TxnTableError as error:
        return f"{type(error).__name__} {error.facts.get('column') or error.facts.get('missing')}"
    return "none"


def write_in_transactions(spark: Any, warehouse: Warehouse) -> dict[str, Any]:
    """Write with and without a key, shuffled and not; be refused by the driver and by a task; leave one open."""
    warehouse.admin().create_topic("flights", partitions=2, schema=SCHEMA, key=["carrier"])
    warehouse.admin().create_topic("notes", partitions=2, schema=SCHEMA)
    frame = spark.createDataFrame([("UA", 1), ("AA", 2)], COLUMNS)
    producer = warehouse.producer("etl", transaction_timeout_ms=900_000)
    producer.init_transactions()
    with producer.transaction(batch_id=1) as transaction:
        transaction.write("flights", frame)
        transaction.write("flights", frame, distribution_mode="hash")
        transaction.write("notes", frame)
    producer.begin_transaction()
    refused = [
        refusal(lambda: write_dataframes(producer, [("flights", frame.selectExpr(*_ROUNDED))])),
        refusal(lambda: write_dataframes(producer, [("flights", frame.selectExpr(*_WITH_NULL))])),
    ]
    producer.abort_transaction()
    producer.begin_transaction()
    producer.send("flights", row={"carrier": "DL", "delay": 3})
    producer.flush()
    return {"refused": refused, "notes": warehouse.read(spark, "notes").count()}


_ROUNDED = ("carrier", "CAST(delay AS DOUBLE) AS delay")
_WITH_NULL = ("nullif(carrier, 'UA') AS carrier", "delay")


def write_by_format(spark: Any, warehouse: Warehouse) -> dict[str, Any]:
    """Write a batch twice under one batch id, and insert in SQL."""
    warehouse.admin().create_topic("sent", partitions=2, schema=SCHEMA, key=["carrier"])
    options = {"warehouse": warehouse.url, "topic": "sent", "durability": "page-cache"}
    frame = spark.createDataFrame([("UA", 1), ("AA", 2)], COLUMNS)
    for _ in range(2):
        named = {**options, "transactionalId": "nightly", "batchId": "2026-11-20"}
        frame.write.format("txntable").options(**named).mode("append").save()
    given = ", ".join(f"{name} '{value}'" for name, value in options.items())
    spark.sql(f"CREATE TEMPORARY VIEW sink USING txntable OPTIONS ({given})")
    spark.sql("INSERT INTO sink (carrier, delay) VALUES ('DL', 4)")
    rows = spark.read.format("txntable").options(**options).load().collect()
    return {"sent": sorted((row["carrier"], row["delay"]) for row in rows)}


def write_streams(spark: Any, warehouse: Warehouse, folder: Path) -> dict[str, Any]:
    """Stream into two topics by ``foreachBatch``, from one of them into a third by the sink; each twice."""
    create_topics(warehouse, "all", "even", "copied")
    sink = {"warehouse": warehouse.url, "topic": "copied", "durability": "page-cache", "transactionalId": "copy"}

    def write_both(transaction: Any, numbers: Any) -> None:
        transaction.write_all({"all": numbers, "even": numbers.where("number % 2 = 0")})

    sent = []
    for run in range(2):
        sent += write_files(folder / "source", 2, first=2 * run)
        stream = numbers_stream(spark, folder / "source")
        drain(stream.writeStream.foreachBatch(warehouse.batch_writer("each", write_both)), folder / "each")
        copied = warehouse.read_stream(spark, "all").select("number")
        drain(copied.writeStream.format("txntable").options(**sink), folder / "copy")
    found = {topic: sorted(numbers_in(warehouse, topic).elements()) for topic in ("all", "even", "copied")}
    wanted = {"all": sent, "even": [number for number in sent if number % 2 == 0], "copied": sent}
    return {"streams": {topic: found[topic] == wanted[topic] for topic in wanted}}


def read(spark: Any, warehouse: Warehouse) -> dict[str, Any]:
    """Read at each level, between offsets, by the format, and in SQL at one position."""
    levels = ("snapshot", "read_committed", "read_uncommitted")
    counts = {level: warehouse.read(spark, "flights", isolation_level=level).count() for level in levels}
    first = warehouse.read(spark, "flights", ending_offsets={0: 1, 1: 1}).select("_offset").collect()
    ours = spark.read.format("txntable").options(warehouse=warehouse.url, topic="flights").load()
    snapshot = warehouse.create_views(spark, ["flights", "sent"])
    positions = [row["position"] for row in spark.sql("SELECT position FROM txntable_snapshot").collect()]
    return {
        "read": counts,
        "bounded": {row["_offset"] for row in first} == {0},
        "format": sorted(row["carrier"] for row in ours.collect()),
        "sql": spark.sql("SELECT sum(f.delay + s.delay) FROM flights f JOIN sent s USING (carrier)").first()[0],
        "position": positions == [snapshot.position] * 2,
    }


def compact_topic(spark: Any, warehouse: Warehouse) -> dict[str, Any]:
    """Merge the segments of a topic, two hours later."""
    before = warehouse.read(spark, "all").count()
    with pytest.MonkeyPatch.context() as monkeypatch:
        later_clock(monkeypatch)
        (report,) = compact(warehouse, ["all"], rewriter=spark_rewriter(spark))
    is_merged = report.merged_segments > (report.written_segments or 0) > 0 and not report.failures
    return {"compacted": is_merged and warehouse.read(spark, "all").count() == before}


def use(spark: Any, warehouse: Warehouse, folder: Path) -> dict[str, Any]:
    """Do everything."""
    return {
        "session": type(spark).__module__,
        **write_in_transactions(spark, warehouse),
        **write_by_format(spark, warehouse),
        **write_streams(spark, warehouse, folder),
        **read(spark, warehouse),
        **compact_topic(spark, warehouse),
    }


if __name__ == "__main__":
    place = Path(sys.argv[1])
    made = Warehouse.create(str(place / "wh"), durability="page-cache")
    connected = session()
    try:
        print(json.dumps(use(connected, made, place)))  # noqa: T201  the answer
    finally:
        connected.stop()
