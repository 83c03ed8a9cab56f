"""What consumers have read and lost: offsets for a transaction that leave it out are refused (PROTOCOL.md §8.4).

The transaction may hold its records: committed without their offsets, they are written again by who has the partition
now.  A producer does not see which records it was given, so it goes by offsets: what was lost is settled once the same
member has sent its end, in this transaction or in one that has committed.  A refusal is told to the consumer, which
gives up what was lost when it reads on: who starts over comes to commit.  Pure.
"""

from __future__ import annotations

from typing import TypeAlias

from txntable.coordinator.assignment import NamedPartition
from txntable.coordinator.group_request import GroupMetadata
from txntable.errors import StaleMemberEpochError
from txntable.offsets.group_commit import GroupCommit

_Sender: TypeAlias = tuple[str, str, NamedPartition]
"""Group, member id, partition."""


class LostReadings:
    """The offsets that one producer was handed by the members of groups."""

    def __init__(self) -> None:
        # Of the open transaction, and of those that have committed.
        self._sent: dict[_Sender, int] = {}
        self._committed: dict[_Sender, int] = {}

    def begun(self) -> None:
        """Take note that a transaction begins."""
        self._sent = {}

    def committed(self) -> None:
        """Take note that the transaction has committed."""
        self._committed |= self._sent

    def check(self, commit: GroupCommit) -> None:
        """Refuse offsets that leave out a partition which the consumer has read from and lost since.

        The log refuses the offsets of such a partition where they are sent.

        Raises
        ------
        StaleMemberEpochError
            Abort, and read again from what is committed.
        """
        member = commit.member
        if member is None or member.reader is None:
            return
        left_out = []
        for each, loss in member.reader.losses().items():
            sender = (commit.group, loss.reader, each)
            settled = max(self._sent.get(sender, -1), self._committed.get(sender, -1))
            if each not in commit.offsets and settled < loss.end:
                left_out.append(each)
        if left_out:
            member.reader.refused()
            raise _refusal(member, left_out)

    def sent(self, commit: GroupCommit) -> None:
        """Take note of offsets that the transaction has."""
        if commit.member is not None:
            group, member_id = commit.group, commit.member.member_id
            self._sent |= {(group, member_id, each): new.offset for each, new in commit.offsets.items()}


def _refusal(member: GroupMetadata, left_out: list[NamedPartition]) -> StaleMemberEpochError:
    return StaleMemberEpochError(
        "the member has read from these partitions and has lost them since, and their offsets are not sent: "
        "abort, and read again from what is committed",
        group=member.group,
        member=member.member_id,
        partitions=",".join(f"{topic}-{partition}" for topic, partition in sorted(left_out)),
    )
