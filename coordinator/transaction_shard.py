"""The state machine of the transaction coordinator: a row and a producer's request make a transition, or an error.

The rules are those of PROTOCOL.md §6.2, 6.3.

Pure: no clock, no store, no ids made here.  There is no server: every client runs these functions
on the row at the head of the transaction log and writes the result at the next slot, so each
decision is made on the whole history below it.  Rules, which are Kafka's (transaction version 2)
unless marked:

* A (producer id, epoch) names one transaction.  A request with an epoch whose transaction is decided
  is a retry of that decision and never touches a later transaction.
* A refused epoch is :class:`InvalidProducerEpochError` for data, :class:`ProducerFencedError` for
  offsets, decisions and init.  A wrong producer id is :class:`InvalidPidMappingError`.
* A commit is recognised for as long as the row keeps its outcome, even after newer producers' transactions
  (ours: the truth helps, and the caller is fenced at its next request).  An abort is not: it would
  tell a zombie that it may go on.  After that, see ``late_end``.
* Whoever meets a decided row that is not complete is told to complete it first.

This module is the entrance: what others than the producer may do is in ``transaction_upkeep``, what an
append is checked for in ``verification``, and both can be had from here.
"""

from __future__ import annotations

from txntable.coordinator.batch_memory import BatchId, BatchRow, check_batch
from txntable.coordinator.decision import Decision, Outcome, PastDecision
from txntable.coordinator.error_kinds import shown
from txntable.coordinator.errors import (
    InvalidProducerEpochError,
    InvalidRequestError,
    InvalidTxnStateError,
    ProducerFencedError,
    RecordTooLargeError,
    TransactionAbortableError,
)
from txntable.coordinator.late_end import answer_late, owned_or_answered
from txntable.coordinator.manifest import LONGEST_UPLOAD_MS
from txntable.coordinator.transaction import LARGEST_ROW_BYTES, TransactionMetadata, first_row
from txntable.coordinator.transaction_guard import owned_row, refused, require_complete
from txntable.coordinator.transaction_request import (
    EndRequest,
    EnrolRequest,
    InitRequest,
    PrepareRequest,
    ProducerIdentity,
    Transition,
)
from txntable.coordinator.transaction_state import Operation, TransactionState
from txntable.coordinator.transaction_upkeep import abort_open, complete, expire, terminate, time_out
from txntable.coordinator.verification import verify, verify_offsets

__all__ = [
    "carried_batch",
    "complete",
    "end",
    "enrol",
    "expire",
    "init_producer",
    "prepare",
    "terminate",
    "time_out",
    "verify",
    "verify_offsets",
]


def init_producer(row: TransactionMetadata | None, request: InitRequest) -> Transition[ProducerIdentity | Decision]:
    """Let a producer take the id.

    Parameters
    ----------
    row : TransactionMetadata, optional
        The row of the id; ``None`` when there is none.
    request : InitRequest
        What the producer asks.

    Returns
    -------
    Transition
        With a :class:`ProducerIdentity`: done.  With a :class:`Decision`: an open transaction
        was met and aborted by that decision; complete it, then make the request again.

    Raises
    ------
    ConcurrentTransactionsError
        A decided transaction is not complete: complete it, then call again.
    InvalidTxnStateError
        A transaction is prepared: complete it with its token, or init with `keep_prepared`.
    ProducerFencedError
        Someone else is the producer by now.
    """
    if row is None:
        fresh = first_row(request.transactional_id, request.next_producer_id, request.timeout_ms, request.position)
        identity = ProducerIdentity(fresh.producer_id, fresh.producer_epoch)
        return Transition(fresh, identity, next_producer_id=fresh.producer_id + 1)
    if request.expected is not None and request.expected != (row.producer_id, row.producer_epoch):
        raise refused(ProducerFencedError, row, request.expected[1])
    require_complete(row)
    if row.state is TransactionState.PREPARED:
        return _take_over_prepared(row, request)
    if row.state is TransactionState.ONGOING:
        return abort_open(row, Operation.FENCE, request.position)
    following = row.prepare_init(request.timeout_ms, request.position)
    return Transition(following, ProducerIdentity(following.producer_id, following.producer_epoch))


