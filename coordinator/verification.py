"""Whether an append may go on: every append of a transaction is checked against its row (PROTOCOL.md §6.3).

A row proves something only when it was read after the state of the partition log that the append
is decided on: an older one may hide that the transaction was ended, and its marker written, in between.
"""

from __future__ import annotations

from collections.abc import Collection

from txntable.coordinator.enrolment import missing_partitions
from txntable.coordinator.errors import (
    InvalidProducerEpochError,
    InvalidTxnStateError,
    ProducerFencedError,
    TransactionAbortableError,
)
from txntable.coordinator.transaction import TransactionMetadata
from txntable.coordinator.transaction_guard import owned_row, refused, require_complete
from txntable.coordinator.transaction_state import TransactionState


def verify(
    row: TransactionMetadata | None, producer_id: int, epoch: int, topic_id: str, partitions: Collection[int]
) -> None:
    """Return when an append of data may go on; asked for every attempt, on a row read after the partition log.

    Parameters
    ----------
    row : TransactionMetadata, optional
        The row of the id; ``None`` when there is none.
    producer_id, epoch : int
        Of the batches.
    topic_id : str
        Of the topic that is appended to.
    partitions : collection of int
        All partitions that the append writes to.

    Raises
    ------
    InvalidPidMappingError
        The id is unknown, expired, or of another producer id: make a new producer.
    InvalidProducerEpochError
        Timed out, ended or fenced: abort.
    ConcurrentTransactionsError
        The previous transaction is not complete.
    InvalidTxnStateError
        No transaction is ongoing.
    TransactionAbortableError
        A partition is not enrolled: abort.
    """
    ongoing = _ongoing_row(row, producer_id, epoch, InvalidProducerEpochError)
    missing = missing_partitions(ongoing.topics, topic_id, partitions)
    if missing:
        raise TransactionAbortableError(
            "the transaction has not enrolled a partition that it writes to: abort it",
            transactional_id=ongoing.transactional_id,
            topic_id=topic_id,
            partitions=missing,
        )


def verify_offsets(row: TransactionMetadata | None, producer_id: int, epoch: int, group: str) -> None:
    """Return when an append of pending offsets may go on.

    Parameters
    ----------
    row : TransactionMetadata, optional
        The row of the id; ``None`` when there is none.
    producer_id, epoch : int
        Of the transaction.
    group : str
        The consumer group.

    Raises
    ------
    InvalidPidMappingError, ConcurrentTransactionsError, InvalidTxnStateError, TransactionAbortableError
        As :func:`verify`.
    ProducerFencedError
        Timed out, ended or fenced: close the producer.
    """
    ongoing = _ongoing_row(row, producer_id, epoch, ProducerFencedError)
    if group not in ongoing.groups:
        raise TransactionAbortableError(
            "the transaction has not enrolled the group whose offsets it sends: abort it",
            transactional_id=ongoing.transactional_id,
            group=group,
        )


def _ongoing_row(
    row: TransactionMetadata | None,
    producer_id: int,
    epoch: int,
    refusal: type[InvalidProducerEpochError | ProducerFencedError],
) -> TransactionMetadata:
    owned = owned_row(row, producer_id)
    if epoch != owned.producer_epoch:
        raise refused(refusal, owned, epoch)
    require_complete(owned)
    if owned.state is not TransactionState.ONGOING:
        raise InvalidTxnStateError(
            "an append needs an ongoing transaction that has enrolled it: close the producer and make a new one",
            transactional_id=owned.transactional_id,
            state=owned.state.value,
        )
    return owned
