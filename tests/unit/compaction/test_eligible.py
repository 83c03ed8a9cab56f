"""Which segments may be rewritten now, and which belong to aborted transactions (PROTOCOL.md §5.8)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.log.world import World
from tests.unit.partition.history import DIGEST, TOPIC_ID, History, topic_settings
from txntable.compaction.eligible import EligibleTopic, Stretch, before, eligible_segments
from txntable.log.actions import Txn
from txntable.log.table_state import TableState
from txntable.partition.batch import Batch, ProducerEpoch, batch_add
from txntable.partition.markers import Control
from txntable.partition.offsets import LOG_START, NEXT_OFFSET, per_partition
from txntable.topics.topic_log import TopicLog

ANN, BOB = ProducerEpoch(7, 0), ProducerEpoch(8, 0)
LATER_MS = 1_000_000


@pytest.fixture
def history() -> History:
    history = History(TopicLog(World().process().context, "t"), tick_ms=10)
    history.create(topic_settings())
    return history


def eligible(history: History, horizon_ms: int = LATER_MS) -> EligibleTopic:
    logs = history.topic.segments
    return eligible_segments(logs.fold, logs.table, history.topic.public.table, horizon_ms)


def bases(history: History, partition: int = 0, horizon_ms: int = LATER_MS) -> tuple[list[int], int]:
    stretch = eligible(history, horizon_ms).partitions[partition]
    return [segment.planned.base_offset for segment in stretch.segments], stretch.through


def committed(history: History, producer: ProducerEpoch, records: int = 2) -> None:
    history.append(producer, [(0, records)], transactional=True)
    history.decide(producer, Control.COMMIT)


def plain(history: History, records: int = 2) -> None:
    history.append(None, [(0, records)], transactional=False)


def test_eligible_is_what_is_visible_published_and_old_in_offset_order(history: History) -> None:
    plain(history)
    committed(history, ANN)
    history.append(BOB, [(0, 2), (1, 1)], transactional=False)
    history.publish()

    assert bases(history) == ([0, 2, 5], 7)
    assert bases(history, 1) == ([0], 1)
    assert bases(history, 2) == ([], 0)


def test_segment_that_is_not_published_ends_what_is_eligible(history: History) -> None:
    plain(history)
    history.publish()
    plain(history)

    assert bases(history) == ([0], 2)


def test_open_transaction_ends_what_is_eligible(history: History) -> None:
    plain(history)
    history.append(ANN, [(0, 2)], transactional=True)
    plain(history)
    history.publish()

    assert bases(history) == ([0], 2)


def test_aborted_segments_are_passed_over_and_named(history: History) -> None:
    plain(history)
    history.append(ANN, [(0, 2), (1, 2)], transactional=True)
    history.decide(ANN, Control.ABORT)
    plain(history)
    history.publish()

    assert bases(history) == ([0, 5], 7)
    assert eligible(history).aborted == tuple(sorted(history.aborted()))
    assert len(history.aborted()) == 2
    assert not any(segment.follows_gap for segment in eligible(history).partitions[0].segments)


@pytest.mark.parametrize(
    ("horizon_ms", "found", "through"), [(24, [], 0), (25, [0], 2), (34, [0], 2), (35, [0, 2], 4), (36, [0, 2], 4)]
)
def test_what_was_appended_without_a_transaction_is_old_by_its_append(
    history: History, horizon_ms: int, found: list[int], through: int
) -> None:
    plain(history)
    plain(history)
    history.publish()

    assert bases(history, 0, horizon_ms) == (found, through)


@pytest.mark.parametrize(("horizon_ms", "found"), [(24, []), (25, [0])])
def test_what_a_transaction_wrote_is_old_by_its_decision(history: History, horizon_ms: int, found: list[int]) -> None:
    """Its append may be days older: a snapshot before the decision must still be told from one after it."""
    committed(history, ANN)
    history.publish()
    marker = history.topic.segments.fold.markers[7, 0]
    assert marker.decided_at_ms == 25

    assert bases(history, 0, horizon_ms)[0] == found


def test_young_segment_is_a_gap_and_what_is_old_behind_it_is_eligible_too(history: History) -> None:
    """A transaction that took long: its records come first, and were decided last."""
    history.append(ANN, [(0, 2)], transactional=True)
    plain(history)
    plain(history)
    before_decision_ms = history.time_ms
    history.time_ms += 1_000
    history.decide(ANN, Control.COMMIT)
    history.publish()

    found = eligible(history, before_decision_ms).partitions[0]

    assert [(s.planned.base_offset, s.follows_gap) for s in found.segments] == [(2, True), (4, False)]
    assert found.through == 0


def with_row(history: History, batch: Batch) -> None:
    number = Txn(per_partition(NEXT_OFFSET, TOPIC_ID, 0), batch.last_offset + 1)
    history.commit(lambda table: [batch_add(batch, 10, None), number])
    history.publish()


@pytest.mark.parametrize(
    ("decided", "uploaded_at_ms", "found"),
    [
        ((0, 5), None, [0]),
        ((0, 5), 501, []),
        ((5, 5), 500, [0]),
        ((5, 5), 501, []),
        ((0, 0), 501, []),
        ((5, 5), None, [0]),
    ],
)
def test_row_that_carries_its_decision_is_old_unless_it_says_that_it_was_written_after_the_horizon(
    history: History, decided: tuple[int, int], uploaded_at_ms: int | None, found: list[int]
) -> None:
    """A deletion of records writes the rest of a segment anew, however young its decision is."""
    batch = Batch("p00000/m.parquet", 0, 0, 4, 3, None, False, None, 1, 2, 7, DIGEST, uploaded_at_ms=uploaded_at_ms)
    with_row(history, replace(batch, decided=decided))

    assert bases(history, 0, 500)[0] == found


@pytest.mark.parametrize(("start", "offsets"), [(0, (0, 3)), (1, (1, 3)), (2, (2, 3))])
def test_what_lies_below_the_log_start_is_left_out(history: History, start: int, offsets: tuple[int, int]) -> None:
    plain(history, records=3)
    history.commit(lambda table: [Txn(per_partition(LOG_START, TOPIC_ID, 0), start)])
    history.publish()

    (segment,) = eligible(history).partitions[0].segments

    assert (segment.planned.start, segment.planned.end) == offsets
    assert segment.planned.is_whole == (start == 0)


def test_eligible_segment_says_what_the_rewrite_needs_to_know(history: History) -> None:
    plain(history)
    committed(history, ANN)
    history.append(BOB, [(0, 2)], transactional=False)
    history.publish()

    segments = eligible(history).partitions[0].segments

    assert [segment.is_unsettled for segment in segments] == [False, True, False]
    assert [segment.planned.commit for segment in segments] == [0, 1, 0]
    assert [segment.planned.records for segment in segments] == [2, 2, 2]
    assert {(segment.first_timestamp_ms, segment.max_timestamp_ms) for segment in segments} == {(1, 2)}


def test_before_is_what_begins_below_an_offset(history: History) -> None:
    plain(history)
    plain(history)
    history.publish()
    stretch = eligible(history).partitions[0]

    assert [s.planned.base_offset for s in before(stretch, 3)] == [0, 2]
    assert [s.planned.base_offset for s in before(stretch, 2)] == [0]
    assert list(before(Stretch(), 100)) == []


def test_topic_without_segments_has_nothing_eligible(history: History) -> None:
    assert all(stretch == Stretch() for stretch in eligible(history).partitions.values())
    assert TableState().files.paths() == set()
