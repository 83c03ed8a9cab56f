"""Replay and projection against naive definitions, over random histories (PROTOCOL.md §5, §7)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given, settings

from tests.unit.partition.history import (
    TOPIC_ID,
    History,
    data_rows,
    full_projection,
    new_history,
    play,
    published,
    refusal,
    steps,
)
from txntable.errors import UnknownTopicOrPartitionError
from txntable.log.actions import Add
from txntable.log.table_state import TableState
from txntable.partition.append import AppendRequest, SequencedSegment, decide_append, live_settings
from txntable.partition.batch import ProducerEpoch
from txntable.partition.completion import OwedMarker, decide_markers
from txntable.partition.markers import Control
from txntable.partition.offsets import REFLECTS, next_offset
from txntable.partition.partition_log import PartitionLogs
from txntable.partition.stable_offset import high_watermark, last_stable_offset
from txntable.topics.topic_log import TopicLog


def test_settings_of_a_topic_that_never_was_are_refused_with_what_to_do() -> None:
    with pytest.raises(UnknownTopicOrPartitionError, match=r"create it, or list the topics .* topic=t"):
        live_settings(PartitionLogs("t"))


def reopened(history: History, *, through_checkpoint: bool) -> tuple[PartitionLogs, TableState]:
    topic = history.topic
    if through_checkpoint:
        topic.segments.write_checkpoint()
    fresh = TopicLog(topic.context, "t")
    fresh.segments.refresh()
    return fresh.segments.fold, fresh.segments.table


def picture(logs: PartitionLogs) -> tuple:
    opened = {key: (t.first_offsets, sorted(t.batches)) for key, t in logs.open.items()}
    return (logs.settings, logs.producers, opened, logs.markers, logs.cleanings)


TRANSACTION = ProducerEpoch(7, 0)


@settings(max_examples=120, deadline=None)
@given(steps)
def test_state_is_the_same_live_from_a_checkpoint_and_folded_from_zero(moves: list) -> None:
    history = new_history()
    play(history, moves)

    live = picture(history.topic.segments.fold)

    assert picture(reopened(history, through_checkpoint=False)[0]) == live
    assert picture(reopened(history, through_checkpoint=True)[0]) == live


@settings(max_examples=120, deadline=None)
@given(steps)
def test_projection_is_exactly_what_is_committed_or_plain(moves: list) -> None:
    history = new_history()
    play(history, moves)

    history.publish()

    assert published(history.topic) == history.visible()
    public = history.topic.public.table
    assert public.number(REFLECTS) == history.topic.segments.table.version
    assert full_projection(history.topic, public) == []


@settings(max_examples=60, deadline=None)
@given(steps)
def test_projection_by_a_fresh_client_equals_the_incremental_one(moves: list) -> None:
    history = new_history()
    play(history, moves)
    history.publish()

    fresh = [action for action in full_projection(history.topic, TableState()) if isinstance(action, Add)]

    public = history.topic.public.table.files
    assert {(a.path, *sorted(a.partition_values.items())) for a in fresh} == {
        (a.path, *sorted(a.partition_values.items())) for a in public
    }


@settings(max_examples=60, deadline=None)
@given(steps)
def test_offsets_are_contiguous_and_the_lso_is_safe(moves: list) -> None:
    history = new_history()
    play(history, [move for move in moves if move[0] not in {"compact", "clean"}])
    logs, table = history.topic.segments.fold, history.topic.segments.table

    for partition in range(3):
        taken = [
            (int(a.partition_values["_base_offset"] or ""), int(a.partition_values["_last_offset"] or ""))
            for a in data_rows(table)
            if a.partition_values["_partition"] == str(partition)
        ]
        taken += [(m.offsets[partition],) * 2 for m in logs.markers.values() if partition in m.offsets]
        taken.sort()
        assert [first for first, _ in taken] == [0, *(last + 1 for _, last in taken)][: len(taken)]
        assert high_watermark(table, TOPIC_ID, partition) == (taken[-1][1] + 1 if taken else 0)
        lso = last_stable_offset(logs, table, TOPIC_ID, partition)
        opened = [t.first_offsets[partition] for t in logs.open.values() if partition in t.first_offsets]
        assert lso == min([*opened, high_watermark(table, TOPIC_ID, partition)])


@settings(max_examples=100, deadline=None)
@given(steps)
def test_compaction_changes_nothing_that_producers_and_bounds_are_decided_on(moves: list) -> None:
    """The same moves with and without it: producer state, open transactions, offsets, and what is visible."""
    compacted, plain = new_history(), new_history()
    for move in moves:
        if move[0] != "clean":
            play(compacted, [move])
            play(plain, [move] if move[0] != "compact" else [])
            plain.time_ms = compacted.time_ms

    with_it, without = compacted.topic.segments, plain.topic.segments
    assert with_it.fold.producers == without.fold.producers
    assert records_of(compacted, compacted.visible()) == records_of(plain, plain.visible())
    assert firsts_of(with_it.fold) == firsts_of(without.fold)
    for partition in range(3):
        assert last_stable_offset(with_it.fold, with_it.table, TOPIC_ID, partition) == last_stable_offset(
            without.fold, without.table, TOPIC_ID, partition
        )


def firsts_of(logs: PartitionLogs) -> dict:
    return {key: transaction.first_offsets for key, transaction in logs.open.items()}


def records_of(history: History, paths: Iterable[str]) -> list[tuple[int, int]]:
    found = [history.records[path] for path in paths]
    return sorted((partition, offset) for partition, mine in found for offset in mine)


@settings(max_examples=60, deadline=None)
@given(steps)
def test_segments_of_a_partition_never_overlap_and_no_marker_is_left_without_need(moves: list) -> None:
    history = new_history()
    play(history, moves)
    before = set(history.topic.segments.fold.markers)

    history.compact(0, 1)

    logs, rows = history.topic.segments.fold, data_rows(history.topic.segments.table)
    bounds = sorted(
        tuple(int(row.partition_values[name] or "") for name in ("_partition", "_base_offset", "_last_offset"))
        for row in rows
    )
    assert all(a[0] != b[0] or a[2] < b[1] for a, b in pairwise(bounds))
    waiting = {
        (int(row.partition_values["_producer_id"] or ""), int(row.partition_values["_producer_epoch"] or ""))
        for row in rows
        if row.partition_values["_producer_id"] is not None
    }
    assert set(logs.markers) == before & waiting


# -- single rules -------------------------------------------------------------------------------


def test_marker_goes_to_an_enrolled_partition_without_data_and_fences_it() -> None:
    history = new_history()
    history.decide(TRANSACTION, Control.ABORT)

    zombie = refusal(lambda: history.append(TRANSACTION, [(0, 1)], transactional=True))

    assert zombie == "INVALID_PRODUCER_EPOCH"
    assert next_offset(history.topic.segments.table.numbers, TOPIC_ID, 0) == 1


def test_second_completer_writes_nothing() -> None:
    history = new_history()
    history.append(TRANSACTION, [(1, 2)], transactional=True)
    history.decide(TRANSACTION, Control.COMMIT)
    segments = history.topic.segments
    owed = OwedMarker(7, 0, Control.COMMIT, 1, 7, frozenset({1}))

    assert decide_markers(segments.fold, segments.table, TOPIC_ID, [owed], 1) == []
    assert decide_markers(segments.fold, segments.table, TOPIC_ID, [owed], 5) == []


def test_group_commit_gives_offsets_in_decision_order() -> None:
    history = new_history()
    segments = history.topic.segments
    late = OwedMarker(1, 0, Control.COMMIT, 20, 7, frozenset({0}))
    early = OwedMarker(2, 0, Control.ABORT, 10, 7, frozenset({0, 1}))
    later = OwedMarker(3, 0, Control.COMMIT, 30, 7, frozenset({0}))

    history.commit(lambda table: decide_markers(segments.fold, table, TOPIC_ID, [late, early, later], 30))

    assert [segments.fold.markers[key].offsets[0] for key in ((2, 0), (1, 0), (3, 0))] == [0, 1, 2]
    assert next_offset(segments.table.numbers, TOPIC_ID, 1) == 1


def test_markers_of_another_topic_id_are_not_owed() -> None:
    history = new_history()
    segments = history.topic.segments
    owed = OwedMarker(1, 0, Control.COMMIT, 20, 7, frozenset({0}))

    assert decide_markers(segments.fold, segments.table, "b" * 32, [owed], 20) == []


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"topic_id": "b" * 32}, "UNKNOWN_TOPIC_OR_PARTITION"),
        ({"partition": 3}, "UNKNOWN_TOPIC_OR_PARTITION"),
        ({"partition_count": 2}, "TRANSACTION_ABORTABLE"),
        ({"first_sequence": 1}, "OUT_OF_ORDER_SEQUENCE_NUMBER"),
    ],
)
def test_append_is_refused_when_the_topic_is_not_what_the_writer_knew(change: dict, code: str) -> None:
    history = new_history()
    segments = history.topic.segments
    staged = history.staged(change.get("partition", 0), 1)
    object.__setattr__(staged, "partition_count", change.get("partition_count"))
    request = AppendRequest(
        change.get("topic_id", TOPIC_ID),
        TRANSACTION,
        True,
        (SequencedSegment(staged, change.get("first_sequence", 0)),),
    )

    assert refusal(lambda: decide_append(segments.fold, segments.table, request, 5)) == code


def test_repeated_append_answers_the_original_offsets_and_writes_nothing() -> None:
    history = new_history()
    segments = history.topic.segments
    history.append(None, [(0, 5)], transactional=False)
    request = AppendRequest(TOPIC_ID, TRANSACTION, True, (SequencedSegment(history.staged(0, 3), 0),))
    first = decide_append(segments.fold, segments.table, request, 5)
    history.commit(lambda table: first.actions)

    again = decide_append(segments.fold, segments.table, request, 5)

    assert first.base_offsets == again.base_offsets == (5,)
    assert again.actions == ()


def test_at_least_once_append_of_a_live_segment_is_answered_with_its_offset() -> None:
    history = new_history()
    segments = history.topic.segments
    request = AppendRequest(TOPIC_ID, None, False, (SequencedSegment(history.staged(0, 3), None),))
    history.commit(lambda table: decide_append(segments.fold, table, request, 5).actions)

    again = decide_append(segments.fold, segments.table, request, 5)

    assert (again.actions, again.base_offsets) == ((), (0,))
