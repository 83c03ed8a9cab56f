"""The DataFrame of a consumer's bounded read: the offsets that it pinned, and no others.

Owns who reads them.  A few small segments are read by the driver, at once, and are rows of Spark's plan: a scan costs
more than a whole step over them.  Everything else is a scan, on executors.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping
from itertools import islice
from typing import TYPE_CHECKING

import pyarrow as pa

from txntable.format.schema import to_delta_schema
from txntable.partition.topic_view import TopicView
from txntable.spark.scan.offset_bounds import OffsetBounds
from txntable.spark.scan.reader import scan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Records = Callable[[], pa.RecordBatchReader]
"""() -> the records of the range, read as they are asked for."""
ReadDataFrame = Callable[["SparkSession", TopicView, Mapping[int, int], Mapping[int, int], Records], "DataFrame"]
"""(session, view, starts, ends, records) -> the records; handed to consumers, which do not know Spark."""

# As many as a store is asked for at once; one task's worth of work.
_MOST_SEGMENTS = 32
_MOST_BYTES = 1024 * 1024
# A small file may hold much.
_MOST_DECODED_BYTES = 16 * 1024 * 1024


def dataframe_reader(warehouse_url: str) -> ReadDataFrame:
    """Return what reads ranges of a warehouse.

    Parameters
    ----------
    warehouse_url : str
        The warehouse's.
    """

    def read(
        spark: SparkSession, view: TopicView, starts: Mapping[int, int], ends: Mapping[int, int], records: Records
    ) -> DataFrame:
        small = _small_table(records) if _is_small(view, starts, ends) else None
        if small is not None:
            return _local(spark, small)
        ranges = {partition: OffsetBounds(starts[partition], ends[partition]) for partition in view.bounds}
        return scan(spark, warehouse_url, view, ranges)

    return read


def _is_small(view: TopicView, starts: Mapping[int, int], ends: Mapping[int, int]) -> bool:
    segments = list(islice(view.plan(starts, ends), _MOST_SEGMENTS + 1))
    return len(segments) <= _MOST_SEGMENTS and sum(segment.size for segment in segments) <= _MOST_BYTES


def _small_table(records: Records) -> pa.Table | None:
    """Return the records, unless they are too many for the driver."""
    batches, size = [], 0
    with records() as reader:
        for batch in reader:
            size += batch.nbytes
            if size > _MOST_DECODED_BYTES:
                return None
            batches.append(batch)
        return pa.Table.from_batches(batches, reader.schema)


def _local(spark: SparkSession, table: pa.Table) -> DataFrame:
    # Imported where it runs: a client that never reads a DataFrame does without Spark's start-up time.
    types = importlib.import_module("pyspark.sql.types")
    schema = types.StructType.fromJson(json.loads(to_delta_schema(table.schema)))
    if not table.num_rows:
        # Of no rows Spark takes no Arrow table with a struct, a list or a map.
        return spark.createDataFrame([], schema)
    # Spark would make a task for each row, up to the number of its cores.
    return spark.createDataFrame(table, schema).coalesce(1)
