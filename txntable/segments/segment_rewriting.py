"""Writing records of segments into new ones: offsets, timestamps and order stay (PROTOCOL.md §5.8).

Owns the way of a record from its old file into its new one, in bounded memory: one batch is held, and
the row group that it fills.  The new files are named by no log until :meth:`txntable.topics.topic_log.TopicLog.rewrite`
registers them.  Must not know why segments are rewritten, nor of Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from txntable.format.conform import TIMESTAMP_COLUMN
from txntable.format.schema import OFFSET_DELTA_COLUMN
from txntable.segments.segment import MergedSegment, SegmentPlan
from txntable.segments.segment_columns import PlannedSegment
from txntable.segments.segment_reader import OFFSET_COLUMN, SegmentReader, offsets_of
from txntable.segments.segment_writer import SegmentWriter
from txntable.storage.object_store import ObjectStore

Choose = Callable[[PlannedSegment, pa.RecordBatch], pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class RewritePlan:
    """What all new segments of one rewrite have in common.

    Attributes
    ----------
    segments : SegmentPlan
        Without a producer; its settings are the topic's as the sources were read.
    segment_bytes : int
        Size of a file at which the next one is begun.
    new_id : callable
        Makes 32 hex digits that no other segment has.
    """

    segments: SegmentPlan
    segment_bytes: int
    new_id: Callable[[], str]


def rewrite_segments(
    store: ObjectStore, plan: RewritePlan, sources: Iterable[PlannedSegment], choose: Choose | None = None
) -> list[MergedSegment]:
    """Write the wanted records of segments of one partition into new segments.

    Parameters
    ----------
    store : ObjectStore
        The warehouse's.
    plan : RewritePlan
        What the new ones are like.
    sources : iterable of PlannedSegment
        In offset order, of S; what their `start` and `end` leave out is left out.
    choose : callable, optional
        A source and a batch of its records, with ``_offset`` -> those that stay; default: all.

    Returns
    -------
    list of MergedSegment
        In offset order; empty when no record stays.

    Raises
    ------
    DamagedDataError
        A source cannot be read; the message names it.
    StoreUnavailableError
        Rewrite again: what was written is named by no log.
    """
    settings = plan.segments.settings
    names = [*settings.schema.names, OFFSET_COLUMN, TIMESTAMP_COLUMN]
    reader = SegmentReader(store, plan.segments.root, settings, names)
    outputs = _Outputs(store, plan)
    try:
        with closing(reader.read_each(sources)) as each:
            for source, batches in each:
                # What was replaced would be the truth once it was written again, under a digest of its own.
                reader.check(source)
                for batch in batches:
                    chosen = batch if choose is None else choose(source, batch)
                    if chosen.num_rows:
                        outputs.write(source.partition, chosen)
        return outputs.close()
    finally:
        outputs.abort()


class _Outputs:
    """The new segments of one rewrite, one after the other."""

    def __init__(self, store: ObjectStore, plan: RewritePlan) -> None:
        self._store, self._plan = store, plan
        self._writer: SegmentWriter | None = None
        self._base = self._last = 0
        self._written: list[MergedSegment] = []

    def write(self, partition: int, rows: pa.RecordBatch) -> None:
        offsets = offsets_of(rows)
        if self._writer is None:
            unique = self._plan.new_id()
            self._writer = SegmentWriter(self._store, self._plan.segments, partition, unique, keyed=False)
            self._base = int(offsets[0])
        deltas = pc.subtract(rows.column(OFFSET_COLUMN), self._base)
        self._writer.write(rows.append_column(OFFSET_DELTA_COLUMN, deltas))
        self._last = int(offsets[-1])
        if self._writer.written_bytes >= self._plan.segment_bytes:
            self._end()

    def _end(self) -> None:
        if self._writer is not None:
            self._written.append(MergedSegment(self._writer.close(), self._base, self._last))
            self._writer = None

    def close(self) -> list[MergedSegment]:
        self._end()
        return self._written

    def abort(self) -> None:
        if self._writer is not None:
            self._writer.abort()
            self._writer = None
