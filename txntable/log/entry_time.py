"""Which version of a log was the newest at a time, by the store's times of its entries (PROTOCOL.md, log rule 11).

Entries are created one after the other and cleaned up oldest first, so their times rise with the
versions and what is gone is older than what is there: a binary search asks a few HEADs.
Must not know what the entries say.
"""

from __future__ import annotations

from txntable.format.layout import commit_path
from txntable.log.log_view import LogContext


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
