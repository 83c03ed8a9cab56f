"""Which segments go from the front of a partition, and where its log starts then (PROTOCOL.md §5.9)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.log.world import World
from tests.unit.partition.history import TOPIC_ID, full_projection, play, published, steps
from tests.unit.partition.retained import NOW_MS, Retained, plain_segments, retained
from txntable.partition import log_start as log_start_module
from txntable.partition.batch import ProducerEpoch
from txntable.partition.log_start import LogStartDecision, cut_segments
from txntable.partition.markers import Control
from txntable.partition.offsets import log_start
from txntable.topics.topic_creation import decide_deletion
from txntable.topics.topic_log import TopicLog

ANN, BOB = ProducerEpoch(7, 0), ProducerEpoch(8, 0)
BY_SIZE = {"retention.ms": "-1"}


# -- Kafka's arithmetic -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ages_ms", "retention_ms", "start"),
    [
        ([3_000, 2_000, 1_000], 5_000, 0),
        ([3_000, 2_000, 1_000], 2_500, 10),
        ([3_000, 2_000, 1_000], 2_000, 10),
        ([3_000, 2_000, 1_000], 1_999, 20),
        ([3_000, 2_000, 1_000], 999, 30),
        ([3_000, 2_000, 1_000], -1, 0),
        # Only from the front: what is old behind a young segment waits for it.
        ([3_000, 1_000, 3_000], 2_000, 10),
        ([1_000, 3_000, 3_000], 2_000, 0),
        # The records' own times count, as in Kafka: old data goes at once, and what is of the future stays.
        ([NOW_MS, NOW_MS, 0], 5_000, 20),
        ([-5_000, 9_000, 9_000], 1_000, 0),
    ],
)
def test_segments_go_from_the_front_when_their_newest_record_is_too_old(
    ages_ms: list[int], retention_ms: int, start: int
) -> None:
    history = retained({"retention.ms": str(retention_ms)})
    history.ages_ms = list(ages_ms)
    plain_segments(history, 3)

    decision = history.retain()

    assert history.start() == start
    assert history.bases() == [0, 10, 20][start // 10 :]
    assert decision.log_starts == ({0: start} if start else {})


@pytest.mark.parametrize(
    ("sizes", "retention_bytes", "start"),
    [
        ([100, 100, 100], -1, 0),
        ([100, 100, 100], 301, 0),
        ([100, 100, 100], 300, 0),
        ([100, 100, 100], 201, 0),
        ([100, 100, 100], 200, 10),
        ([100, 100, 100], 101, 10),
        ([100, 100, 100], 100, 20),
        ([100, 100, 100], 1, 20),
        ([100, 100, 100], 0, 30),
        # A small one behind a large one waits for it.
        ([200, 10, 100], 150, 0),
        ([10, 200, 100], 250, 10),
    ],
)
def test_segments_go_from_the_front_while_the_limit_is_still_left(
    sizes: list[int], retention_bytes: int, start: int
) -> None:
    history = retained({**BY_SIZE, "retention.bytes": str(retention_bytes)})
    history.sizes = list(sizes)
    plain_segments(history, 3)

    history.retain()

    assert history.start() == start
    assert history.bases() == [0, 10, 20][start // 10 :]


def test_size_counts_what_is_left_after_age_took_its_part() -> None:
    history = retained({"retention.ms": "2000", "retention.bytes": "200"})
    history.ages_ms = [3_000, 1_000, 1_000, 1_000]
    plain_segments(history, 4)

    history.retain()

    assert history.bases() == [20, 30]


@pytest.mark.parametrize(
    ("policy", "goes"), [("delete", True), ("compact,delete", True), ("delete, compact", True), ("compact", False)]
)
def test_only_topics_with_delete_in_their_policy_are_retained(policy: str, goes: bool) -> None:
    history = retained({"cleanup.policy": policy, "retention.ms": "1", "retention.bytes": "0"})
    history.ages_ms = [9_000]
    plain_segments(history, 1)

    assert bool(history.retain().segments) is goes


def test_each_partition_is_retained_by_itself() -> None:
    history = retained({"retention.ms": "2000"})
    history.ages_ms = [3_000, 1_000, 3_000]
    history.append(None, [(0, 5), (1, 5), (2, 7)], transactional=False)
    history.publish()

    decision = history.retain()

    assert decision.log_starts == {0: 5, 2: 7}
    assert [history.start(partition) for partition in range(3)] == [5, 0, 7]


def test_log_starts_at_the_high_watermark_when_nothing_is_left() -> None:
    history = retained({"retention.ms": "2000"})
    history.ages_ms = [3_000]
    history.append(ANN, [(0, 2)], transactional=True)
    history.decide(ANN, Control.COMMIT)
    history.publish()

    history.retain()

    assert history.start() == history.end() == 3, "two records and a marker"


def test_log_starts_at_the_next_segment_over_markers_in_between() -> None:
    history = retained({"retention.ms": "2000"})
    history.ages_ms = [3_000]
    history.append(ANN, [(0, 2)], transactional=True)
    history.decide(ANN, Control.COMMIT)
    history.append(None, [(0, 1)], transactional=False)
    history.publish()

    history.retain()

    assert history.start() == 3
    assert published(history.topic).keys() > history.visible().keys()
    history.publish()
    assert published(history.topic) == history.visible()
    assert log_start(history.topic.public.table.numbers, TOPIC_ID, 0) == 3


def test_retention_changes_nothing_when_all_is_young_or_nothing_is_there() -> None:
    history = retained({"retention.ms": "2000"})

    assert history.retain() == LogStartDecision()
    plain_segments(history, 1)
    assert history.retain() == LogStartDecision()


# -- transactions -------------------------------------------------------------------------------


def test_open_transaction_does_not_block_retention_and_the_stable_offset_is_the_log_start() -> None:
    history = retained({"retention.ms": "2000"})
    history.ages_ms = [3_000, 3_000]
    history.append(ANN, [(0, 2)], transactional=True)
    history.append(None, [(0, 4)], transactional=False)
    history.append(ANN, [(0, 1)], transactional=True)
    history.publish()
    assert history.lso() == 0

    history.retain()

    assert (history.start(), history.lso()) == (6, 6)
    history.decide(ANN, Control.COMMIT)
    history.publish()
    assert published(history.topic) == history.visible()
    assert history.lso() == history.end() == 8


def test_transaction_whose_data_is_all_gone_can_be_committed() -> None:
    history = retained({"retention.ms": "2000"})
    history.ages_ms = [3_000]
    history.append(ANN, [(0, 2)], transactional=True)

    history.retain()
    history.decide(ANN, Control.COMMIT)
    history.publish()

    assert history.start() == 2
    assert history.lso() == history.end() == 3
    assert published(history.topic) == {}


@pytest.mark.parametrize("control", [Control.COMMIT, Control.ABORT])
def test_producer_is_remembered_without_its_data(control: Control) -> None:
    history = retained({"retention.ms": "2000"})
    history.ages_ms = [3_000, 3_000]
    history.append(BOB, [(0, 2)], transactional=False)
    history.append(ANN, [(0, 2)], transactional=True)
    history.decide(ANN, control)
    history.publish()
    before = dict(history.topic.segments.fold.producers)

    history.retain()

    fresh = TopicLog(history.topic.context, "t")
    fresh.segments.refresh()
    assert history.topic.segments.fold.producers == fresh.segments.fold.producers == before
    assert not fresh.segments.fold.markers, "nothing needs the marker any more"


def test_aborted_segments_go_unpublished() -> None:
    history = retained({"retention.ms": "2000"})
    history.ages_ms = [3_000]
    history.append(ANN, [(0, 2)], transactional=True)
    history.decide(ANN, Control.ABORT)

    history.retain()

    assert history.bases() == []


def test_committed_segment_stays_until_it_is_published_and_what_follows_waits() -> None:
    history = retained({"retention.ms": "2000"})
    history.ages_ms = [3_000, 3_000, 3_000]
    plain_segments(history, 1)
    history.append(ANN, [(0, 2)], transactional=True)
    history.append(None, [(0, 1)], transactional=False)
    history.decide(ANN, Control.COMMIT)

    history.retain()
    assert (history.start(), history.bases()) == (10, [10, 12])

    history.publish()
    history.retain()
    assert (history.start(), history.bases()) == (14, [])


# -- what was left, and bounds -----------------------------------------------------------------


def test_what_a_deletion_left_below_the_log_start_goes_with_retention_whatever_the_policy() -> None:
    history = retained({"cleanup.policy": "compact"})
    history.append(None, [(0, 5)], transactional=False)
    history.append(None, [(0, 5)], transactional=False)
    history.delete({0: 7})
    assert history.bases() == [0, 5]

    history.publish()
    decision = history.retain()

    assert (history.bases(), history.start()) == ([5], 7)
    assert decision.log_starts == {}


def test_commit_of_bounded_size_leaves_the_rest_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_start_module, "LARGEST_COMMIT_SEGMENTS", 2)
    history = retained({"retention.ms": "2000"})
    history.ages_ms = [3_000] * 6
    plain_segments(history, 3)
    history.append(None, [(1, 1), (1, 1), (2, 1)], transactional=False)
    history.publish()

    taken = [history.retain().log_starts for _ in range(4)]

    assert taken == [{0: 20}, {0: 30, 1: 1}, {1: 2, 2: 1}, {}]


# -- what is gone, and histories ----------------------------------------------------------------


def test_nothing_goes_from_a_topic_that_is_not_there() -> None:
    never = Retained(TopicLog(World().process().context, "t"))
    gone = retained({"retention.ms": "0"})
    gone.ages_ms = [3_000]
    plain_segments(gone, 1)
    gone.commit(lambda table: decide_deletion(gone.topic.segments.fold, table, 9, 9))

    for history in (never, gone):
        assert history.retain() == history.delete({0: 1}) == LogStartDecision()
        assert cut_segments(*history.state, [0]) == []


def reopened(history: Retained, *, through_checkpoint: bool) -> TopicLog:
    if through_checkpoint:
        history.topic.segments.write_checkpoint()
    fresh = TopicLog(history.topic.context, "t")
    fresh.segments.refresh()
    return fresh


@settings(max_examples=80, deadline=None)
@given(steps, st.lists(st.tuples(st.integers(0, 2), st.integers(0, 12)), max_size=4), steps)
def test_any_history_without_its_beginning_is_the_same_for_everyone(
    moves: list, deletions: Sequence[tuple[int, int]], later: list
) -> None:
    history = retained()
    play(history, moves)
    for partition, offset in deletions:
        before = dict(history.topic.segments.fold.producers)
        starts = [history.start(each) for each in range(3)]
        history.delete({partition: min(offset, history.end(partition))})
        assert history.topic.segments.fold.producers == before
        assert all(history.start(each) >= starts[each] for each in range(3))
    play(history, later)
    history.publish()
    history.retain()
    history.publish()

    logs, table, public = history.state
    for partition in range(3):
        assert history.start(partition) <= history.lso(partition) <= history.end(partition)
        assert all(last >= history.start(partition) for last in history.lasts(partition)), "what is left is cut at most"
    assert published(history.topic) == history.visible()
    assert full_projection(history.topic, public) == []
    for through_checkpoint in (False, True):
        fresh = reopened(history, through_checkpoint=through_checkpoint).segments
        assert (fresh.fold.producers, fresh.fold.open, fresh.fold.markers) == (logs.producers, logs.open, logs.markers)
        assert fresh.table.numbers == table.numbers
