"""How a group gets a new generation: the assignment is computed, and what is free is given (PROTOCOL.md §8.2).

Owns the rule that nothing is ever taken from a member: an assignment says what each member is *to have*; what
another member owns stays with it until it releases it.  So a partition has one owner at any time, and a join elsewhere
does not harm who is at work for hours.  Must not know of requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from txntable.coordinator.assignment import AssignorInput, NamedPartition, Subscriber
from txntable.coordinator.assignors import select_assignor, target_assignment
from txntable.coordinator.group import GroupRow, GroupTopic, members_by_id
from txntable.coordinator.group_member import GroupMember
from txntable.coordinator.group_state import GroupOperation

Members = Mapping[str, GroupMember]


def reassigned(
    row: GroupRow,
    operation: GroupOperation,
    members: Iterable[GroupMember],
    topics_found: Mapping[str, GroupTopic | None],
    position: int,
) -> GroupRow:
    """Return the row of the next generation.

    Parameters
    ----------
    row : GroupRow
        The group as it is.
    operation : GroupOperation
        Why.
    members : iterable of GroupMember
        All that it then has.
    topics_found : Mapping of str to GroupTopic or None
        What the caller found of its topics; of the others, the row's knowledge stays.
    position : int
        The slot decided on.

    Raises
    ------
    InconsistentGroupProtocolError
        The members support no assignor in common.
    """
    generation = row.generation + 1
    by_id = members_by_id(members)
    if not by_id:
        return row.moved(operation, position, generation=generation, assignor=None, topics={}, members={})
    topics = _topics(row, by_id, topics_found)
    kept = {name: replace(member, owned=_existing(row, topics, member)) for name, member in by_id.items()}
    assignor = select_assignor([member.assignors for member in kept.values()])
    target = target_assignment(assignor, _assignor_input(kept, topics))
    aimed = {name: replace(member, target=frozenset(target[name])) for name, member in kept.items()}
    return row.moved(
        operation,
        position,
        generation=generation,
        assignor=assignor,
        topics=topics,
        members=with_free_given(aimed, generation),
    )


def with_free_given(members: Members, generation: int) -> dict[str, GroupMember]:
    """Return the members when each has got what it is to have and nobody owns.

    Parameters
    ----------
    members : Mapping of str to GroupMember
        By member id.
    generation : int
        The ownership epoch of what is given.
    """
    taken = {partition for member in members.values() for partition in member.owned}
    return {
        name: replace(member, owned={**member.owned, **dict.fromkeys(sorted(member.target - taken), generation)})
        for name, member in members.items()
    }


def _topics(row: GroupRow, members: Members, found: Mapping[str, GroupTopic | None]) -> dict[str, GroupTopic]:
    """Return the topics that members subscribe to or still own partitions of, and that exist."""
    names = {topic for member in members.values() for topic in (*member.topics, *(each[0] for each in member.owned))}
    topics = {name: found[name] if name in found else row.topics.get(name) for name in sorted(names)}
    return {name: topic for name, topic in topics.items() if topic is not None}


def _existing(row: GroupRow, topics: Mapping[str, GroupTopic], member: GroupMember) -> dict[NamedPartition, int]:
    """Return what a member owns without what is gone: a topic that was created again is another."""
    same = {name: topic.partitions for name, topic in topics.items() if _topic_id(row.topics, name) == topic.topic_id}
    return {each: epoch for each, epoch in member.owned.items() if each[1] < same.get(each[0], 0)}


def _topic_id(topics: Mapping[str, GroupTopic], name: str) -> str | None:
    return topics[name].topic_id if name in topics else None


def _assignor_input(members: Members, topics: Mapping[str, GroupTopic]) -> AssignorInput:
    subscribed = {topic for member in members.values() for topic in member.topics}
    return AssignorInput(
        partitions={name: topic.partitions for name, topic in topics.items() if name in subscribed},
        members={name: Subscriber(frozenset(member.topics), member.instance_id) for name, member in members.items()},
        owned={name: frozenset(member.owned) for name, member in members.items()},
    )
