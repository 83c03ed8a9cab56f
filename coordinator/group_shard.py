"""The state machine of the group coordinator: a group's row and a request make a transition, or an error.

The rules are those of PROTOCOL.md §8.2.

Pure: no clock, no store, no ids made here.  There is no server: every member runs these functions on the row at the
head of the offset log and writes the result at the next slot.  Who changes a group computes the assignment in the
same commit.

* A generation begins when a member joins, leaves, is expelled or changes its subscription, or when a topic does.
* A partition moves only when its owner has released it, has left, or was expelled; then at once, in the same commit.
* A static member that comes back under a new member id takes over what the old one owns; the old one is fenced.

Whether offsets may be committed is in ``group_fencing``.
"""

from __future__ import annotations

from dataclasses import replace

from txntable.coordinator.errors import (
    FencedInstanceIdError,
    FencedMemberEpochError,
    GroupIdNotFoundError,
    GroupMaxSizeReachedError,
    InvalidRequestError,
    UnknownMemberIdError,
)
from txntable.coordinator.group import GroupRow, empty_group, members_by_id
from txntable.coordinator.group_member import GroupMember
from txntable.coordinator.group_reassignment import reassigned, with_free_given
from txntable.coordinator.group_request import (
    ExpelRequest,
    JoinRequest,
    MemberAssignment,
    MemberRequest,
    OffsetLogTransition,
    TopicsFound,
)
from txntable.coordinator.group_state import GroupOperation
from txntable.coordinator.store_time import has_passed


def join(row: GroupRow | None, request: JoinRequest) -> OffsetLogTransition[MemberAssignment]:
    """Let a member join, come back, or change what it subscribes to.

    Parameters
    ----------
    row : GroupRow, optional
        The group's row; ``None`` when there is none.
    request : JoinRequest
        What the member asks.

    Returns
    -------
    OffsetLogTransition
        With what the member has; nothing is written when it is in the group in just this way.

    Raises
    ------
    UnknownMemberIdError
        It was a member and is none any more: forget the assignment, join under a new member id.
    FencedMemberEpochError
        It claims a generation that the group has not reached: the same.
    FencedInstanceIdError
        A newer consumer has its instance id: close this one.
    GroupMaxSizeReachedError
        The group is full.
    InvalidRequestError
        A member changes its instance id: join under a new member id.
    InconsistentGroupProtocolError
        The others support none of its assignors: configure it like them.
    """
    group = empty_group(request.group) if row is None else row
    old = _predecessor(group, request)
    if old is None and len(group.members) >= request.max_size:
        raise GroupMaxSizeReachedError(
            "the group has as many members as it may have", group=group.group, max_size=request.max_size
        )
    member = _joined(group, old, request)
    if old is not None and _same_but_join(old, member):
        return OffsetLogTransition(_assignment(group, old))
    others = [each for each in group.members.values() if each is not old]
    if old is not None and (old.topics, old.assignors) == (member.topics, member.assignors):
        stays = replace(member, joined_generation=group.generation)
        following = group.moved(GroupOperation.JOIN, request.position, members=members_by_id([*others, stays]))
    else:
        following = reassigned(group, GroupOperation.JOIN, [*others, member], request.topics_found, request.position)
    return OffsetLogTransition(_assignment(following, following.members[member.member_id]), group=following)


def assignment_of(row: GroupRow | None, request: MemberRequest) -> MemberAssignment:
    """Return what a member has and is to do; to be asked with every heartbeat.

    Parameters
    ----------
    row : GroupRow, optional
        The group's row; ``None`` when there is none.
    request : MemberRequest
        Who asks; nothing is written.

    Raises
    ------
    GroupIdNotFoundError, UnknownMemberIdError, FencedMemberEpochError
        It is no member any more: forget the assignment, join under a new member id.
    FencedInstanceIdError
        A newer consumer has its instance id: close this one.
    """
    group, member = _known(row, request)
    return _assignment(group, member)


