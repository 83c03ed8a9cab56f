"""Reading ahead in one partition: some segments that follow each other, batch by batch, in bounded memory.

Owns how much is decoded at once, and where the position goes: past the record that was taken last, and past
gaps (markers, aborted records) once nothing is left before the next segment that is planned.  A fetch that has
failed, or was interrupted, cannot go on: it is thrown away, and another one begins at the position.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future
from contextvars import copy_context

import pyarrow as pa

from txntable.consumer.followed_topic import FollowedTopic
from txntable.segments.segment_columns import PlannedSegment
from txntable.segments.segment_reader import DEFAULT_BATCH_ROWS, SegmentReader, offsets_of
from txntable.segments.segment_writer import ROW_GROUP_BYTES

# A fetch ends here, so that a partition with many segments does not keep its place in memory for ever.
RUN_SEGMENTS = 32
RUN_BYTES = 64 * 1024 * 1024
# How much larger records are taken to be in memory than in a compressed file.
_EXPANSION = 8


class PartitionFetch:
    """Some segments of one partition on their way to the caller.

    Parameters
    ----------
    segments : sequence of PlannedSegment
        At least one, in offset order.
    reader : SegmentReader
        Reads them.
    through : int
        Where the position is when all of them were taken.
    batch_bytes : int
        About how many bytes of records are decoded at once.

    Attributes
    ----------
    through : int
        As given.
    reserved_bytes : int
        What it takes of memory: a row group of a file, the batch that is taken, and the one after it.
    batches : int
        How many were decoded so far.
    """

    def __init__(
        self,
        segments: Sequence[PlannedSegment],
        reader: SegmentReader,
        through: int,
        batch_bytes: int,
    ) -> None:
        self.through = through
        self.reserved_bytes = 2 * batch_bytes + max(min(segment.size, ROW_GROUP_BYTES) for segment in segments)
        self.batches = 0
        self._last_offset = segments[-1].last_offset
        self._records = _read(segments, reader, batch_bytes)
        self._ahead: Executor | None = None
        self._batch: pa.RecordBatch | None = None
        self._coming: Future[pa.RecordBatch | None] | None = None

    def begin(self, ahead: Executor | None) -> None:
        """Decode the first batch, and each one after the one that is taken, in `ahead`; ``None``: when asked."""
        self._ahead = ahead
        self._coming = self._submitted()

    def _submitted(self) -> Future[pa.RecordBatch | None] | None:
        # In the context of the call that asks: it has no more time than that to try again.
        context = copy_context()
        return None if self._ahead is None else self._ahead.submit(lambda: context.run(self._decode_next))

    def _decode_next(self) -> pa.RecordBatch | None:
        return next(self._records, None)

    def take(self, limit: int) -> tuple[pa.RecordBatch, int] | None:
        """Return the next records, at most `limit`, and the position after them; ``None``: all were taken.

        Raises
        ------
        DamagedDataError
            A segment cannot be read; the message names it.
        StoreUnavailableError
            Begin another fetch.
        """
        batch = self._next() if self._batch is None else self._batch
        if batch is None:
            return None
        taken = batch.slice(0, limit)
        self._batch = batch.slice(limit) if limit < batch.num_rows else None
        last = int(offsets_of(taken.slice(taken.num_rows - 1))[0])
        return taken, self.through if last >= self._last_offset else last + 1

    def _next(self) -> pa.RecordBatch | None:
        if self._coming is None:
            batch = next(self._records, None)
        else:
            batch = self._coming.result()
            self._coming = None if batch is None else self._submitted()
        self.batches += 1
        return batch


def next_fetch(topic: FollowedTopic, partition: int, start: int, batch_bytes: int) -> PartitionFetch | None:
    """Return the fetch that begins at an offset; ``None``: there is no record from there to the bound of the view.

    Parameters
    ----------
    topic : FollowedTopic
        With the view that is read.
    partition : int
        From 0.
    start : int
        Within the bounds of the partition.
    batch_bytes : int
        See :class:`PartitionFetch`.
    """
    columns, end = topic.view.columns, topic.bounds(partition).end
    rows = columns.rows_between(partition, start, end)
    segments: list[PlannedSegment] = []
    size = 0
    for row in rows[:RUN_SEGMENTS]:
        segments.append(columns.planned(row, start, end))
        size += segments[-1].size
        if size >= RUN_BYTES:
            break
    if not segments:
        return None
    through = end if len(segments) == len(rows) else segments[-1].last_offset + 1
    return PartitionFetch(segments, topic.segments, through, batch_bytes)


def _read(segments: Sequence[PlannedSegment], reader: SegmentReader, batch_bytes: int) -> Iterator[pa.RecordBatch]:
    for segment in segments:
        yield from reader.read(segment, rows_at_once(segment, batch_bytes))


def rows_at_once(segment: PlannedSegment, batch_bytes: int) -> int:
    """Return how many records of a segment are decoded at once, so that they take about `batch_bytes`.

    At least one; what a record takes is estimated by the file's size.
    """
    records = segment.records or segment.last_offset - segment.base_offset + 1
    return max(1, min(DEFAULT_BATCH_ROWS, batch_bytes * records // (_EXPANSION * max(1, segment.size))))
