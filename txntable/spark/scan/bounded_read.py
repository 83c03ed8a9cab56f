"""The DataFrame of a consumer's bounded read: the offsets that it pinned, and no others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from txntable.partition.topic_view import TopicView
from txntable.spark.scan.offset_bounds import OffsetBounds
from txntable.spark.scan.reader import scan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ReadDataFrame = Callable[["SparkSession", TopicView, Mapping[int, int], Mapping[int, int]], "DataFrame"]
"""(session, view, starts, ends) -> the records; handed to consumers, which do not know Spark."""


def dataframe_reader(warehouse_url: str) -> ReadDataFrame:
    """Return what reads ranges of a warehouse.

    Parameters
    ----------
    warehouse_url : str
        The warehouse's.
    """

    def read(spark: SparkSession, view: TopicView, starts: Mapping[int, int], ends: Mapping[int, int]) -> DataFrame:
        ranges = {partition: OffsetBounds(starts[partition], ends[partition]) for partition in view.bounds}
        return scan(spark, warehouse_url, view, ranges)

    return read
