"""What a topic is owed, in one commit: segments that decisions carry, markers, `decided_through` (PROTOCOL.md §6.4)."""

from __future__ import annotations

import pytest

from tests.unit.partition.history import DIGEST, TOPIC_ID, History, new_history
from txntable.coordinator.manifest import ManifestSegment
from txntable.log.actions import Action, Add, Txn
from txntable.log.table_state import TableState
from txntable.partition.batch import ProducerEpoch, batch_of
from txntable.partition.completion import OwedMarker, decide_markers
from txntable.partition.markers import Control
from txntable.partition.offsets import decided_through


@pytest.fixture
def history() -> History:
    return new_history()


def carried(number: int, partition: int = 0, records: int = 2, first: int = 0) -> ManifestSegment:
    return ManifestSegment(f"{number:032x}", partition, first, records, 100, 1, 2, 3, DIGEST, "{}", None)


def owed(position: int, *segments: ManifestSegment, producer_id: int = 7, epoch: int = 0) -> OwedMarker:
    partitions = frozenset({0, *(one.partition for one in segments)})
    return OwedMarker(producer_id, epoch, Control.COMMIT, position, 1_000 + position, partitions, segments)


def complete(history: History, *decided: OwedMarker, known_through: int = 9) -> list[Action]:
    """Write one commit of what is owed; return its actions."""
    written: list[Action] = []

    def decide(table: TableState) -> list[Action]:
        found = decide_markers(history.topic.segments.fold, table, TOPIC_ID, decided, known_through)
        written[:] = found
        return found

    history.topic.segments.commit("MARKERS", decide)
    return written


def offsets_of(actions: list[Action]) -> list[tuple[str, int, int]]:
    """Each segment's name, partition and base offset, in the order of the commit."""
    rows = [one for one in actions if isinstance(one, Add) and one.partition_values["_control"] is None]
    return [(batch.path[-10:-8], batch.partition, batch.base_offset) for batch in map(batch_of, rows)]


def test_decision_appends_what_it_carries_below_its_marker_in_one_commit(history: History) -> None:
    history.append(None, [(0, 3)], transactional=False)

    actions = complete(history, owed(5, carried(1), carried(2, first=2), carried(3, partition=2)))

    assert offsets_of(actions) == [("01", 0, 3), ("02", 0, 5), ("03", 2, 0)]
    (marker,) = history.topic.segments.fold.markers.values()
    assert marker.offsets == {0: 7, 2: 2}
    assert [one for one in actions if isinstance(one, Txn)] == [
        Txn(f"next_offset/{TOPIC_ID}/0", 8),
        Txn(f"next_offset/{TOPIC_ID}/2", 3),
        Txn(f"decided_through/{TOPIC_ID}", 9),
    ]


def test_row_of_a_carried_segment_is_that_of_an_append(history: History) -> None:
    actions = complete(history, owed(5, carried(1)))

    row = actions[0]
    assert isinstance(row, Add)
    batch = batch_of(row)
    assert batch.producer == ProducerEpoch(7, 0)
    assert (batch.path, batch.transactional, batch.first_sequence) == (
        f"p00000/{TOPIC_ID}-7-0-{1:032x}.parquet",
        True,
        0,
    )
    assert (batch.appended_at_ms, batch.uploaded_at_ms, batch.records, row.size) == (1_005, 3, 2, 100)


def test_decisions_are_appended_in_their_order_and_share_no_offset(history: History) -> None:
    actions = complete(history, owed(6, carried(2), producer_id=8), owed(5, carried(1)))

    assert offsets_of(actions) == [("01", 0, 0), ("02", 0, 3)]


def test_two_transactions_of_one_producer_in_one_commit_leave_its_state_as_one_after_the_other(
    history: History,
) -> None:
    together, apart = history, new_history()

    complete(together, owed(5, carried(1)), owed(6, carried(2), epoch=1))
    complete(apart, owed(5, carried(1)), known_through=5)
    complete(apart, owed(6, carried(2), epoch=1))

    assert together.topic.segments.fold.producers == apart.topic.segments.fold.producers
    assert together.topic.segments.fold.open == {}


def test_decision_at_or_below_decided_through_appends_nothing_again_also_without_its_row(history: History) -> None:
    decision = owed(5, carried(1))
    complete(history, decision)

    assert complete(history, decision) == []


@pytest.mark.parametrize(("limit", "value"), [("LARGEST_COMMIT_SEGMENTS", 3), ("LARGEST_COMMIT_BYTES", 1_000)])
def test_commit_takes_whole_decisions_up_to_its_limits_and_says_how_far_it_came(
    history: History, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(f"txntable.partition.completion.{limit}", value)
    decided = [owed(position, carried(position), producer_id=position) for position in (4, 5, 6)]

    through = []
    while complete(history, *decided):
        through.append(decided_through(history.topic.segments.table.numbers, TOPIC_ID))

    assert through[0] < 6
    assert through[-1] == 9
    assert len(history.topic.segments.fold.markers) == 3


@pytest.mark.parametrize("first", [True, False])
def test_decisions_of_one_position_are_appended_by_their_producer_ids_whatever_their_order(
    history: History, first: bool
) -> None:
    together = [owed(5, carried(2), producer_id=8), owed(5, carried(1), producer_id=7)]

    actions = complete(history, *(together if first else together[::-1]))

    assert offsets_of(actions) == [("01", 0, 0), ("02", 0, 3)]


@pytest.mark.parametrize(("limit", "value"), [("LARGEST_COMMIT_SEGMENTS", 4), ("LARGEST_COMMIT_BYTES", 1_200)])
def test_decisions_of_one_position_are_in_one_commit_whatever_its_limits(
    history: History, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(f"txntable.partition.completion.{limit}", value)
    decided = [
        owed(4, carried(1), producer_id=1),
        *(owed(5, carried(number), producer_id=number) for number in (2, 3, 4)),
        owed(6, carried(5), producer_id=5),
    ]

    commits = []
    while actions := complete(history, *decided):
        through = decided_through(history.topic.segments.table.numbers, TOPIC_ID)
        commits.append(([name for name, *_ in offsets_of(actions)], through))

    assert commits == [(["01"], 4), (["02", "03", "04"], 5), (["05"], 9)]


def test_decision_that_is_larger_than_a_commit_is_written_whole_all_the_same(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("txntable.partition.completion.LARGEST_COMMIT_SEGMENTS", 1)

    actions = complete(history, owed(4, carried(1), carried(2, partition=1)))

    assert len(offsets_of(actions)) == 2


def test_nothing_is_owed_by_another_topic_of_the_name(history: History) -> None:
    decide = decide_markers(
        history.topic.segments.fold, history.topic.segments.table, "b" * 32, [owed(4, carried(1))], 9
    )

    assert decide == []
