"""What a file system's refusals mean to a warehouse: each becomes an error that says what to do.

Owns the translation of the system's errors for :mod:`txntable.storage.local_folder`.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from txntable.errors import (
    KafkaStorageError,
    StoreFullError,
    StorePermissionError,
    StoreUnavailableError,
    StoreUnsuitableError,
    TxnTableError,
    WarehouseReplacedError,
)
from txntable.storage.folder_ledger import FolderSyncError

_REFUSED = (StorePermissionError, "the file system refused; check who may use this path and the folders above it")
_FULL = (StoreFullError, "the disk is full; make room, then try again")
_BY_NUMBER: Mapping[int | None, tuple[type[TxnTableError], str]] = {
    errno.EACCES: _REFUSED,
    errno.EPERM: _REFUSED,
    errno.EROFS: (StorePermissionError, "the file system is read-only; mount it for writing"),
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
}
_OTHER = (StoreUnavailableError, "the file system failed; mend it, then try again")


@contextmanager
def failing_at(path: str) -> Iterator[None]:
    """Raise what a caller can act on where the disk fails."""
    try:
        yield
    except OSError as error:
        raise disk_failure(error, path) from error


def disk_failure(error: OSError, path: str) -> TxnTableError:
    """Return what a caller can act on, of what the system said."""
    reason = error.strerror or str(error)
    if isinstance(error, FolderSyncError):
        return KafkaStorageError(
            "the disk failed to sync a folder: what was written last may be lost; check the disk, then start anew",
            path=path,
            reason=reason,
        )
    if isinstance(error, NotADirectoryError):
        return StoreUnsuitableError("a part of the path is a file and no folder; choose another place", path=path)
    if isinstance(error, FileNotFoundError):
        # A name that is not there is an answer to a read: it is a folder that a write did not find.
        return WarehouseReplacedError(
            "a folder of the warehouse is gone, and is not made again; restore it, or open the warehouse anew",
            path=path,
        )
    kind, said = _BY_NUMBER.get(error.errno, _OTHER)
    return kind(said, path=path, reason=reason)