def enrol(row: TransactionMetadata | None, request: EnrolRequest) -> Transition[TransactionMetadata]:
    """Let partitions and groups join the producer's transaction.

    Parameters
    ----------
    row : TransactionMetadata, optional
        The row of the id; ``None`` when there is none.
    request : EnrolRequest
        What the producer asks.

    Returns
    -------
    Transition
        With the row that holds the enrolment; nothing is written when all of it was known.

    Raises
    ------
    InvalidPidMappingError
        The id is unknown, expired, or of another producer id: make a new producer.
    InvalidProducerEpochError
        Timed out or fenced, met with data: abort.
    ProducerFencedError
        The same, met with offsets: close the producer.
    ConcurrentTransactionsError
        The previous transaction is not complete: complete it, then call again.
    InvalidTxnStateError
        The transaction is prepared.
    RecordTooLargeError
        It would have too many topics and partitions: abort, and write to fewer in one transaction.
    """
    row = owned_row(row, request.producer_id)
    if request.epoch != row.producer_epoch:
        raise refused(ProducerFencedError if request.groups else InvalidProducerEpochError, row, request.epoch)
    require_complete(row)
    grown = row.prepare_enrol(request.topics, request.groups, request.position)
    # EMPTY and COMPLETE_* hold nothing, so an enrolment always adds to them: this is ONGOING met again.
    if grown.topics == row.topics and grown.groups == row.groups:
        return Transition(None, row)
    # Only here: what ends the transaction adds a little, and must never be refused for it.
    if (size := len(grown.to_json().encode())) > LARGEST_ROW_BYTES:
        raise RecordTooLargeError(
            "a transaction's row would be too large; abort, and write to fewer topics and partitions in one",
            transactional_id=row.transactional_id,
            topics=len(grown.topics),
            groups=len(grown.groups),
            bytes=size,
            most=LARGEST_ROW_BYTES,
        )
    return Transition(grown, grown)


def prepare(row: TransactionMetadata | None, request: PrepareRequest) -> Transition[ProducerIdentity]:
    """Make the transaction wait for its token's holder; from here on it never times out.

    Parameters
    ----------
    row : TransactionMetadata, optional
        The row of the id; ``None`` when there is none.
    request : PrepareRequest
        What the producer asks; it must not have an append of unknown outcome.

    Returns
    -------
    Transition
        With the identity and the token; nothing is written when it was prepared with this token.

    Raises
    ------
    InvalidPidMappingError, ProducerFencedError, ConcurrentTransactionsError
        As :func:`end`.
    InvalidTxnStateError
        It is prepared with another token.
    BatchAlreadyCommittedError, BatchOutOfOrderError
        The batch id may not be committed: abort.
    """
    row = owned_row(row, request.producer_id)
    if request.epoch != row.producer_epoch:
        raise refused(ProducerFencedError, row, request.epoch)
    require_complete(row)
    identity = ProducerIdentity(row.producer_id, row.producer_epoch, request.token)
    if row.token == request.token:
        return Transition(None, identity)
    if request.batch_id is not None:
        # Later would be too late: from here on the external database may commit.
        check_batch(request.memory.last_integer, request.memory.name_known, request.batch_id)
    return Transition(row.prepare_token(request.token, request.batch_id, request.position), identity)


def end(row: TransactionMetadata | None, request: EndRequest) -> Transition[Decision | PastDecision]:
    """Decide the producer's transaction, or find how it was decided.

    Parameters
    ----------
    row : TransactionMetadata, optional
        The row of the id; ``None`` when there is none.
    request : EndRequest
        What the producer, or the holder of the token, asks.

    Returns
    -------
    Transition
        With the decision; the producer goes on with its `next_epoch`.  Nothing is written for a retry.

    Raises
    ------
    InvalidPidMappingError
        The id is unknown, expired, or of another producer id: make a new producer.
    ProducerFencedError
        A newer producer has the id, and this transaction was not committed: close this producer.
    TransactionOutcomeUnknownError
        It was decided before what the row keeps: look whether its records are there.
    InvalidTxnStateError
        Nothing to commit, decided otherwise, prepared and no token (or another): close the producer.
    ConcurrentTransactionsError
        The previous transaction is not complete: complete it, then call again.
    BatchAlreadyCommittedError, BatchOutOfOrderError
        The batch id may not be committed: abort.
    TransactionAbortableError
        What it carries was uploaded too long ago: abort, and write it again.
    InvalidRequestError
        The prepared transaction carries another batch id: see :func:`carried_batch`.
    """
    found = owned_or_answered(row, request)
    if isinstance(found, PastDecision):
        return Transition(None, found)
    row = found
    if request.epoch != row.producer_epoch:
        return Transition(None, answer_late(row, request))
    require_complete(row)
    if request.token != row.token:
        raise InvalidTxnStateError(
            "only the token of a prepared transaction ends it, and a token ends no other: use the stored token",
            transactional_id=row.transactional_id,
            state=row.state.value,
        )
    return _decide(row, request)


