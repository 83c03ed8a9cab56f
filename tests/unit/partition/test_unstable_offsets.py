"""What is open and where it begins is looked up, never walked: appends and projections cost what they change."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from tests.unit.log.only_looked_up import OnlyLookedUp
from tests.unit.log.world import World
from tests.unit.partition.history import TOPIC_ID, History, new_history, play, steps, topic_settings
from txntable.log.actions import Remove, Txn
from txntable.log.table_state import TableState
from txntable.partition.append import AppendRequest, SequencedSegment, decide_append
from txntable.partition.batch import ProducerEpoch
from txntable.partition.completion import OwedMarker, decide_markers
from txntable.partition.markers import Control
from txntable.partition.offsets import partition_of
from txntable.partition.partition_log import OpenTransaction, PartitionLogs
from txntable.partition.projection import project
from txntable.partition.stable_offset import first_unstable_offsets, last_stable_offset
from txntable.partition.unstable_offsets import UnstableOffsets
from txntable.topics.topic_log import TopicLog

MANY = 10_000
OPEN = 1_000


def walked(logs: PartitionLogs) -> tuple[dict[int, int], set[tuple[int, int]]]:
    """First unstable offsets and busy producers, by a walk over all that is open."""
    firsts: dict[int, int] = {}
    busy = set()
    for (producer_id, _), transaction in logs.open.items():
        for partition, offset in transaction.first_offsets.items():
            firsts[partition] = min(offset, firsts.get(partition, offset))
            busy.add((partition, producer_id))
    return firsts, busy


def indexed(logs: PartitionLogs) -> tuple[dict[int, int], set[tuple[int, int]]]:
    producers = {producer_id for producer_id, _ in logs.open} | {7, 8, 9}
    busy = {(p, one) for p in range(3) for one in producers if logs.in_transaction(p, one)}
    return first_unstable_offsets(logs), busy


def fresh_fold(history: History) -> PartitionLogs:
    logs = PartitionLogs("t")
    logs.restore(history.topic.segments.table)
    return logs


@settings(max_examples=25, deadline=None)
@given(steps)
def test_index_of_open_transactions_says_what_a_walk_says(moves: list) -> None:
    history = new_history()
    for move in moves:
        play(history, [move])
        logs = history.topic.segments.fold

        assert indexed(logs) == walked(logs)
    assert indexed(fresh_fold(history)) == walked(history.topic.segments.fold)


@settings(max_examples=25, deadline=None)
@given(steps)
def test_partitions_that_moved_are_all_that_a_projection_has_to_look_at(moves: list) -> None:
    history = new_history()
    for move in moves:
        play(history, [move])
        segments, public = history.topic.segments, history.topic.public.table

        assert project(segments.fold, segments.table, public, 9) == project(
            fresh_fold(history), segments.table, public, 9
        )


def test_data_of_one_transaction_may_go_in_any_order() -> None:
    history = History(TopicLog(World().process().context, "t"))
    history.create(topic_settings())
    producer = ProducerEpoch(7, 0)
    for _ in range(3):
        history.append(producer, [(0, 2)], transactional=True)
    history.append(ProducerEpoch(8, 0), [(0, 1)], transactional=True)
    paths = sorted(history.segments, key=lambda path: min(history.records[path][1]))

    seen = []
    for path in (paths[1], paths[0], paths[2], paths[3]):
        add = history.topic.segments.table.files.get(path)
        assert add is not None
        gone = Remove(path, 9, False, add.partition_values, add.size)
        history.commit(lambda _table, gone=gone: [gone])  # type: ignore[misc]
        logs = history.topic.segments.fold
        assert indexed(logs) == walked(logs)
        seen.append(first_unstable_offsets(logs).get(0))

    assert seen == [0, 4, 6, None]


def test_segment_that_is_added_twice_and_one_that_is_not_there_count_once_and_not_at_all() -> None:
    history = History(TopicLog(World().process().context, "t"))
    history.create(topic_settings())
    history.append(ProducerEpoch(7, 0), [(0, 2)], transactional=True)
    ((_, transaction),) = history.topic.segments.fold.open.items()
    (batch,) = transaction.batches.values()
    twice = OpenTransaction()

    twice.add(batch)
    twice.add(batch)
    twice.discard("another")
    assert twice.first_offsets == {0: 0}
    twice.discard(batch.path)

    assert (twice.first_offsets, twice.batches) == ({}, {})


def test_producer_is_busy_until_the_last_of_its_epochs_has_ended() -> None:
    unstable = UnstableOffsets()
    unstable.begin(0, (7, 0), 3)
    unstable.begin(0, (7, 1), 5)

    unstable.end(0, (7, 0), 3)
    assert (unstable.is_busy(0, 7), unstable.firsts()) == (True, {0: 5})
    unstable.end(0, (7, 1), 5)
    assert (unstable.is_busy(0, 7), unstable.firsts()) == (False, {})


# -- what a cost grows with -----------------------------------------------------------------


@pytest.fixture(scope="module")
def crowded() -> History:
    """A partition with a thousand open transactions."""
    history = History(TopicLog(World().process().context, "t"))
    history.create(topic_settings())
    for first in range(1000, 1000 + OPEN, 250):
        requests = [
            AppendRequest(TOPIC_ID, ProducerEpoch(one, 0), True, (SequencedSegment(history.staged(0, 1), 0),))
            for one in range(first, first + 250)
        ]

        def decide(table: TableState, requests: list[AppendRequest] = requests) -> list[Any]:
            logs, start = history.topic.segments.fold, table.number(f"next_offset/{TOPIC_ID}/0")
            actions: list[Any] = []
            for at, request in enumerate(requests):
                (add, _) = decide_append(logs, table, request, 5).actions
                actions.append(_moved(add, start + at))
            return [*actions, Txn(f"next_offset/{TOPIC_ID}/0", start + len(requests))]

        history.commit(decide)
    return history


def _moved(add: Any, offset: int) -> Any:
    values = {**add.partition_values, "_base_offset": str(offset), "_last_offset": str(offset)}
    return type(add)(add.path, values, add.size, add.modification_time, True, add.stats, add.tag)


def test_append_and_markers_walk_no_open_transaction(crowded: History, monkeypatch: pytest.MonkeyPatch) -> None:
    logs, table = crowded.topic.segments.fold, crowded.topic.segments.table
    assert len(logs.open) == OPEN
    guarded = OnlyLookedUp(logs.open)
    monkeypatch.setattr(logs, "open", guarded)
    monkeypatch.setattr(logs, "unstable", logs.unstable.overlay())
    monkeypatch.setattr(OnlyLookedUp, "asked", 0)

    segments = tuple(SequencedSegment(crowded.staged(0, 1), number) for number in range(100))
    decided = decide_append(logs, table, AppendRequest(TOPIC_ID, ProducerEpoch(7, 0), True, segments), 5)
    owed = OwedMarker(1500, 0, Control.COMMIT, 1, 5, frozenset({0}))
    markers = decide_markers(logs, table, TOPIC_ID, [owed], 1)

    assert len(decided.base_offsets) == 100
    assert markers
    assert last_stable_offset(logs, table, TOPIC_ID, 0) == 0
    assert OnlyLookedUp.asked == 0
    guarded.walkable = True


class Counted(dict[str, int]):
    """Numbers that count how often one was asked for."""

    asked = 0

    def get(self, key: str, default: Any = None) -> Any:
        self.asked += 1
        return super().get(key, default)


def test_projection_asks_for_the_numbers_of_the_partitions_that_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(TopicLog(World().process().context, "t"))
    history.create(topic_settings(MANY))
    history.topic.project()
    history.append(None, [(17, 1), (4, 2)], transactional=False)
    segments, public = history.topic.segments, history.topic.public.table
    numbers = Counted(segments.table.numbers)
    monkeypatch.setattr(segments.table, "numbers", numbers)

    actions = project(segments.fold, segments.table, public, 9)

    said = {action.app_id.rpartition("/")[2] for action in actions if isinstance(action, Txn)}
    assert said == {"17", "4", "reflects", TOPIC_ID}
    assert numbers.asked < 20
    assert segments.fold.moved_since(0) == [4, 17]
    assert segments.fold.moved_since(None) is None


@pytest.mark.parametrize(
    ("name", "partition"),
    [
        (f"next_offset/{TOPIC_ID}/17", 17),
        (f"log_start/{TOPIC_ID}/0", 0),
        (f"decided_through/{TOPIC_ID}", None),
    ],
)
def test_numbers_of_partitions_are_told_from_those_of_topics(name: str, partition: int | None) -> None:
    assert partition_of(name) == partition
