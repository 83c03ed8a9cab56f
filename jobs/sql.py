"""``txntable sql "SELECT …"``: Spark SQL over the topics of a warehouse, all as of one position.

Parses, builds the session, asks, prints; how topics become views is ``jobs.topic_views``'.
"""

from __future__ import annotations

from typing import Annotated

import typer
from pyspark.errors import PySparkException

from jobs.session import spark_session
from jobs.topic_views import distinct_headers, register_topics
from txntable.cli.connection import Connection, on_warehouse
from txntable.cli.output import Rows, note
from txntable.errors import InvalidRequestError
from txntable.snapshot import IsolationLevel


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


def _first_line(error: PySparkException) -> str:
    text = (error.getMessage() or str(error)).strip()
    return text.splitlines()[0] if text else type(error).__name__


command = on_warehouse(sql)
