"""Processes that take turns at every storage call, in an order given by a tape.

Each process is a thread, or has several that share one handle.  Exactly one thread runs at any time: it is stopped
before each of its storage calls, and where it waits for a lock, until it has the turn again.  So the same tape gives
the same run.  Whoever is at its next call decides, as the scheduler's voice, who goes on: often it is the same thread,
which then just goes on.  Between two turns time passes, processes die, and what is late lands; every call may meet a
fault.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Protocol
from unittest.mock import patch

from tests.doubles.fault_plan import ONLY_WRITES, Fault, Rule, Step
from tests.doubles.memory_store import MemoryStore
from tests.doubles.stepping_store import ProcessKilled, SteppingStore
from tests.simulation.shared_site import ManySite
from tests.simulation.tape import Tape
from tests.simulation.turn_lock import TurnLock, ends_here, runs_here
from tests.simulation.weather import CLOCK_JUMPS_MS, JUMPS_MS, SLOW_MS, Weather
from txntable.errors import RetriableError
from txntable.log.log_view import LogView
from txntable.storage.object_store import ObjectStore
from txntable.warehouse.warehouse import Warehouse, open_on

__all__ = ["JUMPS_MS", "ManySite", "Process", "SharedHandle", "Turns", "Weather", "World"]

MOST_STEPS = 30_000
STALE_MS = 60_000


class World(Protocol):
    """What is simulated: who takes part, and what is true in the end."""

    def play(self, turns: Turns) -> None:
        """Give the turns a site (``turns.site = ManySite.like(...)``), start processes, run the turns, check the end.

        A failed check is an exception; everything that is drawn comes from the turns and its processes.
        """
        ...


@dataclass
class Counts:
    """What happened in a run, for reports."""

    met: Counter[tuple[Fault, str]] = field(default_factory=Counter)
    jumps: int = 0
    clocks: int = 0
    kills: int = 0
    pauses: int = 0
    bursts: int = 0
    landed: int = 0
    reached: Counter[str] = field(default_factory=Counter)
    """What the world came to, in its own words."""


class SharedHandle:
    """What the threads of one process share: a handle on the warehouse, and their death."""

    def __init__(self) -> None:
        self.threads: list[Process] = []
        self.opening = TurnLock()
        self.warehouse: Warehouse | None = None

    def running(self) -> Process:
        """The one that runs now."""
        return next(each for each in self.threads if each.thread is threading.current_thread())


class Process:
    """A thread that runs while it has the turn; with `shares`, one of several of the same process."""

    def __init__(
        self,
        turns: Turns,
        name: str,
        program: Callable[[Process], None],
        place: int,
        shares: SharedHandle | None = None,
    ) -> None:
        self.name, self.turns, self.place = name, turns, place
        self._shares = shares if shares is not None else SharedHandle()
        self._shares.threads.append(self)
        self._is_free: Callable[[], bool] | None = None
        self.random = turns.tape.stream(name)
        self.schedule = turns.tape.stream(f"{name}/schedule")
        self.stores: list[SteppingStore] = []
        self.ended = False
        self.killed = False
        self.wakes = 0
        self.turn = threading.Lock()
        self.turn.acquire()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self._faults = turns.tape.stream(f"{name}/faults")
        self._failing = 0
        self._program = program

    def store(self, before: Callable[[Step], object] | None = None) -> ObjectStore:
        """The access of this process to the site's store; `before` is called before each of its calls."""
        running = self._shares.running

        def step_after(step: Step) -> None:
            if before is not None:
                before(step)
            running()._step(step)

        objects = MemoryStore(self.turns.site.objects)
        store = SteppingStore(objects, (), step_after, forecast=lambda step: running()._forecast(step))
        store.killed = self.killed
        self.stores.append(store)
        return store

    def opened(self, before: Callable[[Step], object] | None = None) -> Warehouse:
        """A handle of its own on the warehouse, or that of all its threads, tried for until the store answers."""
        shares = self._shares
        with shares.opening:
            while shares.warehouse is None or len(shares.threads) == 1:
                with suppress(RetriableError):
                    shares.warehouse = open_on(self.store(before), self.turns.site.environment())
                    break
        return shares.warehouse

    @property
    def is_waiting(self) -> bool:
        """Whether another thread has what this one waits for; who is dead waits for nothing."""
        return self._is_free is not None and not self.killed and not self._is_free()

    def wait_until(self, is_free: Callable[[], bool]) -> None:
        """Leave the turns to the others until something is so."""
        self._is_free = is_free
        self.turns.hand_over(self)
        self._is_free = None
        if self.killed:
            raise ProcessKilled

    def pause(self) -> None:
        """Do nothing for a while: let the others have some turns."""
        self.rest(self.random.choice([1, 10, 60]), 0)

    def rest(self, turns: int, milliseconds: int) -> None:
        """Do nothing for some turns of others, and then until so much time has passed."""
        site = self.turns.site
        until_ms = site.time.instant().boot_ms + milliseconds
        self.wakes = self.turns.number + turns
        self.turns.trace.append(f"{self.name} rests turns={turns} ms={milliseconds}")
        self.turns.hand_over(self)
        if self.killed:
            raise ProcessKilled
        site.advance_ms(max(0, until_ms - site.time.instant().boot_ms))

    def doing(self, what: str) -> None:
        """Write down what this process is about to do, for who reads the trace."""
        self.turns.trace.append(f"{self.name} does {what}")

    def kill(self) -> None:
        """Let the process die, each of its threads at its next storage call."""
        for each in self._shares.threads:
            each.killed = True
            for store in each.stores:
                store.kill()

    def _run(self) -> None:
        self.turn.acquire()
        runs_here(self)
        try:
            if not self.killed:
                self._program(self)
        except ProcessKilled:
            pass
        except BaseException as error:  # noqa: BLE001  raised again by whoever waits for the run
            self.turns.fail(error, self.name)
        ends_here()
        self.ended = True
        self.turns.hand_on()

    def _step(self, step: Step) -> None:
        weather = self.turns.weather
        self.turns.trace.append(f"{self.name} {step.operation.value} {step.path}")
        if weather.pause and self._faults.random() < weather.pause:
            self.turns.counts.pauses += 1
            self.rest(self._faults.choice((10, 60, 300)), self._faults.choice((0, *JUMPS_MS)))
        else:
            self.turns.hand_over(self)

    def _forecast(self, step: Step) -> Rule | None:
        weather = self.turns.weather
        if self._failing:
            self._failing -= 1
            return self._rule(Fault.FAIL_BEFORE, step)
        if weather.burst and self._faults.random() < weather.burst:
            self.turns.counts.bursts += 1
            self._failing = self._faults.choice((2, 5, 12))
            return self._rule(Fault.FAIL_BEFORE, step)
        fault = weather.meets(step, self._faults)
        return None if fault is None else self._rule(fault, step)

    def _rule(self, fault: Fault, step: Step) -> Rule:
        self.turns.counts.met[fault, step.operation.value] += 1
        self.turns.trace.append(f"{self.name}   meets {fault.name}")
        if fault in ONLY_WRITES:
            self.turns.late += 1
        return Rule(fault, lambda _: True, None, meanwhile=self._slowly, age_ms=STALE_MS)

    def _slowly(self) -> None:
        self.rest(self._faults.choice((1, 10, 60)), self._faults.choice(SLOW_MS))


