"""Writing a DataFrame as segments by Spark's own Parquet writer.

Owns the rows as they are written, with ``_offset_delta`` and ``_timestamp``; which partition each file is of; and that
all files are durable, and are segments, before one is told (:mod:`txntable.segments.adopted_segment`).  Only files of
attempts that count are looked at.  Must not know of transactions.
"""

from __future__ import annotations

import importlib
import json
import logging
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from txntable.format.conform import TIMESTAMP_COLUMN, is_same_type
from txntable.format.layout import parse_spark_name, spark_segments_folder
from txntable.format.schema import OFFSET_DELTA_COLUMN, segment_schema, to_delta_schema
from txntable.format.topic_config import config_value
from txntable.segments.adopted_segment import Unfit, WrittenFile, adopted
from txntable.segments.segment import SegmentPlan, StagedSegment, stamps_records
from txntable.spark.scan.reader import spark_url
from txntable.spark.writing.distributed_tasks import distribute
from txntable.spark.writing.distribution import quoted
from txntable.spark.writing.java_expressions import JavaExpressions
from txntable.spark.writing.key_expression import placed_by_key
from txntable.spark.writing.spark_file_job import FileJob, MadeFile, PlannedFrame
from txntable.spark.writing.spark_file_settings import MASK, hadoop_settings, records_per_file, write_options
from txntable.spark.writing.spark_session_facts import is_reached, session_facts
from txntable.spark.writing.store_cache import opened
from txntable.spark.writing.writer import FrameWrite, WriteTarget, check_schema, given_columns, write_together
from txntable.spark.writing.writer_choice import (
    UNREACHABLE,
    Question,
    SegmentsBy,
    WriterChoice,
    refusal,
    refusal_by_size,
)
from txntable.storage.object_store import ObjectStore
from txntable.storage.side_by_side import threads

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logger = logging.getLogger(__name__)

# Of files that are read to be adopted, on the driver.
_AT_ONCE = 4
_US_PER_MS = 1000
_MOST_RECORDS = "spark.sql.files.maxRecordsPerFile"


def chosen_segments(writes: Sequence[FrameWrite], store: ObjectStore) -> list[tuple[list[StagedSegment], WriterChoice]]:
    """Write the segments of DataFrames of one session by whom it suits; return them, and who that was.

    Those that Spark's writer takes are written one after the other, all others by one job.

    Parameters
    ----------
    writes : sequence of FrameWrite
        At least one.
    store : ObjectStore
        The warehouse's, as this process has it open.

    Raises
    ------
    SchemaMismatchError, MissingKeyError, MissingDependencyError
        As :func:`txntable.spark.writing.writer.write_together`.
    StoreUnavailableError, KafkaStorageError
        What was written is not known to be durable.
    """
    asked = _questions(writes, store)
    answers = [
        refusal(one) or _by_spark(write.dataframe, store, write.target, one)
        for write, one in zip(writes, asked, strict=True)
    ]
    rest = [write for write, answer in zip(writes, answers, strict=True) if isinstance(answer, str)]
    by_python = iter(write_together(rest) if rest else ())
    found = [
        (next(by_python), WriterChoice(SegmentsBy.PYTHON, answer))
        if isinstance(answer, str)
        else (answer, WriterChoice(SegmentsBy.SPARK))
        for answer in answers
    ]
    for write, (segments, choice) in zip(writes, found, strict=True):
        topic = write.target.plan.settings.name
        logger.info("segments of a dataframe written topic=%s segments=%d by=%s", topic, len(segments), choice)
    return found


def _questions(writes: Sequence[FrameWrite], store: ObjectStore) -> list[Question]:
    """Return what decides about each; the columns of all are checked before anything runs."""
    session = session_facts(writes[0].dataframe.sparkSession)
    asked = []
    for write in writes:
        settings, schema = write.target.plan.settings, write.dataframe.schema
        check_schema(schema, settings)
        asked.append(Question(session, store.spec, settings, write.mode, given_columns(schema, settings)))
    return asked


def _by_spark(
    dataframe: DataFrame, store: ObjectStore, target: WriteTarget, asked: Question
) -> list[StagedSegment] | str:
    """Write by Spark's own writer; return why it cannot, where it turns out before or after."""
    spark, plan = dataframe.sparkSession, target.plan
    most = records_per_file(
        plan.settings.schema,
        int(str(config_value("segment.bytes", plan.settings.config))),
        int(str(spark.conf.get(_MOST_RECORDS, "0"))),
    )
    frame = PlannedFrame(_as_segments(dataframe, asked, plan, most))
    small = refusal_by_size(asked.session.wish, frame.guessed_bytes())
    if small is not None:
        return small
    if not is_reached(spark, store):
        return UNREACHABLE
    folder = spark_segments_folder(plan.producer)
    place = f"{plan.root}/{folder}"
    store.sync_written(place)
    job = FileJob(
        spark_url(f"{store.spec.url}/{place}"),
        f"txntable write {plan.settings.name}",
        hadoop_settings(plan),
        write_options(plan, most),
    )
    made = frame.write(job)
    files = _placed(made, folder, asked)
    store.sync_written(place, [f"{plan.root}/{file.path}" for file in files])
    return _adopted_all(dataframe, store, target, files)


