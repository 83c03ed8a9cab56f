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
from txntable.coordinator.past_decisions import Ended
from txntable.coordinator.transaction import TransactionMetadata

_NEWER_PRODUCER = "a newer producer has the transactional id, or an admin has fenced it"
ABORTED_OVER_ITS_HEAD = (
    "the transaction was aborted over this producer's head: its timeout had passed, an admin aborted it, or"
    " another was about to take the id, as when a program is started twice; no newer producer had the id by then"
)
"""What is said to a producer whose transaction was aborted by somebody else, while the id stayed with it.

The producer remembers it, and says it again when one may have taken the id since: so it speaks of what was.
"""
_COMMITTED = "the transaction is committed already, by another holder of the producer's identity or of its token"
_NEVER_GIVEN = (
    "the transaction log has never given out this epoch: the warehouse was restored from an older copy, or is another"
    " one"
)


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
    """Return the error for an epoch that is not the row's: a lower one, or one that never was.

    It says who ended the epoch, as far as the row tells: a timeout, an admin's abort and the first step of another's
    init leave the same row, and so do a newer producer and an admin's fence.  What became of the epoch's transaction is
    among the facts.
    """
    ended = row.ended(epoch) if epoch < row.producer_epoch else None
    what = _by_whom(row, epoch, ended)
    return kind(
        f"{what}: {_remedy(kind, what)}",
        transactional_id=row.transactional_id,
        producer_id=row.producer_id,
        epoch=epoch,
        current=row.producer_epoch,
        transaction=None if ended is None else ended.name,
        transaction_timeout_ms=row.timeout_ms if what is ABORTED_OVER_ITS_HEAD else None,
    )


def _remedy(kind: type[InvalidProducerEpochError | ProducerFencedError], what: str) -> str:
    if not kind.txn_requires_abort:
        return "close this producer"
    # The abort of who has lost the id is refused as fenced; who still has it goes on after it.
    return "abort the transaction" if what is ABORTED_OVER_ITS_HEAD else "abort the transaction and close this producer"


def _by_whom(row: TransactionMetadata, epoch: int, ended: Ended | None) -> str:
    if epoch > row.producer_epoch:
        return _NEVER_GIVEN
    # An init raises the epoch once more than the decision of what it met: what is just above, no init has given.
    if row.producer_epoch > epoch + 1 or ended in (None, Ended.NOTHING):
        return _NEWER_PRODUCER
    return ABORTED_OVER_ITS_HEAD if ended is Ended.ABORTED else _COMMITTED
