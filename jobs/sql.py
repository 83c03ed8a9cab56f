"""``txntable sql "SELECT …"``: Spark SQL over the topics of a warehouse, all as of one position.

Owns how topics become views.  The command itself parses, builds the session, asks, prints.
"""

from __future__ import annotations

from typing import Annotated

import typer
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

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
            answer = spark.sql(query)
            found = answer.limit(limit + 1).collect()
            headers = distinct_headers(answer)
        except PySparkException as error:
            raise InvalidRequestError(
                f"spark can not answer the query: {_first_line(error)}", condition=error.getCondition()
            ) from error
    if len(found) > limit:
        note(f"only the first {limit} rows; --limit shows more")
    rows = [tuple(row.asDict(recursive=True).values()) if False else tuple(_plain(value) for value in row) for row in found]
    connection.output.rows(Rows(headers, rows[:limit]))
