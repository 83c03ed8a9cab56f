"""Planning a read of 100,000 live segments: by our planner, by Delta in Spark, by Spark given the list of files.

Every segment is a link to one small file.  "First look" is what a new session pays once; the rest are medians.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructType

from benchmarks.cold_start import SEGMENTS, SyntheticFile, fill, segment_name
from benchmarks.measurement import Figure, alternate, paired_ratio, peak_memory_mib, ratio
from benchmarks.spark_session import session
from txntable.format.isolation import IsolationLevel
from txntable.format.layout import segments_root
from txntable.format.schema import segment_schema, to_delta_schema
from txntable.format.topic import TopicSettings
from txntable.partition.topic_view import TopicView
from txntable.segments.segment import SegmentPlan
from txntable.segments.segment_writer import SegmentWriter
from txntable.spark.datasource.pinned_read import pin
from txntable.spark.datasource.read_options import read_options
from txntable.warehouse.warehouse import Warehouse

TOPIC = "big"
# The synthetic transactions are in no transaction log: they have no position.
LEVEL = IsolationLevel.READ_COMMITTED
ROUNDS = 3
FIRST_LOOKS, AGAIN = 6, 15
MOST_LINKS = 10_000
"""Of one file: file systems have a limit."""
ONE_SEGMENT = {partition: 9_990 if partition == 7 else 10_000 for partition in range(100)}
"""Where to start so that one segment is left."""


def measure(folder: Path) -> list[Figure]:
    """Return seconds from a cold start to a plan, and from a DataFrame to its first row."""
    url = str(folder / "wh")
    warehouse = Warehouse.create(url, durability="page-cache")
    schema = pa.schema([pa.field("x", pa.int64())])
    settings = warehouse.admin().create_topic(TOPIC, partitions=100, schema=schema)
    _fill(warehouse, settings)
    figures = _ours(url)
    spark = session()
    try:
        _rows(spark.range(1))
        return [
            *figures,
            *_in_spark(spark, url, schema),
            *_again(url),
            Figure("peak memory of this process", peak_memory_mib(), "MiB"),
        ]
    finally:
        spark.stop()


def _fill(warehouse: Warehouse, settings: TopicSettings) -> None:
    plan = SegmentPlan(segments_root(TOPIC), settings, (1, 0), 1)
    writer = SegmentWriter(warehouse.store, plan, 0, "f" * 32, keyed=False)
    writer.write(pa.record_batch({"x": pa.array(range(10), pa.int64())}))
    staged = writer.close()
    root = Path(warehouse.url) / segments_root(TOPIC)
    linked = root / staged.path
    for number in range(SEGMENTS):
        path = root / segment_name(settings.topic_id, number)
        path.parent.mkdir(exist_ok=True)
        if number % MOST_LINKS:
            os.link(linked, path)
        else:
            linked = shutil.copyfile(linked, path)
    fill(warehouse.topic_log(TOPIC), settings.topic_id, SyntheticFile(staged.size, staged.stats, staged.digest))


def _ours(url: str) -> list[Figure]:
    def view() -> TopicView:
        reader = Warehouse.open(url).topic_reader(TOPIC)
        reader.catch_up()
        return reader.view(LEVEL)

    def plan_all() -> None:
        assert len(list(view().plan())) == SEGMENTS

    def plan_one() -> None:
        assert len(list(view().plan(starting=ONE_SEGMENT))) == 1

    return [
        Figure(
            "our cold start, everything planned", _median(plan_all), "s", f"{SEGMENTS:,} segments; {_cpu(plan_all)}"
        ),
        Figure("our cold start, one segment planned", _median(plan_one), "s", _cpu(plan_one)),
    ]


def _again(url: str) -> list[Figure]:
    """Return seconds of a plan in a process that has planned everything before; appends to the topic."""
    reader = Warehouse.open(url).topic_reader(TOPIC)
    producer = Warehouse.open(url, durability="page-cache").producer()

    def plan() -> None:
        reader.catch_up()
        assert len(list(reader.view(LEVEL).plan())) >= SEGMENTS

    plan()
    unchanged, grown = _median(plan), []
    for _ in range(ROUNDS):
        producer.send(TOPIC, row={"x": 1}, partition=0)
        producer.flush()
        grown.append(_timed(plan))
    return [
        Figure("everything planned again, nothing new", unchanged, "s", "all of the list, in a process that has it"),
        Figure("everything planned again, after one append", median(grown), "s"),
    ]


def _in_spark(spark: Any, url: str, schema: pa.Schema) -> list[Figure]:
    warehouse = Warehouse.open(url)
    view = warehouse.topic_reader(TOPIC).view(LEVEL)
    files = [f"{url}/{view.root}/{segment.path}" for segment in view.plan()]

    def native(**options: Any) -> Any:
        return warehouse.read(spark, TOPIC, isolation_level=LEVEL, **options)

    def by_format() -> Any:
        reader = spark.read.format("txntable").option("warehouse", url).options(topic=TOPIC, isolationLevel=LEVEL.value)
        return reader.option("startingOffsets", json.dumps(ONE_SEGMENT)).load()

    def listed() -> Any:
        return spark.read.schema(_ddl(schema)).parquet(*files)

    delta_all = _median(lambda: _first(native()))
    format_one = _median(lambda: _rows(by_format()))
    format_plan = _median(
        lambda: pin(read_options({"warehouse": url, "topic": TOPIC, "isolationLevel": LEVEL.value})).tasks()
    )
    list_all = _timed(lambda: _first(listed()))
    list_again = _median(lambda: _first(listed()))
    return [
        *_beside_delta(spark, url),
        Figure("our read by Spark, again, first row of everything", delta_all, "s"),
        Figure('format("txntable"), rows of one segment', format_one, "s", "in Python processes of their own"),
        Figure('format("txntable"), pinned and all tasks planned', format_plan, "s"),
        Figure("Parquet by the list of files, first row of everything, first time", list_all, "s"),
        Figure("Parquet by the list of files, first row of everything, again", list_again, "s"),
        ratio("list of files ÷ ours, first row of everything", list_again, delta_all),
    ]


def _beside_delta(spark: Any, url: str) -> list[Figure]:
    """Return what a read by Spark takes ÷ Delta's own of the same table, with a predicate that a person would write."""
    standing = Warehouse.open(url)
    table = f"{url}/{standing.topic_reader(TOPIC).view(LEVEL).root}"

    def ours(warehouse: Warehouse) -> None:
        _rows(warehouse.read(spark, TOPIC, isolation_level=LEVEL, starting_offsets=ONE_SEGMENT))

    def delta() -> None:
        _rows(spark.read.format("delta").load(table).where("_partition = 7 AND _last_offset >= 9990"))

    def forgotten(call: Callable[[], None]) -> Callable[[], None]:
        def first_look() -> None:
            spark.sparkContext._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # noqa: SLF001  no public way
            call()

        return first_look

    first = alternate(FIRST_LOOKS, forgotten(lambda: ours(Warehouse.open(url))), forgotten(delta))
    again = alternate(AGAIN, lambda: ours(standing), delta)
    return [
        paired_ratio("read of one segment by Spark ÷ Delta's own, first look", *first),
        paired_ratio("read of one segment by Spark ÷ Delta's own, again", *again),
    ]


def _ddl(schema: pa.Schema) -> Any:
    return StructType.fromJson(json.loads(to_delta_schema(segment_schema(schema))))


def _rows(frame: Any) -> None:
    frame.collect()


def _first(frame: Any) -> None:
    assert len(frame.take(1)) == 1


def _timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _median(call: Callable[[], object]) -> float:
    return median(_timed(call) for _ in range(ROUNDS))


def _cpu(call: Callable[[], object]) -> str:
    start = time.process_time()
    call()
    return f"{time.process_time() - start:.2f} s of processor time"
