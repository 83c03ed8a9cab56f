"""Which neighbours are merged, what is settled, what stays (PROTOCOL.md §5.8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.log.world import World
from tests.unit.partition.history import TOPIC_ID, History, new_history, play, steps, topic_settings
from txntable.compaction.eligible import EligibleSegment
from txntable.compaction.planner import PlanRules, _merges, plan_topic
from txntable.compaction.spec import MOST_SOURCES, RewriteTask, TopicSpec
from txntable.errors import UnknownTopicOrPartitionError
from txntable.format.topic_config import TOPIC_CONFIG
from txntable.partition.batch import ProducerEpoch
from txntable.partition.markers import Control
from txntable.partition.partition_log import PartitionLogs
from txntable.partition.rewriting import RewriteRequest
from txntable.segments.segment_columns import PlannedSegment
from txntable.topics.topic_log import TopicLog

MB = 1024 * 1024
RULES = PlanRules(snapshot_retention_ms=1_000)


def neighbours(sizes: Sequence[int], *, cut: int | None = None, gaps: Sequence[int] = ()) -> list[EligibleSegment]:
    """Segments of one record each, of these sizes."""
    return [
        EligibleSegment(
            PlannedSegment(str(n), 0, 10 * n, 10 * n + 9, 0, size, 10, 10 * n + (n == cut), 10 * n + 10),
            is_unsettled=False,
            max_timestamp_ms=0,
            first_timestamp_ms=0,
            may_hold_tombstones=False,
            follows_gap=n in gaps,
        )
        for n, size in enumerate(sizes)
    ]


def merged(segments: Sequence[EligibleSegment], segment_bytes: int = 100 * MB, boundary: int = 0) -> list[str]:
    return [" ".join(source.path for source in task.sources) for task in _merges(0, segments, segment_bytes, boundary)]


@pytest.mark.parametrize(
    ("sizes", "tasks"),
    [
        ([], []),
        ([1], []),
        ([1, 1], ["0 1"]),
        ([1, 1, 1, 1], ["0 1 2 3"]),
        # An older one joins when it is at most twice as large as all after it.
        ([4, 1, 1], ["0 1 2"]),
        ([5, 1, 1], ["1 2"]),
        ([12, 4, 1, 1], ["0 1 2 3"]),
        ([13, 4, 1, 1], ["1 2 3"]),
        ([8, 3, 1], []),
        # Those that are too large for what comes after them are merged among themselves.
        ([9, 9, 9, 1], ["0 1 2"]),
        ([30, 9, 9, 1, 1], ["0 1 2", "3 4"]),
        # Half of the size of a segment and more is large: it stays, and what is before it is merged whole.
        ([50, 1, 1], ["1 2"]),
        ([1, 1, 50, 1, 1], ["0 1", "3 4"]),
        ([30, 1, 1, 50], ["0 1 2"]),
        ([49, 30, 50, 1], ["0 1"]),
        # As many as fill one segment.
        ([40, 40, 40, 40], ["0 1", "2 3"]),
        ([40, 40, 40], ["0 1"]),
        ([49, 49, 49, 49, 49], ["0 1", "2 3"]),
    ],
)
def test_neighbours_are_merged_as_far_as_they_are_worth_it(sizes: list[int], tasks: list[str]) -> None:
    assert merged(neighbours([size * MB for size in sizes])) == tasks


@pytest.mark.parametrize(("first", "tasks"), [(64 * 1024, ["0 1 2"]), (64 * 1024 + 1, ["1 2"])])
def test_tiny_segment_joins_however_small_those_after_it_are(first: int, tasks: list[str]) -> None:
    assert merged(neighbours([first, 10, 10])) == tasks


@pytest.mark.parametrize(
    ("gaps", "sizes", "tasks"),
    [
        ([2], [1, 1, 1, 1], ["0 1", "2 3"]),
        ([1], [1, 1, 1], ["1 2"]),
        ([2], [8, 1, 1, 1], ["2 3"]),
        ([3], [8, 1, 1, 1], ["1 2"]),
    ],
)
def test_merge_never_reaches_over_what_is_not_eligible(gaps: list[int], sizes: list[int], tasks: list[str]) -> None:
    assert merged(neighbours([size * MB for size in sizes], gaps=gaps)) == tasks


@pytest.mark.parametrize(
    ("boundary", "tasks"),
    [(0, ["0 1 2 3"]), (10, ["1 2 3"]), (20, ["0 1", "2 3"]), (15, ["0 1", "2 3"]), (31, ["0 1 2 3"])],
)
def test_merge_never_reaches_over_the_end_of_the_last_compaction_by_key(boundary: int, tasks: list[str]) -> None:
    """Else what is clean would be dirty again."""
    assert merged(neighbours([MB] * 4), boundary=boundary) == tasks


@pytest.mark.parametrize(
    ("sizes", "cut", "tasks"),
    [
        ([1], 0, ["0"]),
        ([80, 1], 0, ["0"]),
        ([80, 50], 0, ["0"]),
        ([9, 3, 1], 0, ["0"]),
        ([6, 3, 1], 0, ["0 1"]),
        ([80, 30, 1], 0, ["0"]),
    ],
)
def test_segment_that_the_log_start_cuts_is_rewritten_also_when_it_is_large_or_alone(
    sizes: list[int], cut: int, tasks: list[str]
) -> None:
    assert merged(neighbours([size * MB for size in sizes], cut=cut)) == tasks


def test_one_task_has_no_more_sources_than_a_commit_bears() -> None:
    tasks = list(_merges(0, neighbours([1] * (MOST_SOURCES + 2)), 100 * MB, 0))

    assert [len(task.sources) for task in tasks] == [MOST_SOURCES, 2]


@given(st.lists(st.integers(1, 200), max_size=30), st.integers(0, 300), st.sets(st.integers(1, 29), max_size=3))
def test_merges_are_of_neighbours_in_order_and_no_segment_is_in_two(
    sizes: list[int], boundary: int, gaps: set[int]
) -> None:
    segments = neighbours([size * MB for size in sizes], gaps=sorted(gaps))

    tasks = list(_merges(0, segments, 100 * MB, boundary))

    numbers = [[int(source.path) for source in task.sources] for task in tasks]
    assert [n for task in numbers for n in task] == sorted({n for task in numbers for n in task})
    for task in numbers:
        assert task == list(range(task[0], task[-1] + 1))
        assert len(task) > 1
        assert not gaps & set(task[1:])
        assert sum(sizes[n] for n in task) <= 100
        assert not any(10 * (n - 1) < boundary <= 10 * n for n in task[1:])


# -- of a topic ---------------------------------------------------------------------------------


def plan(history: History, now_ms: int = 1_000_000) -> TopicSpec:
    logs = history.topic.segments
    return plan_topic(logs.fold, logs.table, history.topic.public.table, RULES, now_ms)


@pytest.fixture
def history() -> History:
    history = History(TopicLog(World().process().context, "t"), tick_ms=10)
    history.create(topic_settings())
    return history


def test_committed_segment_that_stays_is_settled_and_one_that_is_merged_is_not(history: History) -> None:
    ann = ProducerEpoch(7, 0)
    history.append(ann, [(0, 2), (1, 2)], transactional=True)
    history.decide(ann, Control.COMMIT)
    history.append(None, [(0, 1)], transactional=False)
    history.append(None, [(2, 1)], transactional=False)
    history.publish()
    there, elsewhere, plain, _ = history.segments

    spec = plan(history)

    assert spec.topic_id == TOPIC_ID
    assert [tuple(source.path for source in task.sources) for task in spec.tasks] == [(there, plain)]
    assert spec.settled == (elsewhere,)
    assert spec.size == 200


def test_nothing_is_planned_of_what_is_younger_than_the_retention_of_snapshots(history: History) -> None:
    history.append(None, [(0, 1)], transactional=False)
    history.append(None, [(0, 1)], transactional=False)
    history.publish()

    assert (plan(history, 1_034).tasks, plan(history, 1_034).young) == ((), 1)
    assert (len(plan(history, 1_035).tasks), plan(history, 1_035).young) == (1, 0)


def test_topic_that_is_not_there_is_an_error(history: History) -> None:
    with pytest.raises(UnknownTopicOrPartitionError):
        plan_topic(PartitionLogs("t"), history.topic.segments.table, history.topic.public.table, RULES, 5)


def test_partition_that_is_due_is_compacted_by_key_and_not_merged(history: History) -> None:
    history.append(None, [(0, 1)], transactional=False)
    history.append(None, [(0, 1)], transactional=False)
    history.publish()
    logs = history.topic.segments.fold
    assert logs.settings is not None
    logs.settings = replace(logs.settings, key=("x",), config={"cleanup.policy": "compact,delete"})

    (by_key,) = plan(history).tasks
    logs.settings = replace(logs.settings, config={"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "1"})
    (merge,) = plan(history).tasks
    logs.settings = replace(logs.settings, config={"cleanup.policy": "delete"})
    (of_another_policy,) = plan(history).tasks

    assert (by_key.by_key is None, merge.by_key, of_another_policy.by_key) == (False, None, None)
    assert by_key.sources == merge.sources == of_another_policy.sources


@pytest.mark.parametrize(("segment_bytes", "settled"), [(1024 * 1024, 0), (200, 2)])
def test_large_source_of_a_compaction_by_key_is_settled_since_it_may_stay(
    history: History, monkeypatch: pytest.MonkeyPatch, segment_bytes: int, settled: int
) -> None:
    key = replace(TOPIC_CONFIG["segment.bytes"], lowest=1)
    monkeypatch.setattr("txntable.format.topic_config.TOPIC_CONFIG", {**TOPIC_CONFIG, "segment.bytes": key})
    ann = ProducerEpoch(7, 0)
    for _ in range(2):
        history.append(ann, [(0, 1)], transactional=True)
    history.decide(ann, Control.COMMIT)
    history.publish()
    logs = history.topic.segments.fold
    assert logs.settings is not None
    config = {"cleanup.policy": "compact", "segment.bytes": str(segment_bytes)}
    logs.settings = replace(logs.settings, key=("x",), config=config)

    spec = plan(history)

    assert [len(task.sources) for task in spec.tasks] == [2]
    assert len(spec.settled) == settled


@given(steps)
def test_what_is_planned_can_be_done_and_then_nothing_is_left_to_plan(moves: list) -> None:
    history = new_history()
    play(history, moves)
    history.publish()

    spec = plan(history)
    rewrites = tuple(history.merged(task.partition, [s.path for s in task.sources]) for task in spec.tasks)
    found = history.rewrite(RewriteRequest(spec.topic_id, rewrites, spec.aborted, spec.settled))
    history.publish()

    assert found.done == rewrites
    again = plan(history)
    assert (again.aborted, again.settled) == ((), ())
    assert all(isinstance(task, RewriteTask) for task in again.tasks)
