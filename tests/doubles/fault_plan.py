"""What is to go wrong, and at which step of a stepping store; see ``stepping_store``.

Pure.  A rule picks steps by number, or by operation and path and which occurrence of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from txntable.storage.object_store import ObjectStore


class Operation(Enum):
    """What a step asks of the store."""

    GET = "get"
    HEAD = "head"
    LIST = "list"
    PUT = "put"
    PUT_IF_ABSENT = "put-if-absent"
    WRITE = "write"
    DELETE = "delete"


WRITES = frozenset({Operation.PUT, Operation.PUT_IF_ABSENT, Operation.WRITE, Operation.DELETE})


class Fault(Enum):
    """What happens to a step."""

    FAIL_BEFORE = "not done, and answered with StoreUnavailableError"
    LOST_ANSWER = "done, and answered with StoreUnavailableError"
    EXISTS_LOST = "put-if-absent: done, and answered EXISTS: a client tried again inside"
    CONFLICT_409 = "put-if-absent: not done, and answered EXISTS: another's was under way"
    LATE_LANDING = "answered with StoreUnavailableError, and done later"
    DUPLICATE = "done, and the same request is done again later"
    SLOW = "done, and answered after a while"
    STALE_LIST = "a list: answered as things were a while ago; no store that the probe accepts does it"
    TAKEN = "another writes first, then it is done"
    KILL_BEFORE = "the process dies before it is done"
    KILL_AFTER = "the process dies after it is done"


ONLY_PUT_IF_ABSENT = frozenset({Fault.EXISTS_LOST, Fault.CONFLICT_409})
ONLY_WRITES = frozenset({Fault.LATE_LANDING, Fault.DUPLICATE})

Intruder: TypeAlias = Callable[[ObjectStore, str], object]
Forecast: TypeAlias = "Callable[[Step], Rule | None]"


@dataclass(frozen=True, slots=True)
class Step:
    """One call of the store.

    Attributes
    ----------
    number : int
        From 1, in the order of the calls.
    operation : Operation
        What was asked.
    path : str
        The object, or the folder that is listed.
    outcome : str, optional
        What was answered: ``ok``, ``none``, ``created``, ``exists``, or an error's name; ``None``
        while it is being done.
    looks_beside : bool
        Whether the beginning of another object was read in the same step: one more GET.
    """

    number: int
    operation: Operation
    path: str
    outcome: str | None = None
    looks_beside: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that goes wrong.  Make it with :func:`at` or :func:`on`.

    Attributes
    ----------
    fault : Fault
        What happens.
    matches : Callable
        Whether a step is meant.
    occurrence : int, optional
        Which of the matching steps, from 1; ``None``: each.
    lands_at : int, optional
        The step before which a late landing, or a duplicate, is done; ``None``: when the test says so.
    intruder : Callable, optional
        For ``TAKEN``: gets the inner store and the path, and writes.
    meanwhile : Callable, optional
        For ``SLOW``: lets the time pass, and others do what they do.
    age_ms : int
        For ``STALE_LIST``: how old the answer is.
    """

    fault: Fault
    matches: Callable[[Step], bool]
    occurrence: int | None = 1
    lands_at: int | None = None
    intruder: Intruder | None = None
    meanwhile: Callable[[], object] | None = None
    age_ms: int = 0


def at(number: int, fault: Fault, *, lands_at: int | None = None, intruder: Intruder | None = None) -> Rule:
    """Return the rule that step `number` meets `fault`."""
    return Rule(fault, lambda step: step.number == number, 1, lands_at, intruder)


def on(  # noqa: PLR0913  read at the call, where each has its name
    operation: Operation | None,
    path: str | Callable[[str], bool],
    fault: Fault,
    *,
    occurrence: int | None = 1,
    lands_at: int | None = None,
    intruder: Intruder | None = None,
) -> Rule:
    """Return the rule that a step of that kind meets `fault`.

    Parameters
    ----------
    operation : Operation, optional
        ``None``: any.
    path : str or Callable
        A part of the path, or a predicate on it.
    fault : Fault
        What happens.
    occurrence : int, optional
        Which of the matching steps, from 1; ``None``: each.
    lands_at, intruder
        See :class:`Rule`.
    """

    def matches(step: Step) -> bool:
        named = path(step.path) if callable(path) else path in step.path
        return named and (operation is None or step.operation is operation)

    return Rule(fault, matches, occurrence, lands_at, intruder)
