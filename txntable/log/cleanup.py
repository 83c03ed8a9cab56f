"""Deleting log entries that nothing needs any more (PROTOCOL.md §4.5, log rule 3).

Oldest first, only below a checkpoint, only after the log's retention by the store's time, and
never the newest checkpoint at or below the oldest entry kept, nor that checkpoint's own entry
(it holds the commit id and the in-commit timestamp from which a reader goes on).

Invariant: whatever is left at any moment is a good start and everything above it.  A floor far
above the guard makes sure that no view that is still believed can meet a deleted slot.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import takewhile

from txntable.errors import InvalidConfigError
from txntable.format.layout import log_folder
from txntable.log.checkpoint import LogTail
from txntable.log.cold_start import is_start
from txntable.log.log_view import LogContext
from txntable.storage.object_store import ObjectMeta, ObjectStore

SMALLEST_RETENTION_MS = 86_400_000
_ENTRY = re.compile(r"(\d{20})\.(json|checkpoint\.parquet)")


@dataclass(frozen=True, slots=True)
class LogFile:
    """An entry or a checkpoint found in a log's folder."""

    version: int
    is_checkpoint: bool
    meta: ObjectMeta


@dataclass(frozen=True, slots=True)
class CleanupSpec:
    """What a cleanup deletes, in this order, and what it keeps from.

    Attributes
    ----------
    paths : tuple of str
        Oldest version first; of one version the checkpoint before the entry.
    oldest_kept : int or None
        The checkpoint that reading may start from afterwards; ``None``: nothing goes.
    tail : LogTail
        What stood above the newest checkpoint.
    """

    paths: tuple[str, ...]
    oldest_kept: int | None
    tail: LogTail = field(default_factory=LogTail)


def plan_cleanup(files: list[LogFile], now_ms: int, retention_ms: int) -> CleanupSpec:
    """Decide what may go.

    Parameters
    ----------
    files : list of LogFile
        Everything in the log's folder.
    now_ms : int
        The store's time.
    retention_ms : int
        Every version that was the newest at some time within it stays readable.
    """
    horizon_ms = now_ms - retention_ms
    entries = sorted((f for f in files if not f.is_checkpoint), key=lambda f: f.version)
    tail = _tail(files)
    # A version stays readable as long as its successor is younger than the retention.  A void entry may be older than
    # those below it.
    replaced = [f.version for f in takewhile(lambda f: f.meta.last_modified_ms < horizon_ms, entries)]
    if not replaced:
        return CleanupSpec((), None, tail)
    starts = [f.version for f in files if f.is_checkpoint and f.version <= replaced[-1]]
    have = {f.version for f in entries}
    starts = [version for version in starts if version in have]
    if not starts:
        return CleanupSpec((), None, tail)
    start = max(starts)
    return CleanupSpec(tuple(below(files, start)), start, tail)


def below(files: Iterable[LogFile], start: int) -> list[str]:
    """Return the paths below a version as they may go: oldest first, a checkpoint before its entry."""
    going = [f for f in files if f.version < start]
    going.sort(key=lambda f: (f.version, not f.is_checkpoint))
    return [file.meta.path for file in going]


def _tail(files: list[LogFile]) -> LogTail:
    newest = max((f for f in files if f.is_checkpoint), key=lambda f: f.version, default=None)
    above = [f.meta.size for f in files if not f.is_checkpoint and (newest is None or f.version > newest.version)]
    if newest is None:
        return LogTail(entries=len(above), size=sum(above))
    return LogTail(newest.version, newest.meta.size, len(above), sum(above))


def log_files(store: ObjectStore, root: str) -> list[LogFile]:
    """Return the entries and checkpoints in the folder of the log at `root`; one LIST."""
    return list(log_files_of(root, store.list(log_folder(root))))


def log_files_of(root: str, listed: Iterable[ObjectMeta]) -> Iterator[LogFile]:
    """Yield the entries and checkpoints of what was listed of the folder of the log at `root`."""
    folder = f"{log_folder(root)}/"
    for meta in listed:
        if match := _ENTRY.fullmatch(meta.path.removeprefix(folder)):
            yield LogFile(int(match[1]), match[2] != "json", meta)


def readable_entries(files: Iterable[LogFile]) -> list[int]:
    """Return the versions whose entries are a part of the log, ascending.

    Below the oldest checkpoint that has its entry there is nothing to be read once version 0 is gone: a slot there was
    freed by a cleanup and created again by a late put (PROTOCOL.md §4.2 rule 3).
    """
    entries: set[int] = set()
    checkpoints: set[int] = set()
    for file in files:
        (checkpoints if file.is_checkpoint else entries).add(file.version)
    oldest = 0 if 0 in entries else min(checkpoints & entries, default=0)
    return sorted(version for version in entries if version >= oldest)


def clean_up(context: LogContext, root: str, retention_ms: int) -> CleanupSpec:
    """Delete what the log at `root` needs no more; killed anywhere it leaves a readable log.

    Parameters
    ----------
    context : LogContext
        Store and clock.
    root : str
        The table's root.
    retention_ms : int
        At least a day: many times the guard.

    Raises
    ------
    InvalidConfigError
        The retention is below the floor.
    StoreUnavailableError
        Call again.
    DamagedDataError
        A checkpoint cannot be decoded; nothing was deleted: restore it from a backup.
    """
    if retention_ms < max(SMALLEST_RETENTION_MS, 10 * context.guard_ms):
        raise InvalidConfigError(
            "log entries are kept for a day at least; give a longer retention",
            retention_ms=retention_ms,
            smallest=max(SMALLEST_RETENTION_MS, 10 * context.guard_ms),
        )
    files, now_ms = log_files(context.store, root), context.clock.now_ms()
    spec = plan_cleanup(files, now_ms, retention_ms)
    # A checkpoint of another log, which stood here before, is no start.
    while spec.paths and spec.oldest_kept is not None and not is_start(context.store, root, spec.oldest_kept):
        files = [file for file in files if not (file.is_checkpoint and file.version == spec.oldest_kept)]
        spec = plan_cleanup(files, now_ms, retention_ms)
    # One by one: a bulk delete has no order, and the order is what the invariant rests on.
    for path in spec.paths:
        context.store.delete([path])
    return spec
