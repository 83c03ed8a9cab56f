"""Topics as views of a Spark session, for people who ask in SQL.

Owns which topics become views, and that all of them show the same position.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from txntable.snapshot import IsolationLevel
from txntable.warehouse import Warehouse


def register_topics(warehouse: Warehouse, spark: SparkSession, query: str, level: IsolationLevel) -> None:
    """Make views of the topics that a query names; of all when it names none (``SHOW VIEWS``).

    Parameters
    ----------
    warehouse : Warehouse
        Whose topics.
    spark : SparkSession
        Gets the views.
    query : str
        Only looked through for names: a topic that is not in it costs nothing.
    level : IsolationLevel
        Of all views; snapshots are at one position.
    """
    topics = warehouse.admin().list_topics()
    named = [topic for topic in topics if topic.lower() in query.lower()] or topics
    snapshot = warehouse.snapshot()
    for topic in named:
        is_snapshot = level is IsolationLevel.SNAPSHOT
        records = (
            snapshot.read(spark, topic) if is_snapshot else warehouse.read(spark, topic, isolation_level=level.value)
        )
        records.createOrReplaceTempView(f"`{topic}`")


def distinct_headers(names: Sequence[str]) -> dict[str, str]:
    """Return names that differ (``total``, ``total_2``) -> the query's own names, in order."""
    headers: dict[str, str] = {}
    for name in names:
        distinct, number = name, 1
        while distinct in headers:
            number += 1
            distinct = f"{name}_{number}"
        headers[distinct] = name
    return headers
