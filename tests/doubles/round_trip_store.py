"""A store that counts round trips of a read: what is under way together is one, whatever it asks for."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from tests.doubles.memory_store import MemoryObjects, MemoryStore
from txntable.storage.object_store import BEGINNING_BYTES, ObjectMeta, StoredObject

# For a test that fails: nobody waits for so long otherwise.
_PATIENCE_S = 30
_SEGMENT = "/_segments/p"


class RoundTripStore(MemoryStore):
    """Answers requests for segments together, as many as may be under way at once, and all others by themselves.

    Parameters
    ----------
    objects : MemoryObjects
        What is there.

    Attributes
    ----------
    round_trips : int
        How many followed one another since :meth:`expect`.
    """

    parallel_reads = 32

    def __init__(self, objects: MemoryObjects) -> None:
        super().__init__(objects)
        self.round_trips = self._to_come = 0
        self._gathered = self._answered = 0
        self._changed = threading.Condition()

    def expect(self, segments: int) -> None:
        """Count from here on; there will be so many requests for segments."""
        self.round_trips, self._to_come = 0, segments

    def _ask(self, path: str) -> None:
        with self._changed:
            if _SEGMENT not in path:
                self.round_trips += 1
                return
            self._gathered, together = self._gathered + 1, self._answered
            if self._gathered == min(self.parallel_reads, self._to_come):
                self._to_come -= self._gathered
                self._gathered, self._answered = 0, self._answered + 1
                self.round_trips += 1
                self._changed.notify_all()
            elif not self._changed.wait_for(lambda: self._answered > together, _PATIENCE_S):
                raise AssertionError(f"only {self._gathered} requests are under way together")

    def get(self, path: str) -> StoredObject | None:
        """Return the object, or ``None`` when there is none."""
        self._ask(path)
        return super().get(path)

    def get_many(self, paths: Sequence[str]) -> list[StoredObject | None]:
        """Return the objects in the order of `paths`, by one round trip."""
        self._ask(paths[0])
        return [MemoryStore.get(self, path) for path in paths]

    def get_above(self, paths: Sequence[str], below: str) -> tuple[list[StoredObject | None], bytes | None]:
        """Return the objects, and the beginning of another, by one round trip."""
        return self.get_many(paths), MemoryStore.get_range(self, below, 0, BEGINNING_BYTES)

    def get_range(self, path: str, start: int, length: int) -> bytes | None:
        """Return a part of an object, or ``None`` when there is no object."""
        self._ask(path)
        return super().get_range(path, start, length)

    def head(self, path: str) -> ObjectMeta | None:
        """Return the object's size and time, or ``None`` when there is none."""
        self._ask(path)
        return super().head(path)
