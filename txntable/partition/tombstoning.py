"""Tombstoned names: files that vacuum is about to delete, and that no log may name any more (PROTOCOL.md §5.7).

Owns why no age and no clock decides whether a file may still be registered: a name with a tombstone in S is
refused at its slot to whoever would make it live, and vacuum deletes only names that have one.  Tombstones are
forgotten in time; so an upload that is older than half of that time is refused, too.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterable

from txntable.coordinator.manifest import LONGEST_UPLOAD_MS
from txntable.errors import TransactionAbortableError
from txntable.log.actions import Remove
from txntable.log.table_state import TableState
from txntable.segments.segment import StagedSegment

LARGEST_TOMBSTONING = 10_000


def decide_tombstoning(table: TableState, names: Iterable[str], now_ms: int) -> list[Remove]:
    """Decide which names are tombstoned: those that are not live and have no tombstone yet.

    Parameters
    ----------
    table : TableState
        S's state.
    names : iterable of str
        Paths relative to S's root, at most :data:`LARGEST_TOMBSTONING`.
    now_ms : int
        The store's time, milliseconds since 1970.
    """
    return [Remove(name, now_ms, False) for name in names if name not in table.files and name not in table.tombstones]


def was_tombstoned(tombstone: Remove) -> bool:
    """Return whether a tombstone of S is of a name that was never live: what was has partition values."""
    return not tombstone.partition_values


def is_registrable(table: TableState, segment: StagedSegment, now_ms: int) -> bool:
    """Return whether a file that S does not name yet may become a row of it.

    Parameters
    ----------
    table : TableState
        S's state, in which the file is not live.
    segment : StagedSegment
        The uploaded file.
    now_ms : int
        The store's time, milliseconds since 1970.
    """
    return segment.path not in table.tombstones and now_ms - segment.uploaded_at_ms <= LONGEST_UPLOAD_MS


def check_registrable(table: TableState, segment: StagedSegment, now_ms: int) -> None:
    """Return when a file :func:`is_registrable`.

    Raises
    ------
    TransactionAbortableError
        It was tombstoned or removed, or may have been: abort, and write it again.
    """
    if is_registrable(table, segment, now_ms):
        return
    # Live again would be worse than refused: the file is about to be deleted, or is gone already.
    if segment.path in table.tombstones:
        raise TransactionAbortableError(
            "the segment's file was tombstoned or removed before it was appended; abort and write it again",
            path=segment.path,
        )
    raise TransactionAbortableError(
        "the segment's upload began too long ago for its file to be safe from vacuum; abort and write it again",
        path=segment.path,
        uploaded_at_ms=segment.uploaded_at_ms,
        longest_ms=LONGEST_UPLOAD_MS,
    )
