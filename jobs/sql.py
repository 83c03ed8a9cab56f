"""``txntable sql "SELECT …"``: Spark SQL over the topics of a warehouse, all as of one position.

Parses, builds the session, makes the views that the query names, asks, prints.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Collection, Sequence
from typing import Annotated

import pyarrow as pa
import typer
from pyspark.errors import PySparkException

from txntable.cli.connection import Connection, on_warehouse
from txntable.cli.output import Rows, note
from txntable.errors import TxnTableError, UnknownTopicOrPartitionError
from txntable.format.isolation import IsolationLevel
from txntable.format.layout import SNAPSHOT_VIEW
from txntable.jobs.session import spark_session
from txntable.snapshot.snapshot import as_of as as_of_text
from txntable.snapshot.snapshot_description import topics_then
from txntable.spark.pipelines.transforms import check_asks, query_refusal
from txntable.warehouse.warehouse import Warehouse


def sql(
    connection: Connection,
    query: Annotated[
        str,
        typer.Argument(
            metavar="QUERY",
            help=f"One statement of Spark SQL; every topic is a view of its name, {SNAPSHOT_VIEW} tells the position.",
        ),
    ],
    isolation_level: Annotated[
        IsolationLevel,
        typer.Option(
            "--isolation-level",
            help="What is seen: what is committed as of one position, or below the last stable offset; or all.",
        ),
    ] = IsolationLevel.SNAPSHOT,
    as_of: Annotated[
        str | None,
        typer.Option(
            "--as-of", metavar="POSITION|TIME", help="Of a snapshot: a position, or a time with a zone (ISO 8601)."
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="NUMBER", min=1, help="The most rows that are printed.")
    ] = 1000,
) -> None:
    """Ask the topics of a warehouse with Spark SQL: a snapshot of all of them at one position."""
    warehouse = connection.open()
    moment = None if as_of is None else as_of_text(as_of)
    named = topics_named(query, warehouse.admin().list_topics(deleted=moment is not None))
    there = named if named is None or moment is None else _there_then(warehouse, moment, named)
    with spark_session("txntable sql", warehouse.store.spec) as spark:
        try:
            explains = "ExplainCommand" in check_asks(spark, query)
            warehouse.create_views(spark, there, moment, isolation_level=isolation_level)
            found = spark.sql(query).limit(limit + 1).toArrow()
        except PySparkException as error:
            raise _refusal(query, error, set(named or ()) - set(there or ())) from error
    rows = _plan(found) if explains else _rows(found, limit)
    connection.output.rows(Rows(distinct_headers(found.column_names), rows))


def _rows(found: pa.Table, limit: int) -> list[tuple[object, ...]]:
    if found.num_rows > limit:
        note(f"only the first {limit} rows; --limit shows more")
    return list(zip(*(column.to_pylist() for column in found.slice(0, limit).columns), strict=True))


def _plan(found: pa.Table) -> list[tuple[object, ...]]:
    """Return a plan, which is one text of many lines, line by line."""
    return [(line,) for text in found.column(0).to_pylist() for line in str(text).splitlines()]


def _there_then(warehouse: Warehouse, moment: int | dt.datetime, topics: Sequence[str]) -> list[str]:
    """Return those of the topics that there were: a name in a query may be that of a column."""
    return [name for name, _ in topics_then(warehouse.snapshot(moment), topics)]


def _refusal(query: str, error: PySparkException, not_yet: Collection[str]) -> TxnTableError:
    condition = error.getCondition()
    if not_yet and condition == "TABLE_OR_VIEW_NOT_FOUND":
        return UnknownTopicOrPartitionError(
            "there was no such topic then; ask for a later time or position", topics=",".join(sorted(not_yet))
        )
    may_be_several = condition == "PARSE_SYNTAX_ERROR" and ";" in query.rstrip("; \n")
    return query_refusal("the query, which is to be one statement" if may_be_several else "the query", error)


def topics_named(query: str, topics: Sequence[str]) -> Sequence[str] | None:
    """Return the topics whose names are in a query: others need not be looked at; ``None``, all: there are none.

    A query that asks for the position asks for every topic's.
    """
    text = query.lower()
    if SNAPSHOT_VIEW in text:
        return None
    return [each for each in topics if re.search(rf"(?<!\w){re.escape(each.lower())}(?!\w)", text)] or None


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


command = on_warehouse(sql)
