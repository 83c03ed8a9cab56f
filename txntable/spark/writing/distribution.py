"""How the rows of a DataFrame are spread over tasks before they are written.

Owns the modes' names, and the shuffle.  Invariant: the same key leads to the same partition in every mode; the shuffle
decides only which task writes it.  Works over Spark Connect: nothing here touches the JVM.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING

import pyarrow as pa

from txntable.format.enum_option import member_of
from txntable.format.key import partitions_of
from txntable.format.topic import TopicSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TASK_COLUMN = "_task"
"""Which task a row goes to; no column of a user begins so."""


class DistributionMode(Enum):
    """How rows come to tasks; the value is what users write."""

    NONE = "none"
    """As the DataFrame has them: no shuffle, each task writes to every partition that its keys lead to."""
    HASH = "hash"
    """Shuffled first, so that a task has whole partitions: fewer and larger segments."""


def distribution_mode(text: str | DistributionMode) -> DistributionMode:
    """Return the mode of that name.

    Raises
    ------
    InvalidRequestError
        There is none: the message names all.
    """
    return member_of(DistributionMode, text, "distribution_mode")


def distributed(dataframe: DataFrame, settings: TopicSettings, mode: DistributionMode) -> DataFrame:
    """Return a DataFrame with its rows where a mode wants them; it may have a column more.

    Parameters
    ----------
    dataframe : DataFrame
        Its columns fit the topic.
    settings : TopicSettings
        The topic; one without a key is never shuffled, its records go anywhere.
    mode : DistributionMode
        How.
    """
    if mode is DistributionMode.NONE or not settings.key:
        return dataframe
    # Imported where it runs: a client that never writes a DataFrame does without Spark's start-up time.
    functions = importlib.import_module("pyspark.sql.functions")
    partition_of = functions.arrow_udf(_partition_udf(settings), "int")
    # A key column that was left out is null.
    given = dataframe.columns
    keyed = partition_of(
        *(functions.col(quoted(name)) if name in given else functions.lit(None) for name in settings.key)
    )
    # Records without a key stay spread, by the task that they come from: a repeated task must send them the same way.
    unkeyed = functions.pmod(functions.spark_partition_id(), functions.lit(settings.partitions))
    placed = dataframe.withColumn(TASK_COLUMN, functions.coalesce(keyed, unkeyed))
    return placed.repartitionById(settings.partitions, functions.col(TASK_COLUMN))


def _partition_udf(settings: TopicSettings) -> Callable[..., pa.Array]:
    key, partitions = settings.key, settings.partitions
    kinds = [settings.schema.field(name).type for name in key]

    def partition_of_key(*columns: pa.Array) -> pa.Array:
        conformed = [column.cast(kind) for column, kind in zip(columns, kinds, strict=True)]
        return partitions_of(pa.RecordBatch.from_arrays(conformed, names=list(key)), key, partitions)

    return partition_of_key


def quoted(name: str) -> str:
    """Return a column's name as Spark's SQL writes it."""
    return f"`{name.replace('`', '``')}`"
