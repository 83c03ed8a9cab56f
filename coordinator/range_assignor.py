"""Kafka's RangeAssignor: each topic by itself, in runs of neighbouring partitions.

The first members of a topic have one partition more where it does not divide evenly.  So topics with the
same number of partitions and the same subscribers are co-partitioned: partition n of each is with one member.
"""

from __future__ import annotations

from txntable.coordinator.assignment import Assignment, AssignorInput


def assign_range(group: AssignorInput) -> Assignment:
    """Return the assignment of a group; what is owned plays no part.

    Parameters
    ----------
    group : AssignorInput
        Members, subscriptions and topics.
    """
    members = group.members_in_order()
    assignment: Assignment = {member: [] for member in members}
    for topic in sorted(group.partitions):
        subscribers = [member for member in members if topic in group.members[member].topics]
        share, more = divmod(group.partitions[topic], len(subscribers))
        first = 0
        for place, member in enumerate(subscribers):
            beyond = first + share + (place < more)
            assignment[member] += [(topic, partition) for partition in range(first, beyond)]
            first = beyond
    return assignment