def carried_batch(
    row: TransactionMetadata | None, producer: ProducerIdentity, batch_id: BatchId | None
) -> BatchId | None:
    """Return the batch id that an end decides.

    Parameters
    ----------
    row : TransactionMetadata, optional
        The row of the id.
    producer : ProducerIdentity
        Whose transaction is ended.
    batch_id : str or int, optional
        What the caller of the end knows: after a restart, nothing.

    Returns
    -------
    str or int, optional
        That of the producer's prepared transaction if it has one, else `batch_id`.
    """
    if row is None or row.batch_id is None:
        return batch_id
    is_its_own = (row.producer_id, row.producer_epoch) == (producer.producer_id, producer.producer_epoch)
    return row.batch_id if is_its_own else batch_id


def _take_over_prepared(row: TransactionMetadata, request: InitRequest) -> Transition[ProducerIdentity]:
    if not request.keep_prepared:
        raise InvalidTxnStateError(
            "a transaction is prepared: init with keep_prepared and use its token, or let an admin abort it",
            transactional_id=row.transactional_id,
            producer_epoch=row.producer_epoch,
        )
    # Its segments carry this epoch and its markers will end it: it cannot be raised before the decision.
    return Transition(None, ProducerIdentity(row.producer_id, row.producer_epoch, row.token))


def _decide(row: TransactionMetadata, request: EndRequest) -> Transition[Decision | PastDecision]:
    _check_uploads(row, request)
    batch_id = carried_batch(row, ProducerIdentity(request.producer_id, request.epoch), request.batch_id)
    decision = row.decided(request.outcome, batch_id, request.position)
    following = row.prepare_decision(_end_operation(row, request, batch_id), decision, request.manifest)
    if batch_id is None or request.outcome is Outcome.ABORT:
        return Transition(following, decision)
    # The memory was read for the request's batch id: for another it would prove nothing.
    if batch_id != request.batch_id:
        raise InvalidRequestError(
            "the prepared transaction carries a batch id: commit it with that one",
            batch_id=shown(request.batch_id),
            carried=shown(batch_id),
        )
    check_batch(request.memory.last_integer, request.memory.name_known, batch_id)
    remembered = BatchRow(
        row.transactional_id,
        batch_id,
        row.producer_id,
        decision.epoch,
        decision.position,
        request.decided_at_ms,
    )
    return Transition(following, decision, batch_row=remembered)


def _end_operation(row: TransactionMetadata, request: EndRequest, batch_id: BatchId | None) -> Operation:
    if request.outcome is Outcome.ABORT:
        return Operation.ABORT
    if row.state.is_open:
        return Operation.COMMIT
    if request.manifest:
        return Operation.COMMIT_MANIFEST
    return Operation.COMMIT if batch_id is None else Operation.COMMIT_EMPTY_BATCH


def _check_uploads(row: TransactionMetadata, request: EndRequest) -> None:
    """Refuse uploads that vacuum may take: once this is decided nothing can be refused any more."""
    oldest_ms, now_ms = request.manifest.oldest_upload_ms, request.decided_at_ms
    if oldest_ms is not None and (now_ms is None or now_ms - oldest_ms > LONGEST_UPLOAD_MS):
        raise TransactionAbortableError(
            "the transaction's uploads began too long ago for their files to be safe from vacuum; abort and write"
            " them again",
            transactional_id=row.transactional_id,
            uploaded_at_ms=oldest_ms,
            longest_ms=LONGEST_UPLOAD_MS,
        )
