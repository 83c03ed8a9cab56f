"""Writing DataFrames as segments, distributed.

Owns the job: what travels to executors, and what comes back.  Several DataFrames are one job, so that Spark runs their
tasks side by side, and ends them together when one fails or the job is cancelled.  Only segments that the driver has
collected count; whatever retried, speculative or failed tasks leave in the store is named by no
log.  Works over Spark Connect: nothing here touches the JVM.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa

from txntable import errors
from txntable.format.conform import check_columns, check_names
from txntable.format.delta_types import from_delta_type
from txntable.format.topic import TopicSettings
from txntable.format.topic_config import config_value
from txntable.runtime.environment import SystemEnvironment
from txntable.segments.segment import SegmentPlan, StagedSegment
from txntable.spark.writing.distribution import DistributionMode, distributed, quoted
from txntable.spark.writing.python_worker import settle_worker
from txntable.spark.writing.segment_task import SegmentTask, TaskLimits
from txntable.spark.writing.store_cache import opened
from txntable.spark.writing.worker_python import unfit_python
from txntable.storage.object_store import StoreSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_RESULT = pa.schema(
    [
        ("number", pa.int32()),
        ("path", pa.string()),
        ("partition", pa.int32()),
        ("records", pa.int64()),
        ("size", pa.int64()),
        ("stats", pa.string()),
        ("first_timestamp_ms", pa.int64()),
        ("max_timestamp_ms", pa.int64()),
        ("partition_count", pa.int32()),
        ("uploaded_at_ms", pa.int64()),
        ("digest", pa.string()),
        ("refusal", pa.string()),
    ]
)
_RESULT_DDL = (
    "number int, path string, partition int, records long, size long, stats string, first_timestamp_ms long, "
    "max_timestamp_ms long, partition_count int, uploaded_at_ms long, digest string, refusal string"
)


@dataclass(frozen=True, slots=True)
class WriteTarget:
    """Where a DataFrame goes; travels to executors.

    Attributes
    ----------
    store : StoreSpec
        The warehouse's.
    plan : SegmentPlan
        Topic, producer, time of the write.
    limits : TaskLimits or None
        How much a task may hold; by default what suits the topic's ``segment.bytes``.
    """

    store: StoreSpec
    plan: SegmentPlan
    limits: TaskLimits | None = None


@dataclass(frozen=True, slots=True)
class FrameWrite:
    """A DataFrame and where it goes.

    Attributes
    ----------
    dataframe : DataFrame
        The topic's columns by name, in any order, without nullable ones or with; optionally ``_timestamp``.
    target : WriteTarget
        Where to.
    mode : DistributionMode
        How rows come to tasks.
    """

    dataframe: DataFrame
    target: WriteTarget
    mode: DistributionMode = DistributionMode.NONE


def write_together(writes: Sequence[FrameWrite]) -> list[list[StagedSegment]]:
    """Upload DataFrames of one session by one job and return their segments; nothing is registered.

    Parameters
    ----------
    writes : sequence of FrameWrite
        At least one.

    Returns
    -------
    list of list of StagedSegment
        Of each DataFrame, for each partition in the order of the tasks; none for an empty DataFrame.

    Raises
    ------
    SchemaMismatchError
        A required column is missing, one is unknown, or of a type that does not fit: refused before the job runs.  Or
        null where it may not be: found by a task, and nothing is returned.
    MissingKeyError
        The topic is compacted, and a record has no key.
    MissingDependencyError
        Spark's workers run a Python that cannot run our code.
    """
    uploads = [_uploading(write, number) for number, write in enumerate(writes)]
    try:
        rows = (uploads[0] if len(uploads) == 1 else _side_by_side(uploads)).collect()
    except Exception as error:
        unfit = unfit_python(error, writes[0].dataframe.sparkSession)
        if unfit is None:
            raise
        raise unfit from error
    for row in rows:
        if row["refusal"] is not None:
            raise_refusal(row["refusal"])
    segments: list[list[StagedSegment]] = [[] for _ in writes]
    for row in rows:
        segments[row["number"]].append(StagedSegment(*(row[field.name] for field in fields(StagedSegment))))
    return segments


def _uploading(write: FrameWrite, number: int) -> DataFrame:
    """Return what uploads the rows of a DataFrame when it is collected: a row for each segment."""
    dataframe, settings = write.dataframe, write.target.plan.settings
    given = dataframe.columns
    names = [field.name for field in check_schema(dataframe.schema, settings) if field.name in given]
    placed = distributed(dataframe, settings, write.mode)
    # Where it changes nothing, a projection is left out: Spark's analysis of it is felt in tiny micro-batches.
    ordered = placed if placed.columns == names else placed.select(*(quoted(name) for name in names))
    return ordered.mapInArrow(_task(write.target, number), _RESULT_DDL)


def _side_by_side(uploads: Sequence[DataFrame]) -> DataFrame:
    """Return all rows, in order, each DataFrame with its own tasks.

    Where all have the same partitioning, Spark puts the first partition of each into one task, and so on: those of one
    partition would be written by one task.  A DataFrame of no partitions keeps it from that, and has no tasks itself.
    """
    nothing = uploads[0].sparkSession.range(0, 0, 1, 1).mapInArrow(lambda batches: batches, _RESULT_DDL)
    return _union([*uploads, nothing])


def _union(uploads: Sequence[DataFrame]) -> DataFrame:
    """Return all rows, in order; halves of halves, since Spark looks through the whole plan at each union."""
    if len(uploads) == 1:
        return uploads[0]
    half = len(uploads) // 2
    return _union(uploads[:half]).union(_union(uploads[half:]))


def check_schema(schema: StructType, settings: TopicSettings) -> list[pa.Field]:
    """Return the columns of the topic that rows with Spark's schema fill; ``_timestamp`` only if it is there.

    Raises
    ------
    SchemaMismatchError, MissingKeyError
        As :func:`txntable.format.conform.check_columns`.
    """
    return check_columns(given_columns(schema, settings), settings)


def given_columns(schema: StructType, settings: TopicSettings) -> pa.Schema:
    """Return Spark's schema as Arrow's.

    Raises
    ------
    SchemaMismatchError
        A name is not the topic's, or a type is none that a topic can have.
    """
    # Spark's JSON of a schema is Delta's.
    columns = json.loads(schema.json())["fields"]
    check_names([column["name"] for column in columns], settings)
    kinds = []
    for column in columns:
        name, kind = column["name"], column["type"]
        try:
            kinds.append((name, pa.null() if kind == "void" else from_delta_type(kind)))
        except (ValueError, KeyError, TypeError) as error:
            raise errors.SchemaMismatchError(
                "a column has another type than the topic's, and it is only widened for you; cast it",
                topic=settings.name,
                column=name,
                expected=str(settings.schema.field(name).type) if name in settings.schema.names else "timestamp",
                found=schema[name].dataType.simpleString(),
            ) from error
    return pa.schema(kinds)


def _task(target: WriteTarget, number: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle_worker()
        yield from upload(batches, target, number)

    return run


def upload(batches: Iterator[pa.RecordBatch], target: WriteTarget, number: int) -> Iterator[pa.RecordBatch]:
    """Run one task of a job's DataFrame; yield a row for each segment, or one that says why the rows were refused.

    A refusal is a result: raised, it would be tried again, and reach the user as text of two languages.
    """
    try:
        for staged in upload_segments(batches, target):
            yield _result([number, *astuple(staged), None])
    except errors.InvalidCallError as refused:
        yield _result([number, *[None] * (len(_RESULT) - 2), refusal_text(refused)])


def upload_segments(batches: Iterator[pa.RecordBatch], target: WriteTarget) -> Iterator[StagedSegment]:
    """Run one task; yield its segments.

    Raises
    ------
    InvalidCallError
        The rows are refused: hand it on by :func:`refusal_text`.
    """
    limits = target.limits or TaskLimits(int(str(config_value("segment.bytes", target.plan.settings.config))))
    task = SegmentTask(opened(target.store), target.plan, SystemEnvironment(), limits, _task_number())
    return task.run(batches)


def _task_number() -> int:
    """Return which of the job's tasks this is; 0 outside of a job."""
    # Imported where it runs, on executors: a client that never writes a DataFrame does without Spark's start-up time.
    context = importlib.import_module("pyspark").TaskContext.get()
    return 0 if context is None else int(context.partitionId())


def _result(values: list[Any]) -> pa.RecordBatch:
    columns = [pa.array([value], field.type) for value, field in zip(values, _RESULT, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=_RESULT)


def refusal_text(refused: errors.InvalidCallError) -> str:
    """Return an error as text that travels from a task to the driver."""
    facts = {name: str(value) for name, value in refused.facts.items()}
    return json.dumps({"error": type(refused).__name__, "message": refused.message, "facts": facts})


def raise_refusal(text: str) -> NoReturn:
    """Raise the error that :func:`refusal_text` wrote."""
    refusal = json.loads(text)
    kind: type[errors.TxnTableError] = getattr(errors, refusal["error"])
    raise kind(refusal["message"], **refusal["facts"])
