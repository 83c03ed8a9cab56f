"""What an assignor is given and what it returns: values that all assignors share (PROTOCOL.md §8.2).

Owns Kafka's order of members (static ones first, by instance id) and of partitions.  What is owned is
known here from one place, so no two members ever claim a partition, and Kafka's rules for members that report
different generations have no counterpart.  Racks are not known either: there are no brokers.
Must not know of groups, rows or algorithms.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

NamedPartition: TypeAlias = tuple[str, int]
"""A topic's name and a partition of it."""

Assignment: TypeAlias = dict[str, list[NamedPartition]]
"""Member id -> its partitions; every member is there."""


@dataclass(frozen=True, slots=True)
class Subscriber:
    """What an assignor knows of a member.

    Attributes
    ----------
    topics : frozenset of str
        What it subscribes to; those that do not exist count for nothing.
    instance_id : str, optional
        Of a static member.
    """

    topics: frozenset[str]
    instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class AssignorInput:
    """A group as an assignor sees it.

    Attributes
    ----------
    partitions : Mapping[str, int]
        How many partitions each topic has; only of topics that exist and that a member subscribes to.
    members : Mapping[str, Subscriber]
        By member id.
    owned : Mapping[str, frozenset of NamedPartition]
        What each member has now; no partition twice.
    """

    partitions: Mapping[str, int]
    members: Mapping[str, Subscriber]
    owned: Mapping[str, frozenset[NamedPartition]] = field(default_factory=dict)

    def owned_by(self, member: str) -> list[NamedPartition]:
        """Return the partitions that a member has and that still exist, by partition, then by topic."""
        existing = (each for each in self.owned.get(member, ()) if each[1] < self.partitions.get(each[0], 0))
        return sorted(existing, key=lambda each: (each[1], each[0]))

    def all_partitions(self, topics: Iterable[str]) -> list[NamedPartition]:
        """Return every partition of `topics`, topic after topic."""
        return [(topic, partition) for topic in topics for partition in range(self.partitions[topic])]

    def members_in_order(self) -> list[str]:
        """Return the member ids: static members by their instance ids, then the others by their own."""
        return sorted(self.members, key=self._place)

    def _place(self, member: str) -> tuple[bool, str]:
        instance_id = self.members[member].instance_id
        return instance_id is None, member if instance_id is None else instance_id

    def has_equal_subscriptions(self) -> bool:
        """Return whether all members subscribe to the same topics, existing or not."""
        return len({member.topics for member in self.members.values()}) <= 1
