"""What a topic's tables say of work that was not done: projection, compaction, vacuum (PROTOCOL.md §7).

Owns the signs by which that shows without a LIST of the topic's files.  What a compaction would really rewrite, and
which files a vacuum would delete, their own dry runs say.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow.compute as pc

from txntable.admin.upkeep import Duty, Finding
from txntable.format.partition_values import partition_column, whole_numbers
from txntable.format.topic import TopicSettings
from txntable.format.topic_config import config_value
from txntable.format.topic_policy import config_number, is_compacted
from txntable.log.actions import Action, Txn
from txntable.log.entry_time import written_by_ms
from txntable.log.table_state import TableState
from txntable.partition.append import live_settings
from txntable.partition.offsets import HIGH_WATERMARK, REFLECTS
from txntable.partition.projection import SEGMENTS_PREFIX, project
from txntable.partition.tombstoning import was_tombstoned
from txntable.topics.topic_log import TopicLog

_PER_CENT = 100


def behind_since_ms(topic: TopicLog) -> int | None:
    """Return since when the public table lacks what the partition logs have to show; ``None``: it lacks nothing.

    By the partition logs' oldest entry that the public table does not reflect, ms since 1970; where that is gone
    already, by the oldest one that is there.  Data of an open transaction, which moves nothing but the high watermark,
    is not to be shown.
    """
    segments, public = topic.segments.table, topic.public.table
    actions = project(topic.segments.fold, segments, public, segments.timestamp_ms)
    if not any(_shows(action, public) for action in actions):
        return None
    return written_by_ms(topic.context.store, topic.segments.root, public.number(REFLECTS, -1) + 1)


def _shows(action: Action, public: TableState) -> bool:
    if not isinstance(action, Txn):
        return True
    of_itself = action.app_id == REFLECTS or action.app_id.startswith(HIGH_WATERMARK)
    return not of_itself and public.number(action.app_id) != action.version


def vacuum_debt(topic: TopicLog, now_ms: int) -> int:
    """Return how many removed files a vacuum at a time should have deleted; 0 when the oldest one is gone.

    Parameters
    ----------
    topic : TopicLog
        With both views as they are to be looked at.
    now_ms : int
        The time, ms since 1970.
    """
    segments, public, guard_ms = topic.segments.table, topic.public.table, topic.context.guard_ms
    due = [
        (gone.deletion_ms, f"{topic.public.root}/{path}")
        for path, gone in public.tombstones.items()
        if gone.deletion_ms < now_ms - public.deleted_files_retention_ms - guard_ms
    ]
    for path, gone in segments.tombstones.items():
        shown = f"{SEGMENTS_PREFIX}{path}"
        known = shown in public.files or shown in public.tombstones or was_tombstoned(gone)
        if not known and gone.deletion_ms < now_ms - segments.deleted_files_retention_ms:
            due.append((gone.deletion_ms, f"{topic.segments.root}/{path}"))
    if not due or topic.context.store.head(min(due)[1]) is None:
        return 0
    return len(due)


def compaction_debts(topic: TopicLog, old_ms: int, small_segments: int) -> Iterator[Finding]:
    """Yield the partitions that a compaction should have been at.

    Parameters
    ----------
    topic : TopicLog
        With both views as they are to be looked at.
    old_ms : int
        Segments of before count, ms since 1970.
    small_segments : int
        So many small ones in a partition are fine; 0: not looked at.

    Raises
    ------
    UnknownTopicOrPartitionError
        The topic was deleted.
    """
    settings = live_settings(topic.segments.fold)
    rows = topic.public.table.files.to_table()
    rows = rows.filter(pc.less(rows["modificationTime"], old_ms))
    numbers = {
        name: np.asarray(whole_numbers(partition_column(rows, name), rows["path"], name).to_numpy(zero_copy_only=False))
        for name in ("_partition", "_last_offset")
    }
    size, last = rows["size"].to_numpy(), numbers["_last_offset"]
    by_key = is_compacted(settings.config) and bool(settings.key)
    for partition in sorted({int(each) for each in numbers["_partition"]}):
        of_it, where = numbers["_partition"] == partition, f"partition {topic.name}-{partition}"
        small = int(np.count_nonzero(size[of_it] * 2 < config_number("segment.bytes", settings.config)))
        if small_segments and small > small_segments:
            yield Finding(Duty.MERGE, where, small, small_segments, "segments")
        if by_key:
            cleaned = topic.segments.fold.cleanings.get(partition, ())
            through = cleaned[-1].through if cleaned else 0
            dirty = int(size[of_it & (last >= through)].sum())
            yield from _dirty(where, dirty, int(size[of_it].sum()), settings)


def _dirty(where: str, dirty: int, size: int, settings: TopicSettings) -> Iterator[Finding]:
    limit = round(_PER_CENT * float(str(config_value("min.cleanable.dirty.ratio", settings.config))))
    found = _PER_CENT * dirty // size if size else 0
    if found > limit:
        yield Finding(Duty.COMPACT_BY_KEY, where, found, limit, "% dirty")
