"""What consumers have read and lost: offsets for a transaction that leave it out are refused (PROTOCOL.md §8.4).

The transaction may hold its records: committed without their offsets, they are written again by who has the partition
now.  A producer does not see which records it was given, so it goes by offsets: what was lost is settled once the same
member has sent its end, in this transaction or in one that has committed.  So is what was read before the consumer went
back in all that it was assigned, where that was between the abort of a transaction and the begin of the next one, or
before the producer's first: no transaction held records then.  A rewind before the abort says nothing, nor does one
within a transaction, which goes on with what it holds.  A refusal is told to the consumer, which gives up what was lost
when it reads on: who starts over comes to commit.  Pure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from txntable.coordinator.assignment import NamedPartition
from txntable.coordinator.decision import Outcome
from txntable.coordinator.group_request import GroupMetadata, GroupReader, Loss
from txntable.errors import StaleMemberEpochError
from txntable.offsets.group_commit import GroupCommit
from txntable.runtime.process_order import next_in_order

_Sender: TypeAlias = tuple[str, str, NamedPartition]
"""Group, member id, partition."""
REMEMBERED = 16


class LostReadings:
    """The offsets that one producer was handed by the members of groups.

    Parameters
    ----------
    now : callable
        Returns the number of what happens now, in the order of the process.
    """

    def __init__(self, now: Callable[[], int] = next_in_order) -> None:
        self._now = now
        # Since when no transaction is open, where the last one was aborted; and the last such times that are over.
        self._holds_nothing_since: int | None = 0
        self._held_nothing: deque[tuple[int, int]] = deque(maxlen=REMEMBERED)
        # Until when what was read is given up.
        self._given_up: dict[_Sender, int] = {}
        self._told: list[tuple[GroupReader, GroupCommit]] = []
        # Of the open transaction, and of those that have committed.
        self._sent: dict[_Sender, int] = {}
        self._committed: dict[_Sender, int] = {}

    def begun(self) -> None:
        """Take note that a transaction begins."""
        self._sent, self._told = {}, []
        if self._holds_nothing_since is not None:
            self._held_nothing.append((self._holds_nothing_since, self._now()))
            self._holds_nothing_since = None

    def decided(self, outcome: Outcome) -> None:
        """Take note how the transaction ended."""
        if outcome is Outcome.COMMIT:
            self.committed()
        else:
            self.aborted()

    def aborted(self) -> None:
        """Take note that the transaction was aborted."""
        self._holds_nothing_since = self._now()

    def committed(self) -> None:
        """Take note that the transaction has committed."""
        self._committed |= self._sent
        for reader, commit in self._told:
            reader.committed({each: new.offset for each, new in commit.offsets.items()})
        self._told = []

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
        # In this order: what is set aside meanwhile, in the consumer's own thread, is in both and not in neither.
        lost = [(each, loss) for each, loss in member.reader.losses().items() if each not in commit.offsets]
        # Of these the offsets of a partition that it has again are of a later reading.
        lost += member.reader.losses_before_a_rewind().items()
        left_out = {each for each, loss in lost if not self._is_settled(commit.group, member.reader, each, loss)}
        if left_out:
            member.reader.refused()
            raise _refusal(member, sorted(left_out))

    def _is_settled(self, group: str, reader: GroupReader, partition: NamedPartition, loss: Loss) -> bool:
        sender = (group, loss.reader, partition)
        if loss.end <= max(self._sent.get(sender, -1), self._committed.get(sender, -1)):
            return True
        if loss.at > self._given_up.get(sender, -1):
            if not self._was_given_up(reader, loss):
                return False
            self._given_up[sender] = loss.at
        return True

    def _was_given_up(self, reader: GroupReader, loss: Loss) -> bool:
        return any(
            loss.at < each.began and since < each.began and each.end < until
            for each in reader.rewinds()
            for since, until in self._held_nothing
        )

    def sent(self, commit: GroupCommit) -> None:
        """Take note of offsets that the transaction has."""
        if commit.member is not None:
            group, member_id = commit.group, commit.member.member_id
            self._sent |= {(group, member_id, each): new.offset for each, new in commit.offsets.items()}
            if commit.member.reader is not None:
                self._told.append((commit.member.reader, commit))


def _refusal(member: GroupMetadata, left_out: list[NamedPartition]) -> StaleMemberEpochError:
    return StaleMemberEpochError(
        "the member has read from these partitions and has lost them since, and their offsets are not sent: "
        "abort, and read again from what is committed: after the abort, and before the next transaction begins, seek "
        "back to it in all that is assigned",
        group=member.group,
        member=member.member_id,
        partitions=",".join(f"{topic}-{partition}" for topic, partition in left_out),
    )
