"""Descriptions of consumer groups for admins: values, in Kafka's terms.  Must not know of storage."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from txntable.coordinator.error_kinds import shown
from txntable.coordinator.group_state import GroupState
from txntable.errors import InvalidRequestError
from txntable.format.records import TopicPartition

_STATES = {state.value.casefold(): state for state in GroupState if state is not GroupState.DEAD}


@dataclass(frozen=True, slots=True)
class GroupListing:
    """A group in a list.

    Attributes
    ----------
    group_id : str
        Its name.
    state : GroupState
        The group's state, for whoever looks at it now: silent members count no more.
    is_simple : bool
        Whether it only has offsets, from consumers that assign their partitions themselves.
    """

    group_id: str
    state: GroupState
    is_simple: bool


@dataclass(frozen=True, slots=True)
class MemberDescription:
    """A member of a group.

    Attributes
    ----------
    member_id : str
        The id that the member generated.
    group_instance_id : str or None
        The instance id of a static member.
    client_id, host : str
        For display; may be empty.
    topics : tuple of str
        The topics that it subscribes to.
    member_epoch : int
        The generation of its last join.
    assignment : tuple of TopicPartition
        The partitions that it owns.
    target_assignment : tuple of TopicPartition
        The partitions that it will own once others have released them.
    session_timeout_ms : int
        Without a heartbeat for longer than this, it may be expelled.
    heartbeat_age_ms : int
        Time since its last heartbeat, by the store's clock.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    host: str
    topics: tuple[str, ...]
    member_epoch: int
    assignment: tuple[TopicPartition, ...]
    target_assignment: tuple[TopicPartition, ...]
    session_timeout_ms: int
    heartbeat_age_ms: int


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A consumer group.

    Attributes
    ----------
    group_id : str
        Its name.
    state : GroupState
        The group's state, for whoever looks at it now: silent members count no more.
    generation : int
        Kafka's group epoch; 0 for a group that never had a member.
    partition_assignor : str or None
        The assignor that computed the assignment; ``None`` without members.
    members : tuple of MemberDescription
        Ascending by member id.
    is_simple : bool
        Whether it only has offsets.
    silent_members : tuple of MemberDescription
        Who has been silent for longer than its session timeout and was not expelled yet: the next member of the group,
        the coordinator job or a change of the group by an admin does.
    """

    group_id: str
    state: GroupState
    generation: int
    partition_assignor: str | None
    members: tuple[MemberDescription, ...]
    is_simple: bool
    silent_members: tuple[MemberDescription, ...] = ()


def group_states(states: Collection[str | GroupState] | None) -> frozenset[GroupState]:
    """Return the states that a caller named; none named: all.

    Raises
    ------
    InvalidRequestError
        There is no such state, or `states` is no collection.
    """
    if isinstance(states, str | bytes) or (states is not None and not isinstance(states, Collection)):
        raise InvalidRequestError("states must be a list of states; wrap the state in a list", states=shown(states))
    return frozenset(_state(state) for state in states or ()) or frozenset(_STATES.values())


def _state(given: object) -> GroupState:
    state = _STATES.get((given.value if isinstance(given, GroupState) else str(given)).casefold())
    if state is None:
        raise InvalidRequestError(
            "unknown group state; use one of the known ones",
            state=shown(given),
            known=",".join(found.value for found in _STATES.values()),
        )
    return state
