"""What consumers have read and lost: offsets for a transaction that leave it out are refused (PROTOCOL.md §8.4).

The transaction may hold its records: committed without their offsets, they are written again by who has the partition
now.  A producer does not see which records it was given, so it goes by the polls of the consumers whose metadata it is
handed.  What they returned before a transaction committed is of that one or an earlier one.  What was refused was told:
once the consumer has polled on, it is refused no more, or who starts over from what is committed never came to commit.
Pure.
"""

from __future__ import annotations

from typing import TypeAlias

from txntable.coordinator.assignment import NamedPartition
from txntable.coordinator.group_request import GroupMetadata, Loss
from txntable.errors import StaleMemberEpochError
from txntable.offsets.group_commit import GroupCommit

_Lost: TypeAlias = tuple[NamedPartition, Loss]


class LostReadings:
    """What one producer knows of the polls of its consumers."""

    def __init__(self) -> None:
        # Of the open transaction: the offsets that it has, and how often members had polled when they were sent.
        self._sent: dict[tuple[str, NamedPartition], int] = {}
        self._polls: dict[tuple[str, str], int] = {}
        # Of earlier ones that have committed: group and member id -> its polls until then.
        self._committed: dict[tuple[str, str], int] = {}
        # By group: what was refused, and how often the consumer had polled by then.
        self._refused: dict[str, dict[_Lost, int]] = {}

    def begun(self) -> None:
        """Take note that a transaction begins."""
        self._sent, self._polls = {}, {}

    def committed(self) -> None:
        """Take note that the transaction has committed."""
        self._committed.update(self._polls)

    def check(self, commit: GroupCommit) -> None:
        """Refuse offsets that leave out a partition which the consumer has read from and lost since.

        The log refuses the offsets of such a partition where they are sent.

        Raises
        ------
        StaleMemberEpochError
            Abort, and read again from what is committed.
        """
        member = commit.member
        if member is None:
            return
        known = self._refused.get(commit.group, {})
        # What the consumer does not tell any more is not asked for again.
        refused = {lost: polls for lost, polls in known.items() if member.lost.get(lost[0]) == lost[1]}
        left_out = [
            each
            for each, loss in member.lost.items()
            if each not in commit.offsets
            and not self._has(commit.group, each, loss)
            and refused.get((each, loss), member.polls) >= member.polls
        ]
        refused |= {(each, member.lost[each]): member.polls for each in left_out}
        self._refused[commit.group] = refused
        if left_out:
            raise _refusal(member, left_out)

    def _has(self, group: str, partition: NamedPartition, loss: Loss) -> bool:
        """Return whether the transaction has the offset of what was lost, or an earlier one had it all."""
        is_earlier = loss.poll <= self._committed.get((group, loss.reader), -1)
        return is_earlier or self._sent.get((group, partition), -1) >= loss.end

    def sent(self, commit: GroupCommit) -> None:
        """Take note of offsets that the transaction has."""
        self._sent |= {(commit.group, each): new.offset for each, new in commit.offsets.items()}
        if commit.member is not None:
            self._polls[commit.group, commit.member.member_id] = commit.member.polls


def _refusal(member: GroupMetadata, left_out: list[NamedPartition]) -> StaleMemberEpochError:
    return StaleMemberEpochError(
        "what was read from these partitions is another member's now, and their offsets are not sent: "
        "abort, and read again from what is committed",
        group=member.group,
        member=member.member_id,
        partitions=",".join(f"{topic}-{partition}" for topic, partition in sorted(left_out)),
    )
