"""A store whose every answer takes 30 ms, any number of them at once: S3 as far as round trips go."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import BinaryIO

from tests.doubles.memory_store import MemoryObjects, MemoryStore
from txntable.storage.object_store import BEGINNING_BYTES, ObjectMeta, PutOutcome, StoredObject
from txntable.storage.remote import RemoteStore

ANSWER_S = 0.03


class DelayedStore(MemoryStore):
    """Answers each request after 30 ms, and any number of them at once.

    Parameters
    ----------
    objects : MemoryObjects
        What is there.
    parallel_reads : int
        How many objects a client may ask for at once.
    """

    parallel_writes = RemoteStore.parallel_writes

    def __init__(self, objects: MemoryObjects, parallel_reads: int) -> None:
        super().__init__(objects)
        self.parallel_reads = parallel_reads

    def get(self, path: str) -> StoredObject | None:
        """Return the object, or ``None`` when there is none."""
        time.sleep(ANSWER_S)
        return super().get(path)

    def get_many(self, paths: Sequence[str]) -> list[StoredObject | None]:
        """Return the objects in the order of `paths`, asked for at once."""
        time.sleep(ANSWER_S)
        return [MemoryStore.get(self, path) for path in paths]

    def get_above(self, paths: Sequence[str], below: str) -> tuple[list[StoredObject | None], bytes | None]:
        """Return the objects, and the beginning of another, asked for at once."""
        return self.get_many(paths), MemoryStore.get_range(self, below, 0, BEGINNING_BYTES)

    def get_range(self, path: str, start: int, length: int) -> bytes | None:
        """Return a part of an object, or ``None`` when there is no object."""
        time.sleep(ANSWER_S)
        return super().get_range(path, start, length)

    def head(self, path: str) -> ObjectMeta | None:
        """Return the object's size and time, or ``None`` when there is none."""
        time.sleep(ANSWER_S)
        return super().head(path)

    def put(self, path: str, data: bytes) -> None:
        """Create or replace an object."""
        time.sleep(ANSWER_S)
        super().put(path, data)

    def writer(self, path: str) -> BinaryIO:
        """Return a file to stream a new object into: one request, as far as it is small."""
        time.sleep(ANSWER_S)
        return super().writer(path)

    def put_next(self, path: str, data: bytes, below: str) -> tuple[PutOutcome, bytes | None]:
        """Create an object unless there is one, and look at another at the same time."""
        return self.put_if_absent(path, data), MemoryStore.get_range(self, below, 0, BEGINNING_BYTES)

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """Create an object unless there is one."""
        time.sleep(ANSWER_S)
        return super().put_if_absent(path, data)
