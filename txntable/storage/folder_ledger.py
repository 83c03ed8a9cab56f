"""Which folders of a local store exist, and which of their entries are on the disk.

A name is on the disk when its folder was synced, and the folder's own name when *its* parent
was.  Two rules keep "what returned survives a power cut" true between processes:

* A folder found in place may be another process's, not yet synced: on first use the parents'
  entries are synced all the same.
* What this store *read* may be linked by another process and not yet synced.  A write that was
  decided on it must not survive without it, so folders read from are synced before the next
  write becomes visible (:meth:`FolderLedger.sync_seen`).

Lock-free, hence safe to fork: every update is one dict or set operation, and a lost race only
syncs once more.  Must not know of objects.
"""

from __future__ import annotations

import contextlib
import itertools
import os

from txntable.storage.object_path import parent_of
from txntable.storage.system_calls import SystemCalls


class FolderLedger:
    """The folders under one root.

    Parameters
    ----------
    root : str
        Absolute; made when the first object is written.
    calls : SystemCalls
        The disk.
    durable : bool
        Whether anything is synced at all.
    """

    def __init__(self, root: str, calls: SystemCalls, *, durable: bool) -> None:
        self._root = root
        self._calls = calls
        self._durable = durable
        self._known: set[str] = set()
        self._moments = itertools.count(1)
        self._seen: dict[str, int] = {}
        self._synced: dict[str, int] = {}

    def ensure(self, folder: str) -> None:
        """Make `folder` and those above it, each with its name on the disk."""
        if folder in self._known:
            return
        if folder:
            parent = parent_of(folder)
            self.ensure(parent)
            with contextlib.suppress(FileExistsError):
                self._calls.mkdir(self._place(folder))
            self._sync_place(self._place(parent))
        else:
            self._ensure_root()
        self._known.add(folder)

    def forget(self, folder: str) -> None:
        """Take note that `folder`, or one above it, is gone."""
        while folder:
            self._known.discard(folder)
            folder = parent_of(folder)
        self._known.discard("")

    def saw(self, folder: str) -> None:
        """Take note that an object in `folder` was read."""
        if self._durable:
            self._seen[folder] = next(self._moments)

    def sync(self, folder: str) -> None:
        """Put the entries of `folder` on the disk."""
        if self._durable:
            moment = next(self._moments)
            self._sync_place(self._place(folder))
            self._synced[folder] = moment

    def sync_seen(self) -> None:
        """Put on the disk whatever was read since it was last synced."""
        for folder, moment in list(self._seen.items()):
            if moment > self._synced.get(folder, 0):
                with contextlib.suppress(FileNotFoundError):  # removed since: there is nothing to keep
                    self.ensure(folder)
                    self.sync(folder)

    def _ensure_root(self) -> None:
        missing: list[str] = []
        place = self._root
        while not self._exists(place):
            missing.append(place)
            place = os.path.dirname(place)
        for made in reversed(missing):
            with contextlib.suppress(FileExistsError):
                self._calls.mkdir(made)
            self._sync_place(os.path.dirname(made))
        if not missing:
            # a parent that we may not even open is one in which nobody like us made this root
            with contextlib.suppress(PermissionError):
                self._sync_place(os.path.dirname(self._root))

    def _exists(self, place: str) -> bool:
        try:
            self._calls.stat(place)
        except FileNotFoundError:
            return False
        return True

    def _sync_place(self, place: str) -> None:
        if self._durable:
            descriptor = self._calls.open(place, os.O_RDONLY)
            try:
                self._calls.fsync(descriptor)
            finally:
                self._calls.close(descriptor)

    def _place(self, folder: str) -> str:
        return f"{self._root}/{folder}" if folder else self._root
