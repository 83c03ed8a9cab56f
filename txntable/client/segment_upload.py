"""Uploading one partition's rows as one segment: the Python client's way (Spark has its own)."""

from __future__ import annotations

from txntable.client.accumulator import PartitionRows
from txntable.log.delta_log import LogContext
from txntable.segment import SegmentPlan, SegmentWriter, StagedSegment


def upload_rows(context: LogContext, plan: SegmentPlan, part: PartitionRows) -> StagedSegment:
    """Upload rows of one partition as one segment, and return what the log needs to know of it.

    Parameters
    ----------
    context : LogContext
        Store and ids.
    plan : SegmentPlan
        Topic, producer, time of the write.
    part : PartitionRows
        At least one row.

    Raises
    ------
    StoreUnavailableError
        Nothing is registered; an orphan may be left.
    """
    unique = context.environment.new_id()
    writer = SegmentWriter(context.store, plan, part.partition, unique, keyed=part.keyed)
    try:
        writer.write(part.rows)
        return writer.close()
    except BaseException:
        writer.abort()
        raise
