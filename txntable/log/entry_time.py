"""Which version of a log was the newest at a time, by the store's times of its entries (PROTOCOL.md, log rule 11).

Entries are created one after the other and cleaned up oldest first, so their times rise with the
versions and what is gone is older than what is there: a binary search asks a few HEADs.  How much older cannot be said:
a cleanup takes what is older than a retention, an erasure (PROTOCOL.md §5.10) also what is of yesterday.
Must not know what the entries say.
"""

from __future__ import annotations

from txntable.format.layout import commit_path
from txntable.log.cleanup import log_files, readable_entries
from txntable.log.log_view import LogContext
from txntable.storage.object_store import ObjectStore


def version_as_of(context: LogContext, root: str, head: int, time_ms: int) -> int | None:
    """Return the highest version whose entry was there at `time_ms`.

    Parameters
    ----------
    context : LogContext
        With the store.
    root : str
        The table's root.
    head : int
        The newest version known: the answer is never above it.
    time_ms : int
        The store's time, milliseconds since 1970.

    Returns
    -------
    int or None
        ``None``: version 0 is younger.  An entry that was cleaned up counts as older than any time.

    Raises
    ------
    StoreUnavailableError
        Call again.
    """
    # Everything up to `old` was there, everything above `highest` came later.
    old, highest = None, head
    while (lowest := 0 if old is None else old + 1) <= highest:
        middle = (lowest + highest) // 2
        entry = context.store.head(commit_path(root, middle))
        if entry is None or entry.last_modified_ms <= time_ms:
            old = middle
        else:
            highest = middle - 1
    return old


def written_by_ms(store: ObjectStore, root: str, version: int) -> int:
    """Return the time at which an entry was there at the latest, ms since 1970.

    Parameters
    ----------
    store : ObjectStore
        The warehouse's.
    root : str
        The table's root.
    version : int
        The entry's: one that was written.

    Returns
    -------
    int
        Its own time; of one that is gone the time of the oldest that is there, 0 where none is.

    Raises
    ------
    StoreUnavailableError
        Call again.
    """
    entry = store.head(commit_path(root, version))
    if entry is not None:
        return entry.last_modified_ms
    files = log_files(store, root)
    oldest = min(readable_entries(files), default=None)
    return next((f.meta.last_modified_ms for f in files if f.version == oldest and not f.is_checkpoint), 0)