def _as_segments(dataframe: DataFrame, asked: Question, plan: SegmentPlan, most: int) -> DataFrame:
    """Return the rows with the columns of a segment's file, in its order and with its types."""
    # Imported where it runs: a client that never writes a DataFrame does without Spark's start-up time.
    functions = importlib.import_module("pyspark.sql.functions")
    types = importlib.import_module("pyspark.sql.types")
    wanted = segment_schema(plan.settings.schema)
    spark_types = types.StructType.fromJson(json.loads(to_delta_schema(wanted)))
    own = {OFFSET_DELTA_COLUMN, *((TIMESTAMP_COLUMN,) if _is_stamped(asked) else ())}

    def column(field: pa.Field) -> Any:
        if field.name not in asked.given.names:
            return functions.lit(None).cast(spark_types[field.name].dataType)
        found = functions.col(quoted(field.name))
        is_same = is_same_type(asked.given.field(field.name).type, field.type)
        return found if is_same else found.cast(spark_types[field.name].dataType)

    typed = dataframe.select(*(column(field).alias(field.name) for field in wanted if field.name not in own))
    placed = placed_by_key(typed, plan.settings) if plan.settings.key else typed
    # Counts the rows of each task from 0; each file of a task begins at 0 again.
    number = functions.monotonically_increasing_id().bitwiseAND(functions.lit(MASK)) % functions.lit(most)
    time = JavaExpressions(dataframe.sparkSession).variable(plan.uploaded_at_ms * _US_PER_MS, "TimestampType")
    made = {OFFSET_DELTA_COLUMN: number, TIMESTAMP_COLUMN: time}
    return placed.select(
        *(made[name].alias(name) if name in own else functions.col(quoted(name)) for name in wanted.names)
    )


def _is_stamped(asked: Question) -> bool:
    """Return whether all records get the time of their upload."""
    return TIMESTAMP_COLUMN not in asked.given.names or stamps_records(asked.settings)


def _placed(made: Sequence[MadeFile], folder: str, asked: Question) -> list[WrittenFile]:
    """Return the files in the order of their tasks, each with the partition that its records go to."""
    settings = asked.settings
    # A key whose only column was left out is null in every record.
    keyed = bool(set(settings.key) & set(asked.given.names)) or len(settings.key) > 1
    found = []
    for file in made:
        path = f"{folder}/{file.name}"
        name = parse_spark_name(path)
        if name is None:
            raise ValueError(f"spark's writer named a file otherwise than it is known to: {file.name}")
        # Shuffled, a task has one partition; else tasks begin in another one each, and go on in turn.
        partition = name.task if settings.key else (name.task + name.number) % settings.partitions
        found.append((name.task, name.number, WrittenFile(path, file.size, partition, keyed, _is_stamped(asked))))
    return [file for _, _, file in sorted(found, key=lambda one: one[:2])]


def _adopted_all(
    dataframe: DataFrame, store: ObjectStore, target: WriteTarget, files: Sequence[WrittenFile]
) -> list[StagedSegment] | str:
    if store.is_remote:
        # Each is read: by executors, as it was written.
        answers = list(distribute(dataframe.sparkSession, partial(_adopt_in_task, target), files))
    else:
        with threads(_AT_ONCE) as pool:
            answers = list(pool.map(partial(adopted, store, target.plan), files))
    if not store.is_remote:
        # Spark makes a file of the first task even where that has no row.  In S3 only vacuum may delete, and does.
        store.delete([f"{target.plan.root}/{file.path}" for file, it in zip(files, answers, strict=True) if it is None])
    unfit = next((answer for answer in answers if isinstance(answer, Unfit)), None)
    if unfit is not None:
        logger.warning("a file of spark's writer is no segment: path=%s reason=%s", unfit.path, unfit.reason)
        return f"a file of spark's writer is no segment: {unfit.reason}"
    return [answer for answer in answers if isinstance(answer, StagedSegment)]


def _adopt_in_task(target: WriteTarget, file: WrittenFile) -> StagedSegment | Unfit | None:
    return adopted(opened(target.store), target.plan, file)
