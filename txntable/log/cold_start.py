"""Finding where to start reading a log (PROTOCOL.md §4.3, log rule 4).

The hint, the checkpoint that it names, or version 0; a LIST only when what the hint names is
gone.  What was started from must still be there *after* the tail was read: log files go oldest
first, so a start that is still there proves that nothing above it was deleted meanwhile.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from txntable.errors import DamagedDataError
from txntable.format.layout import checkpoint_path, commit_path, last_checkpoint_path, log_folder
from txntable.log.actions import decode_commit_info
from txntable.log.checkpoint import decode_checkpoint, decode_hint
from txntable.log.table_state import TableState
from txntable.storage.object_store import ObjectStore, StoredObject

_CHECKPOINT_NAME = re.compile(r"(\d{20})\.checkpoint\.parquet")


@dataclass(frozen=True, slots=True)
class Loaded:
    """A state to follow the tail from, and the proof that it was a good start.

    Attributes
    ----------
    table : TableState
        From a checkpoint, or empty.
    still_there : callable
        To be asked after the tail was read; ``False``: start again.
    beginning : tuple of StoredObject
        Entries from the table's next version on that were read already.
    """

    table: TableState
    still_there: Callable[[], bool]
    beginning: tuple[StoredObject, ...] = ()


def load_newest(store: ObjectStore, root: str) -> Loaded:
    """Return the newest checkpoint's state, or an empty one for version 0.

    Raises
    ------
    DamagedDataError
        A checkpoint or its log entry cannot be read, or the log has entries but no beginning.
    """
    hint = store.get(last_checkpoint_path(root))
    version = None if hint is None else decode_hint(hint.data)
    if version is not None:
        loaded = _load_checkpoint(store, root, version)
        if loaded is not None:
            return loaded
    elif hint is None and (first := store.get(commit_path(root, 0))) is not None:
        # A young log: its first entry is the start and a part of the tail at once.
        return _from_first(store, root, first)
    return _load_listed(store, root)


def _from_first(store: ObjectStore, root: str, first: StoredObject) -> Loaded:
    return Loaded(TableState(), _still_there(store, commit_path(root, 0), first), (first,))


def _still_there(store: ObjectStore, path: str, entry: StoredObject) -> Callable[[], bool]:
    def is_there() -> bool:
        found = store.head(path)
        # Younger: it was cleaned up, and created again by a put that landed late.
        return found is not None and found.last_modified_ms == entry.last_modified_ms

    return is_there


def _load_checkpoint(store: ObjectStore, root: str, version: int) -> Loaded | None:
    path, entry_path = checkpoint_path(root, version), commit_path(root, version)
    checkpoint, entry = store.get_many([path, entry_path])
    if checkpoint is None or entry is None:
        return None
    table, info = decode_checkpoint(version, checkpoint.data, path), decode_commit_info(entry.data, entry_path)
    if table.chain != info.digest:
        # Of another log, which stood here before (PROTOCOL.md §4.6).
        return None
    table.stand_on(version, info)
    return Loaded(table, _still_there(store, entry_path, entry))


def is_start(store: ObjectStore, root: str, version: int) -> bool:
    """Return whether a reader can start from the checkpoint of a version: it and its entry are there, of one log."""
    return _load_checkpoint(store, root, version) is not None


def _load_listed(store: ObjectStore, root: str) -> Loaded:
    names = [meta.path.rsplit("/", 1)[1] for meta in store.list(log_folder(root))]
    versions = [int(match[1]) for name in names if (match := _CHECKPOINT_NAME.fullmatch(name))]
    for version in sorted(versions, reverse=True):
        loaded = _load_checkpoint(store, root, version)
        if loaded is not None:
            return loaded
    entries = sorted(name for name in names if name.endswith(".json"))
    if not entries:
        return Loaded(TableState(), lambda: True)
    if entries[0] != f"{0:020d}.json":
        raise DamagedDataError(
            "the log has a gap: its oldest entry has no checkpoint below it; restore the log from a backup",
            log=root,
            oldest=entries[0],
        )
    first = store.get(commit_path(root, 0))
    return Loaded(TableState(), lambda: False) if first is None else _from_first(store, root, first)
