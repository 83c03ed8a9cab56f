"""A store through which nothing can be written, as a reader's credentials make it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import BinaryIO, NoReturn

from txntable.errors import StorePermissionError
from txntable.storage.object_store import ObjectMeta, ObjectStore, PutOutcome, StoredObject


class ReadOnlyStore(ObjectStore):
    """Passes reads on and refuses every write with :class:`StorePermissionError`.

    Parameters
    ----------
    inner : ObjectStore
        Where the objects are.
    """

    def __init__(self, inner: ObjectStore) -> None:
        self._inner = inner
        self.spec = inner.spec
        self.retry_timeout_ms = inner.retry_timeout_ms
        self.parallel_reads = inner.parallel_reads

    def get(self, path: str) -> StoredObject | None:
        """Return the object, or ``None`` when there is none."""
        return self._inner.get(path)

    def get_many(self, paths: Sequence[str]) -> list[StoredObject | None]:
        """Return the objects in the order of `paths`."""
        return self._inner.get_many(paths)

    def get_range(self, path: str, start: int, length: int) -> bytes | None:
        """Return a part of an object, or ``None`` when there is no object."""
        return self._inner.get_range(path, start, length)

    def get_above(self, paths: Sequence[str], below: str) -> tuple[list[StoredObject | None], bytes | None]:
        """Return the objects, and the beginning of another."""
        return self._inner.get_above(paths, below)

    def head(self, path: str) -> ObjectMeta | None:
        """Return the object's size and time, or ``None`` when there is none."""
        return self._inner.head(path)

    def list(self, prefix: str) -> Iterator[ObjectMeta]:
        """Yield the objects in and below the folder `prefix`, sorted by path."""
        return self._inner.list(prefix)

    def folders(self, prefix: str) -> Sequence[str]:
        """Return the names of the folders directly in the folder `prefix`, sorted."""
        return self._inner.folders(prefix)

    def put(self, path: str, data: bytes) -> None:
        """Refuse."""
        self._refuse(path)

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """Refuse."""
        self._refuse(path)

    def delete(self, paths: Sequence[str]) -> None:
        """Refuse, also when there is nothing to delete."""
        self._refuse(*paths[:1])

    def writer(self, path: str) -> BinaryIO:
        """Refuse."""
        self._refuse(path)

    def _refuse(self, path: str | None = None) -> NoReturn:
        raise StorePermissionError("this store is read-only; open it with credentials that may write", path=path)
