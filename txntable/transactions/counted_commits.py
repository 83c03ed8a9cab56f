"""The commits of the transaction log from its head down, as its entries have them.

Owns that void entries are passed over (PROTOCOL.md §4.6): from the head on, each entry names the commit below it that
counts.  What cleanup has taken ends the history, and is no error.  Reads only; for reports and repairs, never on the
way of a writer.
"""

from __future__ import annotations

from collections.abc import Iterator

from txntable.format.layout import TRANSACTION_LOG_ROOT, commit_path
from txntable.log.actions import Commit, decode_commit
from txntable.storage.object_store import ObjectStore

# Entries that are asked for at once.
_WINDOW = 96


def counted_commits(store: ObjectStore, head: int, newest: str | None, lowest: int = 0) -> Iterator[Commit]:
    """Yield the commits that count, the newest first.

    Parameters
    ----------
    store : ObjectStore
        The warehouse's.
    head : int
        The version to begin with.
    newest : str or None
        The commit id of the newest commit that counts, at `head` or below.
    lowest : int
        The version to end with.

    Raises
    ------
    DamagedDataError
        An entry cannot be read.
    StoreUnavailableError
        Call again.
    """
    wanted = newest
    for top in range(head, lowest - 1, -_WINDOW):
        versions = range(top, max(top - _WINDOW, lowest - 1), -1)
        paths = [commit_path(TRANSACTION_LOG_ROOT, version) for version in versions]
        for version, path, entry in zip(versions, paths, store.get_many(paths), strict=True):
            if entry is None:
                return
            commit = decode_commit(version, entry.data, path)
            if commit.info.commit_id == wanted:
                wanted = commit.info.previous
                yield commit
