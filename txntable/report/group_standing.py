"""Where consumer groups stand: committed offsets against the last stable offsets, which is where reading ends.

Owns the lag of what is committed in the offset log as it is: nothing is completed for it.  Members that have been
silent for longer than their session timeouts do not count.  Reads only.
"""

from __future__ import annotations

from collections.abc import Mapping

from txntable.coordinator.group_state import GroupState
from txntable.coordinator.offset_shard import committed
from txntable.groups.silence import see
from txntable.offsets.offset_log import OffsetLog
from txntable.partition.topic_view import TopicView
from txntable.report.warehouse_report import Bounded, GroupPartition, GroupStanding, ReportLimits


def group_standings(offsets: OffsetLog, views: Mapping[str, TopicView], limits: ReportLimits) -> Bounded[GroupStanding]:
    """Return where groups stand, the largest lag first.

    Parameters
    ----------
    offsets : OffsetLog
        O, read just now.
    views : Mapping of str to TopicView
        The topics that there are, by name.
    limits : ReportLimits
        How many groups, and partitions of each.
    """
    found = [_standing(offsets, name, views, limits.group_partitions) for name in offsets.names()]
    found.sort(key=lambda one: (-(one.lag or 0), one.name))
    return Bounded(tuple(found[: limits.groups]), len(found))


def _standing(offsets: OffsetLog, name: str, views: Mapping[str, TopicView], most: int) -> GroupStanding:
    row, partitions = offsets.group(name), []
    for (topic, partition), offset in offsets.offsets(name).items():
        view = views.get(topic)
        bounds = None if view is None else view.bounds.get(partition)
        if view is None or bounds is None:
            continue
        one = committed(offset, view.settings.topic_id, require_stable=False)
        if one is not None:
            end, is_held_back = bounds.last_stable_offset, bounds.last_stable_offset < bounds.high_watermark
            partitions.append(GroupPartition(topic, partition, one.offset, end, is_held_back))
    partitions.sort(key=lambda each: (-each.lag, each.topic, each.partition))
    seen = None if row is None else see(offsets.context.store, row, offsets.context.clock.shown_ms).row
    return GroupStanding(
        name,
        GroupState.EMPTY if seen is None else seen.state,
        0 if seen is None else len(seen.members),
        sum(each.lag for each in partitions) if partitions else None,
        Bounded(tuple(partitions[:most]), len(partitions)),
    )
