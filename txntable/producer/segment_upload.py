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

# Of values: a batch of fewer is nearly always below what a writer takes for small.
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
        *(partial(_upload_together, context, plan, [batch], uploaded) for batch in large),
    ]


def _upload_together(
    context: LogContext,
    plan: SegmentPlan,
    batches: Sequence[WaitingBatch],
    uploaded: MutableMapping[WaitingBatch, StagedSegment],
) -> None:
    writers: dict[WaitingBatch, SegmentWriter] = {}
    try:
        for batch in batches:
            unique = context.environment.new_id()
            writers[batch] = SegmentWriter(context.store, plan, batch.partition, unique, keyed=batch.keyed)
            writers[batch].write(batch.rows())
        small = {batch: writer for batch, writer in writers.items() if writer.is_small}
        files = [(writer.place, writer.encode()) for writer in small.values()]
        described = [writer.describe(data) for writer, (_, data) in zip(small.values(), files, strict=True)]
        context.store.create_all(files)
        uploaded.update(zip(small, described, strict=True))
        # Values that take nothing, such as nulls, may be many.
        uploaded.update((batch, writer.close()) for batch, writer in writers.items() if batch not in small)
    except BaseException:
        for writer in writers.values():
            writer.abort()
        raise