class Turns:
    """The scheduler: who has the turn, and what happens between two turns.

    Parameters
    ----------
    site : ManySite, optional
        Where the processes work; a world may set it later.
    tape : Tape or int
        All chances, or the seed of them.
    weather : Weather, optional
        By default it is drawn.

    Attributes
    ----------
    random : random.Random
        The world's own chances: who takes part.
    trace : list of str
        What happened, line by line.
    number : int
        How many turns there were.
    is_replaced : bool
        Whether the store vanishes, or comes back as another: else nobody may be told that it did.
    """

    def __init__(self, site: ManySite | None, tape: Tape | int, weather: Weather | None = None) -> None:
        self.site = site if site is not None else ManySite()
        self.tape = tape if isinstance(tape, Tape) else Tape(tape)
        self.random = self.tape.stream("turns")
        self.weather = weather if weather is not None else Weather.drawn(self.tape.stream("weather"))
        self.processes: list[Process] = []
        self.trace: list[str] = []
        self.counts = Counts()
        self.number = 0
        self.is_replaced = False
        self.late = 0
        self._failure: BaseException | None = None
        self._favourite: Process | None = None
        self._over = threading.Lock()
        self._started = 0
        self._time, self._deaths, self._landings = (self.tape.stream(name) for name in ("time", "deaths", "landings"))

    def start(self, name: str, program: Callable[[Process], None], shares: SharedHandle | None = None) -> None:
        """Add a process, or a thread of one; it begins to run with the turns."""
        if name not in self.tape.absent:
            self.processes.append(Process(self, name, program, self._started, shares))
        self._started += 1

    def run(self) -> None:
        """Give turns until every process has ended; then everything late lands."""
        self._over.acquire()
        with self._hearing_of_replacements():
            for process in self.processes:
                process.thread.start()
            self.hand_on()
            self._over.acquire()
            for process in self.processes:
                process.thread.join()
        if self._failure is not None:
            raise self._failure
        self.land()

    @contextmanager
    def _hearing_of_replacements(self) -> Iterator[None]:
        """Fail when a process takes its log for another one in a store that never changed under it."""
        lose = LogView._lose

        def hear(view: LogView[Any]) -> None:
            if not self.is_replaced:
                self.fail(AssertionError(f"told of a replacement that never was: {view.root}"), "any")
            lose(view)

        with patch.object(LogView, "_lose", hear):
            yield

    def land(self) -> None:
        """Land everything that is late."""
        for process in self.processes:
            for store in process.stores:
                self._landed(store.land())

    def fail(self, error: BaseException, name: str) -> None:
        """Let the run end here: the first failure is what it raises."""
        if self._failure is None:
            self._failure = error
            error.add_note(f"in process {name}")
        for process in self.processes:
            process.kill()

    def hand_over(self, process: Process) -> None:
        """Let whoever is next go on, and return when that is `process`."""
        following = self._next()
        if following is not process:
            following.turn.release()
            process.turn.acquire()

    def hand_on(self) -> None:
        """Let whoever is next go on, when the one that had the turn has ended."""
        if all(process.ended for process in self.processes):
            self._over.release()
        else:
            self._next().turn.release()

    def _next(self) -> Process:
        self.number += 1
        if self.number == MOST_STEPS:
            self.fail(AssertionError("the processes do not come to an end"), "any")
        running = [process for process in self.processes if not process.ended]
        able = [process for process in running if not process.is_waiting]
        if not able:
            self.fail(AssertionError("the threads of a process wait for each other"), "any")
            able = running
        awake = [process for process in able if process.wakes <= self.number]
        awake = awake or [min(able, key=lambda process: process.wakes)]
        # Runs of one process, then another: more races of long sequences than by a fair coin at each step.
        # Each has chances of its own for it, so that leaving one out does not change what the others do.
        chance = self._favourite.schedule if self._favourite is not None else self.random
        if self._favourite not in awake or chance.random() < 0.3:
            first = chance.randrange(self._started)
            self._favourite = min(awake, key=lambda process: (process.place - first) % self._started)
        self._between(running)
        return self._favourite

    def _between(self, running: list[Process]) -> None:
        weather = self.weather
        if weather.tick_ms:
            self.site.advance_ms(int(self._time.random() * weather.tick_ms))
        if weather.jump and self._time.random() < weather.jump:
            self.counts.jumps += 1
            self._jump(self._time.choice(JUMPS_MS))
        if weather.clock and self._time.random() < weather.clock and self.site.environments:
            self.counts.clocks += 1
            machine = self._time.randrange(len(self.site.environments))
            by_ms = self._time.choice(CLOCK_JUMPS_MS)
            self.trace.append(f"wall clock of machine {machine} is set ms={by_ms}")
            self.site.environments[machine].advance_wall_ms(by_ms)
        if weather.kill and self._deaths.random() < weather.kill:
            victim = self._deaths.choice(running)
            self.counts.kills += not victim.killed
            self.trace.append(f"{victim.name} is killed")
            victim.kill()
        if self.late and self._landings.random() < weather.land:
            self._land_one()

    def _jump(self, milliseconds: int) -> None:
        self.trace.append(f"time passes ms={milliseconds}")
        self.site.advance_ms(milliseconds)

    def _land_one(self) -> None:
        waiting = [store for process in self.processes for store in process.stores if store.late]
        if waiting:
            store = self._landings.choice(waiting)
            self._landed(store.land(self._landings.randrange(store.late)))

    def _landed(self, steps: list[Step]) -> None:
        self.late -= len(steps)
        self.counts.landed += len(steps)
        self.trace.extend(f"late {step.operation.value} {step.path} lands" for step in steps)
