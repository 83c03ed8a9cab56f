"""What one Spark task does: split its rows by partition and stream them into segments.

Owns memory: whatever a task is given, it holds a bounded amount of rows and a bounded number of
open uploads.  Runs on executors, needs no Spark, and knows the warehouse only by its store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from txntable.format.conform import conform
from txntable.format.key import partitions_of
from txntable.runtime.environment import Environment
from txntable.segments.segment import SegmentPlan, StagedSegment
from txntable.segments.segment_writer import SegmentWriter
from txntable.storage.object_store import ObjectStore

_NO_KEY = -1
# Rows are split by key in runs of this size: splitting Spark's small batches would cut them into crumbs.
_SPLIT_ROWS = 32 * 1024
# They wait beside what is buffered: a small part of it.
_SPLIT_SHARE = 8


@dataclass(frozen=True, slots=True)
class TaskLimits:
    """How much a task may hold.

    Attributes
    ----------
    segment_bytes : int
        Size at which a segment is closed.
    buffered_bytes : int
        Rows in memory, all partitions together, as Arrow has them.
    open_uploads : int
        Segments of which a part is on its way; each holds some buffers of the store's client.
    """

    segment_bytes: int
    buffered_bytes: int = 128 * 1024 * 1024
    open_uploads: int = 8


class SegmentTask:
    """Segments of one task.

    Parameters
    ----------
    store : ObjectStore
        The warehouse's.
    plan : SegmentPlan
        Topic, producer, time of the write.
    environment : Environment
        Names the segments.
    limits : TaskLimits
        How much to hold.
    first_partition : int
        Where records without a key begin; other tasks begin elsewhere.
    """

    def __init__(
        self, store: ObjectStore, plan: SegmentPlan, environment: Environment, limits: TaskLimits, first_partition: int
    ) -> None:
        self._store, self._plan, self._environment, self._limits = store, plan, environment, limits
        self._next_unkeyed = first_partition % plan.settings.partitions
        self._keyed: dict[int, SegmentWriter] = {}
        self._unkeyed: SegmentWriter | None = None

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[StagedSegment]:
        """Upload all rows; yield each segment when it is whole.

        Raises
        ------
        SchemaMismatchError
            A required column has a null, or a type differs.
        StoreUnavailableError
            Run the task again; what it left is named by no log.
        """
        rows = (conform(batch, self._plan.settings) for batch in batches)
        try:
            for run in self._runs(rows) if self._plan.settings.key else rows:
                yield from self._add(run)
            yield from self._close_all()
        finally:
            for writer in [*self._keyed.values(), *([] if self._unkeyed is None else [self._unkeyed])]:
                writer.abort()

    def _runs(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the same rows in fewer, larger batches."""
        most = self._limits.buffered_bytes // _SPLIT_SHARE
        waiting: list[pa.RecordBatch] = []
        count = size = 0
        for batch in batches:
            waiting.append(batch)
            count, size = count + batch.num_rows, size + batch.nbytes
            if count >= _SPLIT_ROWS or size >= most:
                yield pa.concat_batches(waiting)
                waiting, count, size = [], 0, 0
        if waiting:
            yield pa.concat_batches(waiting)

    def _add(self, rows: pa.RecordBatch) -> Iterator[StagedSegment]:
        settings = self._plan.settings
        if rows.num_rows == 0:
            return
        if not settings.key:
            yield from self._spread(rows)
            return
        chosen = partitions_of(rows, settings.key, settings.partitions)
        for partition, part in _split(rows, chosen):
            if partition == _NO_KEY:
                yield from self._spread(part)
            else:
                if partition not in self._keyed:
                    self._keyed[partition] = self._open(partition, keyed=True)
                self._keyed[partition].write(part)
        yield from self._keep_within_limits()

    def _open(self, partition: int, *, keyed: bool) -> SegmentWriter:
        return SegmentWriter(self._store, self._plan, partition, self._environment.new_id(), keyed=keyed)

    def _spread(self, rows: pa.RecordBatch) -> Iterator[StagedSegment]:
        """Fill partitions in turn: few large segments, and over many tasks all partitions alike."""
        if self._unkeyed is None:
            self._unkeyed = self._open(self._next_unkeyed, keyed=False)
            self._next_unkeyed = (self._next_unkeyed + 1) % self._plan.settings.partitions
        self._unkeyed.write(rows)
        if self._unkeyed.written_bytes >= self._limits.segment_bytes:
            yield self._unkeyed.close()
            self._unkeyed = None

    def _keep_within_limits(self) -> Iterator[StagedSegment]:
        for partition, writer in list(self._keyed.items()):
            if writer.written_bytes >= self._limits.segment_bytes:
                yield self._close(partition)
        # Largest first: few large row groups rather than many small ones.
        by_size = sorted(self._keyed.values(), key=lambda writer: writer.buffered_bytes)
        held = sum(writer.buffered_bytes for writer in by_size)
        while held > self._limits.buffered_bytes:
            largest = by_size.pop()
            held -= largest.buffered_bytes
            largest.flush()
        uploading = sorted((writer.written_bytes, partition) for partition, writer in self._keyed.items())
        uploading = [entry for entry in uploading if entry[0]]
        while len(uploading) > self._limits.open_uploads:
            yield self._close(uploading.pop()[1])

    def _close(self, partition: int) -> StagedSegment:
        staged = self._keyed[partition].close()
        del self._keyed[partition]
        return staged

    def _close_all(self) -> Iterator[StagedSegment]:
        for partition in sorted(self._keyed):
            yield self._close(partition)
        if self._unkeyed is not None:
            yield self._unkeyed.close()
            self._unkeyed = None


def _split(rows: pa.RecordBatch, chosen: pa.Int32Array) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the rows of each partition, in their order; -1 for those without a key."""
    partitions = chosen.fill_null(_NO_KEY).to_numpy(zero_copy_only=False)
    order = np.argsort(partitions, kind="stable")
    ordered = partitions[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1))
    if len(starts) == 1:
        yield int(ordered[0]), rows
        return
    for start, end in zip(starts, [*starts[1:], len(ordered)], strict=True):
        # Copied, not sliced: a slice would keep the whole batch in memory until its slowest partition is written.
        yield int(ordered[start]), rows.take(pa.array(order[start:end]))
