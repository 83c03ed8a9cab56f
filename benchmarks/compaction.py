"""Compaction of many small segments beside Spark jobs that rewrite the same files: a plain one, and Delta's OPTIMIZE.

TPC-H lineitem in segments of some 100 kB, 8 partitions, appended two hours ago.  The plain job reads the folders of
these very files with their schema, and writes as many files as compaction leaves, in the same codec: no shuffle, no
order, and nobody registers what it wrote.  OPTIMIZE gets a Delta table of the files, made before.  Rounds alternate,
each on a copy (hard links); the ratio is the median of pairs.  Compaction in this process, on one core and without
Spark, stands beside all.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.types import StructType

from benchmarks.lineitem import SCALE, columns, lineitem
from benchmarks.measurement import Figure, alternate_costs, paired_ratio, peak_memory_mib, ratio, rounds
from benchmarks.spark_session import session
from txntable.compaction.compactor import compact
from txntable.compaction.rewriter import Rewriter
from txntable.compaction.spark_rewriter import spark_rewriter
from txntable.compaction.spec import TopicReport
from txntable.format.layout import segments_root
from txntable.format.schema import segment_schema, to_delta_schema
from txntable.log.actions import Action
from txntable.log.table_state import TableState
from txntable.partition.append import AppendRequest, SequencedSegment, decide_append
from txntable.runtime.environment import SystemEnvironment
from txntable.segments.segment import SegmentPlan, StagedSegment
from txntable.segments.segment_writer import SegmentWriter
from txntable.topics.topic_log import TopicLog
from txntable.warehouse.warehouse import Warehouse

ROUNDS = rounds(3)
TOPIC = "lineitem"
PARTITIONS = 8
ROWS = 3_000
"""Of each segment: some 100 kB."""
_AT_ONCE = 1_000
_AGE_MS = 2 * 3600 * 1000
_names = itertools.count()


def measure(folder: Path) -> list[Figure]:
    """Return the ratios of wall time and of CPU time."""
    source = lineitem(folder)
    url = folder / "wh"
    small_bytes = _fill(Warehouse.create(str(url), durability="page-cache"), source)
    spark = session()
    try:
        jobs = _Jobs(spark, url, folder, _converted(spark, url, folder), columns(source))
        on_spark, here = partial(jobs.compact, spark_rewriter(spark)), partial(jobs.compact, None)
        wall, cpu = alternate_costs(ROUNDS, on_spark, jobs.rewrite, here, jobs.optimize)
        done = jobs.reports[-1]
        new_bytes = done.written_bytes or 0
        assert done.written_segments is not None
        assert done.merged_segments == _segments_of(source)
        assert not any(report.failures for report in jobs.reports)
        return [
            *_figures(wall, "wall"),
            *_figures(cpu, "cpu"),
            ratio("bytes of the new segments ÷ bytes of Spark's files", new_bytes, jobs.sizes[-1]),
            ratio("bytes of the new segments ÷ bytes of the small ones", new_bytes, small_bytes),
            Figure("segments merged into one", done.merged_segments / done.written_segments, "", f"scale {SCALE}"),
            Figure("peak memory of this process", peak_memory_mib(), "MiB"),
        ]
    finally:
        spark.stop()


class _Jobs:
    """What is measured, each on a copy of what it works on."""

    def __init__(self, spark: Any, url: Path, folder: Path, table: Path, schema: pa.Schema) -> None:
        self._spark, self._url, self._folder, self._table = spark, url, folder, table
        self._schema = StructType.fromJson(json.loads(to_delta_schema(segment_schema(schema))))
        self.reports: list[TopicReport] = []
        self.sizes: list[int] = []

    def compact(self, rewriter: Rewriter | None) -> None:
        copy = _copy(self._url, self._folder)
        self.reports.extend(compact(Warehouse.open(str(copy), durability="page-cache"), rewriter=rewriter))
        shutil.rmtree(copy)

    def rewrite(self) -> None:
        copy = _copy(self._url, self._folder)
        frame = self._spark.read.schema(self._schema).parquet(f"{copy}/{segments_root(TOPIC)}/p*")
        # As many files as compaction, which runs first, has left.
        frame = frame.coalesce(self.reports[-1].written_segments or PARTITIONS)
        self.sizes.append(_written(frame, self._folder / f"rewritten-{next(_names)}"))
        shutil.rmtree(copy)

    def optimize(self) -> None:
        copy = _copy(self._table, self._folder)
        self._spark.sql(f"OPTIMIZE delta.`{copy}`").collect()
        shutil.rmtree(copy)


def _figures(seconds: list[list[float]], kind: str) -> list[Figure]:
    on_spark, plain, here, delta = seconds
    return [
        paired_ratio(f"compaction on Spark ÷ Spark's read and write, {kind}", on_spark, plain),
        paired_ratio(f"compaction in this process ÷ Spark's read and write, {kind}", here, plain),
        paired_ratio(f"compaction on Spark ÷ Delta's OPTIMIZE, {kind}", on_spark, delta),
        paired_ratio(f"compaction in this process ÷ Delta's OPTIMIZE, {kind}", here, delta),
    ]


def _converted(spark: Any, url: Path, folder: Path) -> Path:
    """Return a Delta table of the warehouse's very files."""
    table = folder / "delta"
    table.mkdir()
    for number, file in enumerate(sorted((url / segments_root(TOPIC)).glob("p*/*.parquet"))):
        os.link(file, table / f"{number:05}.parquet")
    spark.sql(f"CONVERT TO DELTA parquet.`{table}`")
    return table


def _fill(warehouse: Warehouse, source: Path) -> int:
    """Write lineitem as small segments, one partition after the other in turn; return their bytes."""
    settings = warehouse.admin().create_topic(TOPIC, partitions=PARTITIONS, schema=columns(source))
    topic, environment = warehouse.topic_log(TOPIC), SystemEnvironment()
    past_ms = warehouse.context.clock.now_ms() - _AGE_MS
    plan = SegmentPlan(segments_root(TOPIC), settings, None, past_ms)

    def segments() -> Iterator[StagedSegment]:
        batches = (batch for batch in pq.ParquetFile(source).iter_batches(ROWS) if batch.num_rows == ROWS)
        for number, batch in enumerate(batches):
            writer = SegmentWriter(warehouse.store, plan, number % PARTITIONS, environment.new_id(), keyed=False)
            writer.write(pa.Table.from_batches([batch]).cast(settings.schema))
            yield writer.close()

    written = 0
    remaining = segments()
    while staged := list(itertools.islice(remaining, _AT_ONCE)):
        request = AppendRequest(settings.topic_id, None, False, tuple(SequencedSegment(each, None) for each in staged))
        topic.segments.commit("FILL", _appended(topic, request, past_ms))
        written += sum(each.size for each in staged)
    topic.project()
    return written


def _appended(topic: TopicLog, request: AppendRequest, past_ms: int) -> Callable[[TableState], list[Action]]:
    return lambda table: list(decide_append(topic.segments.fold, table, request, past_ms).actions)


def _copy(url: Path, folder: Path) -> Path:
    return Path(shutil.copytree(url, folder / f"wh-{next(_names)}", copy_function=os.link))


def _segments_of(source: Path) -> int:
    return sum(batch.num_rows == ROWS for batch in pq.ParquetFile(source).iter_batches(ROWS, columns=["l_orderkey"]))


def _written(frame: Any, path: Path) -> int:
    frame.write.parquet(str(path))
    size = sum(file.stat().st_size for file in path.glob("*.parquet"))
    shutil.rmtree(path)
    return size
