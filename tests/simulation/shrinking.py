"""Makes a failing run small: fewer processes, fewer faults, fewer switches, as long as it fails in the same way.

Works on the recording alone: what is taken away is calm when it is played (see ``tape``).  What a smaller recording
has used is recorded again, so chances that nobody asks for any more are gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.simulation.playing import Played, play
from tests.simulation.tape import CALM, Recording
from tests.simulation.turns import World

_FIRST = ("weather", "deaths", "landings", "time")
_OF_EACH = ("faults", "schedule")


@dataclass(frozen=True, slots=True)
class Shrunk:
    """What became of a failing run.

    Attributes
    ----------
    played : Played
        The smallest run that fails in the same way.
    runs : int
        How many runs it took to find it.
    """

    played: Played
    runs: int


def shrink(world: World, failed: Played, budget: int = 400) -> Shrunk:
    """Return a smaller run that fails in the same way.

    Parameters
    ----------
    world : World
        What is simulated.
    failed : Played
        A run of it that failed.
    budget : int
        How many runs may be made.
    """
    search = _Search(world, failed, budget)
    search.leave_processes_out()
    for name in (*_FIRST, *(f"{name}/{kind}" for name in failed.names for kind in _OF_EACH)):
        search.attempt(search.best.recording.with_stream(name, ()))
    before = None
    while before != search.measure() and search.runs < budget:
        before = search.measure()
        for name in sorted(search.best.recording.streams):
            search.calm(name)
            search.cut(name)
            search.leave_processes_out()
    return Shrunk(search.best, search.runs)


class _Search:
    def __init__(self, world: World, failed: Played, budget: int) -> None:
        assert failed.failure is not None, "only what fails is shrunk"
        self.best = failed
        self.runs = 0
        self._world, self._budget = world, budget
        self._kind = failed.failure.kind
        self._tried: set[str] = set()

    def measure(self) -> tuple[int, int, int]:
        """Return how large the best run is; the first number counts most."""
        return _measure(self.best)

    def attempt(self, recording: Recording) -> bool:
        """Play a recording, and keep it when it is smaller and fails in the same way."""
        known = recording.encode()
        if recording == self.best.recording or known in self._tried or self.runs == self._budget:
            return False
        self._tried.add(known)
        self.runs += 1
        played = play(self._world, recording)
        same = played.failure is not None and played.failure.kind == self._kind
        if same and _measure(played) < self.measure():
            self.best = played
            return True
        return False

    def leave_processes_out(self) -> None:
        for name in self.best.names:
            recording = self.best.recording
            self.attempt(Recording(recording.streams, recording.absent | {name}))

    def calm(self, name: str) -> None:
        """Take chances away where they are: what comes after them stays in its place."""
        for start, end in self._chunks(name):
            values = self.best.recording.streams.get(name, ())
            if any(value != CALM for value in values[start:end]):
                calm = (CALM,) * len(values[start:end])
                self.attempt(self.best.recording.with_stream(name, (*values[:start], *calm, *values[end:])))

    def cut(self, name: str) -> None:
        """Take chances out: what comes after them comes sooner."""
        for start, end in self._chunks(name):
            values = self.best.recording.streams.get(name, ())
            if start < len(values):
                self.attempt(self.best.recording.with_stream(name, (*values[:start], *values[end:])))

    def _chunks(self, name: str) -> Iterator[tuple[int, int]]:
        """Yield places to try, from the whole stream to single chances, the last ones first."""
        length = len(self.best.recording.streams.get(name, ()))
        size = length
        while size:
            for start in range((length - 1) // size * size, -1, -size):
                yield start, start + size
            size //= 2


def _measure(played: Played) -> tuple[int, int, int]:
    return len(played.names), played.recording.size, played.steps
