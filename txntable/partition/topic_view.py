"""What a reader at one isolation level sees of a topic at one moment (PROTOCOL.md §10).

Owns the bounds: from which offset a partition can be read, and up to which.  Visibility is decided on
whole segments; offsets inside of one only where a bound cuts it.  A view never changes.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from txntable.coordinator.error_kinds import shown
from txntable.errors import OffsetOutOfRangeError, UnknownTopicOrPartitionError
from txntable.format.isolation import IsolationLevel
from txntable.format.layout import public_root, segments_root
from txntable.format.topic import TopicSettings
from txntable.log.table_state import TableState
from txntable.partition.offsets import (
    HIGH_WATERMARK,
    LAST_STABLE,
    decided_through,
    log_start,
    merged_through,
    next_offset,
    per_partition,
)
from txntable.segments.segment_columns import PlannedSegment, SegmentColumns


@dataclass(frozen=True, slots=True)
class Bounds:
    """Which offsets of a partition can be read.

    Attributes
    ----------
    start : int
        The log start offset.
    end : int
        Exclusive: the last stable offset, or the high watermark.
    last_stable_offset, high_watermark : int
        Of the state that is read.
    """

    start: int
    end: int
    last_stable_offset: int
    high_watermark: int


@dataclass(frozen=True, slots=True)
class TopicView:
    """One topic at one moment.

    Attributes
    ----------
    settings : TopicSettings
        Schema and partitions.
    level : IsolationLevel
        What is seen.
    root : str
        Of the table that the segments' paths are relative to.
    version : int
        Of that table.
    position : int or None
        Of a snapshot: records committed above it are not seen.
    columns : SegmentColumns
        The visible segments, and those that a bound hides.
    bounds : Mapping[int, Bounds]
        By partition.
    decided_through : int
        Every decision at or below has its marker in what is seen.
    merged_through : int
        Highest decision position inside of a merged segment: ``_commit <= D`` is a snapshot for no lower D.
    """

    settings: TopicSettings
    level: IsolationLevel
    root: str
    version: int
    position: int | None
    columns: SegmentColumns
    bounds: Mapping[int, Bounds]
    decided_through: int
    merged_through: int

    def plan(
        self, starting: Mapping[int, int] | None = None, ending: Mapping[int, int] | None = None
    ) -> Iterator[PlannedSegment]:
        """Yield the segments to read, partition by partition, in offset order.

        Parameters
        ----------
        starting, ending : Mapping[int, int], optional
            By partition: from this offset, and before this one; default: everything that can be read.

        Raises
        ------
        UnknownTopicOrPartitionError
            The topic has no such partition.
        OffsetOutOfRangeError
            An offset is before the log start or after the end.
        """
        starts = {partition: bounds.start for partition, bounds in self.bounds.items()}
        ends = {partition: bounds.end for partition, bounds in self.bounds.items()}
        for wanted, given in ((starts, starting or {}), (ends, ending or {})):
            for partition, offset in given.items():
                wanted[partition] = self.check_offset(partition, offset)
        yield from self.columns.between_each(
            (partition, starts[partition], ends[partition])
            for partition in self.bounds
            if starts[partition] < ends[partition]
        )

    def bounds_of(self, partition: int) -> Bounds:
        """Return the bounds of a partition.

        Raises
        ------
        UnknownTopicOrPartitionError
            The topic has no such partition.
        """
        bounds = self.bounds.get(partition)
        if bounds is None:
            raise UnknownTopicOrPartitionError(
                "the topic has no such partition",
                topic=self.settings.name,
                partition=shown(partition),
                partitions=self.settings.partitions,
            )
        return bounds

    def check_offset(self, partition: int, offset: int) -> int:
        """Return `offset` when the partition can be read from there.

        Raises
        ------
        UnknownTopicOrPartitionError, OffsetOutOfRangeError
            See :meth:`plan`.
        """
        bounds = self.bounds_of(partition)
        if not bounds.start <= offset <= bounds.end:
            raise OffsetOutOfRangeError(
                "the offset cannot be read: it is before the log start, or after what this isolation level shows",
                topic=self.settings.name,
                partition=partition,
                offset=offset,
                log_start=bounds.start,
                end=bounds.end,
            )
        return offset


def public_view(
    settings: TopicSettings, public: TableState, columns: SegmentColumns, position: int | None
) -> TopicView:
    """Return the view of committed records: of a snapshot at `position`, or below the last stable offset.

    Parameters
    ----------
    settings : TopicSettings
        The topic.
    public : TableState
        P's state: it carries the bounds of the state of S that it reflects.
    columns : SegmentColumns
        Of P.
    position : int, optional
        ``None``: ``read_committed``.
    """
    bounds = {}
    for partition in range(settings.partitions):
        highest = public.number(per_partition(HIGH_WATERMARK, settings.topic_id, partition))
        stable = public.number(per_partition(LAST_STABLE, settings.topic_id, partition))
        start = log_start(public.numbers, settings.topic_id, partition)
        bounds[partition] = Bounds(start, stable if position is None else highest, stable, highest)
    level = IsolationLevel.READ_COMMITTED if position is None else IsolationLevel.SNAPSHOT
    seen = columns if position is None else columns.committed_through(position)
    root = public_root(settings.name)
    through = _through(public, settings.topic_id)
    return TopicView(settings, level, root, public.next_version - 1, position, seen, bounds, *through)


def uncommitted_view(
    settings: TopicSettings, segments: TableState, columns: SegmentColumns, unstable: Mapping[int, int]
) -> TopicView:
    """Return the view of everything appended.

    Parameters
    ----------
    settings : TopicSettings
        The topic.
    segments : TableState
        S's state.
    columns : SegmentColumns
        Of S.
    unstable : Mapping[int, int]
        By partition: the first offset of its earliest open transaction with data there, where there is one.
    """
    bounds = {}
    for partition in range(settings.partitions):
        highest = next_offset(segments.numbers, settings.topic_id, partition)
        start = log_start(segments.numbers, settings.topic_id, partition)
        bounds[partition] = Bounds(start, highest, max(start, unstable.get(partition, highest)), highest)
    root = segments_root(settings.name)
    version = segments.next_version - 1
    through = _through(segments, settings.topic_id)
    return TopicView(settings, IsolationLevel.READ_UNCOMMITTED, root, version, None, columns, bounds, *through)


def _through(table: TableState, topic_id: str) -> tuple[int, int]:
    return decided_through(table.numbers, topic_id), merged_through(table.numbers, topic_id)
