"""``df.write.format("txntable")``: a batch that is appended to a topic, all of it or nothing.

Owns Spark's side of a batch write, in the order *check, take an identity, upload, commit*.  Spark runs the first two
in one process, the upload on executors, the commit in another process, none of which has a session; the writer carries
the identity from one to the other.  What is uploaded and not committed is named by no log.

``INSERT INTO`` a view comes with all columns that reading shows.  Named ones (``BY NAME``, or a list of columns) leave
those of a record's place null, which are dropped here; by position Spark wants values for them, which are refused.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from txntable.errors import BatchAlreadyCommittedError, InvalidCallError, SchemaMismatchError
from txntable.format.conform import TIMESTAMP_COLUMN
from txntable.format.records import RecordMetadata
from txntable.partition.append import SequencedSegment, split_for_commits
from txntable.partition.batch import ProducerEpoch
from txntable.producer.producer import Producer
from txntable.runtime.environment import SystemEnvironment
from txntable.segments.segment import StagedSegment
from txntable.segments.segment_reader import COMMIT_COLUMN, OFFSET_COLUMN, PARTITION_COLUMN
from txntable.spark.datasource.plain_errors import without_traceback
from txntable.spark.datasource.write_options import WriteOptions
from txntable.spark.scan.source_options import Option
from txntable.spark.writing.python_worker import settle_worker
from txntable.spark.writing.writer import WriteTarget, check_schema, raise_refusal, refusal_text, upload_segments
from txntable.topics.topic_question import topics_asked_for
from txntable.warehouse.warehouse import Warehouse, open_warehouse

logger = logging.getLogger(__name__)

_PLACE = (PARTITION_COLUMN, OFFSET_COLUMN, COMMIT_COLUMN)


@dataclass(frozen=True, slots=True)
class UploadedSegments(WriterCommitMessage):
    """What one task tells the commit.

    Attributes
    ----------
    segments : tuple of StagedSegment
        Those of each partition in order.
    refusal : str or None
        Why the task's rows are refused.
    """

    segments: tuple[StagedSegment, ...] = ()
    refusal: str | None = None


def uploaded(batches: Iterator[pa.RecordBatch], target: WriteTarget) -> UploadedSegments:
    """Run one task of a write."""
    try:
        return UploadedSegments(tuple(upload_segments(batches, target)))
    except InvalidCallError as refused:
        return UploadedSegments(refusal=refusal_text(refused))


def segments_of(messages: Iterable[WriterCommitMessage | None]) -> list[StagedSegment]:
    """Return the segments of all tasks, in the order of the tasks.

    Raises
    ------
    InvalidCallError
        A task refused its rows: that error.
    """
    told = [message for message in messages if isinstance(message, UploadedSegments)]
    for message in told:
        if message.refusal is not None:
            raise_refusal(message.refusal)
    return [segment for message in told for segment in message.segments]


def topic_writer(options: WriteOptions, schema: StructType) -> DataSourceArrowWriter:
    """Return what writes one batch; the topic and the columns are checked, the identity is taken.

    Parameters
    ----------
    options : WriteOptions
        Where to, and as which run.
    schema : StructType
        The columns of what is written.

    Raises
    ------
    SchemaMismatchError
        A required column is missing, one is unknown, or of a type that does not fit.
    BatchOutOfOrderError
        A later batch has committed under the transactional id.
    TxnTableError
        Whatever opening the warehouse and :meth:`txntable.producer.producer.Producer.init_transactions` raise.
    """
    warehouse = open_warehouse(options.store)
    topic = warehouse.topic_log(options.topic)
    with topics_asked_for(warehouse.context):
        settings = topic.settings()
    check_schema(_written(schema), settings)
    producer = _new_producer(warehouse, options)
    try:
        if options.transactional_id is not None:
            if options.batch_id is not None:
                # Before the init: a run that has committed long ago must not fence the one that is under way.
                producer.check_batch(options.batch_id)
            producer.init_transactions()
            producer.begin_transaction(options.batch_id)
    except BatchAlreadyCommittedError as known:
        logger.warning("nothing is written: %s", known)
        return SkippingWriter()
    return TopicWriter(options, WriteTarget(options.store, producer.segment_plan(topic, settings)))


def is_of_view(schema: StructType) -> bool:
    """Return whether what is written comes with the columns of a record's place: then it is inserted into a view."""
    return set(_PLACE) <= set(schema.names)


