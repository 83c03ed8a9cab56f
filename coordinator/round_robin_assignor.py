"""Kafka's RoundRobinAssignor: all partitions of all topics, dealt out to the members in turn.

A member that does not subscribe to a partition's topic is passed over, and the turn goes on behind the one that
took it: with unequal subscriptions the result may be far from even, as it is in Kafka.
"""

from __future__ import annotations

from txntable.coordinator.assignment import Assignment, AssignorInput


def assign_round_robin(group: AssignorInput) -> Assignment:
    """Return the assignment of a group; what is owned plays no part.

    Parameters
    ----------
    group : AssignorInput
        Members, subscriptions and topics.
    """
    members = group.members_in_order()
    assignment: Assignment = {member: [] for member in members}
    turn = 0
    for partition in group.all_partitions(sorted(group.partitions)):
        while partition[0] not in group.members[members[turn]].topics:
            turn = (turn + 1) % len(members)
        assignment[members[turn]].append(partition)
        turn = (turn + 1) % len(members)
    return assignment
