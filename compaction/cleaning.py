"""When a partition is compacted by key, and how far (KAFKA: log cleaner; PROTOCOL.md §5.8).

Owns Kafka's rules: what is *dirty* was not looked at by a compaction before; a partition is due when
enough of it is dirty, or when a dirty record has waited for ``max.compaction.lag.ms``.  Pure.
"""

from __future__ import annotations

from txntable.compaction.eligible import EligibleSegment, Stretch, before
from txntable.compaction.spec import KeyCleaning, RewriteTask
from txntable.format.topic_config import config_value
from txntable.format.topic_policy import config_number
from txntable.partition.partition_log import PartitionLogs
from txntable.partition.state_entry import expired_through


def plan_cleaning(logs: PartitionLogs, stretch: Stretch, memory_bytes: int, now_ms: int) -> RewriteTask | None:
    """Return the compaction by key that a partition is due for, if it is.

    Parameters
    ----------
    logs : PartitionLogs
        S's state.
    stretch : Stretch
        What is eligible in the partition.
    memory_bytes : int
        What the keys may take at once.
    now_ms : int
        The store's time, milliseconds since 1970.
    """
    if not stretch.segments:
        return None
    partition = stretch.segments[0].planned.partition
    settings = logs.settings
    config = {} if settings is None else settings.config
    through = _cleanable_end(stretch, config_number("min.compaction.lag.ms", config), now_ms)
    cleanings = logs.cleanings.get(partition, ())
    cleaned = cleanings[-1].through if cleanings else 0
    sources = list(before(stretch, through))
    dirty = [segment for segment in sources if segment.planned.last_offset >= cleaned]
    if not dirty:
        return None
    ratio = sum(segment.planned.size for segment in dirty) / sum(segment.planned.size for segment in sources)
    waits_since_ms = min(segment.first_timestamp_ms for segment in dirty)
    overdue = now_ms - waits_since_ms > config_number("max.compaction.lag.ms", config)
    if not overdue and ratio <= float(str(config_value("min.cleanable.dirty.ratio", config))):
        return None
    horizon_ms = now_ms - config_number("delete.retention.ms", config)
    tombstones_through = expired_through(cleanings, horizon_ms)
    with_tombstones = frozenset(segment.planned.path for segment in sources if _may_lose(segment, tombstones_through))
    cleaning = KeyCleaning(through, tombstones_through, with_tombstones, memory_bytes)
    return RewriteTask(partition, tuple(segment.planned for segment in sources), cleaning)


def _may_lose(segment: EligibleSegment, tombstones_through: int) -> bool:
    return segment.may_hold_tombstones and segment.planned.base_offset < tombstones_through


def _cleanable_end(stretch: Stretch, lag_ms: int, now_ms: int) -> int:
    """Return the offset before which records may be compacted: the first segment that is too young, by its records."""
    young = (segment for segment in stretch.segments if lag_ms and segment.max_timestamp_ms > now_ms - lag_ms)
    return min([stretch.through, *(segment.planned.base_offset for segment in young)])
