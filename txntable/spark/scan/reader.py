"""Scans of a topic's two tables with Spark's own Delta reader (PROTOCOL.md §10).

Owns which columns a DataFrame of a topic has, and that a scan shows what its view shows: a pinned
version, whole files left out by their partition columns.  Nothing here runs per row in Python.  Delta's scan asks for
no more than a version and a filter, and so works over Spark Connect; few files are scanned without it
(:mod:`txntable.spark.scan.listed_segments`).
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from txntable.errors import MissingDependencyError
from txntable.format.isolation import IsolationLevel
from txntable.partition.topic_view import TopicView
from txntable.spark.scan.offset_bounds import OffsetBounds, range_predicates
from txntable.spark.scan.stream_options import check_stream_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OFFSET = "_base_offset + _offset_delta AS _offset"
_OUR_PREFIX = "_"
_NO_S3A = re.compile(r"S3AFileSystem not found|No FileSystem for scheme")
_NO_DELTA = re.compile(r"DATA_SOURCE_NOT_FOUND.*\bdelta\b", re.DOTALL)
_PUBLIC_COMMIT = "_commit"
# The partition logs do not say what is committed.
_UNKNOWN_COMMIT = "CAST(NULL AS BIGINT) AS _commit"


def spark_url(url: str) -> str:
    """Return a store's URL as Spark's file systems know it: Hadoop's S3 client goes by ``s3a``."""
    return f"s3a://{url.removeprefix('s3://')}" if url.startswith("s3://") else url


def scan(spark: SparkSession, warehouse_url: str, view: TopicView, ranges: Mapping[int, OffsetBounds]) -> DataFrame:
    """Return the records that a view shows.

    Parameters
    ----------
    spark : SparkSession
        With Delta (see :mod:`txntable.spark.session`).
    warehouse_url : str
        The warehouse's.
    view : TopicView
        The version that is read, and what is seen of it.
    ranges : Mapping[int, OffsetBounds]
        The wanted offsets of every partition; see :func:`txntable.spark.scan.offset_bounds.offset_bounds`.

    Returns
    -------
    DataFrame
        The topic's columns, then ``_partition``, ``_offset``, ``_timestamp`` and ``_commit`` (the position of
        the decision, 0 for records without a transaction; null at the level ``read_uncommitted``).
    """
    url = spark_url(f"{warehouse_url}/{view.root}")
    conditions = range_predicates(view.columns, ranges)
    with _telling_what_is_missing(url):
        # Imported where it runs: who asks for no DataFrame does without Spark.
        listed: Any = importlib.import_module("txntable.spark.scan.listed_segments")
        table: DataFrame | None = listed.listed_table(spark, url, view, ranges)
        if table is None:
            table = spark.read.format("delta").option("versionAsOf", view.version).load(url)
            conditions += _view_predicates(view)
    if conditions:
        table = table.where(" AND ".join(conditions))
    return record_columns(table, _UNKNOWN_COMMIT if _is_uncommitted(view) else _PUBLIC_COMMIT)


@contextmanager
def _telling_what_is_missing(url: str) -> Iterator[None]:
    """Say what to do where a session has no Delta, or cannot read S3 at all; Spark says it on forty lines of Java."""
    try:
        yield
    except Exception as error:
        if _NO_DELTA.search(str(error)) is not None:
            raise MissingDependencyError(
                "this spark session has no Delta; make it by txntable.spark.session.build_session(name), or give one of"
                " your own the package and the settings of Delta when it is made",
                url=url,
            ) from error
        if not url.startswith("s3a://") or _NO_S3A.search(str(error)) is None:
            raise
        raise MissingDependencyError(
            "this spark session has no client of s3; make it by build_session(name, store=warehouse.store.spec), or"
            " give one of your own the settings of txntable.spark.s3a.s3a_settings(warehouse.url) when it is made",
            url=url,
        ) from error


def _view_predicates(view: TopicView) -> list[str]:
    """Return the conditions, in SQL, that leave the files which a view shows of its table's version."""
    if _is_uncommitted(view):
        return ["_control IS NULL"]
    return [] if view.position is None else [f"_commit <= {view.position:d}"]


def _is_uncommitted(view: TopicView) -> bool:
    return view.level is IsolationLevel.READ_UNCOMMITTED


def stream(spark: SparkSession, table_url: str, options: Mapping[str, str]) -> DataFrame:
    """Return the public table as a stream of its records, in the order of their decisions.

    Parameters
    ----------
    spark : SparkSession
        With Delta.
    table_url : str
        Of the public table.
    options : Mapping[str, str]
        Of Delta's streams: ``startingVersion``, ``maxFilesPerTrigger``, …

    Raises
    ------
    InvalidRequestError
        Delta's streams have no such option.
    """
    check_stream_options(options)
    url = spark_url(table_url)
    with _telling_what_is_missing(url):
        table = spark.readStream.format("delta").options(**options).load(url)
    return record_columns(table, _PUBLIC_COMMIT)


def record_columns(table: DataFrame, commit: str = _PUBLIC_COMMIT) -> DataFrame:
    """Return the columns of records from those of a topic's table; `commit` is the expression of ``_commit``."""
    own = [f"`{name.replace('`', '``')}`" for name in table.columns if not name.startswith(_OUR_PREFIX)]
    return table.selectExpr(*own, "_partition", _OFFSET, "_timestamp", commit)
