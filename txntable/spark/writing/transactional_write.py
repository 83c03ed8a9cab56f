"""Writing a DataFrame through a producer: Spark uploads, the producer registers.

Owns the order: the topic is read, the job runs, and only what the driver collected is staged.
Nothing is enrolled or appended here, so a long job holds nothing back.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from txntable.errors import InvalidRequestError
from txntable.format.records import RecordMetadata
from txntable.producer.producer import Producer
from txntable.spark.writing.distribution import DistributionMode, distribution_mode
from txntable.spark.writing.writer import WriteTarget

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_WRITING = "txntable.spark.writing.spark_written_segments"


def write_dataframe(
    producer: Producer, topic: str, dataframe: DataFrame, mode: str | DistributionMode = DistributionMode.NONE
) -> RecordMetadata:
    """Upload a DataFrame, distributed, and stage it in the producer's transaction.

    Parameters
    ----------
    producer : Producer
        Inside a transaction, or without a transactional id.
    topic : str
        The topic's name.
    dataframe : DataFrame
        The topic's columns by name, in any order; optionally ``_timestamp``.  A nullable one may be left out.
    mode : str or DistributionMode
        How rows come to tasks.

    Returns
    -------
    RecordMetadata
        Knows its offsets once flushed or committed.

    Raises
    ------
    SchemaMismatchError
        A required column is missing, one is unknown or of a type that does not fit (before anything runs), or null
        where it may not be.
    MissingKeyError
        The topic is compacted, and a record has no key.
    UnknownTopicOrPartitionError
        There is no such topic.
    InvalidRequestError
        There is no such mode, or it is no Spark DataFrame.
    """
    if not hasattr(dataframe, "mapInArrow"):
        raise InvalidRequestError(
            "a spark dataframe is written; rows of pyarrow go by send(topic, rows=table)",
            topic=topic,
            found=type(dataframe).__name__,
        )
    wanted = distribution_mode(mode)
    log = producer.topic_log(topic)
    settings = log.settings()
    plan = producer.segment_plan(log, settings)
    store = log.context.store
    # Imported where it runs: a client that never writes a DataFrame does without Spark's start-up time.
    writing = importlib.import_module(_WRITING)
    segments, choice = writing.chosen_segments(dataframe, store, WriteTarget(store.spec, plan), wanted)
    metadata = RecordMetadata(topic, segments_by=str(choice))
    producer.stage(log, settings, segments, metadata)
    return metadata
