"""Older versions of a table: its state as it was, from the checkpoint below it (PROTOCOL.md §4).

Not for the steady state: it LISTs the log once.  What log cleanup has deleted cannot be read any
more, and says so.  Must not know what the table holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from txntable.errors import OffsetOutOfRangeError
from txntable.format.layout import checkpoint_path, commit_path, log_folder
from txntable.log.actions import Commit, decode_commit, decode_commit_info, entry_digest
from txntable.log.checkpoint import decode_checkpoint, entry_of
from txntable.log.damage import reading
from txntable.log.stepping_over import is_void
from txntable.log.table_state import TableState
from txntable.storage.object_store import ObjectStore

_CHECKPOINT_NAME = re.compile(r"(\d{20})\.checkpoint\.parquet")
_WINDOW = 16


def load_version(store: ObjectStore, root: str, version: int) -> TableState:
    """Return a table's state at a version.

    Parameters
    ----------
    store : ObjectStore
        The store.
    root : str
        The table's root.
    version : int
        At most the newest.

    Raises
    ------
    OffsetOutOfRangeError
        Log cleanup has deleted what is needed for it.
    StoreUnavailableError
        Call again.
    """
    table = _start(store, root, version)
    while table.next_version <= version:
        slots = range(table.next_version, min(table.next_version + _WINDOW, version + 1))
        for slot, entry in zip(slots, store.get_many([commit_path(root, slot) for slot in slots]), strict=True):
            if entry is None:
                raise _gone(root, version)
            with reading(commit_path(root, slot)):
                commit = decode_commit(slot, entry.data, commit_path(root, slot))
                if is_void(store, root, table, commit):
                    table.step_over(commit)
                else:
                    table.apply(commit)
    return table


def _start(store: ObjectStore, root: str, version: int) -> TableState:
    names = [meta.path.rsplit("/", 1)[1] for meta in store.list(log_folder(root))]
    found = [int(match[1]) for name in names if (match := _CHECKPOINT_NAME.fullmatch(name))]
    for start in sorted((each for each in found if each <= version), reverse=True):
        path, entry_path = checkpoint_path(root, start), commit_path(root, start)
        checkpoint, entry = store.get_many([path, entry_path])
        if checkpoint is not None and entry is not None:
            of_entry, info = entry_of(checkpoint.data, path), decode_commit_info(entry.data, entry_path)
            if of_entry == info.digest:
                table = decode_checkpoint(start, checkpoint.data, path)
                table.stand_on(start, info)
                return table
    return TableState()


def first_version_where(store: ObjectStore, root: str, head: int, holds: Callable[[Commit], bool]) -> int | None:
    """Return the lowest version whose commit says something that every later one says too.

    Parameters
    ----------
    store : ObjectStore
        The store.
    root : str
        The table's root.
    head : int
        The newest version known.
    holds : callable
        Monotone in the versions: what holds of one, holds of all above it.

    Returns
    -------
    int or None
        ``None``: it does not hold of `head` either.

    Raises
    ------
    OffsetOutOfRangeError
        It holds of the oldest entry that is still there, and may have held of those that are gone.
    StoreUnavailableError
        Call again.
    """
    lowest, highest = 0, head + 1
    seen_below = False
    while lowest < highest:
        middle = (lowest + highest) // 2
        commit = _counting(store, root, middle)
        # Entries are cleaned up oldest first: what is gone is below all that is there.
        if commit is not None and holds(commit):
            highest = middle
        else:
            seen_below = seen_below or commit is not None
            lowest = middle + 1
    if lowest > head:
        return None
    if lowest and not seen_below and store.head(commit_path(root, lowest - 1)) is None:
        raise _gone(root, lowest)
    return lowest


def commit_at(store: ObjectStore, root: str, version: int) -> Commit:
    """Return the commit of a version; of one that is void, the one below that counts.

    Raises
    ------
    OffsetOutOfRangeError
        Log cleanup has deleted it.
    StoreUnavailableError
        Call again.
    """
    found = _counting(store, root, version)
    if found is None:
        raise _gone(root, version)
    return found


def _counting(store: ObjectStore, root: str, version: int) -> Commit | None:
    """Return the entry of a version, or the one below that counts where it is void; ``None`` when it is gone."""
    entry = store.get(commit_path(root, version))
    while entry is not None:
        commit = decode_commit(version, entry.data, commit_path(root, version))
        below = store.get(commit_path(root, version - 1)) if version else None
        # What counts was written on the bytes below it; what is void on those of another log.
        if below is None or commit.info.chain == entry_digest(below.data):
            return commit
        version, entry = version - 1, below
    return None


def _gone(root: str, version: int) -> OffsetOutOfRangeError:
    return OffsetOutOfRangeError(
        "the log entries of that time are cleaned up; ask for a later position, within vacuum_retention_ms",
        log=root,
        version=version,
    )
