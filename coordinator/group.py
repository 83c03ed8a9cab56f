"""The row of a consumer group: what the offset log keeps of it (PROTOCOL.md §8.2).

A row is a value.  Invariants, checked whenever a row comes to be (from code or from a store):

* a partition is owned by at most one member, and is to be had by at most one;
* a partition that a member is to have and does not own is owned by another: what is free is given at once;
* no ownership epoch is above the generation;
* the state is the one that the members say.

Whether a *request* is to be granted is not known here: see ``txntable.coordinator.group_shard``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from txntable.coordinator.assignment import NamedPartition
from txntable.coordinator.assignors import Assignor
from txntable.coordinator.enrolment import LARGEST_PARTITION_COUNT
from txntable.coordinator.errors import (
    DamagedDataError,
    GroupMaxSizeReachedError,
    IllegalStateError,
    InvalidRequestError,
)
from txntable.coordinator.group_member import GroupMember, decode_assignor, decode_member, encode_member
from txntable.coordinator.group_state import GroupOperation, GroupState, check_transition
from txntable.coordinator.row_json import Fields, check_stored_name, decode_object, decode_row, encode_key, encode_row
from txntable.coordinator.topic_name import is_topic_id, is_topic_name

LARGEST_ROW_BYTES = 1024 * 1024
"""A row travels in every commit that changes the group, and in every checkpoint of the offset log."""

_WHAT = "group"
_REQUIRED: Fields = {"group": str, "generation": int, "state": str, "position": int}
_OPTIONAL: Fields = {"assignor": str, "topics": dict, "members": list}


@dataclass(frozen=True, slots=True)
class GroupTopic:
    """A subscribed topic that exists, as the last assignment saw it.

    Attributes
    ----------
    topic_id : str
        32 hex digits: a topic that is created again is another.
    partitions : int
        How many it has.
    """

    topic_id: str
    partitions: int


@dataclass(frozen=True, slots=True)
class GroupRow:
    """The row of one group.

    Attributes
    ----------
    group : str
        The key.
    generation : int
        Kafka's generation or group epoch: rises whenever the assignment is computed anew.
    state : GroupState
        Where it stands.
    position : int
        The version of the offset log that wrote this row.
    assignor : Assignor, optional
        What computed the assignment; ``None`` while the group is empty.
    topics : Mapping of str to GroupTopic
        The subscribed topics that exist, by name.
    members : Mapping of str to GroupMember
        By member id, ascending.

    Raises
    ------
    InvalidRequestError
        The group's name is no valid one.
    DamagedDataError
        The fields contradict one another.
    """

    group: str
    generation: int
    state: GroupState
    position: int
    assignor: Assignor | None = None
    topics: Mapping[str, GroupTopic] = field(default_factory=dict)
    members: Mapping[str, GroupMember] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_stored_name(self.group, "a group")
        for name, holds in _invariants(self).items():
            if not holds:
                raise DamagedDataError(
                    f"a group's row contradicts itself: {name}", group=self.group, position=self.position
                )

    @property
    def key(self) -> str:
        """The row's key in the offset log."""
        return encode_key(self.group)

    @property
    def subscribed_topics(self) -> frozenset[str]:
        """What the members subscribe to together, existing or not."""
        return frozenset(topic for member in self.members.values() for topic in member.topics)

    def moved(self, operation: GroupOperation, position: int, **changes: Any) -> GroupRow:
        """Return the row that follows when `operation` changes it so; its state is what its members say.

        Raises
        ------
        IllegalStateError
            The state does not allow the operation, or `position` is not above the row's.
        """
        if position <= self.position:
            raise IllegalStateError(
                "a row can only be written above the version that it was read from: read the log again",
                position=position,
                read=self.position,
            )
        members: Mapping[str, GroupMember] = changes.get("members", self.members)
        state = GroupState.DEAD if operation is GroupOperation.DELETE else _state_of(members)
        return replace(self, state=check_transition(self.state, operation, state), position=position, **changes)

    def to_json(self) -> str:
        """Return the stored form (column ``_row``).

        Raises
        ------
        IllegalStateError
            The row is dead: remove its key instead.
        GroupMaxSizeReachedError
            It would be too large: use fewer members, or fewer topics and partitions.
        """
        if self.state is GroupState.DEAD:
            raise IllegalStateError("a dead group is removed, not written", group=self.group)
        text = encode_row(
            {
                "group": self.group,
                "generation": self.generation,
                "state": self.state.value,
                "assignor": None if self.assignor is None else self.assignor.value,
                "topics": {name: _encode_topic(topic) for name, topic in sorted(self.topics.items())} or None,
                "members": [encode_member(member) for member in self.members.values()] or None,
                "position": self.position,
            }
        )
        if len(text.encode()) > LARGEST_ROW_BYTES:
            raise GroupMaxSizeReachedError(
                "the group's row would be too large; use fewer members, topics or partitions",
                group=self.group,
                members=len(self.members),
                largest_bytes=LARGEST_ROW_BYTES,
            )
        return text

    @classmethod
    def from_json(cls, text: str) -> GroupRow:
        """Return the row that `text` stores.

        Raises
        ------
        DamagedDataError
            It contradicts the format or itself.
        UnsupportedFormatError
            It is of a format that this version does not know.
        """
        fields = decode_row(text, _WHAT, _REQUIRED, _OPTIONAL)
        members = [decode_member(member) for member in fields.pop("members") or []]
        assignor = fields.pop("assignor")
        if [member.member_id for member in members] != sorted({member.member_id for member in members}):
            raise DamagedDataError("a stored group's members are not ascending, each once", row=_WHAT)
        try:
            return cls(
                state=_decode_state(fields.pop("state")),
                assignor=None if assignor is None else decode_assignor(assignor),
                topics={name: _decode_topic(name, topic) for name, topic in (fields.pop("topics") or {}).items()},
                members={member.member_id: member for member in members},
                **fields,
            )
        except InvalidRequestError as error:
            raise DamagedDataError("a stored row holds a name that no call accepts", row=_WHAT) from error


