"""A pipeline beside the same Spark job without transactions and offsets: lineitem is read, computed on, and written.

Both read the same segments, run the same expressions and write as many rows.  Rounds alternate, and each reads
everything: the pipeline as a new group.  The ratio is the median of pairs.  A third job gives each row an offset and a
time by Spark's own functions, as a record has them.  Beside it stands what a run costs whatever it reads: in seconds
and in requests, with one record.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.lineitem import SCALE, columns, lineitem
from benchmarks.measurement import Figure, alternate, paired_ratio, rounds
from benchmarks.spark_session import session
from tests.doubles.stepping_store import SteppingStore
from txntable.format.layout import public_root
from txntable.runtime.environment import SystemEnvironment
from txntable.spark.pipelines.pipeline import Frames, Pipeline
from txntable.spark.pipelines.pipeline_config import PipelineConfig
from txntable.storage.object_store import StoreSpec
from txntable.storage.open import open_store
from txntable.warehouse.warehouse import Warehouse, open_on

ROUNDS = rounds(9)
TINY_ROUNDS = 5
SOURCE, TARGET = "lineitem", "revenue"
_COLUMNS = ("l_orderkey", "l_partkey", "l_quantity", "l_shipdate")
_AS_A_RECORD = (
    "CAST(monotonically_increasing_id() & 4294967295 AS INT) AS _offset_delta",
    "current_timestamp() AS _timestamp",
)
_names = itertools.count()


def measure(folder: Path) -> list[Figure]:
    """Return the ratio of wall time, and what a run costs in any case."""
    file = lineitem(folder)
    spark = session()
    try:
        warehouse = _warehouse(folder / "wh", columns(file))
        _fill(warehouse, spark.read.parquet(str(file)))
        tiny = _warehouse(folder / "tiny", columns(file))
        _fill(tiny, spark.read.parquet(str(file)).limit(1))
        plain, as_records = _plain(warehouse, spark, folder), _plain(warehouse, spark, folder, _AS_A_RECORD)
        ours, peer, with_columns = alternate(ROUNDS, _pipeline(warehouse, spark), plain, as_records)
        small = alternate(TINY_ROUNDS, _pipeline(tiny, spark), _plain(tiny, spark, folder))
        name = f"pipeline ÷ the same job without transactions, scale {SCALE}"
        overhead = sorted(ours - peer for ours, peer in zip(*small, strict=True))[TINY_ROUNDS // 2]
        return [
            paired_ratio(name, ours, peer),
            paired_ratio(f"{name}, with an offset and a time for each row", ours, with_columns),
            Figure("overhead of a run of one record", overhead, "s", "one topic to another; session warm, group new"),
            *_requests(tiny, spark),
        ]
    finally:
        spark.stop()


def computed(lines: Any) -> Any:
    """Return what either job computes of each line."""
    return lines.selectExpr(*_COLUMNS, "l_extendedprice * (1 - l_discount) AS revenue")


def _warehouse(folder: Path, schema: pa.Schema) -> Warehouse:
    warehouse = Warehouse.create(str(folder), durability="page-cache")
    warehouse.admin().create_topic(SOURCE, partitions=8, schema=schema)
    return warehouse


def _fill(warehouse: Warehouse, lines: Any) -> None:
    """Load the source, and create the target as Spark names the types of what is computed."""
    producer = warehouse.producer("load")
    producer.init_transactions()
    with producer.transaction() as transaction:
        transaction.write(SOURCE, lines)
    found = computed(warehouse.read(lines.sparkSession, SOURCE)).limit(1).toArrow().schema
    warehouse.admin().create_topic(TARGET, partitions=8, schema=pa.schema([pa.field(f.name, f.type) for f in found]))


def _transform(frames: Frames) -> Frames:
    return {TARGET: computed(frames[SOURCE])}


def _pipeline(warehouse: Warehouse, spark: Any) -> Callable[[], None]:
    def run() -> None:
        config = PipelineConfig(f"group-{next(_names)}", (SOURCE,), (TARGET,))
        with Pipeline(warehouse, spark, config, _transform) as pipeline:
            pipeline.run_once()

    return run


def _plain(warehouse: Warehouse, spark: Any, folder: Path, more: Sequence[str] = ()) -> Callable[[], None]:
    """Return the same job on the same files, as they are, to Parquet; `more`: columns beside what is computed."""
    root = Path(warehouse.url) / public_root(SOURCE)
    segments = [str(root / path) for path in warehouse.topic_log(SOURCE).public.refresh().files.paths()]

    def run() -> None:
        target = folder / f"plain-{next(_names)}"
        computed(spark.read.parquet(*segments)).selectExpr("*", *more).write.parquet(str(target))
        shutil.rmtree(target)

    return run


def _requests(warehouse: Warehouse, spark: Any) -> list[Figure]:
    """Return what the driver asks of the store for the second run of a pipeline that stays open."""
    store = SteppingStore(open_store(StoreSpec(warehouse.url, {}, "page-cache")))
    opened = open_on(store, SystemEnvironment())
    config = PipelineConfig("counted", (SOURCE,), (TARGET,))
    with Pipeline(opened, spark, config, _transform) as pipeline:
        pipeline.run_once()
        producer = warehouse.producer("load")
        producer.init_transactions()
        with producer.transaction() as transaction:
            transaction.write(SOURCE, warehouse.read(spark, SOURCE).drop("_partition", "_offset", "_commit"))
        before = store.requests
        pipeline.run_once()
    spent = store.requests - before
    notes = "of the driver, the segment's own PUT and Spark's reading left out"
    return [Figure(f"{kind} of a steady run", float(count), "requests", notes) for kind, count in sorted(spent.items())]
