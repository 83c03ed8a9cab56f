"""Uploading batches as segments: the Python client's way (Spark has its own) (PROTOCOL.md §5.2).

Small segments are uploaded together, each step for all of them before the next: what one step needs of the processor's
caches the other one drives out, and the store puts them on its disk in one go.  Must not know of sequences.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from functools import partial

from txntable.log.log_view import LogContext
from txntable.producer.waiting_batch import WaitingBatch, gather
from txntable.segments.segment import SegmentPlan, StagedSegment
from txntable.segments.segment_writer import SMALL_BYTES, SegmentWriter

# Of values: as they are encoded, a batch of so many is below what a writer takes for small.
_SMALL_BATCH_BYTES = SMALL_BYTES // 4
# How many small segments are in memory at a time, and open in a store that is a folder.
_TOGETHER = 256


def uploads(
    context: LogContext,
    plan: SegmentPlan,
    batches: Sequence[WaitingBatch],
    uploaded: MutableMapping[WaitingBatch, StagedSegment],
) -> list[Callable[[], object]]:
    """Return the calls that upload batches of one topic; each takes note of what is there when it returns.

    They raise StoreUnavailableError where a segment is not uploaded; orphans may be left.
    """
    gather(batches)
    small = [batch for batch in batches if batch.size < _SMALL_BATCH_BYTES]
    large = [batch for batch in batches if batch.size >= _SMALL_BATCH_BYTES]
    together = [small[start : start + _TOGETHER] for start in range(0, len(small), _TOGETHER)]
    return [
        *(partial(_upload_together, context, plan, some, uploaded) for some in together),
        *(partial(_upload, context, plan, batch, uploaded) for batch in large),
    ]


def _upload_together(
    context: LogContext,
    plan: SegmentPlan,
    batches: Sequence[WaitingBatch],
    uploaded: MutableMapping[WaitingBatch, StagedSegment],
) -> None:
    writers = [_written(context, plan, batch) for batch in batches]
    files = [(writer.place, writer.encode()) for writer in writers]
    described = [writer.describe(data) for writer, (_, data) in zip(writers, files, strict=True)]
    context.store.create_all(files)
    uploaded.update(zip(batches, described, strict=True))


def _upload(
    context: LogContext,
    plan: SegmentPlan,
    batch: WaitingBatch,
    uploaded: MutableMapping[WaitingBatch, StagedSegment],
) -> None:
    writer = _written(context, plan, batch)
    try:
        uploaded[batch] = writer.close()
    except BaseException:
        writer.abort()
        raise


def _written(context: LogContext, plan: SegmentPlan, batch: WaitingBatch) -> SegmentWriter:
    writer = SegmentWriter(context.store, plan, batch.partition, context.environment.new_id(), keyed=batch.keyed)
    try:
        writer.write(batch.rows())
    except BaseException:
        writer.abort()
        raise
    return writer
