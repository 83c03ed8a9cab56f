"""The assignors by Kafka's names, and which one a group uses (PROTOCOL.md §8.2).

Kafka's own results for the same input; ``tests/unit/coordinator/test_assignors.py`` holds them against a recording.
Owns the choice among what the members support.  Racks play no part: there are no brokers to be near to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum

from txntable.coordinator.assignment import Assignment, AssignorInput
from txntable.coordinator.errors import InconsistentGroupProtocolError, UnsupportedAssignorError
from txntable.coordinator.range_assignor import assign_range
from txntable.coordinator.round_robin_assignor import assign_round_robin
from txntable.coordinator.sticky_assignor import assign_cooperative_sticky, assign_sticky, final_cooperative_sticky


class Assignor(Enum):
    """Kafka's assignors; the value is the name in ``partition.assignment.strategy``."""

    RANGE = "range"
    ROUND_ROBIN = "roundrobin"
    STICKY = "sticky"
    COOPERATIVE_STICKY = "cooperative-sticky"


# Java's clients are configured with their classes.
_CLASSES: Mapping[str, Assignor] = {
    f"org.apache.kafka.clients.consumer.{name}Assignor": assignor
    for name, assignor in (
        ("Range", Assignor.RANGE),
        ("RoundRobin", Assignor.ROUND_ROBIN),
        ("Sticky", Assignor.STICKY),
        ("CooperativeSticky", Assignor.COOPERATIVE_STICKY),
    )
}

DEFAULT_ASSIGNORS = (Assignor.RANGE, Assignor.COOPERATIVE_STICKY)

_ROUNDS: Mapping[Assignor, Callable[[AssignorInput], Assignment]] = {
    Assignor.RANGE: assign_range,
    Assignor.ROUND_ROBIN: assign_round_robin,
    Assignor.STICKY: assign_sticky,
    Assignor.COOPERATIVE_STICKY: assign_cooperative_sticky,
}


def assign(assignor: Assignor, group: AssignorInput) -> Assignment:
    """Return what Kafka's assignor returns: one round.

    Parameters
    ----------
    assignor : Assignor
        Which one.
    group : AssignorInput
        At least one member.
    """
    return _ROUNDS[assignor](group)


def target_assignment(assignor: Assignor, group: AssignorInput) -> Assignment:
    """Return where all partitions shall be in the end.

    Parameters
    ----------
    assignor : Assignor
        Which one.  Of the cooperative one, the assignment that Kafka's rounds come to when all give back their share.
    group : AssignorInput
        At least one member.
    """
    return (final_cooperative_sticky if assignor is Assignor.COOPERATIVE_STICKY else _ROUNDS[assignor])(group)


def assignors_of(names: Sequence[str]) -> tuple[Assignor, ...]:
    """Return the assignors that `names` name: by the names of the protocol, or by Java's classes.

    Raises
    ------
    UnsupportedAssignorError
        None is named, or one is unknown: name others.
    """
    by_name = {assignor.value: assignor for assignor in Assignor}
    known = {**by_name, **_CLASSES}
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        raise UnsupportedAssignorError(
            "no such assignor; name at least one of those that are supported",
            assignors=",".join(map(repr, names)),
            supported=",".join(by_name),
        )
    return tuple(dict.fromkeys(known[name] for name in names))


def select_assignor(supported: Collection[Sequence[Assignor]]) -> Assignor:
    """Return the assignor that a group uses: of those that all members support, the one that most prefer.

    Parameters
    ----------
    supported : collection of sequence of Assignor
        What each member supports, the best first; at least one member.

    Raises
    ------
    InconsistentGroupProtocolError
        They have none in common: configure the member like the others.
    """
    common = [assignor for assignor in Assignor if all(assignor in each for each in supported)]
    if not common:
        raise InconsistentGroupProtocolError(
            "the members of the group support no assignor in common; configure this member like the others",
            supported="; ".join(sorted({",".join(a.value for a in each) for each in supported})),
        )
    votes = Counter(next(assignor for assignor in each if assignor in common) for each in supported)
    return max(common, key=lambda assignor: votes[assignor])
