"""A store in a dict, with the contract of ``txntable.storage.object_store`` and a clock to set.

One :class:`MemoryObjects` is the store; each :class:`MemoryStore` is one process's view of it.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, takewhile
from typing import BinaryIO

from tests.doubles.buffered_sink import BufferedSink
from tests.doubles.manual_environment import ManualEnvironment, StoreTime
from txntable.format.object_path import check_folder, check_path
from txntable.storage.object_store import (
    ObjectMeta,
    ObjectStore,
    PutOutcome,
    StoredObject,
    StoreSpec,
    check_whole_size,
    name_is_taken,
)
from txntable.storage.object_writer import open_writer


class MemoryObjects:
    """The objects themselves, shared by any number of views and threads.

    Parameters
    ----------
    clock : Callable, optional
        Returns the store's time in ms since 1970; by default it stands still.
    """

    def __init__(self, clock: Callable[[], int] | None = None) -> None:
        self.clock = clock or StoreTime(ManualEnvironment())
        self._objects: dict[str, StoredObject] = {}
        # Sorted: listing one folder does not walk through all others.
        self._paths: list[str] = []
        # What was deleted last, and when: for lists that are not up to date.
        self._deleted: dict[str, tuple[ObjectMeta, int]] = {}
        self._lock = threading.Lock()

    def get(self, path: str) -> StoredObject | None:
        """Return one object."""
        with self._lock:
            return self._objects.get(path)

    def put(self, path: str, data: bytes) -> None:
        """Create or replace one object."""
        with self._lock:
            self._set(path, data)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Create one object; return False when there is one."""
        with self._lock:
            if path in self._objects:
                return False
            self._set(path, data)
            return True

    def _set(self, path: str, data: bytes) -> None:
        if path not in self._objects:
            insort(self._paths, path)
        self._objects[path] = StoredObject(data, self.clock())

    def delete(self, path: str) -> None:
        """Delete one object, if it is there."""
        with self._lock:
            found = self._objects.pop(path, None)
            if found is not None:
                del self._paths[bisect_left(self._paths, path)]
                meta = ObjectMeta(path, len(found.data), found.last_modified_ms)
                self._deleted[path] = (meta, self.clock())

    def below(self, folder: str) -> list[ObjectMeta]:
        """Return the objects in and below a folder (``""``: all), sorted by path."""
        start = f"{folder}/" if folder else ""
        with self._lock:
            first = bisect_left(self._paths, start)
            paths = takewhile(lambda path: path.startswith(start), islice(self._paths, first, None))
            return [
                ObjectMeta(path, len(self._objects[path].data), self._objects[path].last_modified_ms) for path in paths
            ]

    def formerly_below(self, folder: str, age_ms: int) -> list[ObjectMeta]:
        """Return :meth:`below` without what is younger than `age_ms`, and with what was deleted since."""
        then, start = self.clock() - age_ms, f"{folder}/" if folder else ""
        found = {meta.path: meta for meta in self.below(folder) if meta.last_modified_ms <= then}
        with self._lock:
            gone = [meta for meta, when in self._deleted.values() if meta.path.startswith(start) and when > then]
        found.update((meta.path, meta) for meta in gone if meta.last_modified_ms <= then)
        return [found[path] for path in sorted(found)]

    def snapshot(self) -> dict[str, StoredObject]:
        """Return a copy of everything, for assertions."""
        with self._lock:
            return dict(self._objects)

    def restore(self, objects: Mapping[str, StoredObject]) -> None:
        """Hold what a snapshot says, and nothing else."""
        with self._lock:
            self._objects = dict(objects)
            self._paths = sorted(objects)
            self._deleted.clear()


class MemoryStore(ObjectStore):
    """One process's view of some objects.

    Parameters
    ----------
    objects : MemoryObjects, optional
        Shared with other views; by default this view's own.
    """

    def __init__(self, objects: MemoryObjects | None = None) -> None:
        self.objects = objects if objects is not None else MemoryObjects()
        self.spec = StoreSpec("testing://memory")

    def get(self, path: str) -> StoredObject | None:
        """Return the object, or ``None`` when there is none."""
        found = self.objects.get(check_path(path))
        if found is not None:
            check_whole_size(path, len(found.data))
        return found

    def get_range(self, path: str, start: int, length: int) -> bytes | None:
        """Return a part of an object, or ``None`` when there is no object."""
        found = self.objects.get(check_path(path))
        return None if found is None else found.data[start : start + length]

    def head(self, path: str) -> ObjectMeta | None:
        """Return the object's size and time, or ``None`` when there is none."""
        found = self.objects.get(check_path(path))
        return None if found is None else ObjectMeta(path, len(found.data), found.last_modified_ms)

    def put(self, path: str, data: bytes) -> None:
        """Create or replace an object."""
        self.objects.put(check_path(path), bytes(data))

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """Create an object unless there is one."""
        created = self.objects.put_if_absent(check_path(path), bytes(data))
        return PutOutcome.CREATED if created else PutOutcome.EXISTS

    def list(self, prefix: str) -> Iterator[ObjectMeta]:
        """Yield the objects in and below the folder `prefix`, sorted by path."""
        return iter(self.objects.below(check_folder(prefix)))

    def delete(self, paths: Sequence[str]) -> None:
        """Delete objects one after the other; an absent one is no error."""
        for path in paths:
            self.objects.delete(check_path(path))

    def writer(self, path: str) -> BinaryIO:
        """Return a file to stream a new object into."""
        check_path(path)
        return open_writer(BufferedSink(lambda data: self._create(path, data)))

    def _create(self, path: str, data: bytes) -> None:
        if not self.objects.put_if_absent(path, data):
            raise name_is_taken(path)
