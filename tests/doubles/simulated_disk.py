"""A disk in memory that forgets what was not synced when the power is cut.

Stands in for :class:`txntable.storage.system_calls.SystemCalls`.  The model is the harshest that
POSIX allows: bytes of a file are safe after its fsync only, a name after the fsync of its folder
only, and a folder's name after the fsync of *its* parent.  After a cut the other names may be
gone (``LOST``) or, if the disk was quick, there, but then without the bytes (``KEPT``).

Any call can fail, with each of the errors that it may meet (:data:`MEETS`).  The bytes of a file that a failed fsync
did not write are dropped, as Linux does: a later fsync of that file succeeds and does not bring them back.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

_FULL = (errno.ENOSPC, errno.EDQUOT)
_CHANGED = (*_FULL, errno.EROFS, errno.EIO)
MEETS: Mapping[str, tuple[int, ...]] = {
    "open": (errno.EMFILE, errno.EIO),
    "create": (*_CHANGED, errno.EMFILE),
    "read": (errno.EIO,),
    "pread": (errno.EIO,),
    "write": (*_FULL, errno.EIO),
    "fsync": (errno.EIO, *_FULL),
    "close": (errno.EIO,),
    "fstat": (errno.EIO,),
    "stat": (errno.EIO,),
    "link": _CHANGED,
    "rename": _CHANGED,
    "unlink": (errno.EROFS, errno.EIO),
    "mkdir": _CHANGED,
    "entries": (errno.EMFILE, errno.EIO),
}
"""Call -> the errors that it can meet; Python itself makes a call again that met EINTR."""


class PowerCut(BaseException):
    """The machine is dead; nothing in it goes on."""


class UnsyncedNames(Enum):
    """What becomes of names whose folder was not synced."""

    LOST = "lost"
    KEPT = "kept"


@dataclass(frozen=True, slots=True)
class SimulatedStatus:
    """A file's or folder's status."""

    st_mode: int
    st_size: int
    st_mtime_ns: int
    st_ino: int
    st_dev: int = 1


@dataclass(slots=True, eq=False)
class _File:
    data: bytes = b""
    synced: bytes = b""
    mtime_ns: int = 0
    dropped: bool = False


@dataclass(slots=True, eq=False)
class _Folder:
    names: dict[str, _File | _Folder] = field(default_factory=dict)
    synced: dict[str, _File | _Folder] = field(default_factory=dict)


class SimulatedDisk:
    """A file system with ``/disk`` in it.

    Parameters
    ----------
    clock : Callable
        Returns the disk's time in ms since 1970.

    Attributes
    ----------
    calls : list of str
        Names of the changing calls and syncs made so far.
    asked : list of str
        Names of all calls so far, those that failed and those that only read with them.
    """

    def __init__(self, clock: Callable[[], int] = lambda: 0) -> None:
        self._clock = clock
        self._root = _Folder()
        self._root.names["disk"] = _Folder()
        self._root.synced = dict(self._root.names)
        self._open: dict[int, _File | _Folder] = {}
        self._positions: dict[int, int] = {}
        self._paths: dict[int, str] = {}
        self._next_descriptor = 3
        self._ignored_sync: int | None = None
        self._cut_before: int | None = None
        self.calls: list[str] = []
        self.asked: list[str] = []
        self._fails: Callable[[int, str, str], int | None] | None = None

    @property
    def syncs(self) -> int:
        """Return how many syncs were made."""
        return self.calls.count("fsync")

    def ignore_sync(self, number: int) -> None:
        """Let the sync of that number (from 0, since the disk was made) do nothing."""
        self._ignored_sync = number

    def fail(self, fails: Callable[[int, str, str], int | None] | None) -> None:
        """Let calls fail from now on.

        Parameters
        ----------
        fails : Callable, optional
            (number of the call in :attr:`asked`, its name, its path) -> the error's number, or ``None``: it goes well.
            Calls with a descriptor have the path that it was opened with.  ``None``: the disk is whole again.
        """
        self._fails = fails

    def cut_before(self, number: int) -> None:
        """Cut the power before the entry of :attr:`calls` that would get that number (from 0)."""
        self._cut_before = number

    def power_cut(self, unsynced: UnsyncedNames = UnsyncedNames.LOST) -> None:
        """Go through a power cut and come up again."""
        self._cut_before = self._fails = None
        self._open.clear()
        self._paths.clear()
        self._restore(self._root, unsynced)

    def open(self, path: str, flags: int) -> int:
        """Open a file, or a folder to sync it."""
        self._meet("create" if flags & os.O_CREAT else "open", path)
        descriptor = self._next_descriptor
        self._next_descriptor += 1
        if flags & os.O_CREAT:
            self._step("create")
            folder, name = self._parent(path)
            if name in folder.names:
                raise FileExistsError(errno.EEXIST, "file exists", path)
            folder.names[name] = _File(mtime_ns=self._now_ns())
        self._open[descriptor] = self._find(path)
        self._positions[descriptor] = 0
        self._paths[descriptor] = path
        return descriptor

    def read(self, descriptor: int, size: int) -> bytes:
        """Read up to `size` bytes."""
        self._meet("read", self._paths[descriptor])
        file = self._file(descriptor)
        start = self._positions[descriptor]
        data = file.data[start : start + size]
        self._positions[descriptor] = start + len(data)
        return data

    def pread(self, descriptor: int, size: int, start: int) -> bytes:
        """Read up to `size` bytes from `start` on."""
        self._meet("pread", self._paths[descriptor])
        return self._file(descriptor).data[start : start + size]

    def write(self, descriptor: int, data: bytes | memoryview) -> int:
        """Write `data`."""
        self._meet("write", self._paths[descriptor])
        self._step("write")
        file = self._file(descriptor)
        file.data += bytes(data)
        file.mtime_ns = self._now_ns()
        return len(data)

    def fsync(self, descriptor: int) -> None:
        """Make a file's bytes, or a folder's entries, survive a power cut."""
        node = self._open[descriptor]
        try:
            self._meet("fsync", self._paths[descriptor])
        except OSError:
            if isinstance(node, _File):
                node.dropped = True
            raise
        ignored = self._ignored_sync == self.syncs
        self._step("fsync")
        if ignored:
            return
        if isinstance(node, _File):
            node.synced = node.synced if node.dropped else node.data
        else:
            node.synced = dict(node.names)

    def close(self, descriptor: int) -> None:
        """Close a descriptor."""
        self._open.pop(descriptor, None)
        # Also where it fails: the descriptor is gone.
        self._meet("close", self._paths.get(descriptor, ""))

    def fstat(self, descriptor: int) -> SimulatedStatus:
        """Return an open file's status."""
        self._meet("fstat", self._paths[descriptor])
        return _status(self._open[descriptor])

    def stat(self, path: str) -> SimulatedStatus:
        """Return a file's status."""
        self._meet("stat", path)
        return _status(self._find(path))

    def link(self, source: str, target: str) -> None:
        """Give a file a second name; fails when it is taken."""
        self._meet("link", target)
        self._step("link")
        folder, name = self._parent(target)
        if name in folder.names:
            raise FileExistsError(errno.EEXIST, "file exists", target)
        folder.names[name] = self._find(source)

    def rename(self, source: str, target: str) -> None:
        """Move a file over another."""
        self._meet("rename", target)
        self._step("rename")
        old, old_name = self._parent(source)
        new, new_name = self._parent(target)
        new.names[new_name] = old.names.pop(old_name)

    def unlink(self, path: str) -> None:
        """Take a name away."""
        self._meet("unlink", path)
        self._step("unlink")
        self._find(path)
        folder, name = self._parent(path)
        del folder.names[name]

    def mkdir(self, path: str) -> None:
        """Make one folder."""
        self._meet("mkdir", path)
        self._step("mkdir")
        folder, name = self._parent(path)
        if name in folder.names:
            raise FileExistsError(errno.EEXIST, "file exists", path)
        folder.names[name] = _Folder()

    def entries(self, folder: str) -> list[tuple[str, bool]]:
        """Return each name in a folder, and whether it is a folder."""
        self._meet("entries", folder)
        node = self._find(folder)
        if isinstance(node, _File):
            raise NotADirectoryError(errno.ENOTDIR, "not a folder", folder)
        return [(name, isinstance(child, _Folder)) for name, child in node.names.items()]

    def _meet(self, name: str, path: str) -> None:
        self.asked.append(name)
        number = None if self._fails is None else self._fails(len(self.asked) - 1, name, path)
        if number is not None:
            raise OSError(number, os.strerror(number), path)

    def _step(self, name: str) -> None:
        if self._cut_before is not None and len(self.calls) >= self._cut_before:
            raise PowerCut
        self.calls.append(name)

    def _now_ns(self) -> int:
        return self._clock() * 1_000_000

    def _file(self, descriptor: int) -> _File:
        node = self._open[descriptor]
        if isinstance(node, _Folder):
            raise IsADirectoryError(errno.EISDIR, "is a folder")
        return node

    def _find(self, path: str) -> _File | _Folder:
        node: _File | _Folder = self._root
        for name in path.strip("/").split("/") if path != "/" else ():
            if isinstance(node, _File):
                raise NotADirectoryError(errno.ENOTDIR, "not a folder", path)
            if name not in node.names:
                raise FileNotFoundError(errno.ENOENT, "no such file or folder", path)
            node = node.names[name]
        return node

    def _parent(self, path: str) -> tuple[_Folder, str]:
        folder, _, name = path.rpartition("/")
        node = self._find(folder or "/")
        if isinstance(node, _File):
            raise NotADirectoryError(errno.ENOTDIR, "not a folder", path)
        return node, name

    def _restore(self, folder: _Folder, unsynced: UnsyncedNames) -> None:
        if unsynced is UnsyncedNames.LOST:
            folder.names = dict(folder.synced)
        else:
            folder.synced = dict(folder.names)
        for child in folder.names.values():
            if isinstance(child, _Folder):
                self._restore(child, unsynced)
            else:
                child.data = child.synced


def _status(node: _File | _Folder) -> SimulatedStatus:
    if isinstance(node, _File):
        return SimulatedStatus(stat.S_IFREG | 0o644, len(node.data), node.mtime_ns, id(node))
    return SimulatedStatus(stat.S_IFDIR | 0o755, 0, 0, id(node))
