"""Which folders of a local store exist, and which of their entries are on the disk.

A name is on the disk when its folder was synced, and the folder's own name when *its* parent
was.  Two rules keep "what returned survives a power cut" true between processes:

* A folder found in place may be another process's, not yet synced: on first use the parents'
  entries are synced all the same.
* What this store *read* may be linked by another process and not yet synced.  A write that was
  decided on it must not survive without it, so folders read from are synced before the next
  write becomes visible (:meth:`FolderLedger.sync_seen`).
* A folder that was there once is never made again: whoever took it away took what was in it.

A sync of a folder that failed is never made good by a later one: the system may have dropped what it could not write.
From then on nothing is synced here any more, so that no write becomes visible, and nothing is told that stands on what
was read (:class:`FolderSyncError`).

Lock-free, hence safe to fork: every update is one dict or set operation, and a lost race only
syncs once more.  Must not know of objects.
"""

from __future__ import annotations

import contextlib
import itertools
import os

from txntable.format.object_path import parent_of
from txntable.storage.held_root import HeldRoot
from txntable.storage.system_calls import SystemCalls


class FolderSyncError(OSError):
    """A folder could not be synced, now or earlier in this process."""


class FolderLedger:
    """The folders under one root.

    Parameters
    ----------
    root : str
        Absolute; made when the first object is written.
    held : HeldRoot
        Knows the root again.
    calls : SystemCalls
        The disk.
    durable : bool
        Whether anything is synced at all.
    """

    def __init__(self, root: str, held: HeldRoot, calls: SystemCalls, *, durable: bool) -> None:
        self._root = root
        self._held = held
        self._calls = calls
        self._durable = durable
        self._known: set[str] = set()
        # Of these an object was read: they were there, and need not be on the disk.
        self._met: set[str] = set()
        self._moments = itertools.count(1)
        self._seen: dict[str, int] = {}
        self._synced: dict[str, int] = {}
        self._failure: FolderSyncError | None = None

    def ensure(self, folder: str) -> None:
        """Make `folder` and those above it that were never there, each with its name on the disk.

        Raises
        ------
        WarehouseReplacedError
            The root is gone, or another.
        FileNotFoundError
            A folder above is gone.
        """
        if folder in self._known:
            return
        if folder:
            parent = parent_of(folder)
            self.ensure(parent)
            if folder not in self._met:
                self._held.check()
                with contextlib.suppress(FileExistsError):
                    self._calls.mkdir(self._place(folder))
            self._sync_place(self._place(parent))
        else:
            self._ensure_root()
        self._known.add(folder)

    def saw(self, folder: str) -> None:
        """Take note that an object in `folder` was read."""
        if folder not in self._met:
            met = folder
            while met:
                self._met.add(met)
                met = parent_of(met)
        if self._durable:
            self._seen[folder] = next(self._moments)

    def sync(self, folder: str) -> None:
        """Put the entries of `folder` on the disk."""
        if self._durable:
            moment = next(self._moments)
            self._sync_place(self._place(folder))
            self._synced[folder] = moment

    def sync_seen(self) -> None:
        """Put on the disk whatever was read since it was last synced.

        Raises
        ------
        FolderSyncError
            A sync has failed: nothing may be written on what was read.
        """
        self.require_sound()
        for folder, moment in list(self._seen.items()):
            if moment > self._synced.get(folder, 0):
                with contextlib.suppress(FileNotFoundError):  # removed since: there is nothing to keep
                    self.ensure(folder)
                    self.sync(folder)

    def require_sound(self) -> None:
        """Refuse when a sync has failed; raises as :meth:`sync_seen`."""
        if self._failure is not None:
            raise FolderSyncError(*self._failure.args, self._failure.filename)

    @property
    def has_unsynced(self) -> bool:
        """Whether something was read since its folder was last synced."""
        return any(moment > self._synced.get(folder, 0) for folder, moment in list(self._seen.items()))

    def _ensure_root(self) -> None:
        self._held.check()
        missing: list[str] = []
        place = self._root
        while not self._exists(place):
            missing.append(place)
            place = os.path.dirname(place)
        for made in reversed(missing):
            with contextlib.suppress(FileExistsError):
                self._calls.mkdir(made)
            self._sync_place(os.path.dirname(made))
        self._held.check()
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
        if not self._durable:
            return
        self.require_sound()
        descriptor = self._calls.open(place, os.O_RDONLY)
        try:
            self._calls.fsync(descriptor)
        except OSError as error:
            self._failure = FolderSyncError(error.errno, error.strerror, place)
            raise self._failure from error
        finally:
            self._calls.close(descriptor)

    def _place(self, folder: str) -> str:
        return f"{self._root}/{folder}" if folder else self._root
