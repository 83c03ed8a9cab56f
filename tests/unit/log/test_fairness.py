"""Eight writers on one log, in virtual time: each gets its share (PROTOCOL.md §4.2 rule 9).

Every request takes a round trip of its writer's own time, and the writer whose time is the earliest
goes next.  A winner needs one request for its next commit and a loser at least three, so without
rule 9 who once wins goes on winning.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence

import pytest

from tests.doubles.fault_plan import Step
from tests.doubles.memory_store import MemoryStore
from tests.doubles.stepping_store import SteppingStore
from tests.unit.log.world import Process, World
from txntable.log import fairness
from txntable.log.outcome import Committed
from txntable.storage.object_store import StoredObject

WRITERS = 8
ROUND_TRIP_MS = 10.0
HORIZON_MS = 20_000


class RemoteDoor(SteppingStore):
    """A store that is asked for many objects at once, as a remote one is: one round trip for all."""

    in_parallel = False

    def get_many(self, paths: Sequence[str]) -> list[StoredObject | None]:
        first = self.get(paths[0])
        self.in_parallel = True
        try:
            return [first, *(self.get(path) for path in paths[1:])]
        finally:
            self.in_parallel = False


class Writer:
    """A thread that commits in its own virtual time, one storage call at a turn."""

    def __init__(self, world: World, number: int, back: threading.Semaphore) -> None:
        self.store = RemoteDoor(MemoryStore(world.objects), on_step=self.step)
        self.process = Process(world, self.store, number)
        self.random = random.Random(number)
        self.turn, self.back = threading.Semaphore(0), back
        self.commits, self.now_ms, self.ended = 0, 0.0, False
        self.process.environment.sleep_ms = self.pass_time  # type: ignore[method-assign]
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def pass_time(self, milliseconds: float) -> None:
        self.now_ms += milliseconds
        self.process.environment.advance_ms(milliseconds)

    def step(self, step: Step) -> None:
        if self.store.in_parallel:
            return
        # Some hundredths more or less: two calls never take exactly as long.
        self.pass_time(ROUND_TRIP_MS * self.random.uniform(0.99, 1.01))
        self.wait()

    def wait(self) -> None:
        self.back.release()
        self.turn.acquire()

    def run(self) -> None:
        self.turn.acquire()
        while self.now_ms < HORIZON_MS:
            assert isinstance(self.process.count(), Committed)
            self.commits += 1
        self.ended = True
        self.back.release()


def commits_of_each() -> list[int]:
    """Run the writers side by side; return how often each committed."""
    world = World()
    world.process().create()
    back = threading.Semaphore(0)
    writers = [Writer(world, number, back) for number in range(WRITERS)]
    while waiting := [writer for writer in writers if not writer.ended]:
        min(waiting, key=lambda writer: writer.now_ms).turn.release()
        back.acquire()
    return sorted(writer.commits for writer in writers)


def test_each_of_eight_writers_gets_at_least_half_of_an_equal_share() -> None:
    commits = commits_of_each()

    assert commits[0] >= sum(commits) / WRITERS / 2, commits
    assert sum(commits) * ROUND_TRIP_MS >= HORIZON_MS * 0.6, "and the log is not left idle"


def test_without_the_waiting_rule_some_writer_gets_less_than_half_of_an_equal_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So that the test above is known to be able to fail."""
    monkeypatch.setattr(fairness, "POLITE_COMMITS", 0)
    monkeypatch.setattr(fairness, "ALONE_COMMITS", HORIZON_MS)

    commits = commits_of_each()

    assert commits[0] < sum(commits) / WRITERS / 2, commits