def empty_group(group: str) -> GroupRow:
    """Return the group before its first join: never stored."""
    return GroupRow(group, 0, GroupState.EMPTY, -1)


def members_by_id(members: Iterable[GroupMember]) -> dict[str, GroupMember]:
    """Return members by their ids, ascending."""
    return {member.member_id: member for member in sorted(members, key=lambda member: member.member_id)}


def _state_of(members: Mapping[str, GroupMember]) -> GroupState:
    if not members:
        return GroupState.EMPTY
    reconciling = any(member.to_release for member in members.values())
    return GroupState.RECONCILING if reconciling else GroupState.STABLE


def _invariants(row: GroupRow) -> dict[str, bool]:
    """Return what must hold of a row, each with whether it does."""
    members = row.members.values()
    owned = Counter(partition for member in members for partition in member.owned)
    target = Counter(partition for member in members for partition in member.target)
    instances = [member.instance_id for member in members if member.instance_id is not None]
    return {
        "no name is empty": all(member.member_id and member.instance_id != "" for member in members),
        "no instance id is there twice": len(set(instances)) == len(instances),
        "a partition has one owner": _at_most_once(owned),
        "a partition is to go to one member": _at_most_once(target),
        "what is free is given": all(owned[each] for member in members for each in member.awaited),
        "what is to be had exists": all(each[1] < _partitions(row, each[0]) for each in target),
        "no ownership or join is later than the generation": all(
            epoch <= row.generation
            for member in members
            for epoch in (member.joined_generation, *member.owned.values())
        ),
        "a group with members has an assignor": bool(members) == (row.assignor is not None),
        "the state is what the members say": row.state in {_state_of(row.members), GroupState.DEAD},
    }


def _at_most_once(counts: Counter[NamedPartition]) -> bool:
    return all(count == 1 for count in counts.values())


def _partitions(row: GroupRow, topic: str) -> int:
    return row.topics[topic].partitions if topic in row.topics else 0


def _encode_topic(topic: GroupTopic) -> dict[str, object]:
    return {"topic_id": topic.topic_id, "partitions": topic.partitions}


def _decode_topic(name: str, document: object) -> GroupTopic:
    topic = GroupTopic(**decode_object(document, _WHAT, {"topic_id": str, "partitions": int}, {}))
    is_named = is_topic_name(name) and is_topic_id(topic.topic_id)
    if not is_named or not 0 <= topic.partitions <= LARGEST_PARTITION_COUNT:
        raise DamagedDataError("a stored group holds a topic that cannot be", row=_WHAT, partitions=topic.partitions)
    return topic


def _decode_state(name: str) -> GroupState:
    if name not in GroupState.__members__ or name == GroupState.DEAD.name:
        raise DamagedDataError("a stored row has an unknown state", row=_WHAT, state=name)
    return GroupState[name]
