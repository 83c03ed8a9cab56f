"""Writing DataFrames through a producer: Spark uploads, the producer registers.

Owns the order: the topics are read, the job runs, and only what the driver collected is staged.
Nothing is enrolled or appended here, so a long job holds nothing back.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from txntable.errors import InvalidRequestError
from txntable.format.records import RecordMetadata
from txntable.producer.producer import Producer
from txntable.spark.writing.distribution import DistributionMode, distribution_mode
from txntable.spark.writing.writer import FrameWrite, WriteTarget
from txntable.storage.side_by_side import side_by_side
from txntable.topics.topic_question import topics_asked_for

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_WRITING = "txntable.spark.writing.spark_written_segments"


def write_dataframes(
    producer: Producer,
    dataframes: Sequence[tuple[str, DataFrame]],
    mode: str | DistributionMode = DistributionMode.NONE,
) -> list[RecordMetadata]:
    """Upload DataFrames, distributed and side by side, and stage them in the producer's transaction.

    Parameters
    ----------
    producer : Producer
        Inside a transaction, or without a transactional id.
    dataframes : sequence of (str, DataFrame)
        Topic, and its columns by name, in any order; optionally ``_timestamp``.  A nullable one may be left out.
    mode : str or DistributionMode
        How rows come to tasks.

    Returns
    -------
    list of RecordMetadata
        In the order of the DataFrames; they know their offsets once flushed or committed.

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
    for topic, dataframe in dataframes:
        _check_dataframe(topic, dataframe)
    wanted = distribution_mode(mode)
    logs = [producer.topic_log(topic) for topic, _ in dataframes]
    if not logs:
        return []
    with topics_asked_for(logs[0].context):
        found = side_by_side(logs[0].context.store, [log.settings for log in logs])
    targets = [
        WriteTarget(log.context.store.spec, producer.segment_plan(log, settings))
        for log, settings in zip(logs, found, strict=True)
    ]
    frames = [dataframe for _, dataframe in dataframes]
    # Imported where it runs: a client that never writes a DataFrame does without Spark's start-up time.
    writing = importlib.import_module(_WRITING)
    writes = [FrameWrite(*each, wanted) for each in zip(frames, targets, strict=True)]
    written = []
    for log, settings, (segments, choice) in zip(
        logs, found, writing.chosen_segments(writes, logs[0].context.store), strict=True
    ):
        written.append(RecordMetadata(log.name, segments_by=str(choice)))
        producer.stage(log, settings, segments, written[-1])
    return written


def _check_dataframe(topic: str, found: Any) -> None:
    if not hasattr(found, "mapInArrow"):
        raise InvalidRequestError(
            "a spark dataframe is written; rows of pyarrow go by send(topic, rows=table)",
            topic=topic,
            found=type(found).__name__,
        )
