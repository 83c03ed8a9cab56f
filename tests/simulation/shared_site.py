"""A site for processes that take turns: one time for all of them, and a store that remembers its logs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.doubles.manual_environment import ManualEnvironment, StoreTime
from tests.doubles.memory_store import MemoryObjects
from tests.simulation.site import Site
from tests.simulation.turn_lock import TurnLock
from txntable.runtime.environment import Instant, Lock
from txntable.storage.object_store import StoredObject


class RememberingObjects(MemoryObjects):
    """A store that keeps the first content of every log entry, also when it is cleaned up.

    Attributes
    ----------
    entries : dict of str to bytes
        The log entries that were created first, by their paths.
    recreated : list of (str, bytes, int)
        What was created at the same paths later, and how many ms later.
    """

    def __init__(self, clock: Callable[[], int]) -> None:
        super().__init__(clock)
        self.entries: dict[str, bytes] = {}
        self.recreated: list[tuple[str, bytes, int]] = []
        self._since_ms: dict[str, int] = {}

    def restore(self, objects: Mapping[str, StoredObject]) -> None:
        """Hold what a snapshot says, and remember its logs."""
        super().restore(objects)
        logs = {path: found for path, found in objects.items() if path.endswith(".json")}
        self.entries = {path: found.data for path, found in logs.items()}
        self._since_ms = {path: found.last_modified_ms for path, found in logs.items()}

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Create one object, and remember it when it is new for ever."""
        created = super().put_if_absent(path, data)
        since_ms = self._since_ms.setdefault(path, self.clock()) if created else 0
        if created and self.entries.setdefault(path, data) != data:
            self.recreated.append((path, data, self.clock() - since_ms))
        return created


class SharedTime(ManualEnvironment):
    """A machine on which waiting takes everyone's time; its wall clock may be set, its boot clock is everyone's."""

    def __init__(self, seed: int, time: ManualEnvironment) -> None:
        super().__init__(seed)
        self._time = time
        self._ahead_ms = 0

    def lock(self) -> Lock:
        """Return a lock for the threads of this process, which take turns."""
        return TurnLock()

    def instant(self) -> Instant:
        """Return the present moment."""
        now = self._time.instant()
        return Instant(now.boot_ms, now.wall_ms + self._ahead_ms)

    def advance_ms(self, milliseconds: float) -> None:
        """Let the time pass everywhere."""
        self._time.advance_ms(milliseconds)

    def advance_wall_ms(self, milliseconds: float) -> None:
        """Set this machine's wall clock."""
        self._ahead_ms += int(milliseconds)


class ManySite(Site):
    """A site whose history is remembered, and whose processes share one time."""

    @classmethod
    def like(cls, base: Site) -> ManySite:
        """A site with the objects of another."""
        site = cls(started=base.started)
        site.time.advance_ms(base.time.instant().boot_ms)
        objects = RememberingObjects(StoreTime(site.time))
        objects.restore(base.objects.snapshot())
        site.objects = objects
        return site

    def environment(self) -> ManualEnvironment:
        """The clocks and ids of one more process."""
        self.started += 1
        environment = SharedTime(self.started, self.time)
        self.environments.append(environment)
        return environment

    def advance_ms(self, milliseconds: int) -> None:
        """Let time pass everywhere."""
        self.time.advance_ms(milliseconds)
