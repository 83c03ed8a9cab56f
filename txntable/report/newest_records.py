"""The newest records of a topic, each with what became of its transaction.

Owns the order (that of the appends), how much is read (a few segments, the end of each), and how keys and values become
text.  What cannot be read is told in its place.  Reads only.
"""

from __future__ import annotations

import base64
import datetime as dt
import heapq
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice

import numpy as np

from txntable.errors import TxnTableError
from txntable.format.schema import KAFKA_SCHEMA
from txntable.log.actions import Add
from txntable.log.table_state import TableState
from txntable.partition.batch import batch_of
from txntable.partition.partition_log import PartitionLogs
from txntable.partition.projection import commit_position, is_aborted
from txntable.partition.topic_view import TopicView
from txntable.report.warehouse_report import NewestRecords, RecordOutcome, ShownRecord
from txntable.segments.segment_columns import PlannedSegment
from txntable.segments.segment_reader import OFFSET_COLUMN, PARTITION_COLUMN, SegmentReader
from txntable.snapshot.topic_reader import TopicReader

LONGEST_TEXT = 300
"""Characters of a key or a value; the rest is left out, and said to be."""
_TIMESTAMP = "_timestamp"
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MILLISECOND = dt.timedelta(milliseconds=1)


def newest_records(reader: TopicReader, view: TopicView, logs: PartitionLogs, most: int) -> NewestRecords:
    """Return the newest records of a topic.

    Parameters
    ----------
    reader : TopicReader
        The topic's.
    view : TopicView
        Everything appended.
    logs : PartitionLogs
        Of the same state.
    most : int
        How many records.
    """
    name = view.settings.name
    planned = list(_newest_segments(view, reader.topic.segments.table, most))
    found: dict[str, list[ShownRecord]] = {}
    problem = ""
    try:
        segments = reader.reader_of(view)
        for segment, add in planned:
            found[segment.path] = list(_records_of(segments, segment, add, logs, is_kafkas=_is_kafkas(view)))
    except TxnTableError as error:
        problem = f"{error.code} {error}"
    records = [record for segment, _ in planned for record in reversed(found.get(segment.path, []))]
    return NewestRecords(name, tuple(records[:most]), problem)


def _is_kafkas(view: TopicView) -> bool:
    return bool(view.settings.schema.equals(KAFKA_SCHEMA))


def _newest_segments(view: TopicView, segments: TableState, most: int) -> Iterator[tuple[PlannedSegment, Add]]:
    """Yield the segments that hold the newest records, the newest first; of each, its last ones are wanted."""
    rows = [(partition, row) for partition in view.bounds for row in _last_row(view, partition)]
    waiting = [entry for partition, row in rows for entry in _waiting(view, segments, partition, row)]
    heapq.heapify(waiting)
    left = most
    while waiting and left > 0:
        _, _, partition, row, add = heapq.heappop(waiting)
        (segment,) = view.columns.planned([row], 0, 0)
        bounds = view.bounds[partition]
        start = max(bounds.start, segment.last_offset + 1 - left)
        yield replace(segment, start=start, end=segment.last_offset + 1), add
        left -= min(left, segment.records or 1)
        for entry in _waiting(view, segments, partition, row - 1):
            heapq.heappush(waiting, entry)


def _last_row(view: TopicView, partition: int) -> Iterator[int]:
    row = int(np.searchsorted(view.columns.partition, partition + 1)) - 1
    if row >= 0 and int(view.columns.partition[row]) == partition:
        yield row


def _waiting(
    view: TopicView, segments: TableState, partition: int, row: int
) -> Iterator[tuple[int, int, int, int, Add]]:
    columns = view.columns
    if (
        row < 0
        or int(columns.partition[row]) != partition
        or int(columns.last_offset[row]) < view.bounds[partition].start
    ):
        return
    add = segments.files.get(columns.files["path"][int(columns.row[row])].as_py())
    if add is not None:
        yield -add.modification_time, -row, partition, row, add


def _records_of(
    segments: SegmentReader, segment: PlannedSegment, add: Add, logs: PartitionLogs, *, is_kafkas: bool
) -> Iterator[ShownRecord]:
    batch = batch_of(add)
    commit = commit_position(logs, batch)
    if commit is not None:
        outcome = RecordOutcome.COMMITTED
    else:
        outcome = RecordOutcome.ABORTED if is_aborted(logs, batch) else RecordOutcome.OPEN
    for rows in segments.read(segment):
        for row in rows.to_pylist():
            yield _record(row, outcome, commit, is_kafkas=is_kafkas)


def _record(row: Mapping[str, object], outcome: RecordOutcome, commit: int | None, *, is_kafkas: bool) -> ShownRecord:
    at = row[_TIMESTAMP]
    assert isinstance(at, dt.datetime)
    if is_kafkas:
        key, value = text_of(row["key"]), text_of(row["value"])
    else:
        own = {name: each for name, each in row.items() if name not in _NOT_THE_TOPICS}
        key, value = None, _short(json.dumps(own, ensure_ascii=False, default=_in_json))
    return ShownRecord(
        int(str(row[PARTITION_COLUMN])),
        int(str(row[OFFSET_COLUMN])),
        (at - _EPOCH) // _MILLISECOND,
        outcome,
        commit,
        key,
        value,
    )


_NOT_THE_TOPICS = frozenset({PARTITION_COLUMN, OFFSET_COLUMN, _TIMESTAMP, "_commit"})


def text_of(data: object) -> str | None:
    """Return bytes as people read them: as UTF-8 where they are, else as hex digits; shortened."""
    if data is None:
        return None
    if not isinstance(data, bytes):
        return _short(str(data))
    # Of a large value no more is decoded than is shown; a character may be cut.
    beginning = data[: 4 * LONGEST_TEXT]
    try:
        text = beginning.decode()
    except UnicodeDecodeError as error:
        is_cut = len(beginning) < len(data) and error.start > len(beginning) - 4
        text = beginning[: error.start].decode() if is_cut else f"0x{beginning.hex()}"
    return _short(text, is_cut=len(beginning) < len(data))


def _short(text: str, *, is_cut: bool = False) -> str:
    is_cut = is_cut or len(text) > LONGEST_TEXT
    return "".join(islice(text, LONGEST_TEXT)) + ("…" if is_cut else "")


def _in_json(value: object) -> object:
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return base64.b64encode(value).decode()
    return str(value)
