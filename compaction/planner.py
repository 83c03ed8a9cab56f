"""Which segments of a topic a compaction rewrites, takes away or settles (PROTOCOL.md §5.8).

Owns the choice.  A segment is *eligible* when it is visible, published, below the last stable offset, and was
decided (without a transaction: appended) longer ago than ``snapshot.retention``.  Eligible neighbours are merged
so that each record is written anew a number of times that grows with the logarithm of the data: from the
newest on, an older segment joins those after it unless it is much larger than all of them.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from txntable.compaction.cleaning import plan_cleaning
from txntable.compaction.eligible import EligibleSegment, eligible_segments
from txntable.compaction.spec import MOST_SOURCES, RewriteTask, TopicSpec
from txntable.format.topic_policy import config_number, is_compacted
from txntable.log.table_state import TableState
from txntable.partition.append import live_settings
from txntable.partition.partition_log import PartitionLogs

DEFAULT_MEMORY_BYTES = 256 * 1024 * 1024
# An older segment is written anew with those after it when it is at most so many times as large as all of them:
# the higher, the fewer segments are left, and the more often a record is written.
_GROWTH = 2
# Below this size a segment is little more than its own description.
_TINY_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class PlanRules:
    """What is not the topic's to say.

    Attributes
    ----------
    snapshot_retention_ms : int
        Nothing decided less long ago is merged, in milliseconds.
    memory_bytes : int
        How much memory the keys of a compaction by key may take at once.
    """

    snapshot_retention_ms: int
    memory_bytes: int = DEFAULT_MEMORY_BYTES


def plan_topic(logs: PartitionLogs, table: TableState, public: TableState, rules: PlanRules, now_ms: int) -> TopicSpec:
    """Decide what a compaction of a topic is to do now.

    Parameters
    ----------
    logs, table
        S's state.
    public : TableState
        P's.
    rules : PlanRules
        Of the warehouse and of this run.
    now_ms : int
        The store's time, milliseconds since 1970.

    Raises
    ------
    UnknownTopicOrPartitionError
        There is no such topic.
    """
    settings = live_settings(logs)
    segment_bytes = config_number("segment.bytes", settings.config)
    found = eligible_segments(logs, table, public, now_ms - rules.snapshot_retention_ms)
    by_key = is_compacted(settings.config) and bool(settings.key)
    tasks: list[RewriteTask] = []
    for partition, stretch in sorted(found.partitions.items()):
        cleaning = plan_cleaning(logs, stretch, rules.memory_bytes, now_ms) if by_key else None
        if cleaning is not None:
            tasks.append(cleaning)
            continue
        cleaned = logs.cleanings.get(partition, ())
        boundary = cleaned[-1].through if cleaned else 0
        tasks.extend(_merges(partition, stretch.segments, segment_bytes, boundary))
    # A large one may lose nothing by its keys, and stay.
    taken = {
        source.path
        for task in tasks
        for source in task.sources
        if task.by_key is None or source.size * 2 < segment_bytes
    }
    settled = tuple(
        segment.planned.path
        for stretch in found.partitions.values()
        for segment in stretch.segments
        if segment.is_unsettled and segment.planned.path not in taken
    )
    return TopicSpec(settings.topic_id, tuple(tasks), found.aborted, settled, found.young)


def _merges(
    partition: int, segments: Sequence[EligibleSegment], segment_bytes: int, boundary: int
) -> Iterator[RewriteTask]:
    """Yield the merges of a partition; none crosses the offset `boundary`."""
    small: list[EligibleSegment] = []
    for segment in segments:
        is_large = segment.planned.size * 2 >= segment_bytes and segment.planned.is_whole
        crosses = bool(small) and small[-1].planned.base_offset < boundary <= segment.planned.base_offset
        if is_large or crosses:
            # Nothing will come between these and what stands after them: they are merged as far as they can be.
            yield from _binned(partition, small, segment_bytes)
            small = []
        elif segment.follows_gap:
            # What stands between will be eligible soon, and joins one of the two.
            yield from _grown(partition, small, segment_bytes)
            small = []
        if not is_large:
            small.append(segment)
    yield from _grown(partition, small, segment_bytes)


def _grown(partition: int, segments: Sequence[EligibleSegment], segment_bytes: int) -> Iterator[RewriteTask]:
    """Yield the merges of segments that are worth being written anew together; newer ones may come after them."""
    ends, total = [len(segments)], 0
    for index in range(len(segments) - 1, -1, -1):
        size = segments[index].planned.size
        if total and size > max(_GROWTH * total, _TINY_BYTES):
            # Those after it are too few for it; it waits for more of them, beside the older ones.
            ends.append(index + 1)
            total = 0
        total += size
    bounds = [0, *reversed(ends)]
    for first, end in pairwise(bounds):
        yield from _binned(partition, segments[first:end], segment_bytes)


def _binned(partition: int, segments: Sequence[EligibleSegment], segment_bytes: int) -> Iterator[RewriteTask]:
    """Yield tasks of neighbours that fill one segment each; one segment alone is left, unless it is to be cut."""
    waiting: list[EligibleSegment] = []
    size = 0
    for segment in segments:
        if waiting and (size + segment.planned.size > segment_bytes or len(waiting) >= MOST_SOURCES):
            yield from _task(partition, waiting)
            waiting, size = [], 0
        waiting.append(segment)
        size += segment.planned.size
    yield from _task(partition, waiting)


def _task(partition: int, segments: Sequence[EligibleSegment]) -> Iterator[RewriteTask]:
    if len(segments) > 1 or any(not segment.planned.is_whole for segment in segments):
        yield RewriteTask(partition, tuple(segment.planned for segment in segments))
