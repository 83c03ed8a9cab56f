"""What a rule of the checker finds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One anomaly in a history.

    Attributes
    ----------
    number : int
        Of the anomaly.
    name : str
        Its short name.
    facts : str
        What was seen; last as ``key=value``.
    violation : bool
        False: it is reported only, since nobody promises that it never happens.
    """

    number: int
    name: str
    facts: str
    violation: bool = True


def told(what: str, /, **facts: object) -> str:
    """Return a sentence and its facts as ``key=value``; places as ``topic/partition``."""
    return " ".join((f"{what}:", *(f"{name}={_shown(fact)}" for name, fact in facts.items())))


def _shown(fact: object) -> str:
    match fact:
        case (str() as topic, int() as partition):
            return f"{topic}/{partition}"
        case frozenset() | list():
            return ",".join(sorted(_shown(each) for each in fact))
    return str(fact)
