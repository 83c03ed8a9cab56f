"""What a model is made of: actions with their rules, and invariants, each tied to a section of PROTOCOL.md.

An action is one atomic step of one process.  What its program says (where the process stands) and
what the protocol forbids are apart: a *rule* is a condition that can be taken away alone, which is
what a mutant of the model is.  Must not know any protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

W = TypeVar("W")


@dataclass(frozen=True, slots=True)
class Rule(Generic[W]):
    """What the protocol asks of an action, beyond what the program of the process says.

    Attributes
    ----------
    name : str
        As the mutants name it.
    section : str
        Of PROTOCOL.md, with the number of the rule there if it has one: ``4.2 rule 1``.
    holds : callable
        (world, process) -> whether the action may be taken.
    """

    name: str
    section: str
    holds: Callable[[W, int], bool]


@dataclass(frozen=True, slots=True)
class Action(Generic[W]):
    """One row of the transition table.

    Attributes
    ----------
    name : str
        A verb of the protocol.
    section : str
        Of PROTOCOL.md.
    processes : sequence of int
        Who takes it.
    at : callable
        (world, process) -> whether its program stands there.
    effect : callable
        (world, process) -> the next world.
    rules : tuple of Rule
        All of them must hold.
    """

    name: str
    section: str
    processes: Sequence[int]
    at: Callable[[W, int], bool]
    effect: Callable[[W, int], W]
    rules: tuple[Rule[W], ...] = ()


@dataclass(frozen=True, slots=True)
class Invariant(Generic[W]):
    """What is true of every world.

    Attributes
    ----------
    name : str
        In the field's words.
    section : str
        Of PROTOCOL.md.
    origin : str
        Kafka's rule or improvement proposal, or where else it is known from.
    holds : callable
        World -> bool.
    """

    name: str
    section: str
    origin: str
    holds: Callable[[W], bool]


@dataclass(frozen=True, slots=True)
class Model(Generic[W]):
    """A transition system.

    Attributes
    ----------
    name : str
        With its size.
    initial : world
        Where it begins.
    actions : tuple of Action
        The transition table.
    invariants : tuple of Invariant
        Of every world that is reached.
    at_rest : tuple of Invariant
        Of every world in which no action is left.
    """

    name: str
    initial: W
    actions: tuple[Action[W], ...]
    invariants: tuple[Invariant[W], ...]
    at_rest: tuple[Invariant[W], ...] = ()

    def rules(self) -> dict[str, str]:
        """Return the section of each rule by its name."""
        return {rule.name: rule.section for action in self.actions for rule in action.rules}

    def without(self, names: Iterable[str]) -> Model[W]:
        """Return the mutant that lacks these rules.

        Raises
        ------
        KeyError
            There is no such rule.
        """
        gone = set(names)
        if unknown := gone - set(self.rules()):
            raise KeyError(f"no such rule: {sorted(unknown)}")
        actions = tuple(
            replace(action, rules=tuple(rule for rule in action.rules if rule.name not in gone))
            for action in self.actions
        )
        return replace(self, name=f"{self.name} without {', '.join(sorted(gone))}", actions=actions)
