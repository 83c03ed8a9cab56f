"""What each isolation level shows, against a naive enumeration over random histories (PROTOCOL.md §10)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.partition.history import TOPIC_ID, History, new_history, play, steps, topic_settings
from txntable.errors import OffsetOutOfRangeError, UnknownTopicOrPartitionError
from txntable.format.isolation import IsolationLevel
from txntable.log.actions import Txn
from txntable.log.outcome import Committed
from txntable.partition.batch import ProducerEpoch
from txntable.partition.markers import Control
from txntable.partition.offsets import LOG_START, per_partition
from txntable.partition.stable_offset import first_unstable_offsets, last_stable_offset
from txntable.partition.topic_view import TopicView, public_view, uncommitted_view
from txntable.segments.segment_columns import PlannedSegment, segment_columns

PARTITIONS = 3
Place = tuple[int, int]


def committed(history: History, position: int | None = None) -> TopicView:
    """The view of a reader of P: below the last stable offset, or of a snapshot."""
    public = history.topic.public.refresh()
    return public_view(topic_settings(), public, segment_columns(public.files.to_table(), public=True), position)


def uncommitted(history: History) -> TopicView:
    segments = history.topic.segments
    columns = segment_columns(segments.table.files.to_table(), public=False)
    return uncommitted_view(topic_settings(), segments.table, columns, first_unstable_offsets(segments.fold))


def offsets(history: History, planned: Iterator[PlannedSegment]) -> list[Place]:
    """The offsets that a plan reads; merged segments have gaps."""
    return [
        (segment.partition, offset)
        for segment in planned
        for offset in sorted(history.records[segment.path.removeprefix("_segments/")][1])
        if segment.start <= offset < segment.end
    ]


def naive(history: History, paths: set[str]) -> list[Place]:
    """Every offset of the segments of these paths, in order."""
    found = [history.records[path] for path in paths]
    return sorted((partition, offset) for partition, mine in found for offset in mine)


def stable_offsets(history: History) -> dict[int, int]:
    segments = history.topic.segments
    return {p: last_stable_offset(segments.fold, segments.table, TOPIC_ID, p) for p in range(PARTITIONS)}


@settings(max_examples=100)
@given(steps)
def test_each_level_plans_exactly_what_a_naive_reader_finds(moves: list) -> None:
    history = new_history()
    play(history, moves)
    history.publish()
    visible, stable = history.visible(), stable_offsets(history)

    all_committed = naive(history, set(visible))
    assert offsets(history, uncommitted(history).plan()) == naive(history, set(history.segments))
    assert offsets(history, committed(history).plan()) == [(p, o) for p, o in all_committed if o < stable[p]]
    assert offsets(history, committed(history, history.position).plan()) == all_committed


@settings(max_examples=60)
@given(steps)
def test_snapshot_shows_exactly_what_was_committed_at_or_below_each_position(moves: list) -> None:
    history = new_history()
    play(history, moves)
    history.publish()
    visible = history.visible()

    for position in range(history.position + 1):
        then = {path for path, commit in visible.items() if commit <= position}
        assert offsets(history, committed(history, position).plan()) == naive(history, then)


@settings(max_examples=60)
@given(steps, st.lists(st.integers(0, 12), min_size=6, max_size=6))
def test_plan_with_offsets_is_the_whole_plan_between_them(moves: list, chosen: list[int]) -> None:
    history = new_history()
    play(history, moves)
    history.publish()
    view = committed(history)
    starting = {p: min(chosen[p], view.bounds[p].end) for p in range(PARTITIONS)}
    ending = {p: min(chosen[3 + p], view.bounds[p].end) for p in range(PARTITIONS)}

    cut = offsets(history, view.plan(starting, ending))

    assert cut == [(p, o) for p, o in offsets(history, view.plan()) if starting[p] <= o < ending[p]]


@settings(max_examples=60)
@given(steps, steps)
def test_read_committed_in_parts_is_the_whole_in_order_without_gaps_in_time(first: list, second: list) -> None:
    """Who goes on where the last bound was sees everything once, whatever was decided in between."""
    history = new_history()
    epochs = {7: 0, 8: 0, 9: 0}
    position = dict.fromkeys(range(PARTITIONS), 0)
    read: list[Place] = []
    ends: list = [("commit", who, []) for who in range(3)]
    for moves in (first, second, ends):
        play(history, [move for move in moves if move[0] != "compact"], epochs)
        history.publish()
        view = committed(history)
        read += offsets(history, view.plan(position))
        position = {p: bounds.end for p, bounds in view.bounds.items()}

    assert sorted(read) == naive(history, set(history.visible()))
    for partition in range(PARTITIONS):
        mine = [offset for p, offset in read if p == partition]
        assert mine == sorted(set(mine))
        assert position[partition] == stable_offsets(history)[partition] >= len(mine)


def open_behind_plain() -> History:
    """Partition 0: two plain records, two of an open transaction, two plain ones; and a log start of 1."""
    history = new_history()
    history.append(None, [(0, 2)], transactional=False)
    history.append(ProducerEpoch(7, 0), [(0, 2)], transactional=True)
    history.append(None, [(0, 2)], transactional=False)
    history.commit(lambda table: [Txn(per_partition(LOG_START, TOPIC_ID, 0), 1)])
    history.publish()
    return history


@pytest.mark.parametrize(
    ("level", "seen", "end"),
    [
        (IsolationLevel.READ_COMMITTED, [1], 2),
        (IsolationLevel.SNAPSHOT, [1, 4, 5], 6),
        (IsolationLevel.READ_UNCOMMITTED, [1, 2, 3, 4, 5], 6),
    ],
)
def test_levels_differ_in_what_an_open_transaction_holds_back(level: IsolationLevel, seen: list[int], end: int) -> None:
    history = open_behind_plain()
    view = (
        uncommitted(history)
        if level is IsolationLevel.READ_UNCOMMITTED
        else committed(history, None if level is IsolationLevel.READ_COMMITTED else 0)
    )

    bounds = view.bounds_of(0)

    assert [offset for _, offset in offsets(history, view.plan())] == seen
    assert (view.level, bounds.start, bounds.end) == (level, 1, end)
    assert (bounds.last_stable_offset, bounds.high_watermark) == (2, 6)


@pytest.mark.parametrize(
    ("asked", "error", "facts"),
    [
        ({0: 0}, OffsetOutOfRangeError, "topic=t partition=0 offset=0 log_start=1 end=2"),
        ({0: 3}, OffsetOutOfRangeError, "offset=3 log_start=1 end=2"),
        ({3: 0}, UnknownTopicOrPartitionError, "partition=3 partitions=3"),
        ({-1: 0}, UnknownTopicOrPartitionError, "partition=-1 partitions=3"),
    ],
)
def test_plan_refuses_offsets_that_can_not_be_read(
    asked: Mapping[int, int], error: type[Exception], facts: str
) -> None:
    view = committed(open_behind_plain())

    for offsets_asked in ((asked, None), (None, asked)):
        with pytest.raises(error, match=facts):
            list(view.plan(*offsets_asked))


def test_plan_from_the_end_reads_nothing() -> None:
    assert list(committed(open_behind_plain()).plan({0: 2})) == []


def test_view_tells_how_far_decisions_have_come() -> None:
    history = new_history()
    history.append(ProducerEpoch(7, 0), [(0, 2)], transactional=True)
    history.decide(ProducerEpoch(7, 0), Control.COMMIT)
    history.publish()

    assert [(view.decided_through, view.merged_through) for view in (committed(history), uncommitted(history))] == [
        (1, 0),
        (1, 0),
    ]


def test_view_of_a_snapshot_reads_a_merged_segment_by_its_highest_commit() -> None:
    """A merged segment has gaps and one `_commit`: visible whole at it, and not below."""
    history = new_history()
    public = history.topic.public
    history.append(None, [(0, 5)], transactional=False)
    history.publish()
    (old,) = public.table.files
    merged = type(old)(old.path, {**old.partition_values, "_commit": "9"}, old.size, 0, False, old.stats, None)
    assert isinstance(public.commit("TEST", lambda table: [merged]), Committed)

    assert offsets(history, committed(history, 8).plan()) == []
    assert offsets(history, committed(history, 9).plan({0: 1}, {0: 4})) == [(0, 1), (0, 2), (0, 3)]
