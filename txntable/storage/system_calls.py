"""The file system calls that :mod:`txntable.storage.local_folder` makes, behind one small object.

Owns nothing: it exists so that a test can stand in for the disk, count what was synced, and
pull the plug (``tests.doubles.simulated_disk``).  Errors are ``OSError``, as from the machine.
"""

from __future__ import annotations

import os
from typing import Protocol


class FileStatus(Protocol):
    """What is asked of a file; ``os.stat_result`` has it."""

    @property
    def st_mode(self) -> int:
        """Kind and permissions."""
        ...

    @property
    def st_size(self) -> int:
        """Bytes."""
        ...

    @property
    def st_dev(self) -> int:
        """The device that it is on."""
        ...

    @property
    def st_ino(self) -> int:
        """Its number on that device: no other's while it exists or is open."""
        ...

    @property
    def st_mtime_ns(self) -> int:
        """When the content was last written, in ns since 1970."""
        ...


class SystemCalls(Protocol):
    """The calls; each as the function of the same name in :mod:`os`."""

    def open(self, path: str, flags: int) -> int:
        """Open a file, or a folder to sync it."""
        ...

    def read(self, descriptor: int, size: int) -> bytes:
        """Read up to `size` bytes."""
        ...

    def pread(self, descriptor: int, size: int, start: int) -> bytes:
        """Read up to `size` bytes from `start` on."""
        ...

    def write(self, descriptor: int, data: bytes | memoryview) -> int:
        """Write some of `data`; return how much."""
        ...

    def fsync(self, descriptor: int) -> None:
        """Make a file's bytes, or a folder's entries, survive a power cut."""
        ...

    def close(self, descriptor: int) -> None:
        """Close a descriptor."""
        ...

    def fstat(self, descriptor: int) -> FileStatus:
        """Return an open file's status."""
        ...

    def stat(self, path: str) -> FileStatus:
        """Return a file's status."""
        ...

    def link(self, source: str, target: str) -> None:
        """Give a file a second name; fails when it is taken."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Move a file over another."""
        ...

    def unlink(self, path: str) -> None:
        """Take a name away."""
        ...

    def mkdir(self, path: str) -> None:
        """Make one folder."""
        ...

    def entries(self, folder: str) -> list[tuple[str, bool]]:
        """Return each name in a folder, and whether it is a folder."""
        ...


class MachineCalls:
    """The real ones."""

    read = staticmethod(os.read)
    pread = staticmethod(os.pread)
    write = staticmethod(os.write)
    fsync = staticmethod(os.fsync)
    close = staticmethod(os.close)
    fstat = staticmethod(os.fstat)

    def open(self, path: str, flags: int) -> int:
        """Open a file, or a folder to sync it; new files get the user's umask."""
        return os.open(path, flags | os.O_CLOEXEC, 0o666)

    def stat(self, path: str) -> FileStatus:
        """Return a file's status."""
        return os.stat(path)

    def link(self, source: str, target: str) -> None:
        """Give a file a second name; fails when it is taken."""
        os.link(source, target)

    def rename(self, source: str, target: str) -> None:
        """Move a file over another."""
        os.rename(source, target)

    def unlink(self, path: str) -> None:
        """Take a name away."""
        os.unlink(path)

    def mkdir(self, path: str) -> None:
        """Make one folder."""
        os.mkdir(path)

    def entries(self, folder: str) -> list[tuple[str, bool]]:
        """Return each name in a folder, and whether it is a folder."""
        with os.scandir(folder) as found:
            return [(entry.name, entry.is_dir()) for entry in found]
