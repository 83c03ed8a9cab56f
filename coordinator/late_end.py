"""What an end is answered with whose epoch is over: how that transaction ended, as far as anything tells.

The rules are those of PROTOCOL.md §6.3.

A commit that is asked again may be told "fenced" only where it is known that nothing was committed: its caller would
send everything again.  Three things tell, in this order: the row's decisions, the memory of its batch id, and
that it was never asked before.  Where none does, the answer is that the outcome is unknown.
"""

from __future__ import annotations

from txntable.coordinator.decision import Decision, Outcome, PastDecision
from txntable.coordinator.errors import (
    InvalidPidMappingError,
    InvalidTxnStateError,
    ProducerFencedError,
    TransactionOutcomeUnknownError,
)
from txntable.coordinator.past_decisions import Ended
from txntable.coordinator.transaction import TransactionMetadata
from txntable.coordinator.transaction_guard import ABORTED_OVER_ITS_HEAD, owned_row, refused
from txntable.coordinator.transaction_request import EndRequest

_OTHERWISE = "the transaction was decided otherwise"


def owned_or_answered(row: TransactionMetadata | None, request: EndRequest) -> TransactionMetadata | PastDecision:
    """Return the row when it is of the request's producer id; else the answer, where one is known without it.

    Raises
    ------
    InvalidPidMappingError
        The id is unknown, expired, or of another producer id, and the transaction was not committed.
    TransactionOutcomeUnknownError
        The same, and nobody knows whether it was.
    """
    try:
        return owned_row(row, request.producer_id)
    except InvalidPidMappingError:
        if not _may_be_committed(request):
            raise
        if _committed_by_memory(request):
            return PastDecision(request.epoch, Outcome.COMMIT)
        if _committed_by_memory(request) is None:
            raise _unknown(request) from None
        raise


def answer_late(row: TransactionMetadata, request: EndRequest) -> Decision | PastDecision:
    """Return how the transaction of an epoch ended that is not the row's any more, if that is what was asked for.

    Parameters
    ----------
    row : TransactionMetadata
        The row of the id, of the request's producer id and another epoch.
    request : EndRequest
        What the producer, or the holder of the token, asks.

    Returns
    -------
    Decision or PastDecision
        That of the last decision is whole.

    Raises
    ------
    ProducerFencedError
        A newer producer has the id, and the transaction was not committed.
    InvalidTxnStateError
        It was decided otherwise.
    TransactionOutcomeUnknownError
        It was decided too many decisions ago.
    """
    if request.epoch > row.producer_epoch:
        raise refused(ProducerFencedError, row, request.epoch)
    ended = row.ended(request.epoch)
    if ended is None and _may_be_committed(request):
        committed = _committed_by_memory(request)
        if committed is None:
            raise _unknown(request)
        ended = Ended.COMMITTED if committed else Ended.NOTHING
    if ended in (None, Ended.NOTHING):
        # An abort that nobody can tell of does no harm by being refused.
        raise refused(ProducerFencedError, row, request.epoch)
    outcome = Outcome.COMMIT if ended is Ended.COMMITTED else Outcome.ABORT
    last = row.decision
    whole = last if last is not None and last.epoch == request.epoch else None
    return _told(row, whole or PastDecision(request.epoch, outcome), request)


def _told(row: TransactionMetadata, decision: Decision | PastDecision, request: EndRequest) -> Decision | PastDecision:
    superseded = row.producer_epoch != decision.next_epoch
    told_anyway = request.outcome is Outcome.COMMIT or request.token is not None
    if decision.outcome is request.outcome and (told_anyway or not superseded):
        return decision
    if superseded and request.token is None:
        raise refused(ProducerFencedError, row, request.epoch)
    # Nobody but a timeout or an admin decides over a producer that still has the id; its token's holder is another.
    was_aborted = request.token is None and decision.outcome is Outcome.ABORT
    raise InvalidTxnStateError(
        f"{ABORTED_OVER_ITS_HEAD if was_aborted else _OTHERWISE}: close the producer and make a new one",
        transactional_id=row.transactional_id,
        epoch=request.epoch,
        requested=request.outcome.value,
        decided=decision.outcome.value,
        transaction_timeout_ms=row.timeout_ms if was_aborted else None,
        position=decision.position if isinstance(decision, Decision) else None,
    )


def _may_be_committed(request: EndRequest) -> bool:
    """Return whether a decision that nothing tells of may be the commit: who asks first, and alone, knows it is not."""
    if request.token is not None:
        return True
    return request.repeated and request.outcome is Outcome.COMMIT


def _committed_by_memory(request: EndRequest) -> bool | None:
    if request.batch_id is None:
        return None
    return request.memory.tells_of(request.batch_id, request.producer_id, request.epoch)


def _unknown(request: EndRequest) -> TransactionOutcomeUnknownError:
    return TransactionOutcomeUnknownError(
        "the transaction was decided so long ago that its outcome is not kept any more: look whether its records are"
        " there before anything is sent again, and give transactions batch ids, which are remembered",
        producer_id=request.producer_id,
        epoch=request.epoch,
        requested=request.outcome.value,
    )
