"""What a mutant is: one fault of the protocol, and who must find it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Edit:
    """A piece of one file's text, which is there exactly once, and what takes its place."""

    file: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Killer:
    """Who finds a mutant.

    Attributes
    ----------
    world : str
        A name of :data:`tests.mutants.worlds.WORLDS`.
    seed : int or None
        A run that finds it; ``None``: it is looked for.
    runs : int
        How many runs a search takes, at most.
    """

    world: str
    seed: int | None = None
    runs: int = 150


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault of the protocol.

    Attributes
    ----------
    name : str
        For the command line.
    breaks : str
        What the code does then, in one sentence.
    rule : str
        The section of PROTOCOL.md, and where it has numbers the rule, that forbids it.
    edits : tuple of Edit
        Usually one; several where a rule is kept in more than one place.
    killer : Killer
        Who finds it.
    """

    name: str
    breaks: str
    rule: str
    edits: tuple[Edit, ...]
    killer: Killer
