"""Offsets by time: the first record of a partition at or after a moment, and its latest record (PROTOCOL.md §10).

Owns what Kafka's time lookups answer here: the offset of a record that the view shows, never that of a
marker or of an aborted record.  Segments are passed over by the times in their statistics; one whose
statistics say nothing is read.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from txntable.format.conform import TIMESTAMP_COLUMN
from txntable.partition.topic_view import TopicView
from txntable.segments.segment_columns import Numbers
from txntable.segments.segment_reader import OFFSET_COLUMN, SegmentReader, offsets_of
from txntable.snapshot.topic_reader import TopicReader

_COLUMNS = (OFFSET_COLUMN, TIMESTAMP_COLUMN)
_MICROSECONDS = 1000


def first_offset_at(reader: TopicReader, view: TopicView, partition: int, timestamp_ms: int) -> tuple[int, int] | None:
    """Return the first record of a partition, by offset, whose timestamp is `timestamp_ms` or later.

    Parameters
    ----------
    reader : TopicReader
        Of the topic.
    view : TopicView
        What is seen: nothing outside of its bounds is answered.
    partition : int
        From 0.
    timestamp_ms : int
        Milliseconds since 1970.

    Returns
    -------
    tuple of int, or None
        The offset, and the record's timestamp in milliseconds; ``None``: every record is older, or there is none.

    Raises
    ------
    UnknownTopicOrPartitionError
        The topic has no such partition.
    DamagedDataError
        A segment cannot be read; the message names it.
    StoreUnavailableError
        Call again.
    """
    segments = reader.reader_of(view, _COLUMNS)
    rows = _rows(view, partition)
    for row, newest_ms in zip(rows, view.columns.max_timestamps_ms(rows), strict=True):
        if newest_ms is not None and newest_ms < timestamp_ms:
            continue
        for offsets, times_us in _times(segments, view, row):
            late = np.flatnonzero(times_us >= timestamp_ms * _MICROSECONDS)
            if len(late):
                return int(offsets[late[0]]), int(times_us[late[0]]) // _MICROSECONDS
    return None


def latest_offset(reader: TopicReader, view: TopicView, partition: int) -> tuple[int, int] | None:
    """Return the record of a partition with the highest timestamp; of several the first.

    Parameters
    ----------
    reader, view, partition
        As for :func:`first_offset_at`, which says what is raised, too.

    Returns
    -------
    tuple of int, or None
        The offset, and the record's timestamp in milliseconds; ``None``: there is no record.
    """
    segments, columns = reader.reader_of(view, _COLUMNS), view.columns
    rows = _rows(view, partition)
    newest = dict(zip(rows, columns.max_timestamps_ms(rows), strict=True))
    best: tuple[int, int] | None = None
    # The newest first, so that nearly all others are passed over; those of which nothing is known at the end.
    for row in sorted(newest, key=lambda row: (newest[row] is None, -(newest[row] or 0), row)):
        limit_ms = newest[row]
        if best is not None and limit_ms is not None:
            limit = (limit_ms * _MICROSECONDS, -int(columns.base_offset[row]))
            if limit < (best[1], -best[0]):
                continue
        for offsets, times_us in _times(segments, view, row):
            at = int(np.argmax(times_us))
            found = (int(offsets[at]), int(times_us[at]))
            if best is None or (found[1], -found[0]) > (best[1], -best[0]):
                best = found
    return None if best is None else (best[0], best[1] // _MICROSECONDS)


def _rows(view: TopicView, partition: int) -> range:
    bounds = view.bounds_of(partition)
    return view.columns.rows_between(partition, bounds.start, bounds.end)


def _times(segments: SegmentReader, view: TopicView, row: int) -> Iterator[tuple[Numbers, Numbers]]:
    """Yield the offsets and the times, µs, of a segment's records within the view's bounds."""
    bounds = view.bounds_of(int(view.columns.partition[row]))
    (segment,) = view.columns.planned([row], bounds.start, bounds.end)
    for batch in segments.read(segment):
        times_us = batch.column(TIMESTAMP_COLUMN).cast(pa.int64())
        yield offsets_of(batch), np.asarray(times_us.to_numpy(zero_copy_only=False), dtype=np.int64)
