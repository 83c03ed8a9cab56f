"""The beginning of partitions moves up: which old segments go, and where a log starts then (PROTOCOL.md §5.9).

Owns Kafka's arithmetic of ``retention.ms`` and ``retention.bytes``, and what a deletion of records takes with it.
Only whole segments go, from the front, whoever wrote them: open transactions hold nothing back.

Invariants: a log start only rises, and never above the high watermark; a committed segment goes only once it was
published, so that no stream of the public table misses it.  Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from txntable.format.topic_policy import config_number, is_retained
from txntable.log.actions import Action, Add, Txn
from txntable.log.table_state import TableState
from txntable.partition.append import LARGEST_COMMIT_SEGMENTS
from txntable.partition.batch import batch_of
from txntable.partition.offsets import LOG_START, log_start, next_offset, per_partition
from txntable.partition.partition_log import PartitionLogs
from txntable.partition.projection import SEGMENTS_PREFIX, commit_position
from txntable.partition.removal import Removal, decide_removal
from txntable.segments.segment_columns import PlannedSegment, SegmentColumns, segment_columns


@dataclass(frozen=True, slots=True)
class RetentionLimits:
    """How much of a partition stays.

    Attributes
    ----------
    age_ms : int or None
        The age of a segment's newest record beyond which it goes; ``None``: none is too old.
    size : int or None
        Bytes that stay; ``None``: all.
    """

    age_ms: int | None
    size: int | None


@dataclass(frozen=True, slots=True)
class LogStartDecision:
    """What to write, and what goes with it.

    Attributes
    ----------
    actions : tuple
        Empty: nothing goes.
    segments : tuple of PlannedSegment
        Those that go.
    log_starts : Mapping[int, int]
        By partition, where it rises: the log start then.
    """

    actions: tuple[Action, ...] = ()
    segments: tuple[PlannedSegment, ...] = ()
    log_starts: Mapping[int, int] = field(default_factory=dict)


def retention_limits(config: Mapping[str, str]) -> RetentionLimits:
    """Return the limits of a topic: none unless ``delete`` is in its ``cleanup.policy``.

    Parameters
    ----------
    config : Mapping[str, str]
        What was set (``TopicSettings.config``).
    """
    if not is_retained(config):
        return RetentionLimits(None, None)
    age_ms, size = (config_number(name, config) for name in ("retention.ms", "retention.bytes"))
    return RetentionLimits(None if age_ms < 0 else age_ms, None if size < 0 else size)


def decide_retention(logs: PartitionLogs, table: TableState, public: TableState, now_ms: int) -> LogStartDecision:
    """Decide which segments of a topic are too old or too many; in all that one commit may remove.

    Segments that the log start has passed already go too, whatever the topic's policy.

    Parameters
    ----------
    logs, table
        S's state.
    public : TableState
        P's state, of any age.
    now_ms : int
        The store's time, milliseconds since 1970.
    """
    settings = logs.settings
    if settings is None or settings.deleted:
        return LogStartDecision()
    segments = _LiveSegments(logs, table, public)
    limits = retention_limits(settings.config)
    going: list[PlannedSegment] = []
    starts: dict[int, int] = {}
    for partition in range(settings.partitions):
        start, end = _bounds(table, settings.topic_id, partition)
        room = LARGEST_COMMIT_SEGMENTS - len(going)
        expired = list(islice(segments.expired(_Front(partition, start, end), limits, now_ms), room))
        if expired:
            going.extend(expired)
            starts[partition] = segments.first_offset(partition, expired[-1].last_offset + 1, end)
    return _decided(logs, table, going, starts, now_ms)


def decide_deletion_of_records(
    logs: PartitionLogs, table: TableState, public: TableState, before: Mapping[int, int], now_ms: int
) -> LogStartDecision:
    """Decide that the records before an offset are gone, and remove the segments that hold no others.

    Of very many segments some are left to :func:`decide_retention`; no reader sees them any more.

    Parameters
    ----------
    logs, table
        S's state.
    public : TableState
        P's state, of any age.
    before : Mapping[int, int]
        By partition: the offset, at most the high watermark.  At or below the log start: nothing happens.
    now_ms : int
        The store's time, milliseconds since 1970.
    """
    settings = logs.settings
    if settings is None or settings.deleted:
        return LogStartDecision()
    fronts = [_Front(p, *_bounds(table, settings.topic_id, p)) for p in sorted(before)]
    starts = {front.partition: before[front.partition] for front in fronts if before[front.partition] > front.start}
    if not starts:
        return LogStartDecision()
    segments = _LiveSegments(logs, table, public)
    going = [segment for partition, offset in starts.items() for segment in segments.below(partition, offset)]
    return _decided(logs, table, going[:LARGEST_COMMIT_SEGMENTS], starts, now_ms)


def cut_segments(
    logs: PartitionLogs, table: TableState, public: TableState, partitions: Collection[int]
) -> list[PlannedSegment]:
    """Return the visible segments that the log starts of partitions cut, with the offsets that still count.

    One that is not visible and published yet is none of them: its head is only hidden until then.

    Parameters
    ----------
    logs, table
        S's state.
    public : TableState
        P's state, of any age.
    partitions : collection of int
        Which.
    """
    if logs.settings is None or logs.settings.deleted:
        return []
    segments = _LiveSegments(logs, table, public)
    found = []
    for partition in sorted(partitions):
        start, end = _bounds(table, logs.settings.topic_id, partition)
        first = next(segments.columns.between(partition, start, end), None)
        if first is not None and first.base_offset < start and segments.is_visible(first):
            found.append(first)
    return found


@dataclass(frozen=True, slots=True)
class _Front:
    """A partition, its log start and its high watermark."""

    partition: int
    start: int
    end: int


def _bounds(table: TableState, topic_id: str, partition: int) -> tuple[int, int]:
    return log_start(table.numbers, topic_id, partition), next_offset(table.numbers, topic_id, partition)


class _LiveSegments:
    """The data segments of S in offset order, and what may become of each."""

    def __init__(self, logs: PartitionLogs, table: TableState, public: TableState) -> None:
        self._logs, self._table, self._public = logs, table, public
        self.columns: SegmentColumns = segment_columns(table.files.to_table(), public=False)

    def expired(self, front: _Front, limits: RetentionLimits, now_ms: int) -> Iterator[PlannedSegment]:
        """Yield the segments from the front that may not stay: passed by the log start, too many bytes, too old."""
        rows = self.columns.rows_between(front.partition, 0, front.end)
        # Kafka's: the oldest segment goes while what is left without it is the limit still, or more.
        excess = -1 if limits.size is None else int(self.columns.size[rows.start : rows.stop].sum()) - limits.size
        for segment in self.columns.between(front.partition, 0, front.end):
            passed = segment.last_offset < front.start
            expired = passed or segment.size <= excess or self._is_older(segment, limits.age_ms, now_ms)
            if not expired or not self._may_go(segment):
                return
            excess -= segment.size
            yield segment

    def below(self, partition: int, offset: int) -> Iterator[PlannedSegment]:
        """Yield the segments that may go once the log starts at an offset."""
        for segment in self.columns.between(partition, 0, offset):
            if segment.last_offset < offset and self._may_go(segment):
                yield segment

    def first_offset(self, partition: int, start: int, end: int) -> int:
        """Return the base offset of the first segment from an offset on; `end` when there is none."""
        first = next(self.columns.between(partition, start, end), None)
        return end if first is None else first.base_offset

    def is_visible(self, segment: PlannedSegment) -> bool:
        """Return whether a segment's records are committed, and published."""
        return self._position(segment) is not None and SEGMENTS_PREFIX + segment.path in self._public.files

    def _may_go(self, segment: PlannedSegment) -> bool:
        # Undecided data may, as in Kafka: its transaction can commit all the same.
        return self._position(segment) is None or self.is_visible(segment)

    def _position(self, segment: PlannedSegment) -> int | None:
        return commit_position(self._logs, batch_of(self._row(segment)))

    def _is_older(self, segment: PlannedSegment, age_ms: int | None, now_ms: int) -> bool:
        return age_ms is not None and now_ms - batch_of(self._row(segment)).max_timestamp_ms > age_ms

    def _row(self, segment: PlannedSegment) -> Add:
        row = self._table.files.get(segment.path)
        assert row is not None  # the columns are of this state
        return row


def _decided(
    logs: PartitionLogs, table: TableState, going: Sequence[PlannedSegment], starts: Mapping[int, int], now_ms: int
) -> LogStartDecision:
    """Return the one commit that removes segments and lets logs start where they are to."""
    settings = logs.settings
    if settings is None or not (going or starts):
        return LogStartDecision()
    raised = {
        partition: offset
        for partition, offset in starts.items()
        if offset > log_start(table.numbers, settings.topic_id, partition)
    }
    removal = decide_removal(logs, table, Removal({segment.path for segment in going}), now_ms) if going else []
    numbers = [Txn(per_partition(LOG_START, settings.topic_id, p), offset) for p, offset in sorted(raised.items())]
    return LogStartDecision((*removal, *numbers), tuple(going), raised)
