"""``txntable sql "SELECT …"``: Spark SQL over the topics of a warehouse, all as of one position.

Owns how topics become views.  The command itself parses, builds the session, asks, prints.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from jobs.session import spark_session
from txntable.cli.connection import Connection, on_warehouse
from txntable.cli.output import Rows, note
from txntable.errors import InvalidRequestError
from txntable.snapshot import IsolationLevel
from txntable.warehouse import Warehouse


def sql(
    connection: Connection,
    query: Annotated[str, typer.Argument(help="Spark SQL; every topic is a view of its name.")],
    isolation_level: Annotated[
        IsolationLevel, typer.Option("--isolation-level", help="What is seen: committed records, or all appended ones.")
    ] = IsolationLevel.SNAPSHOT,
    limit: Annotated[int, typer.Option("--limit", min=1, help="The most rows that are printed.")] = 1000,
) -> None:
    """Ask the topics of a warehouse with Spark SQL: a snapshot of all of them at one position."""
    warehouse = connection.open()
    with spark_session("txntable sql") as spark:
        try:
            register_topics(warehouse, spark, query, isolation_level)
            found = spark.sql(query).limit(limit + 1).toArrow()
        except PySparkException as error:
            raise InvalidRequestError(
                f"spark refuses the query: {_first_line(error)}", condition=error.getCondition()
            ) from error
    if found.num_rows > limit:
        note(f"only the first {limit} rows; --limit shows more")
    columns = [column.to_pylist()[:limit] for column in found.columns]
    connection.output.rows(Rows(distinct_headers(found.column_names), list(zip(*columns, strict=True))))


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


def _first_line(error: PySparkException) -> str:
    text = (error.getMessage() or str(error)).strip()
    return text.splitlines()[0] if text else type(error).__name__


command = on_warehouse(sql)
