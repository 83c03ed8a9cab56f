"""What is explored: a few processes, how much may go wrong, and what must come of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.doubles.memory_store import MemoryObjects
from tests.exploration.process_tree import Code
from tests.simulation.site import Site


@dataclass(frozen=True, slots=True)
class Bound:
    """How much may go wrong in one run.

    Attributes
    ----------
    kills, faults, jumps : int
        At most so many deaths, faults of the store, and steps of time.
    any_call : bool
        Whether every call can meet a fault, or log entries' puts only.
    """

    kills: int = 0
    faults: int = 0
    jumps: int = 0
    any_call: bool = False

    def __str__(self) -> str:
        where = "any call" if self.any_call else "a commit's put"
        faults = f"faults <= {self.faults} at {where}" if self.faults else "no faults"
        return f"interleavings: all; kills <= {self.kills}; {faults}; clock steps <= {self.jumps}"


@dataclass(frozen=True, slots=True)
class Program:
    """A few processes, and what must come of them.

    Attributes
    ----------
    name : str
        For people.
    base : Callable
        Makes the store that they begin with.
    processes : mapping of str to Callable
        What each does.
    check : Callable
        Gets each different end, fails when a promise is broken, and returns the end's names.
    ends : frozenset of str
        Names that must be among them.
    bounds : tuple of Bound
        A small one for each build (``None``: not there), and a larger one.
    jump_ms : int
        How long a step of time is.
    begins_ms : int
        How much time passes after all are ready.
    """

    name: str
    base: Callable[[], Site]
    processes: Mapping[str, Code]
    check: Callable[[End], set[str]]
    ends: frozenset[str]
    bounds: tuple[Bound | None, Bound]
    jump_ms: int = 0
    begins_ms: int = 0


@dataclass(frozen=True, slots=True)
class End:
    """How a run may end.

    Attributes
    ----------
    objects : MemoryObjects
        The store; one's own copy.
    time_ms : int
        Since the beginning.
    told : mapping of str to tuple of str
        What each process was told; ``killed`` is the last of one that was.
    """

    objects: MemoryObjects
    time_ms: int
    told: Mapping[str, tuple[str, ...]]

    @property
    def facts(self) -> set[str]:
        """What any process was told."""
        return {fact for facts in self.told.values() for fact in facts}
