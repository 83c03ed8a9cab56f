"""The head of a log: the entry that a view ends at, by which it knows its own log (PROTOCOL.md §4.2, log rule 13).

Invariants
----------
* Two heads are of one log when the later one stands on the earlier one's entry, or when that entry was cleaned up.

Must not know what a view does when its log is another's: it asks, :mod:`txntable.log.log_view` stops.
"""

from __future__ import annotations

from dataclasses import dataclass

from txntable.format.layout import commit_path
from txntable.log.actions import CommitInfo, commit_id_in, decode_commit_info
from txntable.log.table_state import TableState
from txntable.storage.object_store import BEGINNING_BYTES, ObjectStore


@dataclass(frozen=True, slots=True)
class Head:
    """The entry of a view's version, and the incarnation of its log."""

    version: int
    slot_id: str
    log: str | None

    @classmethod
    def of(cls, table: TableState) -> Head | None:
        """Return the head of a state; ``None`` when it has no entry."""
        if table.version is None or table.slot_id is None:
            return None
        return cls(table.version, table.slot_id, table.log)

    def is_begun_by(self, beginning: bytes | None) -> bool:
        """Return whether the first bytes of what is in the slot are this entry's; ``None`` is an empty slot."""
        return beginning is not None and commit_id_in(beginning) == self.slot_id

    def read_beginning(self, store: ObjectStore, root: str) -> bytes | None:
        """Read the first bytes of what is in the slot now; ``None`` when nothing is."""
        return store.get_range(commit_path(root, self.version), 0, BEGINNING_BYTES)

    def goes_on_from(self, known: Head, store: ObjectStore, root: str) -> bool:
        """Return whether the log that ends here is the one that ended at `known` before."""
        if self.version <= known.version or self.log != known.log:
            return self == known
        beginning = known.read_beginning(store, root)
        found = None if beginning is None else commit_id_in(beginning)
        if found is None or found == known.slot_id:
            # One that was cleaned up tells nothing more.
            return True
        # Nor does what has landed late in a slot that was cleaned up: nothing was built on it.
        follower = known.find_follower(store, root, self.version)
        return follower is None or follower.previous != found

    def find_follower(self, store: ObjectStore, root: str, last: int) -> CommitInfo | None:
        """Return the next entry of the same incarnation, up to a version; ``None`` when one on the way is gone."""
        for version in range(self.version + 1, last + 1):
            path = commit_path(root, version)
            entry = store.get(path)
            info = None if entry is None else decode_commit_info(entry.data, path)
            if info is None or info.log == self.log:
                return info
        return None
