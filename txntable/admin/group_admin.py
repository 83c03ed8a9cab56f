"""Consumer groups and their offsets as admins see and change them, in Kafka's words (PROTOCOL.md §8).

Owns no rule: what may be done to a group is decided by the group coordinator's state machine, on the rows below the
slot.  Nothing here waits for members.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeAlias, TypeVar

from txntable.admin.group_description import GroupDescription, GroupListing, MemberDescription, group_states
from txntable.admin.transaction_admin import listed
from txntable.coordinator.group import GroupRow
from txntable.coordinator.group_member import GroupMember
from txntable.coordinator.group_request import GroupMetadata, OffsetLogTransition
from txntable.coordinator.group_state import GroupState
from txntable.coordinator.offset_shard import Refused, commit
from txntable.coordinator.offset_upkeep import delete_group, delete_offsets
from txntable.coordinator.row_json import check_name
from txntable.errors import (
    GroupIdNotFoundError,
    InvalidRequestError,
    NonEmptyGroupError,
    StorePermissionError,
    TxnTableError,
    UnknownMemberIdError,
    UnknownTopicOrPartitionError,
)
from txntable.format.near_names import asking
from txntable.format.records import TopicPartition, checked_partitions
from txntable.format.topic import TopicSettings
from txntable.groups.group_client import DEFAULT_API_TIMEOUT_MS, GroupClient
from txntable.groups.silence import GroupAsSeen, see
from txntable.offsets.group_commit import GroupCommit, OffsetAndMetadata, new_offsets, topics_of
from txntable.offsets.offset_log import GroupOffsets
from txntable.topics.topic_log import TopicLog
from txntable.transactions.completion import Completer
from txntable.upkeep.offset_expiration import part_of

T = TypeVar("T")

_GROUP = "a group"
Outcomes: TypeAlias = dict[TopicPartition, TxnTableError | None]
"""What became of each partition; ``None``: it was done."""


class GroupAdmin:
    """The part of :class:`txntable.admin.admin.Admin` that is about consumer groups.

    Parameters
    ----------
    completer : Completer
        Completes decided transactions; knows O.
    topic_log : callable
        Topic name -> its logs.
    """

    def __init__(self, completer: Completer, topic_log: Callable[[str], TopicLog]) -> None:
        self._completer, self._offsets, self._topic_log = completer, completer.offsets, topic_log
        self._context = completer.offsets.context
        self._client = GroupClient(completer.offsets, completer)

    # -- groups -----------------------------------------------------------------------------

    def listing(self, states: Collection[str | GroupState] | None = None) -> list[GroupListing]:
        """Return all groups, also those that only have offsets, by name."""
        wanted = group_states(states)
        with self._offsets.log.lock:
            self._offsets.refresh()
            found = [(name, self._offsets.group(name)) for name in self._offsets.names()]
        listings = (GroupListing(name, self._state(row), row is None) for name, row in found)
        return [one for one in listings if one.state in wanted]

    def _state(self, row: GroupRow | None) -> GroupState:
        return GroupState.EMPTY if row is None else self._seen(row).row.state

    def _seen(self, row: GroupRow) -> GroupAsSeen:
        return see(self._context.store, row, self._context.clock.shown_ms)

    def describe(self, ids: Sequence[str]) -> dict[str, GroupDescription]:
        """Describe groups and their members."""
        names = [check_name(name, _GROUP) for name in listed(ids, "ids")]
        with self._offsets.log.lock:
            self._offsets.refresh()
            rows = {name: self._offsets.group(name) for name in names}
            known = set(self._offsets.names())
        for name in names:
            if name not in known:
                unknown = GroupIdNotFoundError("there is no such group; list the groups to see their names", group=name)
                raise asking(unknown, name, known)
        return {name: self._described(name, row) for name, row in rows.items()}

    def _described(self, name: str, row: GroupRow | None) -> GroupDescription:
        if row is None:
            return GroupDescription(name, GroupState.EMPTY, 0, None, (), is_simple=True)
        seen = self._seen(row)
        members, silent = (
            tuple(_member(member, seen.heartbeat_age_ms[member.member_id]) for member in of)
            for of in (seen.row.members.values(), seen.silent)
        )
        assignor = None if seen.row.assignor is None else seen.row.assignor.value
        return GroupDescription(name, seen.row.state, row.generation, assignor, members, False, silent)

    def delete(self, ids: Sequence[str]) -> dict[str, TxnTableError | None]:
        """Delete groups with all their offsets; return what became of each."""
        names = [check_name(name, _GROUP) for name in listed(ids, "ids")]
        outcomes: dict[str, TxnTableError | None] = {}
        for name in dict.fromkeys(names):
            outcomes[name] = None
            try:
                self._changed(name, partial(self._delete, name))
            except (GroupIdNotFoundError, NonEmptyGroupError) as error:
                outcomes[name] = error
        return outcomes

    def _delete(self, name: str) -> None:
        left = True

        def request(row: GroupRow | None, rows: GroupOffsets, position: int) -> OffsetLogTransition[None]:
            nonlocal left
            whole = delete_group(row, rows, position)
            part = part_of(whole)
            left = part is not whole
            return part

        while left:
            self._offsets.request("DELETE GROUP", name, request)

    def _changed(self, group: str, change: Callable[[], T]) -> T:
        """Return what a change answers: members that stand in its way, and are silent, are expelled, and it is made."""
        try:
            answer = change()
        except (NonEmptyGroupError, UnknownMemberIdError):
            if not self._client.expel(group):
                raise
            return change()
        is_refused = isinstance(answer, dict) and any(isinstance(one, TxnTableError) for one in answer.values())
        return change() if is_refused and self._client.expel(group) else answer

    def remove_members(self, group: str, members: Sequence[str] | None = None) -> dict[str, TxnTableError | None]:
        """Let members leave a group, dead or alive; default: all."""
        (found,) = self.describe([group]).values()
        everybody = (*found.members, *found.silent_members)
        ids = {member.group_instance_id or member.member_id: member for member in everybody}
        ids |= {member.member_id: member for member in everybody} if members is not None else {}
        outcomes: dict[str, TxnTableError | None] = {}
        for name in ids if members is None else listed(members, "members"):
            if name not in ids:
                outcomes[name] = UnknownMemberIdError("the group has no such member", group=group, member=name)
                continue
            member = ids[name]
            self._client.leave(GroupMetadata(group, member.member_id, found.generation, member.group_instance_id))
            outcomes[name] = None
        return outcomes

    # -- offsets ----------------------------------------------------------------------------

    def offsets(
        self,
        group: str,
        partitions: Sequence[TopicPartition] | None = None,
        *,
        require_stable: bool = False,
        timeout_ms: int = DEFAULT_API_TIMEOUT_MS,
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the offsets that a group has committed; what is decided by now counts."""
        check_name(group, _GROUP)
        if type(timeout_ms) is not int or timeout_ms < 0:
            raise InvalidRequestError(
                "a timeout must be an int of at least 0, in milliseconds", timeout_ms=repr(timeout_ms)
            )
        # What is decided counts; who may not write sees it once others have settled it.
        with suppress(StorePermissionError):
            self._completer.bring_decided()
        if partitions is None:
            self._offsets.refresh()
            wanted = [TopicPartition(*each) for each in sorted(self._offsets.offsets(group))]
        else:
            wanted = checked_partitions(partitions)
        topics = self._topics({each.topic for each in wanted})
        topic_ids = {each: topic.topic_id for each in wanted if (topic := topics[each.topic]) is not None}
        found = self._client.committed(group, topic_ids, require_stable=require_stable, timeout_ms=timeout_ms)
        if partitions is None:
            return {each: offset for each, offset in found.items() if offset is not None}
        return {each: found.get(each) for each in wanted}

    def alter_offsets(self, group: str, offsets: Mapping[TopicPartition, OffsetAndMetadata | int]) -> Outcomes:
        """Commit offsets of a group that has no members, all at once."""
        check_name(group, _GROUP)
        topics = self._topics(topics_of(offsets))
        outcomes: Outcomes = {each: _unknown(each, topics[each[0]]) for each in offsets}
        good = {each: offsets[each] for each, error in outcomes.items() if error is None}
        known = {name: topic for name, topic in topics.items() if topic is not None}
        asked = GroupCommit(group, new_offsets(good, known))

        def request(row: GroupRow | None, rows: GroupOffsets, position: int) -> OffsetLogTransition[Refused]:
            return commit(row, rows, asked.request(position))

        if good:
            self._changed(group, partial(self._offsets.request, "ALTER OFFSETS", group, request))
        return outcomes

    def delete_offsets(self, group: str, partitions: Sequence[TopicPartition]) -> Outcomes:
        """Delete offsets of a group, those of open transactions too."""
        check_name(group, _GROUP)
        wanted = checked_partitions(partitions)

        def request(row: GroupRow | None, rows: GroupOffsets, position: int) -> OffsetLogTransition[Refused]:
            return delete_offsets(row, rows, wanted)

        refused = self._changed(group, partial(self._offsets.request, "DELETE OFFSETS", group, request))
        return {each: refused.get(each) for each in wanted}

    def _topics(self, names: Collection[str]) -> dict[str, TopicSettings | None]:
        return {name: self._topic(name) for name in names}

    def _topic(self, name: str) -> TopicSettings | None:
        try:
            return self._topic_log(name).settings()
        except UnknownTopicOrPartitionError:
            return None


def _member(member: GroupMember, heartbeat_age_ms: int) -> MemberDescription:
    return MemberDescription(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.host,
        member.topics,
        member.joined_generation,
        tuple(TopicPartition(*each) for each in sorted(member.owned)),
        tuple(TopicPartition(*each) for each in sorted(member.target)),
        member.session_timeout_ms,
        heartbeat_age_ms,
    )


def _unknown(partition: TopicPartition, topic: TopicSettings | None) -> UnknownTopicOrPartitionError | None:
    if topic is not None and 0 <= partition[1] < topic.partitions:
        return None
    return UnknownTopicOrPartitionError("there is no such partition", topic=partition[0], partition=partition[1])
