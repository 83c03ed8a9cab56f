"""The latest row of each key of a keyed topic: what a topic that holds a table's changes says of the table now.

Owns that later means a higher offset: rows of one key are in one partition.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its name everywhere

from txntable.spark.distribution import quoted


def latest_rows(records: DataFrame, key: Sequence[str], columns: Sequence[str]) -> DataFrame:
    """Return the row with the highest offset of each key.

    Parameters
    ----------
    records : DataFrame
        Of one topic, with ``_offset``.
    key : sequence of str
        The topic's key columns, none of them null in all.
    columns : sequence of str
        The topic's columns, which are returned.
    """
    row = F.struct(*(F.col(quoted(name)) for name in columns))
    latest = records.groupBy(*(F.col(quoted(name)) for name in key)).agg(F.max_by(row, "_offset").alias("_latest"))
    return latest.select(*(F.col(f"_latest.{quoted(name)}") for name in columns))
