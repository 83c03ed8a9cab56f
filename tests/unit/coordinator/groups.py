"""Builders of groups in the domain's words; every one has defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from txntable.coordinator.assignment import NamedPartition
from txntable.coordinator.assignors import Assignor
from txntable.coordinator.group import GroupRow, GroupTopic
from txntable.coordinator.group_request import (
    ExpelRequest,
    GroupMetadata,
    JoinRequest,
    MemberAssignment,
    MemberRequest,
    OffsetLogTransition,
    TopicsFound,
)
from txntable.coordinator.group_shard import assignment_of, expel, join, leave, refresh, release

FLIGHTS, ORDERS = "f" * 32, "0" * 32
TOPICS: dict[str, GroupTopic | None] = {"flights": GroupTopic(FLIGHTS, 6), "orders": GroupTopic(ORDERS, 3)}


def topic_id_of(word: str) -> str:
    """A topic id for each short word."""
    return word.encode().hex().zfill(32)


def a_join(member_id: str, **changes: object) -> JoinRequest:
    """Group g, subscribed to flights (6 partitions), sticky, at time 1000."""
    request = JoinRequest(
        group="g",
        member_id=member_id,
        topics=frozenset({"flights"}),
        topics_found=TOPICS,
        now_ms=1_000,
        position=1,
        session_timeout_ms=10_000,
        assignors=(Assignor.STICKY,),
    )
    return replace(request, **changes)  # type: ignore[arg-type]


@dataclass
class GroupLog:
    """The head of an offset log that has one group: requests are decided at the next slot and applied."""

    row: GroupRow | None = None
    head: int = 0
    topics: TopicsFound = field(default_factory=lambda: dict(TOPICS))

    def apply(self, transition: OffsetLogTransition[object]) -> None:
        """Take what a transition writes; what is written can be read again."""
        if transition.group is not None:
            self.head += 1
            assert transition.group.position == self.head
            self.row = GroupRow.from_json(transition.group.to_json())
            assert self.row == transition.group

    def join(self, member_id: str, **changes: object) -> MemberAssignment:
        request = a_join(member_id, **{"position": self.head + 1, "topics_found": self.topics, **changes})
        transition = join(self.row, request)
        self.apply(transition)
        return transition.answer

    def look(self, member_id: str, instance_id: str | None = None) -> MemberAssignment:
        return assignment_of(self.row, MemberRequest(member_id, self.head + 1, instance_id))

    def release(self, member_id: str, *partitions: NamedPartition) -> MemberAssignment:
        """Release these partitions, or all that the member is to release."""
        given = partitions or tuple(self.look(member_id).to_release)
        transition = release(self.row, MemberRequest(member_id, self.head + 1, partitions=given))
        self.apply(transition)
        return transition.answer

    def release_all(self) -> None:
        """Let every member give up what it has to."""
        for member_id in self.members:
            self.release(member_id)

    def leave(self, member_id: str) -> None:
        self.apply(leave(self.row, MemberRequest(member_id, self.head + 1, topics_found=self.topics)))

    def expel(self, heartbeats: Mapping[str, int], now_ms: int) -> tuple[str, ...]:
        transition = expel(self.row, ExpelRequest(heartbeats, now_ms, self.head + 1, self.topics))
        self.apply(transition)
        return transition.answer

    def refresh(self, topics: TopicsFound) -> None:
        self.topics = {**self.topics, **topics}
        self.apply(refresh(self.row, self.topics, self.head + 1))

    @property
    def members(self) -> list[str]:
        return [] if self.row is None else list(self.row.members)

    @property
    def owned(self) -> dict[str, list[NamedPartition]]:
        """Member id -> what it owns."""
        assert self.row is not None
        return {name: sorted(member.owned) for name, member in self.row.members.items()}

    def metadata(self, member_id: str, instance_id: str | None = None) -> GroupMetadata:
        """What a member freezes when it reads now."""
        return self.look(member_id, instance_id).metadata


def of_flights(*partitions: int) -> list[NamedPartition]:
    """Return partitions of flights."""
    return [("flights", partition) for partition in partitions]
