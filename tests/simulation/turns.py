"""Processes that take turns at every storage call, in an order given by a seed.

Each process is a thread, and exactly one runs at any time: it is stopped before each of its storage
calls until the scheduler gives it the turn again.  So the same seed gives the same run.  The
scheduler also lets time pass, kills, and lands what is late; every storage call may meet a fault.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.simulation.site import Site
from txntable.layout import OFFSET_LOG_ROOT, TRANSACTION_LOG_ROOT
from txntable.storage.object_store import ObjectStore
from txntable.testing.fault_plan import ONLY_PUT_IF_ABSENT, Fault, Operation, Rule, Step
from txntable.testing.manual_environment import ManualEnvironment, StoreTime
from txntable.testing.memory_store import MemoryObjects, MemoryStore
from txntable.testing.stepping_store import ProcessKilled, SteppingStore

MOST_STEPS = 30_000
JUMPS_MS = (61_000, 61_000, 310_000, 31 * 60_000, 2 * 86_400_000)
_DECIDING = (TRANSACTION_LOG_ROOT, OFFSET_LOG_ROOT)
_FAULTS = {
    Fault.FAIL_BEFORE: set(Operation),
    Fault.LOST_ANSWER: set(Operation),
    Fault.LATE_LANDING: {Operation.PUT_IF_ABSENT, Operation.PUT, Operation.WRITE},
    **{fault: {Operation.PUT_IF_ABSENT} for fault in ONLY_PUT_IF_ABSENT},
}


class RememberingObjects(MemoryObjects):
    """A store that keeps the first content of every log entry, also when it is cleaned up."""

    def __init__(self, clock: Callable[[], int]) -> None:
        super().__init__(clock)
        self.entries: dict[str, bytes] = {}

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Create one object, and remember it when it is new for ever."""
        created = super().put_if_absent(path, data)
        if created:
            self.entries.setdefault(path, data)
        return created


class SharedTime(ManualEnvironment):
    """A machine on which waiting takes everyone's time."""

    pass_time: Callable[[float], None]

    def sleep_ms(self, milliseconds: float) -> None:
        """Let the time pass everywhere."""
        self.pass_time(milliseconds)


class ManySite(Site):
    """A site whose history is remembered, and whose processes share one time."""

    @classmethod
    def like(cls, base: Site) -> ManySite:
        """A site with the objects of another."""
        site = cls(started=base.started)
        site.time.advance_ms(base.time.instant().boot_ms)
        objects = RememberingObjects(StoreTime(site.time))
        objects.restore(base.objects.snapshot())
        objects.entries = {
            path: found.data for path, found in base.objects.snapshot().items() if path.endswith(".json")
        }
        site.objects = objects
        return site

    def environment(self) -> ManualEnvironment:
        """The clocks and ids of one more process."""
        self.started += 1
        environment = SharedTime(seed=self.started)
        environment.pass_time = self.advance_ms  # type: ignore[assignment]
        self.environments.append(environment)
        return environment


@dataclass(frozen=True)
class Weather:
    """How often things go wrong, as chances for each storage call."""

    fault: float = 0.0
    kill: float = 0.0
    land: float = 0.05
    jump: float = 0.0
    late: float = 0.0
    """That a commit of the transaction log or the offset log lands late: a decision, an enrolment, offsets."""


class Process:
    """A thread that runs while it has the turn."""

    def __init__(self, turns: Turns, name: str, program: Callable[[Process], None]) -> None:
        self.name, self.turns = name, turns
        self.random = random.Random(f"{turns.seed}/{name}")
        self.stores: list[SteppingStore] = []
        self.ended = False
        self.killed = False
        self.failure: BaseException | None = None
        self._turn = threading.Semaphore(0)
        self._program = program
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def store(self) -> ObjectStore:
        """A door of this process to the site's store."""
        store = SteppingStore(MemoryStore(self.turns.site.objects), self._plan(), self._step)
        store.killed = self.killed
        self.stores.append(store)
        return store

    def pause(self) -> None:
        """Do nothing for a while: let the others have some turns."""
        for _ in range(self.random.choice([1, 10, 60])):
            self.turns.trace.append(f"{self.name} waits")
            self.turns.back.release()
            self._turn.acquire()
            if self.killed:
                raise ProcessKilled

    def kill(self) -> None:
        """Let the process die at its next storage call."""
        self.killed = True
        for store in self.stores:
            store.kill()

    def take_turn(self) -> None:
        """Run until the next storage call, or the end."""
        self._turn.release()
        self.turns.back.acquire()

    def _run(self) -> None:
        self._turn.acquire()
        try:
            self._program(self)
        except ProcessKilled:
            pass
        except BaseException as error:  # noqa: BLE001  raised again by whoever waits for the run
            self.failure = error
        self.ended = True
        self.turns.back.release()

    def _step(self, step: Step) -> None:
        self.turns.trace.append(f"{self.name} {step.operation.value} {step.path}")
        self.turns.back.release()
        self._turn.acquire()

    def _plan(self) -> list[Rule]:
        chance = self.turns.weather.fault / len(_FAULTS)

        def meets(operations: set[Operation]) -> Callable[[Step], bool]:
            return lambda step: step.operation in operations and self.random.random() < chance

        def decides(step: Step) -> bool:
            late = step.operation is Operation.PUT_IF_ABSENT and step.path.startswith(_DECIDING)
            return late and self.random.random() < self.turns.weather.late

        rules = [Rule(fault, meets(operations), occurrence=None) for fault, operations in _FAULTS.items()]
        return [Rule(Fault.LATE_LANDING, decides, occurrence=None), *rules]


@dataclass
class Turns:
    """The scheduler: who has the turn, and what happens between two turns."""

    site: ManySite
    seed: int
    weather: Weather
    processes: list[Process] = field(default_factory=list)
    trace: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = random.Random(f"{self.seed}/turns")
        self.back = threading.Semaphore(0)

    def start(self, name: str, program: Callable[[Process], None]) -> None:
        """Add a process."""
        self.processes.append(Process(self, name, program))

    def run(self) -> None:
        """Give turns until every process has ended; then everything late lands."""
        favourite: Process | None = None
        while running := [process for process in self.processes if not process.ended]:
            assert len(self.trace) < MOST_STEPS, "the processes do not come to an end"
            # Runs of one process, then another: more races of long sequences than by a fair coin at each step.
            if favourite not in running or self.random.random() < 0.3:
                favourite = self.random.choice(running)
            assert favourite is not None
            self._between()
            favourite.take_turn()
        self.land()
        for process in self.processes:
            if process.failure is not None:
                raise process.failure

    def land(self) -> None:
        """Land everything that is late."""
        for process in self.processes:
            for store in process.stores:
                store.land()

    def _between(self) -> None:
        self.site.advance_ms(self.random.randrange(20))
        chance = self.random.random()
        if chance < self.weather.kill:
            self.random.choice(self.processes).kill()
        elif chance < self.weather.kill + self.weather.jump:
            self.site.advance_ms(self.random.choice(JUMPS_MS))
        if self.random.random() < self.weather.land:
            self.land()
