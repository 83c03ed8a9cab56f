"""``df.writeStream.format("txntable")``: each micro-batch of a stream is appended to a topic by one transaction.

Owns Spark's side of a streaming write.  For each micro-batch Spark makes a writer in one process, runs its upload on
executors and its commit in another process; none has a session.  Both processes mostly live on, so they keep the
warehouse open; nothing rests on that.  The identity is taken anew for each batch, where the writer is made: whatever a
stopped run of the query may still be committing is fenced.  Only the tasks learn the query's id, and the commit its
batch's number: the tasks' messages carry to the commit all that it needs.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from txntable.errors import IllegalStateError, InvalidRequestError
from txntable.format.records import RecordMetadata
from txntable.partition.batch import ProducerEpoch
from txntable.producer.transaction import Transaction
from txntable.segments.segment import SegmentPlan
from txntable.spark.datasource.data_sink import UploadedSegments, segments_of, uploaded
from txntable.spark.datasource.plain_errors import without_traceback
from txntable.spark.datasource.write_options import WriteOptions
from txntable.spark.scan.source_options import Option
from txntable.spark.writing.python_worker import settle_worker
from txntable.spark.writing.store_cache import store_key
from txntable.spark.writing.stream_batch import commit_batch
from txntable.spark.writing.streaming_query import checkpoint_query_id, task_query_id
from txntable.spark.writing.writer import WriteTarget, check_schema
from txntable.storage.object_store import StoreSpec
from txntable.topics.topic_log import TopicLog
from txntable.topics.topic_question import topics_asked_for
from txntable.warehouse.warehouse import Warehouse, open_warehouse
from txntable.warehouse.warehouse_creation import read_identity

logger = logging.getLogger(__name__)

# Of a stream without a transactional id: then its checkpoint's id.
_UNNAMED = "stream-"
_MOST_TOLD = 5
_open_warehouses: dict[str, Warehouse] = {}


@dataclass(frozen=True, slots=True)
class StreamTarget:
    """What the tasks of one micro-batch write, and as whom it is committed.

    Attributes
    ----------
    transactional_id : str
        The stream's.
    write : WriteTarget
        Of the tasks, with the identity.
    """

    transactional_id: str
    write: WriteTarget


@dataclass(frozen=True, slots=True)
class UploadedBatch(WriterCommitMessage):
    """What one task tells the commit.

    Attributes
    ----------
    uploaded : UploadedSegments
        Its segments, or why its rows are refused.
    transactional_id : str
        The stream's.
    plan : SegmentPlan
        What the segments have in common.
    query_id : str or None
        Of the streaming query.
    """

    uploaded: UploadedSegments
    transactional_id: str
    plan: SegmentPlan
    query_id: str | None


def stream_writer(options: WriteOptions, schema: StructType) -> DataSourceStreamArrowWriter:
    """Return what uploads one micro-batch; the topic and the columns are checked, the identity is taken.

    Parameters
    ----------
    options : WriteOptions
        Where to, and as which stream.
    schema : StructType
        The columns of what is written.

    Raises
    ------
    InvalidRequestError
        The stream has no transactional id, and none can be made from its checkpoint; or it has a batch id.
    SchemaMismatchError
        A required column is missing, one is unknown, or of a type that does not fit.
    TxnTableError
        Whatever opening the warehouse and :meth:`txntable.producer.producer.Producer.init_transactions` raise.
    """
    if options.batch_id is not None:
        raise InvalidRequestError(
            f"the batches of a stream have Spark's numbers; leave the option {Option.BATCH_ID} out",
            batch_id=options.batch_id,
        )
    settle_worker()
    transactional_id = options.transactional_id
    if transactional_id is None:
        transactional_id = f"{_UNNAMED}{checkpoint_query_id(options.checkpoint_location, options.store)}"
    warehouse = _opened(options.store)
    topic = warehouse.topic_log(options.topic)
    with topics_asked_for(warehouse.context):
        settings = topic.settings()
    check_schema(schema, settings)
    producer = warehouse.producer(transactional_id, transaction_timeout_ms=options.transaction_timeout_ms)
    producer.init_transactions()
    producer.begin_transaction()
    plan = producer.segment_plan(topic, settings)
    return StreamWriter(options, StreamTarget(transactional_id, WriteTarget(options.store, plan)))


def stream_committer(options: WriteOptions) -> DataSourceStreamArrowWriter:
    """Return what commits micro-batches that others uploaded."""
    return StreamWriter(options, None)


def _warn_of_earlier_streams(warehouse: Warehouse, topic: TopicLog, transactional_id: str) -> None:
    """Say that a stream without a transactional id begins where another one has written: it may be the same stream.

    Known by its checkpoint alone, a stream that is started again under a new one is another stream: what it reads again
    is written again.  A partition remembers its producers for a day; longer is not looked back.
    """
    with topic.segments.lock:
        topic.segments.ensure_fresh()
        known = {producer_id for _, producer_id in topic.segments.fold.producers}
    warehouse.transactions.log.ensure_fresh()
    unnamed = (row for row in warehouse.transactions.rows() if row.transactional_id.startswith(_UNNAMED))
    earlier = {row.transactional_id for row in unnamed if row.producer_id in known} - {transactional_id}
    if earlier:
        logger.warning(
            "a stream without a transactional id begins in a topic that another one has written to: if it is the same"
            " stream under a new checkpoint, what it reads again is there twice; with the option %s that is refused"
            " topic=%s transactional_id=%s earlier=%s",
            Option.TRANSACTIONAL_ID,
            topic.name,
            transactional_id,
            ",".join(sorted(earlier)[:_MOST_TOLD]),
        )


def _opened(spec: StoreSpec) -> Warehouse:
    """Return the warehouse, opened at the first call of this process, and again when another one is in its place."""
    key = store_key(spec)
    held = _open_warehouses.get(key)
    if held is None or read_identity(held.store) != held.identity:
        held = _open_warehouses[key] = open_warehouse(spec)
    return held


class StreamWriter(DataSourceStreamArrowWriter):
    """Uploads on executors, commits on the driver.

    Parameters
    ----------
    options : WriteOptions
        Where to.
    target : StreamTarget or None
        What the tasks write; ``None`` where it only commits.
    """

    def __init__(self, options: WriteOptions, target: StreamTarget | None) -> None:
        self._options, self._target = options, target

    def write(self, iterator: Iterator[pa.RecordBatch]) -> UploadedBatch:
        """Upload the rows of one task."""
        if self._target is None:
            raise IllegalStateError("this writer only commits; a micro-batch's own one uploads")
        settle_worker()
        target = self._target.write
        return UploadedBatch(uploaded(iterator, target), self._target.transactional_id, target.plan, task_query_id())

    @without_traceback
    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803  Spark's name
        """Append what the tasks uploaded, visible at once; pass over a batch that has committed.

        A batch without records is no transaction, except the first: that one says that the stream has begun.

        Raises
        ------
        InvalidCallError
            A task refused its rows; nothing is visible.
        ProducerFencedError, InvalidProducerEpochError
            Another run took the stream over; nothing of this batch is visible.
        TxnTableError
            As :func:`txntable.spark.writing.stream_batch.commit_batch`.
        """
        settle_worker()
        told = [message for message in messages if isinstance(message, UploadedBatch)]
        segments = segments_of(message.uploaded for message in told)
        # The first batch is asked about in any case: a stream that begins again may be quiet until it reaches a number
        # that has committed, and that one would be passed over.
        if not told or (not segments and batchId > 0):
            return
        first = told[0]
        warehouse, settings = _opened(self._options.store), first.plan.settings
        producer = warehouse.producer(
            first.transactional_id, transaction_timeout_ms=self._options.transaction_timeout_ms
        )
        if first.plan.producer is not None:
            producer.resume(ProducerEpoch(*first.plan.producer))
        topic = warehouse.topic_log(settings.name)
        if batchId == 0 and self._options.transactional_id is None:
            _warn_of_earlier_streams(warehouse, topic, first.transactional_id)

        def stage(_: Transaction) -> None:
            if segments:
                producer.stage(topic, settings, segments, RecordMetadata(settings.name))

        with producer:
            commit_batch(producer, batchId, lambda: first.query_id, stage)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803  Spark's name
        """Do nothing: what was uploaded is named by no log, and the error that led here is Spark's to tell."""
