"""Uploading batches as segments: the Python client's way (Spark has its own) (PROTOCOL.md §5.2).

Owns that several are on their way at once where the store gains by it, and that they are told in
order all the same.  Must not know of sequences.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from txntable.log.log_view import LogContext
from txntable.producer.waiting_batch import WaitingBatch
from txntable.segments.segment import SegmentPlan, StagedSegment
from txntable.segments.segment_writer import SegmentWriter


def upload_batches(
    context: LogContext, plan: SegmentPlan, batches: Sequence[WaitingBatch]
) -> Iterator[tuple[WaitingBatch, StagedSegment]]:
    """Upload batches, and yield each with what the log needs to know of its segment, in their order.

    Parameters
    ----------
    context : LogContext
        Store and ids.
    plan : SegmentPlan
        Topic, producer, time of the write.
    batches : sequence of WaitingBatch
        Each of at least one row.

    Raises
    ------
    StoreUnavailableError
        What was not yielded is not uploaded; orphans may be left.
    """

    def upload(batch: WaitingBatch) -> StagedSegment:
        return upload_batch(context, plan, batch)

    parallel = min(context.store.parallel_writes, len(batches))
    if parallel < 2:
        for batch in batches:
            yield batch, upload(batch)
        return
    with ThreadPoolExecutor(parallel) as pool:
        # The first error in the order of the batches is raised; what has not begun is cancelled.
        yield from zip(batches, pool.map(upload, batches), strict=True)


def upload_batch(context: LogContext, plan: SegmentPlan, batch: WaitingBatch) -> StagedSegment:
    """Upload one batch as one segment; see :func:`upload_batches`."""
    unique = context.environment.new_id()
    writer = SegmentWriter(context.store, plan, batch.partition, unique, keyed=batch.keyed)
    try:
        writer.write(batch.rows())
        return writer.close()
    except BaseException:
        writer.abort()
        raise
