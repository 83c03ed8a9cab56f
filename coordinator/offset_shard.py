"""The state machine of a group's offsets: the rows of the group and a request make a transition, or an error.

The rules are those of PROTOCOL.md §8.1, 8.4.

Pure, and decided on the state of the offset log below the slot: the group's row and the offsets' rows of one version.
So who may commit (``group_fencing``) and what is committed is one decision.  Rules, which are Kafka's unless marked:

* The latest *request* counts, not the latest decision; a plain commit stays when an older pending offset is settled.
* Nothing checks an offset: backwards, beyond the end.  Ours: a range read names where it began, and counts only
  while the group still stands there.
* An offset of a topic that was created again is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from txntable.coordinator.assignment import NamedPartition
from txntable.coordinator.error_kinds import shown
from txntable.coordinator.errors import (
    CommitFailedError,
    OffsetMetadataTooLargeError,
    TxnTableError,
    UnstableOffsetCommitError,
)
from txntable.coordinator.group import GroupRow
from txntable.coordinator.group_fencing import check_member
from txntable.coordinator.group_offsets import CommittedOffset, OffsetRow, PendingOffset
from txntable.coordinator.group_request import OffsetLogTransition
from txntable.coordinator.offset_request import CommitRequest, NewOffset, OffsetTransaction

OffsetRows = Mapping[NamedPartition, OffsetRow]
"""Rows of one group, by topic and partition."""
Refused = Mapping[NamedPartition, TxnTableError]
"""Partitions whose offsets were refused, each with the reason; the others' are written."""


def commit(group: GroupRow | None, rows: OffsetRows, request: CommitRequest) -> OffsetLogTransition[Refused]:
    """Commit offsets of a group, at once or with a transaction.

    Parameters
    ----------
    group : GroupRow, optional
        The group's row; ``None`` when there is none.
    rows : Mapping of NamedPartition to OffsetRow
        The rows that there are of the request's partitions.
    request : CommitRequest
        What to commit, and who asks.

    Returns
    -------
    OffsetLogTransition
        With the partitions that were refused for what they say themselves: metadata too long
        (:class:`OffsetMetadataTooLargeError`).  Nothing is written of what stands there already: a retry.

    Raises
    ------
    GroupIdNotFoundError, UnknownMemberIdError, FencedInstanceIdError, IllegalGenerationError, StaleMemberEpochError
        See :func:`txntable.coordinator.group_fencing.check_member`; nothing is committed.  Abort the transaction.
    CommitFailedError
        The group does not stand any more where a range was read from; nothing is committed.  Abort, read again.
    UnstableOffsetCommitError
        Whether it stands there depends on another transaction that is not settled: complete that, then call again.
    """
    check_member(group, request.member, request.offsets, transactional=request.transaction is not None)
    refused: dict[NamedPartition, TxnTableError] = {}
    written: list[OffsetRow] = []
    for partition, new in request.offsets.items():
        row = rows.get(partition) or OffsetRow(request.group, *partition, position=-1)
        if _is_there(row, new, request.transaction):
            continue
        if new.read_from is not None:
            _check_read_from(row, new, new.read_from.offset, request.transaction)
        if len(new.metadata.encode()) > request.max_metadata_bytes:
            refused[partition] = _too_large(request, partition, new)
            continue
        written.append(_with(row, new, request))
    return OffsetLogTransition(refused, offsets=tuple(written))


def committed(row: OffsetRow | None, topic_id: str, *, require_stable: bool) -> CommittedOffset | None:
    """Return what a group has committed in one partition.

    Parameters
    ----------
    row : OffsetRow, optional
        The partition's row; ``None`` when there is none.
    topic_id : str
        Of the topic as it is now.
    require_stable : bool
        Kafka's ``require_stable``: consumers always, admins seldom.

    Returns
    -------
    CommittedOffset, optional
        ``None``: nothing, or for an earlier topic of that name only.

    Raises
    ------
    UnstableOffsetCommitError
        A transaction that is not settled has an offset here: complete it or wait, then call again.
    """
    if row is None:
        return None
    waiting = next((each for each in row.pending if _counts(each.topic_id, topic_id)), None)
    if require_stable and waiting is not None:
        raise _unstable(row, waiting)
    found = row.committed
    return found if found is not None and _counts(found.topic_id, topic_id) else None


def _counts(stored: str, topic_id: str) -> bool:
    return stored in {"", topic_id}


def _is_own(pending: PendingOffset, transaction: OffsetTransaction | None) -> bool:
    who = (pending.transactional_id, pending.producer_id, pending.epoch)
    return transaction is not None and who == (
        transaction.transactional_id,
        transaction.producer_id,
        transaction.epoch,
    )


def _is_there(row: OffsetRow, new: NewOffset, transaction: OffsetTransaction | None) -> bool:
    """Return whether the same was committed as a range before: a call whose first answer was lost."""
    if new.read_from is None:
        return False
    said = (new.offset, new.metadata, new.topic_id)
    own = [each for each in row.pending if _is_own(each, transaction)]
    if transaction is not None:
        return any((each.offset, each.metadata, each.topic_id) == said for each in own)
    found = row.committed
    return found is not None and found.position == 0 and (found.offset, found.metadata, found.topic_id) == said


def _check_read_from(
    row: OffsetRow, new: NewOffset, read_from: int | None, transaction: OffsetTransaction | None
) -> None:
    """Return when the group stands where the range began; what its own transaction sent before counts."""
    other = next((each for each in row.pending if not _is_own(each, transaction)), None)
    if other is not None:
        raise _unstable(row, other)
    latest = row.pending[-1] if row.pending else row.committed
    offset = latest.offset if latest is not None and _counts(latest.topic_id, new.topic_id) else None
    if offset != read_from:
        raise CommitFailedError(
            "the group does not stand any more where the range was read from; read again from what is committed",
            group=row.group,
            topic=row.topic,
            partition=row.partition,
            read_from=shown(read_from),
            committed=shown(offset),
        )


def _unstable(row: OffsetRow, waiting: PendingOffset) -> UnstableOffsetCommitError:
    return UnstableOffsetCommitError(
        "a transaction that is not settled has an offset here; complete it or wait, then call again",
        group=row.group,
        topic=row.topic,
        partition=row.partition,
        transactional_id=waiting.transactional_id,
        producer_id=waiting.producer_id,
        epoch=waiting.epoch,
    )


def _too_large(request: CommitRequest, partition: NamedPartition, new: NewOffset) -> OffsetMetadataTooLargeError:
    return OffsetMetadataTooLargeError(
        "the metadata beside an offset is too long; shorten it",
        group=request.group,
        topic=partition[0],
        partition=partition[1],
        bytes=len(new.metadata.encode()),
        max_bytes=request.max_metadata_bytes,
    )


def _with(row: OffsetRow, new: NewOffset, request: CommitRequest) -> OffsetRow:
    """Return the row with an offset committed, or pending in place of what the transaction sent before."""
    position, transaction = request.position, request.transaction
    if transaction is None:
        plain = CommittedOffset(new.offset, new.metadata, new.topic_id, request=position, position=0)
        return replace(row, committed=plain, position=position)
    waiting = PendingOffset(
        transaction.transactional_id,
        transaction.producer_id,
        transaction.epoch,
        new.offset,
        new.metadata,
        request=position,
        topic_id=new.topic_id,
    )
    others = tuple(each for each in row.pending if not _is_own(each, transaction))
    return replace(row, pending=(*others, waiting), position=position)
