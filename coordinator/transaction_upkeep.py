"""What others do to a transaction than its producer: time out, terminate, complete, expire (PROTOCOL.md §6.6).

Anyone may, at any time and any number of times: each either finds the row as it expects and writes,
or writes nothing.  Durations come as arguments, measured by the store's clock.
"""

from __future__ import annotations

from txntable.coordinator.decision import Decision, Outcome
from txntable.coordinator.store_time import has_passed
from txntable.coordinator.transaction import TransactionMetadata
from txntable.coordinator.transaction_request import Transition
from txntable.coordinator.transaction_state import VALID_TRANSITIONS, Operation


def abort_open(row: TransactionMetadata, operation: Operation, position: int) -> Transition[Decision]:
    """Abort a transaction without its producer, which the raised epoch fences.

    Parameters
    ----------
    row : TransactionMetadata
        The row of the id.
    operation : Operation
        Why: FENCE or TIME_OUT.
    position : int
        The slot decided on.

    Raises
    ------
    InvalidTxnStateError
        There is no transaction that `operation` may abort.
    """
    decision = row.decided(Outcome.ABORT, row.batch_id, position)
    return Transition(row.prepare_decision(operation, decision), decision)


def time_out(row: TransactionMetadata, elapsed_ms: int | None, position: int) -> Transition[Decision | None]:
    """Abort the transaction if its timeout has passed; whoever sees it may do it.

    Parameters
    ----------
    row : TransactionMetadata
        Any row.
    elapsed_ms : int, optional
        Milliseconds of the store's time since the started position; ``None``: so long that its log entry is gone.
        Far below zero: a clock was ahead when it began, and its end is not waited for.
    position : int
        The slot decided on.

    Returns
    -------
    Transition
        With the decision; with ``None``, and nothing to write, when there is nothing to abort.
    """
    illegal = (row.state, Operation.TIME_OUT) not in VALID_TRANSITIONS
    if illegal or (elapsed_ms is not None and not has_passed(elapsed_ms, row.timeout_ms)):
        return Transition(None, None)
    return abort_open(row, Operation.TIME_OUT, position)


def terminate(row: TransactionMetadata, position: int) -> Transition[Decision]:
    """Abort an open transaction over its producer's head, prepared or not: an admin's call.

    Parameters
    ----------
    row : TransactionMetadata
        The row of the id.
    position : int
        The slot decided on.

    Raises
    ------
    InvalidTxnStateError
        No transaction is open: there is nothing to do.
    """
    return abort_open(row, Operation.FENCE, position)


def complete(
    row: TransactionMetadata | None, decision_position: int, position: int
) -> Transition[TransactionMetadata | None]:
    """Record that nothing is owed of a decision any more; anyone may, and only the first one writes.

    Parameters
    ----------
    row : TransactionMetadata, optional
        The row of the id; ``None`` when there is none.
    decision_position : int
        The decision whose markers, projections and offsets are done.
    position : int
        The slot decided on.

    Returns
    -------
    Transition
        With the row as it stands then; nothing is written when someone else was first.
    """
    # Without the position, a late completer would complete the id's next transaction, whose markers are owed.
    if row is None or not row.state.is_decided or row.position != decision_position:
        return Transition(None, row)
    following = row.prepare_complete(position)
    return Transition(following, following)


def expire(
    row: TransactionMetadata, idle_ms: int | None, expiration_ms: int, position: int
) -> Transition[TransactionMetadata | None]:
    """Let go of an id that no one uses.

    Parameters
    ----------
    row : TransactionMetadata
        Any row.
    idle_ms : int, optional
        Milliseconds of the store's time since the row was written; ``None``: so long that its log entry is gone.
    expiration_ms : int
        ``transactional.id.expiration.ms``.
    position : int
        The slot decided on.

    Returns
    -------
    Transition
        With the DEAD row, whose key is to be removed; with ``None``, and nothing to write, when the id stays.
    """
    illegal = (row.state, Operation.EXPIRE) not in VALID_TRANSITIONS
    if illegal or (idle_ms is not None and idle_ms < expiration_ms):
        return Transition(None, None)
    dead = row.prepare_expire(position)
    return Transition(dead, dead)
