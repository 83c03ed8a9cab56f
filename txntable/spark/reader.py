"""Scans of a topic's two tables with Spark's own Delta reader (PROTOCOL.md §10).

Owns which columns a DataFrame of a topic has.  Nothing here runs per row in Python, and nothing
asks the JVM for more than a table version and a filter: it works over Spark Connect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OFFSET = "_base_offset + _offset_delta AS _offset"
_OUR_PREFIX = "_"


def spark_url(url: str) -> str:
    """Return a store's URL as Spark's file systems know it: Hadoop's S3 client goes by ``s3a``."""
    return f"s3a://{url.removeprefix('s3://')}" if url.startswith("s3://") else url


def scan_public(spark: SparkSession, table_url: str, version: int, position: int) -> DataFrame:
    """Return the committed records of a topic.

    Parameters
    ----------
    spark : SparkSession
        With Delta (see :mod:`txntable.spark.session`).
    table_url : str
        Of the public table.
    version : int
        Of the public table.
    position : int
        Records that were committed by a later decision are left out.

    Returns
    -------
    DataFrame
        The topic's columns, then ``_partition``, ``_offset``, ``_timestamp`` and ``_commit`` (the
        position of the decision, 0 for records without a transaction).
    """
    return _select(_load(spark, table_url, version).where(f"_commit <= {position:d}"), "_commit")


def scan_segments(spark: SparkSession, table_url: str, version: int) -> DataFrame:
    """Return every appended record of a topic, whatever becomes of it; markers never.

    Parameters
    ----------
    spark : SparkSession
        With Delta.
    table_url : str
        Of the partition logs.
    version : int
        Of the partition logs.

    Returns
    -------
    DataFrame
        The same columns as :func:`scan_public` returns; ``_commit`` is null: nothing is known of it here.
    """
    return _select(_load(spark, table_url, version).where("_control IS NULL"), "CAST(NULL AS BIGINT) AS _commit")


def _load(spark: SparkSession, table_url: str, version: int) -> DataFrame:
    return spark.read.format("delta").option("versionAsOf", version).load(spark_url(table_url))


def _select(records: DataFrame, commit: str) -> DataFrame:
    own = [f"`{name.replace('`', '``')}`" for name in records.columns if not name.startswith(_OUR_PREFIX)]
    return records.selectExpr(*own, "_partition", _OFFSET, "_timestamp", commit)
