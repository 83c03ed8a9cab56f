"""The states of a consumer group and the moves between them: a literal table (PROTOCOL.md §8.2).

The names are those of Kafka's consumer protocol (KIP-848).  Its ASSIGNING has no counterpart: whoever changes a group
computes the assignment in the same commit.  What state a group is *in* follows from its members alone (see
``txntable.coordinator.group``); the table says which states an operation can lead to.  Must not know of rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from txntable.coordinator.errors import IllegalStateError


class GroupState(Enum):
    """Where a group stands; the value is the stored name."""

    EMPTY = "EMPTY"
    """No members; the offsets stay.  A group without a row, but with offsets, is one."""
    RECONCILING = "RECONCILING"
    """A member has a partition that it has to release, because another, or nobody, is to have it."""
    STABLE = "STABLE"
    """Every member has exactly what it is to have."""
    DEAD = "DEAD"
    """The group was deleted or expired: its row is removed, never written in this state."""


class GroupOperation(Enum):
    """What may happen to a group."""

    JOIN = "JOIN"
    """A member joins, changes what it subscribes to, or comes back under its instance id."""
    LEAVE = "LEAVE"
    """A member leaves, or an admin removes it."""
    EXPEL = "EXPEL"
    """Someone saw that a member's session has expired."""
    RELEASE = "RELEASE"
    """A member gives up partitions that it is no longer to have."""
    REFRESH = "REFRESH"
    """A subscribed topic came, went, grew, or was created again."""
    DELETE = "DELETE"
    """An admin deletes the group, or it expires."""


_S = GroupState
_O = GroupOperation
_WITH_MEMBERS = frozenset({_S.RECONCILING, _S.STABLE})
_ANY = _WITH_MEMBERS | {_S.EMPTY}

VALID_TRANSITIONS: Mapping[tuple[GroupState, GroupOperation], frozenset[GroupState]] = {
    (_S.EMPTY, _O.JOIN): frozenset({_S.STABLE}),
    (_S.EMPTY, _O.DELETE): frozenset({_S.DEAD}),
    (_S.STABLE, _O.JOIN): _WITH_MEMBERS,
    (_S.STABLE, _O.LEAVE): _ANY,
    (_S.STABLE, _O.EXPEL): _ANY,
    (_S.STABLE, _O.REFRESH): _WITH_MEMBERS,
    (_S.RECONCILING, _O.JOIN): _WITH_MEMBERS,
    (_S.RECONCILING, _O.LEAVE): _ANY,
    (_S.RECONCILING, _O.EXPEL): _ANY,
    (_S.RECONCILING, _O.RELEASE): _WITH_MEMBERS,
    (_S.RECONCILING, _O.REFRESH): _WITH_MEMBERS,
}
"""The states that may follow when a state meets an operation; what is not here is illegal."""


def check_transition(state: GroupState, operation: GroupOperation, following: GroupState) -> GroupState:
    """Return `following` when the table has it.

    Parameters
    ----------
    state : GroupState
        The present state.
    operation : GroupOperation
        What happens to it.
    following : GroupState
        What the members say afterwards.

    Raises
    ------
    IllegalStateError
        The transition is illegal: read the group again.
    """
    if following not in VALID_TRANSITIONS.get((state, operation), frozenset()):
        raise IllegalStateError(
            "the group's state does not allow this: read the group again",
            state=state.value,
            operation=operation.value,
            following=following.value,
        )
    return following
