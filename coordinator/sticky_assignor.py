"""Kafka's sticky assignors: as even as possible, and of what is owned as little moves as possible.

``sticky`` returns where all partitions shall be.  ``cooperative-sticky`` returns what each member may have *now*: a
partition that another member still has is left out until that one has given it back, and the next round gives it.
Owns the case of equal subscriptions; that of unequal ones is in ``sticky_balance``.
"""

from __future__ import annotations

from collections import deque

from txntable.coordinator.assignment import Assignment, AssignorInput, NamedPartition
from txntable.coordinator.java_hash import hash_order, string_hash
from txntable.coordinator.sticky_balance import balance


def assign_sticky(group: AssignorInput) -> Assignment:
    """Return where all partitions shall be.

    Parameters
    ----------
    group : AssignorInput
        Members, subscriptions, topics, and what is owned.
    """
    return _EvenAssignment(group).assignment if group.has_equal_subscriptions() else balance(group)


def assign_cooperative_sticky(group: AssignorInput) -> Assignment:
    """Return what each member may have now: one round of Kafka's cooperative protocol.

    Parameters
    ----------
    group : AssignorInput
        Members, subscriptions, topics, and what is owned.
    """
    if group.has_equal_subscriptions():
        even = _EvenAssignment(group)
        return _without(even.assignment, even.revoked)
    assignment = balance(group)
    kept = {each for member, partitions in assignment.items() for each in partitions if each in _had(group, member)}
    revoked = {each for member in assignment for each in _had(group, member)} - kept
    return _without(assignment, revoked)


def final_cooperative_sticky(group: AssignorInput) -> Assignment:
    """Return the assignment that Kafka's rounds end with when nothing else happens: each gives back what it must.

    Parameters
    ----------
    group : AssignorInput
        As the first round sees it.
    """
    first = {member: frozenset(partitions) for member, partitions in assign_cooperative_sticky(group).items()}
    # All have given back: nothing is held back any more, and the rounds that follow are the sticky assignor's.
    return assign_sticky(AssignorInput(group.partitions, group.members, first))


def _had(group: AssignorInput, member: str) -> frozenset[NamedPartition]:
    return group.owned.get(member, frozenset())


def _without(assignment: Assignment, revoked: set[NamedPartition]) -> Assignment:
    return {member: [each for each in partitions if each not in revoked] for member, partitions in assignment.items()}


class _EvenAssignment:
    """The case of equal subscriptions: members keep up to their quota, what is left is dealt out in turn.

    Attributes
    ----------
    assignment : Assignment
        The result.
    revoked : set of NamedPartition
        What a member had beyond its quota.
    """

    def __init__(self, group: AssignorInput) -> None:
        self._group = group
        # Quota of each member, and how many have one partition more.
        self._quota, self._richer = divmod(sum(group.partitions.values()), len(group.members))
        self.assignment: Assignment = {member: [] for member in group.members}
        self.revoked: set[NamedPartition] = set()
        self._poor: list[str] = []
        self._even: deque[str] = deque()
        self._keep_owned()
        self._deal_out()

    def _keep_owned(self) -> None:
        richer = self._richer
        # Whoever comes first keeps one more: Kafka walks over a HashMap.
        for member in hash_order(self._group.members, string_hash):
            owned = self._group.owned_by(member)
            keep = self._quota
            if len(owned) < self._quota:
                self._poor.append(member)
            elif len(owned) > self._quota and richer > 0:
                richer -= 1
                keep += 1
            else:
                self._even.append(member)
            self.assignment[member] = owned[:keep]
            self.revoked |= set(owned[keep:])

    def _deal_out(self) -> None:
        poor, even, turn = sorted(self._poor), deque(sorted(self._even)), 0
        kept = {each for partitions in self.assignment.values() for each in partitions}
        for partition in self._group.all_partitions(sorted(self._group.partitions)):
            if partition in kept:
                continue
            if not poor:
                self.assignment[even.popleft()].append(partition)
                continue
            turn %= len(poor)
            partitions = self.assignment[poor[turn]]
            partitions.append(partition)
            if len(partitions) == self._quota:
                even.append(poor.pop(turn))
            else:
                turn += 1
