"""Whether the entries of a log that are there follow each other, byte by byte (PROTOCOL.md §4.1).

Who reads a log from its newest checkpoint has not looked at the entries below it.  Owns reading these
for their chain alone; must not know what they say.
"""

from __future__ import annotations

from collections.abc import Sequence

from txntable.format.layout import commit_path
from txntable.log.actions import Commit, decode_commit_info
from txntable.log.damage import reading
from txntable.log.stepping_over import is_void
from txntable.log.table_state import TableState
from txntable.storage.object_store import ObjectStore

_WINDOW = 16


def verify_chain(store: ObjectStore, root: str, versions: Sequence[int]) -> None:
    """Read entries, and refuse one that was not written on the one below; a GET for each.

    Parameters
    ----------
    store : ObjectStore
        The store.
    root : str
        The table's root.
    versions : sequence of int
        Ascending, of entries that a LIST has shown.  What a cleanup has taken since is left out.

    Raises
    ------
    DamagedDataError
        An entry was changed, replaced or lost, or cannot be read: the message names it, or the one above it.
    StoreUnavailableError
        Call again.
    """
    table = TableState()
    for start in range(0, len(versions), _WINDOW):
        window = versions[start : start + _WINDOW]
        found = store.get_many([commit_path(root, version) for version in window])
        for version, entry in zip(window, found, strict=True):
            if entry is None:
                table = TableState()
                continue
            path = commit_path(root, version)
            commit = Commit(version, decode_commit_info(entry.data, path), ())
            # Who begins at a void entry does not know the one that counts below: the bytes tell as much.
            if table.version is not None and commit.info.chain != table.chain:
                if is_void(store, root, table, commit):
                    table.step_over(commit)
                    continue
                with reading(path):
                    table.check_follows(commit)
            table.stand_on(version, commit.info)
