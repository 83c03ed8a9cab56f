"""Whether a reader folds an entry or steps over it, where that takes a look at the entries above (PROTOCOL.md §4.6).

An entry of this incarnation that was not written on the state is void when a fence stands above it: the entry with
which an operator began a new incarnation on that same state (§6.7).  Then every reader decides as the operator did.
"""

from __future__ import annotations

import itertools

from txntable.format.layout import commit_path
from txntable.log.actions import Commit, decode_commit_info
from txntable.log.succession import EntryStatus, entry_status, is_fence_of
from txntable.log.table_state import TableState
from txntable.storage.object_store import ObjectStore

_WINDOW = 16


def is_void(store: ObjectStore, root: str, table: TableState, commit: Commit, *, recovering: bool = False) -> bool:
    """Return whether an entry at the version above `table` is to be stepped over.

    Parameters
    ----------
    store : ObjectStore
        Asked for the entries above, of a stray one alone.
    root : str
        The table's root.
    table : TableState
        The state below.
    commit : Commit
        The entry.  What is neither void nor written on the state is damage: to fold it says so.
    recovering : bool
        Whether an operator is about to write the fence: then a stray entry is void.

    Raises
    ------
    DamagedDataError
        An entry above cannot be read.
    StoreUnavailableError
        Call again.
    """
    status = entry_status(commit.info, table)
    if status is EntryStatus.STRAY and table.version is not None:
        return recovering or _is_fenced_off(store, root, table, commit.version)
    return status is EntryStatus.VOID


def _is_fenced_off(store: ObjectStore, root: str, table: TableState, version: int) -> bool:
    for start in itertools.count(version + 1, _WINDOW):
        paths = [commit_path(root, slot) for slot in range(start, start + _WINDOW)]
        for path, entry in zip(paths, store.get_many(paths), strict=True):
            if entry is None:
                return False
            if is_fence_of(decode_commit_info(entry.data, path), table):
                return True
    return False