def release(row: GroupRow | None, request: MemberRequest) -> OffsetLogTransition[MemberAssignment]:
    """Give up partitions; whoever is to have them owns them at once.

    Parameters
    ----------
    row : GroupRow, optional
        The group's row; ``None`` when there is none.
    request : MemberRequest
        Who asks, and for which partitions.  Their offsets are to be committed before.

    Returns
    -------
    OffsetLogTransition
        With what the member has now.  What it meanwhile is to keep stays its own: it is in the answer.

    Raises
    ------
    GroupIdNotFoundError, UnknownMemberIdError, FencedMemberEpochError, FencedInstanceIdError
        As :func:`assignment_of`.
    """
    group, member = _known(row, request)
    given_up = member.to_release & frozenset(request.partitions)
    if not given_up:
        return OffsetLogTransition(_assignment(group, member))
    kept = {partition: epoch for partition, epoch in member.owned.items() if partition not in given_up}
    members = with_free_given({**group.members, member.member_id: replace(member, owned=kept)}, group.generation)
    following = group.moved(GroupOperation.RELEASE, request.position, members=members)
    return OffsetLogTransition(_assignment(following, members[member.member_id]), group=following)


def leave(row: GroupRow | None, request: MemberRequest) -> OffsetLogTransition[None]:
    """Let a member leave, and give away what it owned.

    Parameters
    ----------
    row : GroupRow, optional
        The group's row; ``None`` when there is none.
    request : MemberRequest
        Who leaves.

    Returns
    -------
    OffsetLogTransition
        Nothing is written when it is no member.

    Raises
    ------
    FencedInstanceIdError
        A newer consumer has its instance id, and stays.
    """
    try:
        group, member = _known(row, replace(request, generation=None))
    except (GroupIdNotFoundError, UnknownMemberIdError):
        return OffsetLogTransition(None)
    others = [each for each in group.members.values() if each is not member]
    following = reassigned(group, GroupOperation.LEAVE, others, request.topics_found, request.position)
    return OffsetLogTransition(None, group=following)


def expel(row: GroupRow | None, request: ExpelRequest) -> OffsetLogTransition[tuple[str, ...]]:
    """Expel the members whose sessions have expired; anyone may.

    Parameters
    ----------
    row : GroupRow, optional
        The group's row; ``None`` when there is none.
    request : ExpelRequest
        The heartbeats, and the time.

    Returns
    -------
    OffsetLogTransition
        With the member ids of who was expelled, ascending; nothing is written when there are none.
    """
    expired = () if row is None else tuple(name for name in row.members if is_expired(row.members[name], request))
    if row is None or not expired:
        return OffsetLogTransition(expired)
    others = [member for name, member in row.members.items() if name not in expired]
    following = reassigned(row, GroupOperation.EXPEL, others, request.topics_found, request.position)
    return OffsetLogTransition(expired, group=following)


def is_expired(member: GroupMember, request: ExpelRequest) -> bool:
    """Return whether a member has been silent for longer than its session timeout; a time far ahead shows no life."""
    signs = (member.joined_ms, request.heartbeats.get(member.member_id, member.joined_ms))
    return all(has_passed(request.now_ms - sign_ms, member.session_timeout_ms) for sign_ms in signs)


def refresh(row: GroupRow | None, topics_found: TopicsFound, position: int) -> OffsetLogTransition[GroupRow | None]:
    """Take note of topics that came, went, grew, or were created again.

    Parameters
    ----------
    row : GroupRow, optional
        The group's row; ``None`` when there is none.
    topics_found : Mapping of str to GroupTopic or None
        What the caller found; those that nobody subscribes to are passed over.
    position : int
        The slot decided on.

    Returns
    -------
    OffsetLogTransition
        With the row as it then is; nothing is written when all of it was known.
    """
    if row is None or not row.members:
        return OffsetLogTransition(row)
    names = (row.subscribed_topics | row.topics.keys()) & topics_found.keys()
    if all(topics_found[name] == row.topics.get(name) for name in names):
        return OffsetLogTransition(row)
    following = reassigned(row, GroupOperation.REFRESH, row.members.values(), topics_found, position)
    return OffsetLogTransition(following, group=following)


