"""A public table as Spark scans it from a list of its live files, which a view has already (PROTOCOL.md §10).

Owns when that is done, and the calls of the JVM.  Delta would look at the table's log for each read, and run a job that
looks for the files which a filter leaves: where they are few, that takes longer than to open them.  Delta's index of a
given list is called, and Spark's own Parquet reader; partitions, and row groups by their statistics, are left out as in
any scan.  Must not know what a segment holds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from txntable.format.isolation import IsolationLevel
from txntable.format.schema import PUBLIC_PARTITION_COLUMNS, public_schema, to_delta_schema
from txntable.partition.topic_view import TopicView
from txntable.segments.segment_columns import PlannedSegment
from txntable.spark.classic_session import PARQUET, has_classes, is_classic, is_known, java_class, java_object
from txntable.spark.scan.offset_bounds import OffsetBounds

MOST_SEGMENTS = 16
"""Of a list: what a few tasks open at once sooner than a job has looked through their statistics."""

_ACTION = "org.apache.spark.sql.delta.actions.Action$"
_LOG = "org.apache.spark.sql.delta.DeltaLog$"
_INDEX = "org.apache.spark.sql.delta.files.TahoeBatchFileIndex"
_RELATION = "org.apache.spark.sql.execution.datasources.HadoopFsRelation"


def listed_table(
    spark: SparkSession, table_url: str, view: TopicView, ranges: Mapping[int, OffsetBounds]
) -> DataFrame | None:
    """Return the columns of a public table, of the segments that hold these ranges.

    Parameters
    ----------
    spark : SparkSession
        Of any kind.
    table_url : str
        Of the public table, as Spark's file systems know it.
    view : TopicView
        What is seen of it.
    ranges : Mapping[int, OffsetBounds]
        The wanted offsets of every partition.

    Returns
    -------
    DataFrame or None
        ``None``: Delta's scan is as good, or the only one.
    """
    if view.level is IsolationLevel.READ_UNCOMMITTED:
        return None
    segments, called = _few_segments(view, ranges), _called(spark)
    return None if segments is None or called is None else _frame(spark, called, table_url, view, segments)


def _few_segments(view: TopicView, ranges: Mapping[int, OffsetBounds]) -> list[PlannedSegment] | None:
    starts = {partition: bounds.start for partition, bounds in ranges.items()}
    ends = {partition: bounds.end for partition, bounds in ranges.items()}
    found = list(islice(view.plan(starts, ends), MOST_SEGMENTS + 1))
    return found if len(found) <= MOST_SEGMENTS else None


@dataclass(frozen=True, slots=True)
class _Classes:
    """What is called of Spark and Delta."""

    action: Any
    log: Any
    index: Any
    parquet: Any
    relation: Any


@lru_cache(maxsize=1)
def _classes(jvm: Any) -> _Classes | None:
    """Return what is called, each of whose names takes many calls to find; ``None``: it is not all there."""
    if not has_classes(jvm, (_ACTION, _LOG, _INDEX, PARQUET, _RELATION)):
        return None
    objects = (java_object(jvm, _ACTION), java_object(jvm, _LOG))
    return _Classes(*objects, *(java_class(jvm, name) for name in (_INDEX, PARQUET, _RELATION)))


def _called(spark: SparkSession) -> _Classes | None:
    is_tested = is_classic(spark) and is_known(spark)
    return _classes(spark._jvm) if is_tested else None  # noqa: SLF001  PySpark has no public name for it


def _frame(
    spark: SparkSession, called: _Classes, table_url: str, view: TopicView, segments: Sequence[PlannedSegment]
) -> DataFrame:
    jvm: Any = spark._jvm  # noqa: SLF001  PySpark has no public name for it
    session = spark._jsparkSession  # noqa: SLF001  the same
    none = jvm.scala.Option.empty()
    table = called.action.fromJson(json.dumps({"metaData": _metadata(view)}))
    files = [called.action.fromJson(json.dumps({"add": _file(each)})) for each in segments]
    path = jvm.org.apache.hadoop.fs.Path(table_url)
    # Delta reads it once, and keeps it.  Of whichever version: the index asks for the partition columns alone.
    log = called.log.forTable(session, path)
    snapshot = log.unsafeVolatileSnapshot()
    index = called.index(session, "read", jvm.PythonUtils.toSeq(files), log, path, snapshot, False)
    options = jvm.PythonUtils.toScalaMap({})
    relation = called.relation(
        index, table.partitionSchema(), table.dataSchema(), none, called.parquet(), options, session
    )
    return DataFrame(session.baseRelationToDataFrame(relation), spark)


def _metadata(view: TopicView) -> dict[str, Any]:
    return {
        "id": view.settings.topic_id,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": to_delta_schema(public_schema(view.settings)),
        "partitionColumns": [column.name for column in PUBLIC_PARTITION_COLUMNS],
        "configuration": {},
    }


def _file(segment: PlannedSegment) -> dict[str, Any]:
    return {
        "path": segment.path,
        "partitionValues": {
            "_partition": str(segment.partition),
            "_base_offset": str(segment.base_offset),
            "_last_offset": str(segment.last_offset),
            "_commit": str(segment.commit),
        },
        "size": segment.size,
        "modificationTime": 0,
        "dataChange": False,
    }
