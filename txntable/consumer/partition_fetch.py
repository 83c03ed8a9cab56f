"""Reading ahead in one partition: some segments that follow each other, batch by batch, in bounded memory.

Owns how much is decoded at once, and where the position goes: past the record that was taken last, and past
gaps (markers, aborted records) once nothing is left before the next segment that is planned.  A fetch that has
failed, or was interrupted, cannot go on: it is thrown away, and another one begins at the position.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from itertools import accumulate

import pyarrow as pa

from txntable.consumer.followed_topic import FollowedTopic
from txntable.segments.segment_columns import PlannedSegment
from txntable.segments.segment_reader import DEFAULT_BATCH_ROWS, SegmentReader, offsets_of
from txntable.segments.segment_writer import ROW_GROUP_BYTES
from txntable.storage.object_reader import first_bytes_of
from txntable.storage.object_store import ObjectStore
from txntable.storage.read_window import WINDOW_OBJECTS, ReadWindow

# A fetch ends here, so that a partition with many segments does not keep its place in memory for ever.
RUN_SEGMENTS = 32
RUN_BYTES = 64 * 1024 * 1024
# Of segments that are fetched ahead, for each byte of records that is decoded at once: files are compressed.
_AHEAD = 4
# How much larger records are taken to be in memory than in a compressed file.
_EXPANSION = 8
# What a record, and a batch, are taken to have at least: a small file may hide more behind a dictionary.
_RECORD_BYTES = 1024
_LEAST_BATCH_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Ahead:
    """What works for a consumer while it does something else.

    Attributes
    ----------
    decoding : Executor
        Decodes the next batch of each partition.
    fetching : Executor or None
        Makes the requests that the decoding waits for; another one, so that it never waits for itself.  ``None``: a
        store that does not gain from it.
    """

    decoding: Executor
    fetching: Executor | None

    @classmethod
    def of(cls, store: ObjectStore, *, wanted: bool | None) -> Ahead | None:
        """Return threads for a store; ``None``: nothing is read before it is asked for."""
        if not (store.parallel_writes > 1 if wanted is None else wanted):
            return None
        parallel = min(store.parallel_reads, WINDOW_OBJECTS)
        # Whoever decodes a lone segment asks for it, too: of many partitions with few records these requests are most.
        decoding = ThreadPoolExecutor(max(store.parallel_writes, parallel), "txntable-prefetch")
        return cls(decoding, ThreadPoolExecutor(parallel, "txntable-fetch") if parallel > 1 else None)

    def shut(self) -> None:
        """Begin nothing any more."""
        for pool in (self.decoding, self.fetching):
            if pool is not None:
                pool.shutdown(wait=False, cancel_futures=True)


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
    ahead : Ahead, optional
        Reads the next batches meanwhile; ``None``: nothing is read before it is asked for.

    Attributes
    ----------
    through : int
        As given.
    reserved_bytes : int
        What it takes of memory: a row group of a file, the batch that is taken, the one after it, and what is fetched
        ahead.
    batches : int
        How many were decoded so far.
    taken : int
        How many records were taken so far.
    """

    def __init__(
        self,
        segments: Sequence[PlannedSegment],
        reader: SegmentReader,
        through: int,
        batch_bytes: int,
        ahead: Ahead | None,
    ) -> None:
        self.through = through
        largest_batch = max(_batch_bytes(segment, batch_bytes) for segment in segments)
        self.reserved_bytes = 2 * largest_batch + max(min(segment.size, ROW_GROUP_BYTES) for segment in segments)
        self.batches = self.taken = 0
        self._last_offset = segments[-1].last_offset
        self._ahead = ahead
        window: ReadWindow | None = None
        if ahead is not None and ahead.fetching is not None:
            rest = sum(first_bytes_of(segment.size) for segment in segments[1:])
            self.reserved_bytes += min(rest, _AHEAD * batch_bytes)
            window = ReadWindow(_AHEAD * batch_bytes, ahead.fetching)
        self._records = reader.read_all(segments, partial(rows_at_once, batch_bytes=batch_bytes), window)
        self._batch: pa.RecordBatch | None = None
        self._at = 0
        self._coming: Future[pa.RecordBatch | None] | None = None

    def begin(self) -> None:
        """Decode the first batch, and each one after the one that is taken, ahead of its time, where that is wanted."""
        self._coming = self._submitted()

    def _submitted(self) -> Future[pa.RecordBatch | None] | None:
        if self._ahead is None:
            return None
        # In the context of the call that asks: it has no more time than that to try again.
        context = copy_context()
        return self._ahead.decoding.submit(lambda: context.run(self._decode_next))

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
        if self._batch is None:
            self._batch, self._at = self._next(), 0
        rows = self.at_hand(limit)
        if rows is None:
            return None
        return rows, self.took(rows.num_rows, int(offsets_of(rows.slice(rows.num_rows - 1))[0]))

    def at_hand(self, limit: int) -> pa.RecordBatch | None:
        """Return what :meth:`take` would, without taking it; ``None``: another batch is to be decoded first."""
        return None if self._batch is None else self._batch.slice(self._at, limit)

    def took(self, count: int, last: int) -> int:
        """Take note that so many records that are at hand are taken, through an offset; return the position then."""
        self.taken += count
        self._at += count
        if self._batch is not None and self._at >= self._batch.num_rows:
            self._batch = None
        return self.through if last >= self._last_offset else last + 1

    def _next(self) -> pa.RecordBatch | None:
        if self._coming is None:
            batch = next(self._records, None)
        else:
            batch = self._coming.result()
            self._coming = None if batch is None else self._submitted()
        self.batches += 1
        return batch


def next_fetch(
    topic: FollowedTopic, partition: int, start: int, batch_bytes: int, ahead: Ahead | None
) -> PartitionFetch | None:
    """Return the fetch that begins at an offset; ``None``: there is no record from there to the bound of the view.

    Parameters
    ----------
    topic : FollowedTopic
        With the view that is read.
    partition : int
        From 0.
    start : int
        Within the bounds of the partition.
    batch_bytes, ahead
        See :class:`PartitionFetch`.
    """
    columns, end = topic.view.columns, topic.bounds(partition).end
    rows = columns.rows_between(partition, start, end)
    if not rows:
        return None
    sizes = accumulate(columns.size[rows.start : rows.stop][:RUN_SEGMENTS].tolist())
    # Through the segment that reaches the bound.
    count = 1 + sum(size < RUN_BYTES for size in sizes)
    segments = columns.planned(rows[: min(count, RUN_SEGMENTS)], start, end)
    through = end if len(segments) == len(rows) else segments[-1].last_offset + 1
    return PartitionFetch(segments, topic.segments, through, batch_bytes, ahead)


def _batch_bytes(segment: PlannedSegment, batch_bytes: int) -> int:
    """Return what a batch of a segment takes: of a small file with few records, less than `batch_bytes`."""
    estimate = max(_LEAST_BATCH_BYTES, _EXPANSION * segment.size + _RECORD_BYTES * _records_of(segment))
    return min(batch_bytes, estimate)


def _records_of(segment: PlannedSegment) -> int:
    return segment.records or segment.last_offset - segment.base_offset + 1


def rows_at_once(segment: PlannedSegment, batch_bytes: int) -> int:
    """Return how many records of a segment are decoded at once, so that they take about `batch_bytes`.

    At least one; what a record takes is estimated by the file's size.
    """
    return max(1, min(DEFAULT_BATCH_ROWS, batch_bytes * _records_of(segment) // (_EXPANSION * max(1, segment.size))))
