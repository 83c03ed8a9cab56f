"""Kafka's sticky assignor where members subscribe to different topics.

Members keep what they have, what is free goes to the member with the fewest, then partitions move one by one to
members with two or more fewer, until nothing is to be gained; moves that gained nothing are undone.  The
order of every step is Kafka's, since the result depends on it.  Must not know of groups.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable

from txntable.coordinator.assignment import Assignment, AssignorInput, NamedPartition
from txntable.coordinator.java_hash import hash_order, partition_hash


def balance(group: AssignorInput) -> Assignment:
    """Return the most even assignment that Kafka finds, starting from what is owned.

    Parameters
    ----------
    group : AssignorInput
        Members, subscriptions, topics, and what is owned.
    """
    return _Balance(group).run()


class _Balance:
    def __init__(self, group: AssignorInput) -> None:
        self._group = group
        self._topics = {
            name: [topic for topic in sorted(member.topics) if topic in group.partitions]
            for name, member in group.members.items()
        }
        self._subscribers: dict[str, list[str]] = {topic: [] for topic in group.partitions}
        for member, topics in self._topics.items():
            for topic in topics:
                self._subscribers[topic].append(member)
        self._assigned: Assignment = {member: group.owned_by(member) for member in group.members}
        self._owner: dict[NamedPartition, str] = {}
        self._moves = _Moves()
        # By how many partitions they have, then by name: Kafka's TreeSet of members.
        self._ranking: list[tuple[int, str]] = []

    def run(self) -> Assignment:
        unsubscribed = self._drop_unsubscribed()
        self._owner = {each: member for member, partitions in self._assigned.items() for each in partitions}
        self._ranking = sorted((len(partitions), member) for member, partitions in self._assigned.items())
        in_order = self._group.all_partitions(sorted(self._subscribers, key=lambda t: (len(self._subscribers[t]), t)))
        free = [partition for partition in in_order if partition not in self._owner]
        fresh = self._ranking[-1][0] == 0
        for partition in free:
            self._give(partition, self._poorest(partition[0]))
        fixed = self._set_fixed_apart()
        movable = [partition for partition in in_order if len(self._subscribers[partition[0]]) > 1]
        self._improve(movable, set() if unsubscribed else set(free), undo=not fresh)
        return {**self._assigned, **fixed}

    def _drop_unsubscribed(self) -> bool:
        """Take from each member what it no longer subscribes to; return whether there was any."""
        before = sum(map(len, self._assigned.values()))
        for member, partitions in self._assigned.items():
            topics = self._group.members[member].topics
            self._assigned[member] = [partition for partition in partitions if partition[0] in topics]
        return sum(map(len, self._assigned.values())) < before

    def _poorest(self, topic: str) -> str:
        return next(member for _, member in self._ranking if topic in self._group.members[member].topics)

    def _give(self, partition: NamedPartition, member: str) -> None:
        self._unrank(member)
        self._assigned[member].append(partition)
        self._owner[partition] = member
        self._rank(member)

    def _set_fixed_apart(self) -> Assignment:
        """Take out the members that can neither give nor get: they have all of topics that are theirs alone."""
        fixed: Assignment = {}
        for member, topics in self._topics.items():
            if all(len(self._subscribers[topic]) == 1 for topic in topics):
                self._unrank(member)
                fixed[member] = self._assigned.pop(member)
        return fixed

    def _improve(self, movable: list[NamedPartition], free: set[NamedPartition], *, undo: bool) -> None:
        before = {member: list(partitions) for member, partitions in self._assigned.items()}
        self._move_all([partition for partition in movable if partition in free])
        moved = self._move_all(movable)
        if undo and moved:
            self._assigned = _more_even(before, self._assigned)

    def _move_all(self, partitions: Iterable[NamedPartition]) -> bool:
        """Move partitions to poorer members for as long as it evens anything out; return whether any moved."""
        movable, moved, goes_on, balanced = list(partitions), False, True, self._is_balanced()
        while goes_on:
            goes_on = False
            for partition in movable:
                if balanced:
                    break
                size = len(self._assigned[self._owner[partition]])
                poorest = self._poorest(partition[0])
                if size > len(self._assigned[poorest]) + 1:
                    self._move(self._moves.instead_of(partition, self._owner[partition], poorest), poorest)
                    goes_on, moved, balanced = True, True, self._is_balanced()
        return moved

    def _is_balanced(self) -> bool:
        if not self._ranking or self._ranking[0][0] >= self._ranking[-1][0] - 1:
            return True
        richest = dict.fromkeys(self._subscribers, 0)
        for partitions in self._assigned.values():
            for topic, _ in partitions:
                richest[topic] = max(richest[topic], len(partitions))
        return not any(size + 1 < richest[topic] for size, member in self._ranking for topic in self._topics[member])

    def _move(self, partition: NamedPartition, receiver: str) -> None:
        giver = self._owner[partition]
        self._moves.record(partition, giver, receiver)
        self._unrank(giver)
        self._assigned[giver].remove(partition)
        self._rank(giver)
        self._give(partition, receiver)

    def _rank(self, member: str) -> None:
        insort(self._ranking, (len(self._assigned[member]), member))

    def _unrank(self, member: str) -> None:
        del self._ranking[bisect_left(self._ranking, (len(self._assigned[member]), member))]


class _Moves:
    """Which partitions moved from whom to whom, so that none moves while another of its topic moves back."""

    def __init__(self) -> None:
        self._pair: dict[NamedPartition, tuple[str, str]] = {}
        self._moved: dict[tuple[str, str, str], dict[NamedPartition, None]] = {}
        self._most: dict[tuple[str, str, str], int] = {}

    def record(self, partition: NamedPartition, giver: str, receiver: str) -> None:
        """Note a move; one that takes a partition back to where it was leaves nothing."""
        source, old_receiver = self._pair.pop(partition, (giver, None))
        if old_receiver is not None:
            key = (partition[0], source, old_receiver)
            del self._moved[key][partition]
            if not self._moved[key]:
                del self._moved[key], self._most[key]
        if source != receiver:
            key = (partition[0], source, receiver)
            self._pair[partition] = (source, receiver)
            self._moved.setdefault(key, {})[partition] = None
            self._most[key] = max(self._most.get(key, 0), len(self._moved[key]))

    def instead_of(self, partition: NamedPartition, giver: str, receiver: str) -> NamedPartition:
        """Return which partition of the topic moves: one that came from the receiver, if there is any."""
        source = self._pair.get(partition, (giver, giver))[0]
        key = (partition[0], receiver, source)
        came = self._moved.get(key)
        return hash_order(came, partition_hash, self._most[key])[0] if came else partition


def _more_even(before: Assignment, after: Assignment) -> Assignment:
    return after if _unevenness(after) < _unevenness(before) else before


def _unevenness(assignment: Assignment) -> int:
    """Return the sum of the differences between all pairs of members."""
    sizes = sorted(map(len, assignment.values()))
    return sum(size * (2 * place - len(sizes) + 1) for place, size in enumerate(sizes))
