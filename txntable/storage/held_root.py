"""The folder that a local store was opened in, told from any other that is later found at its path.

A folder is moved, unmounted, or deleted and made again under a process that works in it.  What the process writes
then is in no warehouse, or in another's; what it does not find was never gone.  Owns knowing the folder again: by
device and inode, with a descriptor held open, so that no other folder gets the same inode meanwhile.

Fork-safe (a child has the descriptor, too).  Must not know of objects.
"""

from __future__ import annotations

import contextlib
import os
import weakref

from txntable.errors import WarehouseReplacedError
from txntable.storage.system_calls import FileStatus, SystemCalls

_HOLD = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY


class HeldRoot:
    """The folder at one path, from the first time that it is there.

    Parameters
    ----------
    place : str
        Absolute; the folder need not exist yet.
    calls : SystemCalls
        The disk.
    """

    def __init__(self, place: str, calls: SystemCalls) -> None:
        self._place = place
        self._calls = calls
        self._identity: tuple[int, int] | None = None

    def check(self) -> None:
        """Make sure that the folder is the one that was there first; one stat.

        Raises
        ------
        WarehouseReplacedError
            It is gone, or another.  What was asked of it before this call has no answer, and a file that was begun
            in it is not published.
        OSError
            The disk does not say.
        """
        # Read first: another thread may make the folder, and hold it, between the two.
        identity, found = self._identity, self._found()
        if identity is None:
            self._hold(found)
        elif found is None or _identity(found) != identity:
            raise WarehouseReplacedError(
                "the warehouse's folder was moved, unmounted, deleted or replaced; put it back, or open it anew",
                folder=self._place,
            )

    def _found(self) -> FileStatus | None:
        try:
            return self._calls.stat(self._place)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _hold(self, found: FileStatus | None) -> None:
        if found is None:
            return
        # Of a folder that may not be opened the inode alone has to do.
        with contextlib.suppress(OSError):
            descriptor = self._calls.open(self._place, _HOLD)
            weakref.finalize(self, _let_go, self._calls, descriptor)
            found = self._calls.fstat(descriptor)
        self._identity = _identity(found)


def _let_go(calls: SystemCalls, descriptor: int) -> None:
    with contextlib.suppress(OSError):  # nothing was written through it
        calls.close(descriptor)


def _identity(status: FileStatus) -> tuple[int, int]:
    return status.st_dev, status.st_ino