def find_member(row: GroupRow, member_id: str, instance_id: str | None) -> GroupMember:
    """Return a member of a group.

    Parameters
    ----------
    row : GroupRow
        The group.
    member_id : str
        Who it says it is.
    instance_id : str, optional
        Of a static member.

    Raises
    ------
    FencedInstanceIdError
        A newer consumer has its instance id: close this one.
    UnknownMemberIdError
        There is no such member.
    """
    holder = _holder(row, instance_id)
    if holder is not None and holder.member_id != member_id:
        raise FencedInstanceIdError(
            "a newer consumer has the instance id; close this one",
            group=row.group,
            instance_id=instance_id,
            member_id=member_id,
            current_member_id=holder.member_id,
        )
    member = row.members.get(member_id)
    if member is None or instance_id not in {None, member.instance_id}:
        raise UnknownMemberIdError(
            "the group has no such member: it left or its session expired; join again under a new member id",
            group=row.group,
            member_id=member_id,
            instance_id=instance_id,
        )
    return member


def _holder(row: GroupRow, instance_id: str | None) -> GroupMember | None:
    if instance_id is None:
        return None
    return next((member for member in row.members.values() if member.instance_id == instance_id), None)


def _predecessor(group: GroupRow, request: JoinRequest) -> GroupMember | None:
    """Return the member that the joining one is or replaces."""
    if request.generation is None:
        namesake = group.members.get(request.member_id)
        if namesake is not None and namesake.instance_id != request.instance_id:
            raise InvalidRequestError(
                "a member keeps its instance id; join under a new member id",
                member_id=request.member_id,
                instance_id=request.instance_id,
                current_instance_id=namesake.instance_id,
            )
        return _holder(group, request.instance_id) or namesake
    return _known(group, MemberRequest(request.member_id, request.position, request.instance_id, request.generation))[1]


def _joined(group: GroupRow, old: GroupMember | None, request: JoinRequest) -> GroupMember:
    return GroupMember(
        member_id=request.member_id,
        topics=tuple(sorted(request.topics)),
        assignors=request.assignors,
        session_timeout_ms=request.session_timeout_ms,
        joined_ms=request.now_ms,
        joined_generation=group.generation + 1,
        instance_id=request.instance_id,
        client_id=request.client_id,
        host=request.host,
        owned={} if old is None else old.owned,
        target=frozenset() if old is None else old.target,
    )


def _same_but_join(old: GroupMember, new: GroupMember) -> bool:
    return old == replace(new, joined_ms=old.joined_ms, joined_generation=old.joined_generation)


def _known(row: GroupRow | None, request: MemberRequest) -> tuple[GroupRow, GroupMember]:
    if row is None:
        raise GroupIdNotFoundError(
            "there is no such group any more; join again under a new member id", member_id=request.member_id
        )
    member = find_member(row, request.member_id, request.instance_id)
    if request.generation is not None and request.generation > row.generation:
        raise FencedMemberEpochError(
            "the group has not reached that generation; forget the assignment and join again under a new member id",
            group=row.group,
            member_id=request.member_id,
            generation=request.generation,
            current_generation=row.generation,
        )
    return row, member


def _assignment(row: GroupRow, member: GroupMember) -> MemberAssignment:
    owned = sorted(member.owned.items())
    return MemberAssignment(
        group=row.group,
        member_id=member.member_id,
        generation=row.generation,
        state=row.state,
        assignor=row.assignor or member.assignors[0],
        partitions={partition: epoch for partition, epoch in owned if partition in member.target},
        to_release={partition: epoch for partition, epoch in owned if partition not in member.target},
        awaited=member.awaited,
        instance_id=member.instance_id,
    )
