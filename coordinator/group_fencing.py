"""Who may commit a group's offsets: ownership since the read (KIP-447, KIP-1251) (PROTOCOL.md §8.4).

A member commits a partition iff it has owned it without a break since it read the range: its ownership epoch is
still the one that the group metadata froze then.  A member that lost the partition in between cannot commit, even if
it has it back; a new generation that left it the partition is no reason to refuse.  Without metadata, Kafka's rules:
only while the group has no members; in a transaction there is no check.  Must not know of offsets.
"""

from __future__ import annotations

from collections.abc import Iterable

from txntable.coordinator.assignment import NamedPartition
from txntable.coordinator.errors import (
    GroupIdNotFoundError,
    IllegalGenerationError,
    StaleMemberEpochError,
    UnknownMemberIdError,
)
from txntable.coordinator.group import GroupRow
from txntable.coordinator.group_member import GroupMember
from txntable.coordinator.group_request import GroupMetadata
from txntable.coordinator.group_shard import find_member


def check_member(
    row: GroupRow | None,
    metadata: GroupMetadata | None,
    partitions: Iterable[NamedPartition],
    *,
    transactional: bool,
) -> None:
    """Return when the offsets of `partitions` may be committed.

    Parameters
    ----------
    row : GroupRow, optional
        The group's row in the state that is decided on; ``None`` when there is none.
    metadata : GroupMetadata, optional
        Frozen when the ranges were read; ``None``: a consumer that assigns its partitions itself, or an admin.
    partitions : iterable of NamedPartition
        Whose offsets.
    transactional : bool
        Whether the commit is part of a transaction.

    Raises
    ------
    GroupIdNotFoundError, UnknownMemberIdError
        It is no member any more, or the group has members and the caller is none of them.
    FencedInstanceIdError
        A newer consumer has its instance id.
    IllegalGenerationError
        The group has not had that generation.
    StaleMemberEpochError
        It has not owned a partition without a break since it read.
    """
    if metadata is None:
        if row is not None and row.members and not transactional:
            raise UnknownMemberIdError(
                "the group has members: only they commit its offsets; commit through one of them, "
                "or wait until all have left",
                group=row.group,
                members=len(row.members),
            )
        return
    if row is None:
        raise GroupIdNotFoundError("there is no such group any more; join again", group=metadata.group)
    member = find_member(row, metadata.member_id, metadata.instance_id)
    if metadata.generation > row.generation:
        raise IllegalGenerationError(
            "the group has not had that generation; take the group metadata from the consumer",
            group=row.group,
            generation=metadata.generation,
            current_generation=row.generation,
        )
    for partition in partitions:
        if not _has_owned_since(member, metadata, partition):
            raise _lost(row, member, metadata, partition)


def _has_owned_since(member: GroupMember, metadata: GroupMetadata, partition: NamedPartition) -> bool:
    epoch = member.owned.get(partition)
    if epoch is None:
        return False
    return epoch <= metadata.generation if metadata.ownership is None else epoch == metadata.ownership.get(partition)


def _lost(
    row: GroupRow, member: GroupMember, metadata: GroupMetadata, partition: NamedPartition
) -> StaleMemberEpochError:
    now, then = member.owned.get(partition), None if metadata.ownership is None else metadata.ownership.get(partition)
    if now is None and then is None:
        why = (
            "the member does not own the partition, whose owner reads from what is committed; in a transaction: abort, "
            "and seek back to what is committed in all that is assigned; else commit what is assigned only"
        )
    elif then is None:
        why = (
            "the member has got the partition since; ask for its group metadata again, after the last poll, or read "
            "again from what is committed"
        )
    else:
        why = "the member has not owned the partition since it read it; read again from what is committed"
    return StaleMemberEpochError(
        why,
        group=row.group,
        member_id=member.member_id,
        topic=partition[0],
        partition=partition[1],
        ownership_epoch=then,
        current_ownership_epoch=now,
        generation=metadata.generation,
        current_generation=row.generation,
    )
