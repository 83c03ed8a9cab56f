"""What a person does over Spark Connect, in a process of its own; prints what was seen as JSON."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import pyarrow as pa
from delta.pip_utils import configure_spark_with_delta_pip
from pyspark.sql import SparkSession

from txntable.spark.session import SETTINGS
from txntable.warehouse import Warehouse

SCHEMA = pa.schema([pa.field("carrier", pa.string()), pa.field("delay", pa.int64())])


def session() -> Any:
    """A session of Spark Connect, and its server, on two cores."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.appName("connect")
    for name, value in {**SETTINGS, "spark.sql.shuffle.partitions": "2"}.items():
        builder = builder.config(name, value)
    return configure_spark_with_delta_pip(builder).remote("local[2]").getOrCreate()


def use(spark: Any, warehouse: Warehouse) -> dict[str, Any]:
    """Write, abort nothing, leave one transaction open, and read in every way."""
    warehouse.admin().create_topic("flights", partitions=2, schema=SCHEMA, key=["carrier"])
    producer = warehouse.producer("etl")
    producer.init_transactions()
    with producer.transaction() as transaction:
        transaction.write("flights", spark.createDataFrame([("UA", 1), ("AA", 2)], "carrier string, delay bigint"))
    producer.begin_transaction()
    producer.send("flights", row={"carrier": "DL", "delay": 3})
    producer.flush()
    levels = ("snapshot", "read_committed", "read_uncommitted")
    read = {level: warehouse.read(spark, "flights", isolation_level=level).count() for level in levels}
    ends = warehouse.read(spark, "flights", ending_offsets={0: 0}).count()
    by_format = spark.read.format("txntable").options(warehouse=warehouse.url, topic="flights").load()
    snapshot = warehouse.create_views(spark)
    positions = [row["position"] for row in spark.sql("SELECT position FROM txntable_snapshot").collect()]
    return {
        "session": type(spark).__module__,
        "read": read,
        "bounded": ends <= read["snapshot"],
        "format": sorted(row["carrier"] for row in by_format.collect()),
        "sql": spark.sql("SELECT sum(delay) FROM flights").collect()[0][0],
        "position": positions == [snapshot.position],
    }


if __name__ == "__main__":
    made = Warehouse.create(sys.argv[1], durability="page-cache")
    connected = session()
    try:
        print(json.dumps(use(connected, made)))  # noqa: T201  the answer
    finally:
        connected.stop()
