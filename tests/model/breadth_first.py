"""Exploring every world that a model can reach, nearest first, so that a counterexample is a shortest one.

Must not know any model.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from tests.model.transition_system import Invariant, Model

W = TypeVar("W")


@dataclass(frozen=True, slots=True)
class Violation:
    """An invariant that does not hold, and a shortest way there.

    Attributes
    ----------
    invariant : str
        Its name.
    trace : tuple of str
        ``<action> by <process>``, one after the other.
    """

    invariant: str
    trace: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Exploration:
    """What was explored.

    Attributes
    ----------
    model : str
        The model's name.
    states, transitions, depth : int
        Distinct worlds, steps between them, and the length of the longest of the shortest ways.
    complete : bool
        Whether nothing was left out.
    taken : dict of str to int
        How often each action was taken.
    violation : Violation or None
        The first one; exploring ends there.
    """

    model: str
    states: int
    transitions: int
    depth: int
    complete: bool
    taken: dict[str, int]
    violation: Violation | None


def never_taken(explorations: Iterable[Exploration]) -> set[str]:
    """Return the actions that a model never takes in any of its sizes: those with the same actions are one model.

    Whatever such an action leads to was not explored, and a rule that lets it happen was not tried.
    """
    models: dict[frozenset[str], Counter[str]] = {}
    for found in explorations:
        models.setdefault(frozenset(found.taken), Counter()).update(found.taken)
    return {action for actions, taken in models.items() for action in actions if not taken[action]}


class BreadthFirst(Generic[W]):
    """One exploration.

    Parameters
    ----------
    model : Model
        What is explored.
    most_states : int or None
        Stop there.
    """

    def __init__(self, model: Model[W], most_states: int | None = None) -> None:
        self._model, self._most = model, most_states
        self._came: dict[W, tuple[W, str] | None] = {model.initial: None}
        self._taken = dict.fromkeys((action.name for action in model.actions), 0)
        self._transitions = self._depth = 0
        self._rows = [
            (each.at, process, each, f"{each.name} by {process}")
            for each in model.actions
            for process in each.processes
        ]

    def explore(self) -> Exploration:
        """Explore until an invariant is violated, nothing is left, or there are too many states."""
        was_enabled = gc.isenabled()
        # Worlds are tuples, none of them in a cycle: looking for cycles among a million is all that it would do.
        gc.disable()
        try:
            return self._explore()
        finally:
            if was_enabled:
                gc.enable()

    def _explore(self) -> Exploration:
        frontier = [self._model.initial]
        if broken := self._broken(self._model.initial, self._model.invariants):
            return self._result(Violation(broken, ()), complete=False)
        while frontier:
            found: list[W] = []
            for world in frontier:
                violation = self._expand(world, found)
                if violation is not None:
                    return self._result(violation, complete=False)
                if self._most is not None and len(self._came) >= self._most:
                    return self._result(None, complete=False)
            frontier = found
            self._depth += bool(found)
        return self._result(None, complete=True)

    def _expand(self, world: W, found: list[W]) -> Violation | None:
        at_rest = True
        for action, after in self._steps(world):
            at_rest = False
            self._transitions += 1
            if after not in self._came:
                self._came[after] = (world, action)
                found.append(after)
                if broken := self._broken(after, self._model.invariants):
                    return Violation(broken, self._trace(after))
        if at_rest and (broken := self._broken(world, self._model.at_rest)):
            return Violation(broken, self._trace(world))
        return None

    def _steps(self, world: W) -> Iterator[tuple[str, W]]:
        for at, process, action, step in self._rows:
            if at(world, process) and (not action.rules or all(rule.holds(world, process) for rule in action.rules)):
                self._taken[action.name] += 1
                yield step, action.effect(world, process)

    def _broken(self, world: W, invariants: tuple[Invariant[W], ...]) -> str | None:
        return next((each.name for each in invariants if not each.holds(world)), None)

    def _trace(self, world: W) -> tuple[str, ...]:
        steps: list[str] = []
        came = self._came[world]
        while came is not None:
            world, step = came
            steps.append(step)
            came = self._came[world]
        return tuple(reversed(steps))

    def _result(self, violation: Violation | None, *, complete: bool) -> Exploration:
        return Exploration(
            self._model.name,
            len(self._came),
            self._transitions,
            self._depth,
            complete,
            self._taken,
            violation,
        )
