"""The latest row of each key of a keyed topic: what a topic that holds a table's changes says of the table now.

Owns that later means a higher offset, which says nothing of rows in two partitions: a key that has some is refused.
And that a tombstone ends its key: so a compaction, which takes tombstones away in the end, changes nothing.
"""

from __future__ import annotations

from functools import reduce
from operator import or_

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its name everywhere

from txntable.errors import InvalidRequestError
from txntable.format.tombstone import value_columns
from txntable.format.topic import TopicSettings
from txntable.spark.writing.distribution import quoted

_IN_TWO = (
    "which row of a key is the latest cannot be told: it has rows in two partitions, since the topic {} has got more,"
    " or its writers name partitions; copy the rows in their order into a topic that has as many from the beginning"
)


def latest_rows(records: DataFrame, settings: TopicSettings) -> DataFrame:
    """Return the row with the highest offset of each key that has not ended.

    Parameters
    ----------
    records : DataFrame
        Of one topic, with ``_partition`` and ``_offset``.
    settings : TopicSettings
        The topic: keyed.

    Raises
    ------
    InvalidRequestError
        These are no settings of a topic, or it has no key.

    Spark raises, when the DataFrame is used, for a key with rows in two partitions: the topic has got more partitions,
    or a writer named them itself.
    """
    if not isinstance(settings, TopicSettings):
        raise InvalidRequestError(
            "the settings of a topic are given; admin.describe_topics([name])[0].settings has them",
            found=type(settings).__name__,
        )
    if not settings.key:
        raise InvalidRequestError("only a topic with a key has a latest row of each key", topic=settings.name)
    row = F.struct(*(F.col(quoted(name)) for name in settings.schema.names))
    keys = (F.col(quoted(name)) for name in settings.key)
    is_in_one = F.min("_partition") == F.max("_partition")
    newest = F.when(is_in_one, F.max_by(row, "_offset")).otherwise(F.raise_error(_IN_TWO.format(settings.name)))
    latest = records.groupBy(*keys).agg(newest.alias("_latest"))
    rows = latest.select(*(F.col(f"_latest.{quoted(name)}") for name in settings.schema.names))
    values = value_columns(settings)
    return rows.where(reduce(or_, (F.col(quoted(name)).isNotNull() for name in values))) if values else rows
