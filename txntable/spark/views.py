"""Topics as temporary views of a Spark session, for people who ask in SQL (PROTOCOL.md §10).

Owns the views' names and the view ``txntable_snapshot``: a row for each topic with what plain SQL on
the Delta tables needs.  ``_commit <= D`` on any of them is a snapshot while
``merged_through <= D <= published_position``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SNAPSHOT_VIEW = "txntable_snapshot"
_COLUMNS = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("version", pa.int64()),
        pa.field("merged_through", pa.int64()),
        pa.field("position", pa.int64()),
        pa.field("published_position", pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True)
class TopicSource:
    """One topic that becomes a view.

    Attributes
    ----------
    topic : str
        Its name.
    records : DataFrame
        What the view shows.
    version : int
        Of its public table.
    merged_through : int
        Its public table, as it is now, can not tell apart what was committed below.
    """

    topic: str
    records: DataFrame
    version: int
    merged_through: int


def register_views(
    spark: SparkSession, sources: Sequence[TopicSource], positions: tuple[int, int], prefix: str
) -> None:
    """Make the views.

    Parameters
    ----------
    spark : SparkSession
        Gets them; a view of the same name is replaced.
    sources : sequence of TopicSource
        The topics.
    positions : tuple of int
        The snapshot's, and the published one.
    prefix : str
        Of the names of all views.
    """
    for source in sources:
        source.records.createOrReplaceTempView(f"`{prefix}{source.topic}`")
    rows = [(each.topic, each.version, each.merged_through, *positions) for each in sources]
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in _COLUMNS]
    spark.createDataFrame(pa.table(columns, schema=_COLUMNS)).createOrReplaceTempView(f"`{prefix}{SNAPSHOT_VIEW}`")
