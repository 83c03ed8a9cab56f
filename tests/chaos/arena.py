"""The processes of a chaos run, and the hand that kills, pauses and replaces them.

Owns every process that it starts: none outlives it.  Nothing here waits for a time alone, but for what is to have
happened by then; where that never comes, the run fails with what is missing.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from tests.chaos.blows import Blow, blows, http_faults
from tests.chaos.premises import Site
from tests.chaos.progress import COMMITTED, PROOFS, Progress
from tests.chaos.scenario import Kind, Scenario, Who
from tests.chaos.worker import history_path, last_words_path, work
from tests.checker.gathering import Stored
from tests.doubles.faulty_proxy import FaultyServer
from txntable.runtime.environment import SystemEnvironment

# A process that has loaded everything, and nothing else, makes the others: one that loads by itself takes seconds.
_NURSERY = multiprocessing.get_context("forkserver")
_NURSERY.set_forkserver_preload(["tests.chaos.worker"])
_TICK_MS = 20
# For what must happen; only so that a run that hangs fails.
PATIENCE_MS = 900_000
# How long one that was paused lives on beside its successor.
_AFTERLIFE_MS = 1_500


@dataclass
class Worker:
    """One process.

    Attributes
    ----------
    resumes_ms : int or None
        When it is to go on, of one that is paused.
    dies_ms : int or None
        When it is to be killed, of one that has a successor.
    """

    who: Who
    name: str
    process: ForkServerProcess
    history: Path
    paused_ms: int | None = None
    resumes_ms: int | None = None
    dies_ms: int | None = None

    @property
    def has_begun(self) -> bool:
        """Whether it has asked the warehouse for anything."""
        return self.history.exists() and self.history.stat().st_size > 0


@dataclass
class Arena:
    """A run.

    Attributes
    ----------
    site : Site
        Where.
    scenario : Scenario
        What happens.
    stored : callable
        Returns what the store has, and had, read past the product.
    server : FaultyServer, optional
        Whose answers go wrong now and then.
    counts : Counter of str
        What was done to the processes.
    longest_pause_ms : int
        From its stop until it was told to go on.
    """

    site: Site
    scenario: Scenario
    stored: Callable[[], Stored]
    server: FaultyServer | None = None
    counts: Counter[str] = field(default_factory=Counter)
    longest_pause_ms: int = 0

    def __post_init__(self) -> None:
        self._environment = SystemEnvironment()
        self._began = self._environment.instant()
        self._path = str(self.site.save())
        self._started: list[ForkServerProcess] = []
        self._serving: dict[Who, Worker] = {}
        self._replaced: list[Worker] = []
        self._absent: dict[Who, int] = {}
        self._due: list[Blow] = []

    @contextmanager
    def open(self) -> Iterator[None]:
        """Start everybody; in the end everybody is dead."""
        try:
            for who in self.scenario.everybody:
                self._start(who)
            yield
        finally:
            for process in self._started:
                end(process)

    # -- the run ----------------------------------------------------------------------------

    def run(self, seconds: float) -> None:
        """Strike for so long, and go on until everybody is awake and in their place, and the warehouse serves.

        That is: after the last blow a transaction is committed, a snapshot read, and a record polled.
        """
        self.wait_until("begun", lambda: all(worker.has_begun for worker in self._serving.values()))
        first, pauses_ms = self.scenario.first_blows, self.scenario.pauses_ms
        schedule = blows(self.site.seed, self.scenario.victims, first, pauses_ms)
        faults, began_ms = http_faults(self.site.seed, held=self.scenario.held), self._now_ms()
        next_blow, next_fault_ms, dealt = next(schedule), 0, 0
        due_ms = began_ms + next_blow.after_ms
        while self._now_ms() - began_ms < seconds * 1000 or dealt < len(first):
            if self._now_ms() >= due_ms:
                # Who takes long to begin on a busy machine has one blow waiting, and no queue of them at the end.
                if dealt < len(first) or next_blow.victim not in {each.victim for each in self._due}:
                    self._due.append(next_blow)
                dealt += 1
                next_blow = next(schedule)
                due_ms = self._now_ms() + next_blow.after_ms
            if self.server is not None and self._now_ms() >= next_fault_ms:
                after_ms, rule, delivered = next(faults)
                self.counts["late"] += len(self.server.deliver(delivered))
                self.server.follow(rule)
                next_fault_ms = self._now_ms() + after_ms
            self._tick()
        self.wait_until("struck, awake and replaced", self._is_quiet)
        progress = Progress(worker.history for worker in self._all())
        for proof in PROOFS if self.scenario.reads else (COMMITTED,):
            self.wait_until(f"{proof} after the last blow", partial(progress.shows, proof))
        if self.server is not None:
            self.server.heal()
            self.counts["late"] += len(self.server.deliver())

    def wait_until(self, what: str, happened: Callable[[], bool]) -> None:
        """Let time pass until something has happened."""
        began = self._environment.instant()
        while not happened():
            assert self._environment.since_ms(began) < PATIENCE_MS, f"never {what}: {self._state()}"
            self._tick()

    def stop(self, *, but: Collection[str] = ()) -> None:
        """Tell everybody to end, but those of some roles, and see that they do."""
        leaving = [worker for who, worker in self._serving.items() if who[0] not in but]
        for worker in leaving:
            del self._serving[worker.who]
            worker.process.terminate()
        for worker in leaving:
            self._end(worker)

    def _end(self, worker: Worker) -> None:
        worker.process.join(PATIENCE_MS / 1000)
        code = worker.process.exitcode
        end(worker.process)
        # One that had not come as far as to listen dies of the word.
        assert code in (0, -signal.SIGTERM), self._last_words(worker)

    # -- one moment -------------------------------------------------------------------------

    def _tick(self) -> None:
        now_ms = self._now_ms()
        for worker in self._all():
            assert worker.process.is_alive(), self._last_words(worker)
            if worker.resumes_ms is not None and worker.resumes_ms <= now_ms:
                self._resume(worker, now_ms)
            elif worker.dies_ms is not None and worker.resumes_ms is None and worker.dies_ms <= now_ms:
                self._kill(worker)
                self._replaced.remove(worker)
        for who in [who for who, at_ms in self._absent.items() if at_ms <= now_ms]:
            del self._absent[who]
            self._start(who)
            self.counts["restarts"] += 1
        for blow in list(self._due):
            victim = self._serving.get(blow.victim)
            if victim is not None and victim.has_begun and victim.resumes_ms is None:
                self._due.remove(blow)
                self._strike(victim, blow, now_ms)
        self._environment.sleep_ms(_TICK_MS)

    def _strike(self, worker: Worker, blow: Blow, now_ms: int) -> None:
        if blow.kind is Kind.KILL:
            self._kill(worker)
            del self._serving[worker.who]
            self._absent[worker.who] = now_ms + blow.lasts_ms
            return
        signal_to(worker.process, signal.SIGSTOP)
        worker.paused_ms, worker.resumes_ms = now_ms, now_ms + blow.lasts_ms
        self.counts["pauses"] += 1
        if blow.kind is Kind.DOUBLE:
            worker.dies_ms = worker.resumes_ms + _AFTERLIFE_MS
            self._replaced.append(worker)
            self._start(worker.who)
            self.counts["doubles"] += 1

    def _resume(self, worker: Worker, now_ms: int) -> None:
        assert worker.paused_ms is not None
        signal_to(worker.process, signal.SIGCONT)
        self.longest_pause_ms = max(self.longest_pause_ms, now_ms - worker.paused_ms)
        worker.paused_ms = worker.resumes_ms = None
        if worker.dies_ms is not None:
            worker.dies_ms = now_ms + _AFTERLIFE_MS

    def _kill(self, worker: Worker) -> None:
        end(worker.process)
        # The kill is what it died of.
        self.counts["kills"] += worker.process.exitcode == -signal.SIGKILL

    def _start(self, who: Who) -> None:
        role, name = who
        self.counts["processes"] += 1
        name = f"{role}-{name}-{self.counts['processes']}"
        process = _NURSERY.Process(target=work, args=(self._path, *who, name), daemon=True)
        process.start()
        self._started.append(process)
        self._serving[who] = Worker(who, name, process, history_path(self.site, name))

    # -- looking ----------------------------------------------------------------------------

    def serving(self) -> dict[Who, int]:
        """Return the ids of the processes that have their places now."""
        return {who: each.process.pid for who, each in list(self._serving.items()) if each.process.pid is not None}

    def _is_quiet(self) -> bool:
        awake = all(worker.resumes_ms is None and worker.has_begun for worker in self._serving.values())
        return awake and not (self._due or self._absent or self._replaced)

    def _all(self) -> list[Worker]:
        return [*self._serving.values(), *self._replaced]

    def _now_ms(self) -> int:
        return self._environment.since_ms(self._began)

    def _state(self) -> str:
        late = [worker.name for worker in self._all() if not worker.has_begun or worker.resumes_ms is not None]
        return f"late={late} absent={list(self._absent)} due={self._due}"

    def _last_words(self, worker: Worker) -> str:
        path = last_words_path(self.site, worker.name)
        said = path.read_text(errors="replace") if path.exists() else ""
        return f"{worker.name} has died by itself, code {worker.process.exitcode}:\n{said[-4000:]}"


def end(process: ForkServerProcess) -> None:
    """Kill a process, also one that is paused, and wait until it is gone."""
    process.kill()
    process.join()


def signal_to(process: ForkServerProcess, number: signal.Signals) -> None:
    """Send a signal to a process that was started and not waited for yet: its id is no other's."""
    assert process.pid is not None
    os.kill(process.pid, number)