def _written(schema: StructType) -> StructType:
    if not is_of_view(schema):
        return schema
    return StructType([field for field in schema if field.name not in _PLACE])


def _new_producer(warehouse: Warehouse, options: WriteOptions, transactional_id: str | None = None) -> Producer:
    return warehouse.producer(
        options.transactional_id if transactional_id is None else transactional_id,
        transaction_timeout_ms=options.transaction_timeout_ms,
    )


class TopicWriter(DataSourceArrowWriter):
    """Uploads on executors, commits on the driver; travels to both.

    Parameters
    ----------
    options : WriteOptions
        Where to, and as which run.
    target : WriteTarget
        What the tasks write, and under which identity.
    """

    def __init__(self, options: WriteOptions, target: WriteTarget) -> None:
        self._options, self.target = options, target

    def write(self, iterator: Iterator[pa.RecordBatch]) -> UploadedSegments:
        """Upload the rows of one task."""
        settle_worker()
        return uploaded((_without_place(batch, self.target) for batch in iterator), self.target)

    @without_traceback
    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Append what the tasks uploaded, visible at once.

        Raises
        ------
        InvalidCallError
            A task refused its rows; nothing is visible.
        ProducerFencedError, InvalidProducerEpochError
            Another run took the transactional id over; nothing of this one is visible.
        CommitStateUnknownError
            The store cannot be reached: run it again, with the same transactional id and batch id.
        """
        segments = segments_of(messages)
        warehouse = open_warehouse(self._options.store)
        producer = self._producer(warehouse, segments)
        settings = self.target.plan.settings
        topic = warehouse.topic_log(settings.name)
        metadata = RecordMetadata(settings.name)
        if producer.config.transactional_id is None:
            producer.stage(topic, settings, segments, metadata)
            producer.flush()
            logger.info(
                "appended without a transactional id: a job that runs twice writes everything twice, which the options"
                " %s and %s prevent topic=%s records=%d",
                Option.TRANSACTIONAL_ID,
                Option.BATCH_ID,
                settings.name,
                sum(segment.records for segment in segments),
            )
            return
        with producer.transaction(self._options.batch_id):
            producer.stage(topic, settings, segments, metadata)

    def _producer(self, warehouse: Warehouse, segments: list[StagedSegment]) -> Producer:
        """Return who commits: a transaction also where one commit of the topic's log cannot hold all segments."""
        unsequenced = [SequencedSegment(segment, None) for segment in segments]
        if self._options.transactional_id is None and len(split_for_commits(unsequenced)) > 1:
            producer = _new_producer(warehouse, self._options, f"write-{SystemEnvironment().new_id()}")
            producer.init_transactions()
            return producer
        producer = _new_producer(warehouse, self._options)
        if self.target.plan.producer is not None:
            producer.resume(ProducerEpoch(*self.target.plan.producer))
        return producer

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Do nothing: what was uploaded is named by no log, and the error that led here is Spark's to tell."""


def _without_place(batch: pa.RecordBatch, target: WriteTarget) -> pa.RecordBatch:
    """Return the rows of an INSERT without the columns that only reading shows, and with a time for each."""
    if not set(_PLACE) <= set(batch.schema.names):
        return batch
    for name in _PLACE:
        if batch.column(name).null_count < batch.num_rows:
            raise SchemaMismatchError(
                "where a record lies is not the writer's to say; insert BY NAME or with a list of columns, without it",
                topic=target.plan.settings.name,
                column=name,
            )
    columns = {name: batch.column(name) for name in batch.schema.names if name not in _PLACE}
    if TIMESTAMP_COLUMN in columns:
        given = columns[TIMESTAMP_COLUMN]
        now = pa.scalar(target.plan.uploaded_at_ms, pa.timestamp("ms", "UTC")).cast(given.type)
        columns[TIMESTAMP_COLUMN] = given.fill_null(now)
    return pa.RecordBatch.from_pydict(columns)


class SkippingWriter(DataSourceArrowWriter):
    """Writes nothing: the batch has committed before."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> UploadedSegments:
        """Pass over the rows of one task."""
        return UploadedSegments()
