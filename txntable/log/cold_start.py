"""Finding where to start reading a log (PROTOCOL.md §4.3, log rule 4).

The hint, the checkpoint that it names, or version 0; a LIST only when what the hint names is
gone.  What was started from must still be there *after* the tail was read: log files go oldest
first, so a start that is still there proves that nothing above it was deleted meanwhile.
What comes next is asked for together with it.  Must not know what a view is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from txntable.errors import DamagedDataError
from txntable.format.layout import checkpoint_path, commit_path, last_checkpoint_path, log_folder
from txntable.log.actions import decode_commit_info
from txntable.log.asking import Asking, answer
from txntable.log.checkpoint import decode_checkpoint, decode_hint, entry_of
from txntable.log.table_state import TableState
from txntable.storage.object_store import ObjectStore, StoredObject

_CHECKPOINT_NAME = re.compile(r"(\d{20})\.checkpoint\.parquet")


@dataclass(frozen=True, slots=True)
class Start:
    """The entry that a reader began with."""

    path: str
    entry: StoredObject

    def is_still_there(self, found: StoredObject | None) -> bool:
        """Return whether what is there now is the same."""
        # Younger: it was cleaned up, and created again by a put that landed late.
        return found is not None and found.last_modified_ms == self.entry.last_modified_ms


@dataclass(frozen=True, slots=True)
class Loaded:
    """A state to follow the tail from, and the proof that it was a good start.

    Attributes
    ----------
    table : TableState
        From a checkpoint, or empty.
    start : Start or None
        To be asked for again after the tail was read; ``None`` where nothing is there.
    ahead : tuple of StoredObject or None
        What is in the slots from the table's next version on, asked for at once.
    """

    table: TableState
    start: Start | None
    ahead: tuple[StoredObject | None, ...] = ()


def load_newest(store: ObjectStore, root: str, ahead: int) -> Asking[Loaded | None]:
    """Return the newest checkpoint's state, or an empty one for version 0.

    Parameters
    ----------
    store : ObjectStore
        Listed where the hint is of no use.
    root : str
        The table's root.
    ahead : int
        How many slots above are asked for together with it, at least 1.

    Returns
    -------
    Loaded or None
        ``None``: the log changed meanwhile; begin again.

    Raises
    ------
    DamagedDataError
        A checkpoint or its log entry cannot be read, or the log has entries but no beginning.
    """
    (hint,) = yield [last_checkpoint_path(root)]
    version = None if hint is None else decode_hint(hint.data)
    if version is not None:
        loaded = yield from _load_checkpoint(root, version, ahead)
        if loaded is not None:
            return loaded
    elif hint is None:
        loaded = yield from _load_first(root, ahead)
        if loaded is not None:
            return loaded
    return (yield from _load_listed(store, root, ahead))


def _load_first(root: str, ahead: int) -> Asking[Loaded | None]:
    # A young log: its first entry is the start and a part of the tail at once.
    found = yield _slots(root, 0, ahead)
    first = found[0]
    return None if first is None else Loaded(TableState(), Start(commit_path(root, 0), first), tuple(found))


def _slots(root: str, first: int, count: int) -> list[str]:
    return [commit_path(root, slot) for slot in range(first, first + count)]


def _load_checkpoint(root: str, version: int, ahead: int) -> Asking[Loaded | None]:
    path, entry_path = checkpoint_path(root, version), commit_path(root, version)
    checkpoint, entry, *above = yield [path, entry_path, *_slots(root, version + 1, ahead)]
    if checkpoint is None or entry is None:
        return None
    of_entry, info = entry_of(checkpoint.data, path), decode_commit_info(entry.data, entry_path)
    if of_entry != info.digest:
        # Of another log, which stood here before, or of other software (PROTOCOL.md §4.4).
        return None
    table = decode_checkpoint(version, checkpoint.data, path)
    table.stand_on(version, info)
    return Loaded(table, Start(entry_path, entry), tuple(above))


def _names_in(store: ObjectStore, root: str) -> list[str]:
    return [meta.path.rsplit("/", 1)[1] for meta in store.list(log_folder(root))]


def is_start(store: ObjectStore, root: str, version: int) -> bool:
    """Return whether a reader can start from the checkpoint of a version: it and its entry are there, of one log."""
    return answer(store, _load_checkpoint(root, version, 0)) is not None


def _load_listed(store: ObjectStore, root: str, ahead: int) -> Asking[Loaded | None]:
    names = _names_in(store, root)
    versions = [int(match[1]) for name in names if (match := _CHECKPOINT_NAME.fullmatch(name))]
    for version in sorted(versions, reverse=True):
        loaded = yield from _load_checkpoint(root, version, ahead)
        if loaded is not None:
            return loaded
    entries: Sequence[str] = sorted(name for name in names if name.endswith(".json"))
    if not entries:
        return Loaded(TableState(), None)
    if entries[0] != f"{0:020d}.json":
        if _names_in(store, root) != names:
            # It was cleaned up since they were listed: what was listed first is no start any more.
            return None
        raise DamagedDataError(
            "the log has a gap: its oldest entry has no checkpoint below it; restore the log from a backup",
            log=root,
            oldest=entries[0],
        )
    return (yield from _load_first(root, ahead))
