"""The public table as a pure function of the partition logs (PROTOCOL.md §7).

P at a commit that reflects version s of S holds exactly the committed and the non-transactional
segments that are live in s, at the same physical paths.  Nothing else ever commits to P; anyone
may project, and all get the same.

Invariants: ``reflects`` only rises; a new row is a data change, a removal is none (else running
streams die).  Offsets and positions that P has told never fall: where S has lost its newest entries,
P is the only one that still names their records, and stays as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from txntable.errors import DamagedDataError
from txntable.format.partition_values import check_all_columns, check_columns, whole_number
from txntable.format.schema import PUBLIC_PARTITION_COLUMNS, needs_timestamp_ntz
from txntable.log.action_fields import check_number_names
from txntable.log.actions import Action, Add, Commit, Remove, Txn, guard_protocol, txns
from txntable.log.table_state import TableState
from txntable.partition.batch import TAG_VERSION, Batch, batch_of
from txntable.partition.markers import Control
from txntable.partition.offsets import (
    DECIDED_THROUGH,
    HIGH_WATERMARK,
    LAST_STABLE,
    LOG_START,
    MERGED_THROUGH,
    PUBLIC_NUMBERS,
    REFLECTS,
    decided_through,
    log_start,
    merged_through,
    per_partition,
    per_topic,
)
from txntable.partition.partition_log import PartitionLogs
from txntable.partition.stable_offset import high_watermark, last_stable_offset
from txntable.segments.topic_metadata import public_metadata

SEGMENTS_PREFIX = "_segments/"
_dumps = json.JSONEncoder(separators=(",", ":")).encode
_PLACE = frozenset(column.name for column in PUBLIC_PARTITION_COLUMNS)


@dataclass(slots=True)
class PublicTable:
    """P's fold: everything is in the table's own state (files and numbers)."""

    name: str

    def restore(self, table: TableState) -> None:
        """Take nothing, as :meth:`apply`; the numbers of a checkpoint's rows are read with the rows."""
        check_number_names(table.numbers, PUBLIC_NUMBERS)
        check_all_columns(table.files.to_table(), _PLACE)

    def apply(self, commit: Commit, table: TableState) -> None:
        """Take nothing, but refuse a row whose place nobody could read: P has no state beside the table's."""
        check_number_names((one.app_id for one in commit.actions if isinstance(one, Txn)), PUBLIC_NUMBERS)
        for action in commit.actions:
            if isinstance(action, Add):
                check_columns(action.partition_values, _PLACE, action.path)
                for text in action.partition_values.values():
                    whole_number(text)

    def overlay(self) -> PublicTable:
        """Return itself: there is nothing that a commit would change."""
        return self


def commit_position(logs: PartitionLogs, batch: Batch) -> int | None:
    """Return what ``_commit`` says of a live segment; ``None``: it is not visible (open or aborted)."""
    if batch.decided is not None:
        return batch.decided[1]
    if not batch.transactional or batch.producer is None:
        return 0
    marker = logs.ending_of(batch)
    return None if marker is None or marker.control is not Control.COMMIT else marker.position


def is_aborted(logs: PartitionLogs, batch: Batch) -> bool:
    """Return whether a live segment's transaction was aborted."""
    marker = logs.ending_of(batch)
    return marker is not None and marker.control is Control.ABORT


def project(logs: PartitionLogs, segments: TableState, public: TableState, now_ms: int) -> list[Action]:
    """Return the actions that make `public` reflect `segments`; none when it does already.

    Parameters
    ----------
    logs, segments
        S's state.
    public : TableState
        P's state; ``version`` is ``None`` when P is not there yet.
    now_ms : int
        Deletion time of removed rows.

    Raises
    ------
    DamagedDataError
        S has lost entries that P shows, and others took their place.
    """
    settings, metadata, version = logs.settings, segments.metadata, segments.version
    if settings is None or metadata is None or version is None:
        return []
    reflected = public.numbers.get(REFLECTS) if public.version is not None else None
    if reflected is not None and reflected >= version:
        return []
    actions: list[Action] = []
    if public.version is None:
        actions.append(guard_protocol(timestamp_ntz=needs_timestamp_ntz(settings.schema)))
    wanted_metadata = public_metadata(metadata, settings)
    if public.metadata != wanted_metadata:
        actions.append(wanted_metadata)
    touched = logs.touched_since(reflected)
    if touched is None:
        here = {path.removeprefix(SEGMENTS_PREFIX) for path in public.files.paths()}
        touched = segments.files.paths() | here
    for path in sorted(touched):
        action = _row(logs, segments.files.get(path), public.files.get(SEGMENTS_PREFIX + path), now_ms)
        if action is not None:
            actions.append(action)
    moved = logs.moved_since(reflected)
    partitions = range(settings.partitions) if moved is None else moved
    actions.extend(txns(_numbers(logs, segments, public, partitions)))
    return actions


def lost_end(topic: str, **facts: object) -> DamagedDataError:
    """Return the error about partition logs that have lost their newest entries, which the public table shows."""
    return DamagedDataError(
        "the partition log has lost its newest entries, which the public table shows: stop every writer, run `txntable"
        " warehouse verify`, and do what it says; delete nothing of the public table before",
        topic=topic,
        **facts,
    )


def _row(logs: PartitionLogs, segment: Add | None, public: Add | None, now_ms: int) -> Add | Remove | None:
    batch = None if segment is None or segment.partition_values["_control"] is not None else batch_of(segment)
    position = None if batch is None else commit_position(logs, batch)
    if segment is None or batch is None or position is None:
        if public is None:
            return None
        return Remove(public.path, now_ms, False, public.partition_values, public.size)
    values = {
        "_partition": segment.partition_values["_partition"],
        "_base_offset": segment.partition_values["_base_offset"],
        "_last_offset": segment.partition_values["_last_offset"],
        "_commit": str(position),
    }
    if public is not None and dict(public.partition_values) == values:
        return None
    path = SEGMENTS_PREFIX + segment.path
    # A merged segment holds nothing that streams have not seen in its sources.
    tag = _dumps({"v": TAG_VERSION, "digest": batch.digest})
    is_new = batch.decided is None
    return Add(path, values, segment.size, segment.modification_time, is_new, segment.stats, tag)


def _numbers(
    logs: PartitionLogs, segments: TableState, public: TableState, partitions: Iterable[int]
) -> dict[str, int]:
    """Return what P is to say from now on: of these partitions only what it does not say already."""
    assert logs.settings is not None  # there is something to project
    topic_id = logs.settings.topic_id
    numbers: dict[str, int] = {}
    for partition in partitions:
        start = log_start(segments.numbers, topic_id, partition)
        if start:
            numbers[per_partition(LOG_START, topic_id, partition)] = start
        numbers[per_partition(HIGH_WATERMARK, topic_id, partition)] = high_watermark(segments, topic_id, partition)
        numbers[per_partition(LAST_STABLE, topic_id, partition)] = last_stable_offset(
            logs, segments, topic_id, partition
        )
    told = {
        per_topic(DECIDED_THROUGH, topic_id): decided_through(segments.numbers, topic_id),
        per_topic(MERGED_THROUGH, topic_id): merged_through(segments.numbers, topic_id),
        **{name: number for name, number in numbers.items() if public.numbers.get(name) != number},
    }
    for name, number in told.items():
        if number < public.number(name):
            raise lost_end(logs.settings.name, number=name, lost=number, shown=public.number(name))
    return {REFLECTS: segments.next_version - 1, **told}
