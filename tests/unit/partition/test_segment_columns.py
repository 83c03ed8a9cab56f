"""Live files as sorted columns: against a naive reading of the rows, and kept while commits come."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from tests.unit.partition.history import History, data_rows, new_history, play, steps
from txntable.errors import DamagedDataError
from txntable.log.actions import Add
from txntable.log.table_state import LiveFiles
from txntable.segments.segment_columns import PlannedSegment, SegmentColumns, columns_after, segment_columns

EVERYTHING = 1 << 40


def row(base: int, last: int, *, partition: int = 0, stats: str | None = '{"numRecords":2}', **values: object) -> Add:
    """A row of the public table."""
    columns = {"_partition": partition, "_base_offset": base, "_last_offset": last, "_commit": 0, **values}
    texts = {name: None if value is None else str(value) for name, value in columns.items()}
    return Add(f"_segments/{partition}-{base}", texts, 10 + base, 0, True, stats, None)


def columns_of(*rows: Add) -> SegmentColumns:
    files = LiveFiles()
    for add in rows:
        files.put(add)
    return segment_columns(files.to_table(), public=True)


def planned(columns: SegmentColumns, partitions: int = 3) -> Iterator[PlannedSegment]:
    for partition in range(partitions):
        yield from columns.between(partition, 0, EVERYTHING)


def naive(rows: list[Add]) -> list[tuple]:
    found = []
    for add in rows:
        values = add.partition_values
        commit = values.get("_commit")
        numbers = [int(values[name] or "") for name in ("_partition", "_base_offset", "_last_offset")]
        found.append((*numbers, add.path, None if commit is None else int(commit), add.size))
    return sorted(found)


def told(columns: SegmentColumns) -> list[tuple]:
    return [(s.partition, s.base_offset, s.last_offset, s.path, s.commit, s.size) for s in planned(columns)]


@settings(max_examples=60)
@given(steps)
def test_columns_are_the_data_rows_of_either_table_in_offset_order(moves: list) -> None:
    history = new_history()
    play(history, moves)
    history.publish()
    segments, public = history.topic.segments.table, history.topic.public.table

    assert told(segment_columns(segments.files.to_table(), public=False)) == naive(data_rows(segments))
    assert told(segment_columns(public.files.to_table(), public=True)) == naive(list(public.files))


@settings(max_examples=60)
@given(steps, steps)
def test_columns_kept_through_commits_equal_those_made_anew(before: list, after: list) -> None:
    history = new_history()
    play(history, before)
    history.topic.segments.table.files.absorb_tail()
    files = history.topic.segments.table.files
    base = segment_columns(files.base, public=False)

    play_on(history, after)

    kept = columns_after(base, files, public=False)
    assert told(kept) == told(segment_columns(files.to_table(), public=False)) == naive(data_rows_of(history))
    assert [s.records for s in planned(kept)] == [len(history.records[s.path][1]) for s in planned(kept)]


def play_on(history: History, moves: list) -> None:
    """Go on with plain appends and removals: the producers with transactions of the first part have ended."""
    play(history, [move for move in moves if move[0] in {"once", "compact", "clean", "publish"}])


def data_rows_of(history: History) -> list[Add]:
    return data_rows(history.topic.segments.table)


def test_columns_of_nothing_plan_nothing() -> None:
    assert told(columns_of()) == []
    assert list(columns_of().between(0, 0, EVERYTHING)) == []


@pytest.mark.parametrize(
    ("start", "end", "bases"),
    [
        (0, 100, [0, 10, 20]),
        (9, 10, [0]),
        (10, 11, [10]),
        (13, 20, [10]),
        (15, 20, []),
        (15, 21, [20]),
        (25, 100, [20]),
        (30, 100, []),
        (0, 0, []),
    ],
)
def test_between_returns_what_a_range_touches_when_offsets_have_gaps(start: int, end: int, bases: list[int]) -> None:
    columns = columns_of(row(20, 29), row(0, 9), row(10, 14), row(0, 99, partition=1))

    assert [segment.base_offset for segment in columns.between(0, start, end)] == bases


@pytest.mark.parametrize(("start", "end", "whole"), [(0, 20, True), (10, 20, True), (11, 20, False), (0, 19, False)])
def test_segment_is_whole_unless_a_bound_cuts_it(start: int, end: int, whole: bool) -> None:
    (segment,) = columns_of(row(10, 19)).between(0, start, end)

    assert segment.is_whole is whole


def test_planned_is_the_segment_of_a_row_that_a_range_names() -> None:
    columns = columns_of(row(20, 29, partition=1), row(0, 9))

    assert columns.rows_between(1, 0, 100) == range(1, 2)
    assert columns.planned([1], 21, 25) == list(columns.between(1, 21, 25))


def test_between_reaches_over_many_windows() -> None:
    columns = columns_of(*(row(2 * number, 2 * number + 1) for number in range(2500)))

    bases = [segment.base_offset for segment in columns.between(0, 2, 4998)]

    assert bases == list(range(2, 4998, 2))


def test_committed_through_leaves_out_what_was_committed_above() -> None:
    columns = columns_of(row(0, 1, _commit=7), row(2, 3, _commit=0), row(4, 5, _commit=8))

    assert [s.base_offset for s in columns.committed_through(7).between(0, 0, EVERYTHING)] == [0, 2]
    assert columns.committed_through(8) is columns


def test_committed_through_is_refused_where_the_table_does_not_say() -> None:
    history = new_history()
    history.append(None, [(0, 1)], transactional=False)
    columns = segment_columns(history.topic.segments.table.files.to_table(), public=False)

    with pytest.raises(DamagedDataError, match="position=3"):
        columns.committed_through(3)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"_partition": None}, "path=_segments/0-5 column=_partition"),
        ({"_commit": "later"}, "no number column=_commit"),
    ],
)
def test_columns_refuse_a_row_without_its_numbers(changed: dict, message: str) -> None:
    with pytest.raises(DamagedDataError, match=message):
        columns_of(row(0, 4), row(5, 6, **changed))


def test_columns_refuse_a_row_that_lacks_a_column_whole() -> None:
    odd = row(5, 6)

    with pytest.raises(DamagedDataError, match="path=_segments/0-5 column=_base_offset"):
        columns_of(
            row(0, 4),
            Add(odd.path, {"_partition": "0", "_last_offset": "6", "_commit": "0"}, 1, 0, True, odd.stats, None),
        )


LAST_MILLISECOND = '"_timestamp":"2023-11-14T22:13:20.001Z"}'


@pytest.mark.parametrize(
    ("stats", "records", "newest_ms"),
    [
        (None, None, None),
        ('{"numRecords":7}', 7, None),
        ('{"numRecords":7,"minValues":{},"maxValues":{' + LAST_MILLISECOND + ',"nullCount":{}}', 7, 1_700_000_000_001),
        ('{"numRecords":7,"maxValues":{"s":{' + LAST_MILLISECOND + '},"nullCount":{}}', 7, None),
        ('{"numRecords":7,"maxValues":{"a":"\\"_timestamp\\":\\"2023\\"}","x":1},"nullCount":{}}', 7, None),
    ],
)
def test_columns_tell_what_statistics_say_and_nothing_else(
    stats: str | None, records: int | None, newest_ms: int | None
) -> None:
    columns = columns_of(row(0, 9, stats=stats), row(10, 11))

    assert [segment.records for segment in planned(columns, 1)] == [records, 2]
    assert columns.max_timestamps_ms(range(2)) == [newest_ms, None]


def test_columns_after_a_removal_alone_are_fewer() -> None:
    files = LiveFiles()
    for add in (row(0, 1), row(2, 3)):
        files.put(add)
    files.absorb_tail()
    base = segment_columns(files.base, public=True)

    files.remove("_segments/0-0")

    assert columns_after(base, LiveFiles(files.base), public=True) is base
    assert np.array_equal(columns_after(base, files, public=True).base_offset, [2])


def test_ranges_of_many_partitions_are_planned_together(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = columns_of(*(row(0, 9, partition=number) for number in range(3_000)))
    ranges = [(number, number % 2, 5 + number) for number in range(3_000)]
    apart = [segment for each in ranges for segment in columns.between(*each)]
    times = 0
    plan = SegmentColumns._planned

    def counted(self: SegmentColumns, *asked: Any) -> list[PlannedSegment]:
        nonlocal times
        times += 1
        return plan(self, *asked)

    monkeypatch.setattr(SegmentColumns, "_planned", counted)

    assert list(columns.between_each(ranges)) == apart
    assert len(apart) == 3_000
    assert times == 3
