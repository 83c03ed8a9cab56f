"""When a partition is compacted by key, and how far: Kafka's rules, as a truth table (PROTOCOL.md §5.8)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.partition.history import topic_settings
from txntable.compaction.cleaning import plan_cleaning
from txntable.compaction.eligible import EligibleSegment, Stretch
from txntable.compaction.spec import RewriteTask
from txntable.partition.partition_log import PartitionLogs
from txntable.partition.state_entry import Cleaning
from txntable.segments.segment_columns import PlannedSegment

NOW_MS = 1_000_000


def segment(base: int, last: int, size: int = 100, **said: Any) -> EligibleSegment:
    """A segment of very old records, unless it says otherwise."""
    planned = PlannedSegment(f"at {base}", 1, base, last, 0, size, last - base + 1, base, last + 1)
    facts = {"max_timestamp_ms": 0, "first_timestamp_ms": 0, "may_hold_tombstones": False, **said}
    return EligibleSegment(planned, is_unsettled=False, **facts)


SEGMENTS = (segment(0, 9), segment(10, 19), segment(20, 29))


def planned(
    *segments: EligibleSegment, through: int = 30, cleaned: tuple[Cleaning, ...] = (), **config: object
) -> RewriteTask | None:
    logs = PartitionLogs("t")
    named = {name.replace("_", "."): str(value) for name, value in config.items()}
    logs.settings = replace(topic_settings(), config={"cleanup.policy": "compact", **named})
    logs.cleanings = {1: cleaned} if cleaned else {}
    return plan_cleaning(logs, Stretch(list(segments), through), 7, NOW_MS)


def sources(task: RewriteTask | None) -> list[int]:
    return [] if task is None else [source.base_offset for source in task.sources]


def test_partition_that_was_never_compacted_is_looked_at_from_its_start_to_the_cleanable_end() -> None:
    task = planned(*SEGMENTS)

    assert task is not None
    assert task.by_key is not None
    assert (task.partition, sources(task)) == (1, [0, 10, 20])
    assert (task.by_key.through, task.by_key.tombstones_through, task.by_key.memory_bytes) == (30, 0, 7)


@pytest.mark.parametrize(
    ("through", "newest_ms", "lag_ms", "found", "end"),
    [
        (30, NOW_MS, 0, [0, 10, 20], 30),
        (20, 0, 0, [0, 10], 20),
        (15, 0, 0, [0, 10], 15),
        (0, 0, 0, [], 0),
        (30, NOW_MS - 500, 500, [0, 10, 20], 30),
        (30, NOW_MS - 499, 500, [0], 10),
        (5, NOW_MS - 499, 500, [0], 5),
        # Records from the future are none that are too young where there is no lag.
        (30, NOW_MS + 9, 0, [0, 10, 20], 30),
    ],
)
def test_cleanable_end_is_what_is_not_eligible_or_the_first_segment_that_is_too_young_by_its_records(
    through: int, newest_ms: int, lag_ms: int, found: list[int], end: int
) -> None:
    young = segment(10, 19, max_timestamp_ms=newest_ms)

    task = planned(SEGMENTS[0], young, SEGMENTS[2], through=through, min_compaction_lag_ms=lag_ms)

    assert sources(task) == found
    assert task is None or (task.by_key is not None and task.by_key.through == end)


@pytest.mark.parametrize(
    ("cleaned", "ratio", "due"),
    [
        (0, "0.5", True),
        (0, "0.99", True),
        (0, "1", False),
        (10, "0.6", True),
        (10, "0.7", False),
        (15, "0.6", True),
        (20, "0.3", True),
        (20, "0.34", False),
        (20, "0", True),
        (29, "0.3", True),
        (30, "0", False),
        (31, "0", False),
    ],
)
def test_partition_is_due_when_more_than_the_ratio_of_its_bytes_is_dirty(cleaned: int, ratio: str, due: bool) -> None:
    """A segment that the last compaction saw in part is dirty, whole."""
    known = (Cleaning(cleaned, 5),) if cleaned else ()

    task = planned(*SEGMENTS, cleaned=known, min_cleanable_dirty_ratio=ratio)

    # With something dirty, all of it is looked at: also what was clean.
    assert sources(task) == ([0, 10, 20] if due else [])


@pytest.mark.parametrize(
    ("first_ms", "lag_ms", "due"),
    [(0, NOW_MS - 1, True), (0, NOW_MS, False), (NOW_MS - 100, 99, True), (NOW_MS - 100, 100, False)],
)
def test_partition_is_due_when_a_dirty_record_has_waited_for_longer_than_the_lag(
    first_ms: int, lag_ms: int, due: bool
) -> None:
    dirty = segment(20, 29, first_timestamp_ms=first_ms, size=1)

    task = planned(
        *SEGMENTS[:2], dirty, cleaned=(Cleaning(20, 5),), max_compaction_lag_ms=lag_ms, min_cleanable_dirty_ratio="0.5"
    )

    assert bool(task) == due


def test_clean_record_that_is_old_makes_nothing_due() -> None:
    task = planned(
        *SEGMENTS[:2],
        segment(20, 29, first_timestamp_ms=NOW_MS, size=1),
        cleaned=(Cleaning(20, 5),),
        max_compaction_lag_ms=10,
        min_cleanable_dirty_ratio="0.5",
    )

    assert task is None


@pytest.mark.parametrize(
    ("retention_ms", "through", "paths"),
    [
        (NOW_MS - 99, 0, set()),
        (NOW_MS - 100, 10, {"at 0"}),
        (NOW_MS - 200, 20, {"at 0", "at 10"}),
        (0, 20, {"at 0", "at 10"}),
    ],
)
def test_tombstones_go_below_the_last_cleaning_that_is_their_retention_ago(
    retention_ms: int, through: int, paths: set[str]
) -> None:
    dead = [replace(each, may_hold_tombstones=True) for each in SEGMENTS]

    known = (Cleaning(10, 100), Cleaning(20, 200))
    task = planned(
        *dead,
        cleaned=known,
        delete_retention_ms=retention_ms,
        min_cleanable_dirty_ratio=0,
    )

    assert task is not None
    assert task.by_key is not None
    assert (task.by_key.tombstones_through, set(task.by_key.with_tombstones)) == (through, paths)


def test_segment_without_tombstones_is_not_looked_through_for_them() -> None:
    task = planned(
        SEGMENTS[0],
        segment(10, 19, may_hold_tombstones=True),
        cleaned=(Cleaning(10, 100), Cleaning(15, 200)),
        delete_retention_ms=0,
        min_cleanable_dirty_ratio=0,
        through=20,
    )

    assert task is not None
    assert task.by_key is not None
    assert task.by_key.with_tombstones == frozenset({"at 10"})


def test_partition_without_eligible_segments_is_not_due() -> None:
    assert planned() is None
