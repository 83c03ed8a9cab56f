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

from txntable.errors import InvalidRequestError
from txntable.format.layout import SNAPSHOT_VIEW, twins

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
        Its public table, as it is now, cannot tell apart what was committed below.
    """

    topic: str
    records: DataFrame
    version: int
    merged_through: int


def check_view_names(topics: Sequence[str], live: Sequence[str]) -> None:
    """Return when SQL tells the views of these topics from one another, and from those of all others.

    Parameters
    ----------
    topics : sequence of str
        That are to become views.
    live : sequence of str
        All topics whose views there may be.

    Raises
    ------
    InvalidRequestError
        Two names differ by case only, which Spark does not see, or one is the position's view's: a query would silently
        show the rows of another.  Read such topics by name (``warehouse.read``), or make one of them anew.
    """
    for topic in topics:
        if others := twins(topic, live):
            raise InvalidRequestError(
                "SQL takes names for one that differ by case only; read these topics by name, or rename one",
                topics=",".join([topic, *others]),
            )
        if topic.lower() == SNAPSHOT_VIEW:
            raise InvalidRequestError("the name is that of the position's view; read the topic by name", topic=topic)


def drop_views(spark: SparkSession, prefix: str) -> None:
    """Drop what an earlier call has made: a session shows one position, not two.

    Parameters
    ----------
    spark : SparkSession
        Has them, or not.
    prefix : str
        Of the names of all views.
    """
    shown = f"`{prefix}{SNAPSHOT_VIEW}`"
    if spark.catalog.tableExists(shown):
        for row in spark.table(shown).select("topic").collect():
            spark.catalog.dropTempView(f"{prefix}{row['topic']}")


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
