"""What every request is checked for first: whose row it is, and whether the last transaction is complete.

The rules are those of PROTOCOL.md §6.3.
"""

from __future__ import annotations

from txntable.coordinator.errors import (
    ConcurrentTransactionsError,
    InvalidPidMappingError,
    InvalidProducerEpochError,
    ProducerFencedError,
)
from txntable.coordinator.transaction import TransactionMetadata


def owned_row(row: TransactionMetadata | None, producer_id: int) -> TransactionMetadata:
    """Return `row` when it is there and is of `producer_id`.

    Raises
    ------
    InvalidPidMappingError
        The id is unknown, expired, or of another producer id: make a new producer.
    """
    if row is None or row.producer_id != producer_id:
        raise InvalidPidMappingError(
            "the transactional id is unknown, expired, or of another producer id: make a new producer",
            transactional_id=row and row.transactional_id,
            producer_id=producer_id,
            stored=row and row.producer_id,
        )
    return row


def require_complete(row: TransactionMetadata) -> None:
    """Return when no decision of the row is still to be completed.

    Raises
    ------
    ConcurrentTransactionsError
        One is: complete the decision position that the error names, then call again.
    """
    if row.state.is_decided:
        raise ConcurrentTransactionsError(
            "the previous transaction is decided but not complete: complete it, then call again",
            transactional_id=row.transactional_id,
            state=row.state.value,
            position=row.position,
        )


def refused(
    kind: type[InvalidProducerEpochError | ProducerFencedError], row: TransactionMetadata, epoch: int
) -> InvalidProducerEpochError | ProducerFencedError:
    """Return the error for an epoch that is not the row's: a lower one, or one that never was."""
    remedy = "abort the transaction" if kind.txn_requires_abort else "close this producer"
    return kind(
        f"the producer's epoch is not the transactional id's; it timed out, or a newer producer has the id: {remedy}",
        transactional_id=row.transactional_id,
        producer_id=row.producer_id,
        epoch=epoch,
        current=row.producer_epoch,
    )
