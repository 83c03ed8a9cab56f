"""The segments of a topic that may be rewritten now (PROTOCOL.md §5.8).

Owns what *eligible* means, and which rows belong to aborted transactions.  Must not know what a compaction
makes of them.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from txntable.format.tombstone import may_hold_tombstones
from txntable.log.actions import Add
from txntable.log.table_state import TableState
from txntable.partition.batch import Batch, batch_of
from txntable.partition.offsets import log_start, next_offset
from txntable.partition.partition_log import PartitionLogs
from txntable.partition.projection import SEGMENTS_PREFIX, commit_position, is_aborted
from txntable.partition.stable_offset import first_unstable_offsets
from txntable.segments.segment_columns import PlannedSegment


@dataclass(frozen=True, slots=True)
class EligibleSegment:
    """A segment that may be rewritten.

    Attributes
    ----------
    planned : PlannedSegment
        Of S; it begins at the log start where that cuts it.
    is_unsettled : bool
        Whether its decision is said by a marker.
    max_timestamp_ms : int
        No record of it is later, ms since 1970.
    first_timestamp_ms : int
        Of its first record.
    may_hold_tombstones : bool
        By its statistics.
    follows_gap : bool
        Whether a segment that is not eligible stands between this one and the one before.
    """

    planned: PlannedSegment
    is_unsettled: bool
    max_timestamp_ms: int
    first_timestamp_ms: int
    may_hold_tombstones: bool
    follows_gap: bool = False


@dataclass(slots=True)
class Stretch:
    """The eligible segments of a partition in offset order.

    Attributes
    ----------
    segments : list of EligibleSegment
        Visible and eligible.
    through : int
        Every offset below it is in one of them, or in no visible segment.
    """

    segments: list[EligibleSegment] = field(default_factory=list)
    through: int = 0


@dataclass(slots=True)
class EligibleTopic:
    """What was found: the stretch of each partition, the rows of aborted transactions, how many rows are too young."""

    partitions: dict[int, Stretch] = field(default_factory=dict)
    aborted: tuple[str, ...] = ()
    young: int = 0


def eligible_segments(logs: PartitionLogs, table: TableState, public: TableState, horizon_ms: int) -> EligibleTopic:
    """Return what may be rewritten or taken away.

    Parameters
    ----------
    logs, table
        S's state.
    public : TableState
        P's.
    horizon_ms : int
        The store's time: what was decided, or appended without a transaction, later than it is not eligible.
    """
    settings = logs.settings
    assert settings is not None  # the caller has looked at it
    unstable = first_unstable_offsets(logs)
    aborted: list[str] = []
    rows: dict[int, list[tuple[Batch, Add]]] = {partition: [] for partition in range(settings.partitions)}
    for row in table.files:
        if row.partition_values["_control"] is not None:
            continue
        batch = batch_of(row)
        if is_aborted(logs, batch):
            aborted.append(batch.path)
        else:
            rows[batch.partition].append((batch, row))
    found = EligibleTopic(aborted=tuple(sorted(aborted)))
    for partition, unsorted in rows.items():
        start = log_start(table.numbers, settings.topic_id, partition)
        end = unstable.get(partition, next_offset(table.numbers, settings.topic_id, partition))
        stretch = found.partitions[partition] = Stretch(through=end)
        seen = sorted(unsorted, key=lambda pair: pair[0].base_offset)
        gap = False
        for batch, row in seen:
            published = SEGMENTS_PREFIX + batch.path in public.files
            is_old = _is_old(logs, batch, horizon_ms)
            found.young += published and not is_old
            if batch.base_offset >= end or not published or not is_old:
                stretch.through = min(stretch.through, batch.base_offset)
                gap = True
                continue
            stretch.segments.append(_eligible(logs, batch, row, start, follows_gap=gap))
            gap = False
    return found


def _is_old(logs: PartitionLogs, batch: Batch, horizon_ms: int) -> bool:
    if batch.decided is not None:
        # What a compaction wrote was old enough then.  What a deletion of records left of a young segment says when
        # it was written: it was decided before that.
        return batch.uploaded_at_ms is None or batch.uploaded_at_ms <= horizon_ms
    if not batch.transactional or batch.producer is None:
        return batch.appended_at_ms <= horizon_ms
    marker = logs.ending_of(batch)
    return marker is not None and marker.decided_at_ms <= horizon_ms


def _eligible(logs: PartitionLogs, batch: Batch, row: Add, start: int, *, follows_gap: bool) -> EligibleSegment:
    settings = logs.settings
    assert settings is not None
    planned = PlannedSegment(
        batch.path,
        batch.partition,
        batch.base_offset,
        batch.last_offset,
        commit_position(logs, batch),
        row.size,
        batch.records,
        max(batch.base_offset, start),
        batch.last_offset + 1,
        batch.digest,
    )
    return EligibleSegment(
        planned,
        batch.producer is not None and batch.transactional,
        batch.max_timestamp_ms,
        batch.first_timestamp_ms,
        may_hold_tombstones(row.stats, settings),
        follows_gap,
    )


def before(stretch: Stretch, through: int) -> Iterator[EligibleSegment]:
    """Yield the segments of a stretch that begin below an offset."""
    return (segment for segment in stretch.segments if segment.planned.base_offset < through)
