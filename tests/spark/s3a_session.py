"""A Spark session of its own that reads one object of each bucket, each with other credentials; prints who could.

Its standard input says how: a JSON object, bucket -> storage options.  The first bucket's are given as a warehouse's
store, the others' as settings.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from pyspark import SparkContext

from txntable.spark.s3a import s3a_settings
from txntable.spark.session import build_session
from txntable.storage.object_store import StoreSpec

OBJECT = "words.txt"
LONGEST = 300
FAILING_FAST = {"spark.hadoop.fs.s3a.attempts.maximum": "1", "spark.hadoop.fs.s3a.retry.limit": "1"}


def read(spark: Any, bucket: str) -> str:
    """The object's line, or what refused it."""
    try:
        return spark.read.text(f"s3://{bucket}/{OBJECT}").first()[0]
    except Exception as error:  # noqa: BLE001  whatever it is, the test shows it
        return str(error)[:LONGEST]


def command_line() -> str:
    """What everybody on this machine sees of the JVM."""
    gateway = SparkContext._gateway
    assert gateway is not None
    shown = Path(f"/proc/{gateway.proc.pid}/cmdline")
    return shown.read_text() if shown.exists() else ""


def main() -> None:
    buckets: dict[str, dict[str, str]] = json.load(sys.stdin)
    first, *others = buckets
    settings = {"spark.driver.memory": "1g", **FAILING_FAST}
    for bucket in others:
        found = s3a_settings(f"s3://{bucket}/wh", buckets[bucket])
        settings |= {name: value for name, value in found.items() if name.startswith("spark.hadoop.")}
    store = StoreSpec(f"s3://{first}/wh", buckets[first])
    spark = build_session("s3a", master="local[2]", settings=settings, store=store)
    answer = {bucket: read(spark, bucket) for bucket in buckets}
    shown = command_line() + os.linesep.join(f"{name} {value}" for name, value in spark.sparkContext.getConf().getAll())
    print(json.dumps({"read": answer, "shown": shown}))  # noqa: T201  the answer
    spark.stop()


if __name__ == "__main__":
    main()
