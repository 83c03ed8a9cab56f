"""Uploading a batch as a segment: the Python client's way (Spark has its own) (PROTOCOL.md §5.2).

Must not know of sequences.
"""

from __future__ import annotations

from txntable.log.log_view import LogContext
from txntable.producer.waiting_batch import WaitingBatch
from txntable.segments.segment import SegmentPlan, StagedSegment
from txntable.segments.segment_writer import SegmentWriter


def upload_batch(context: LogContext, plan: SegmentPlan, batch: WaitingBatch) -> StagedSegment:
    """Upload one batch as one segment.

    Raises
    ------
    StoreUnavailableError
        It is not uploaded; an orphan may be left.
    """
    unique = context.environment.new_id()
    writer = SegmentWriter(context.store, plan, batch.partition, unique, keyed=batch.keyed)
    try:
        writer.write(batch.rows())
        return writer.close()
    except BaseException:
        writer.abort()
        raise
