"""Where bounded reads of several topics end, so that no transaction is read in part (DECISIONS 151).

Owns the rule: of each partition the longest range is taken such that every transaction with records in what is taken
has all its other records, of these partitions, in what is taken too.  A last stable offset (PROTOCOL.md §5.6) says
this of one partition only: a transaction may be read in one topic while an older one holds it back in another.  Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from txntable.partition.topic_view import TopicView
from txntable.segments.segment_columns import Numbers

_NO_END = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class TopicRanges:
    """What may be read of one topic.

    Attributes
    ----------
    view : TopicView
        Of committed records; it knows those behind the last stable offset, too.
    starts, ends : Mapping[int, int]
        By partition that is read: from this offset, at most before that one.
    """

    view: TopicView
    starts: Mapping[int, int]
    ends: Mapping[int, int]


@dataclass(slots=True)
class _Partition:
    """The segments of a partition from its start on, and where what is taken of it ends."""

    start: int
    end: int
    base_offset: Numbers
    last_offset: Numbers
    commit: Numbers
    merged_through: int

    def commits_behind(self) -> Numbers:
        """Return the decisions with records that are not taken."""
        return self.commit[self.last_offset >= self.end]

    def cut(self, split: Numbers, position: int) -> bool:
        """End before the first segment of a decision that is split, or above a position; return whether that is sooner.

        A segment that was merged tells the highest of its decisions only: it is taken for each up to that one.
        """
        found = np.isin(self.commit, split) | (self.commit > position)
        if len(split):
            found |= (self.commit >= split.min()) & (self.commit <= self.merged_through)
        found &= self.base_offset < self.end
        if not found.any():
            return False
        end = max(self.start, int(self.base_offset[found.argmax()]))
        self.end, before = min(self.end, end), self.end
        return self.end < before


def joint_ends(topics: Sequence[TopicRanges], position: int) -> list[dict[int, int]]:
    """Return where the ranges end, by partition, of each topic.

    Parameters
    ----------
    topics : sequence of TopicRanges
        All that is read together.
    position : int
        Up to which each view shows every decision: one above may be missing from another view.
    """
    found = [{partition: _partition(topic, partition) for partition in topic.ends} for topic in topics]
    partitions = [each for one in found for each in one.values()]
    changed = bool(partitions)
    while changed:
        behind = np.unique(np.concatenate([each.commits_behind() for each in partitions]))
        split = behind[behind > 0]
        # Each one, also behind one that has changed.
        changed = sum(each.cut(split, position) for each in partitions) > 0
    return [{partition: each.end for partition, each in one.items()} for one in found]


def _partition(topic: TopicRanges, partition: int) -> _Partition:
    columns, start, end = topic.view.columns, topic.starts[partition], topic.ends[partition]
    at = columns.rows_between(partition, start, _NO_END)
    rows = slice(at.start, at.stop)
    # Who reads what is not committed is told of no decision: nothing is split.
    commit = np.zeros(len(at), np.int64) if columns.commit is None else columns.commit[rows]
    return _Partition(
        start, end, columns.base_offset[rows], columns.last_offset[rows], commit, topic.view.merged_through
    )
