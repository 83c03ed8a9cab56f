"""The states of a transaction and the one table of what may follow what (PROTOCOL.md §6.2).

Two rules of this file: everything that decides whether a transition is legal stands in
:data:`VALID_TRANSITIONS`, as a literal; and a missing key *is* the illegal transition.
The names of the states are stored (column ``_state`` of the transaction log) and are Kafka's,
under its transaction version 2; ``PREPARED`` is ours.  Must not know of rows, epochs or time.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from txntable.coordinator.errors import InvalidTxnStateError


class TransactionState(Enum):
    """Where a transactional id stands; the value is the stored name."""

    EMPTY = "EMPTY"
    """The id is known and has no transaction.

    received INIT => EMPTY; ENROL => ONGOING; PREPARE => PREPARED; ABORT => COMPLETE_ABORT;
    COMMIT_MANIFEST => PREPARE_COMMIT; COMMIT_EMPTY_BATCH => COMPLETE_COMMIT; EXPIRE => DEAD.
    """
    ONGOING = "ONGOING"
    """Something is enrolled.

    received ENROL => ONGOING; PREPARE => PREPARED; COMMIT => PREPARE_COMMIT;
    ABORT, FENCE or TIME_OUT => PREPARE_ABORT.
    """
    PREPARED = "PREPARED"
    """Nothing may be added, nothing but its token's holder or an admin ends it; it never times out.

    received COMMIT => PREPARE_COMMIT; ABORT or FENCE => PREPARE_ABORT.
    """
    PREPARE_COMMIT = "PREPARE_COMMIT"
    """Committed: the row's position is the decision position; markers are owed.

    received COMPLETE => COMPLETE_COMMIT.
    """
    PREPARE_ABORT = "PREPARE_ABORT"
    """Aborted: the row's position is the decision position; markers are owed.

    received COMPLETE => COMPLETE_ABORT.
    """
    COMPLETE_COMMIT = "COMPLETE_COMMIT"
    """Committed, and nothing is owed any more.

    received the same as EMPTY => the same.
    """
    COMPLETE_ABORT = "COMPLETE_ABORT"
    """Aborted, and nothing is owed any more.

    received the same as EMPTY => the same.
    """
    DEAD = "DEAD"
    """The id expired: its row is removed, never written in this state.

    received anything => illegal.
    """

    @property
    def is_open(self) -> bool:
        """Whether a transaction is under way that no one has decided."""
        return self in _OPEN

    @property
    def is_decided(self) -> bool:
        """Whether a transaction is decided and still has to be completed."""
        return self in _DECIDED


class Operation(Enum):
    """What may happen to a transactional id."""

    INIT = "INIT"
    """A producer takes an id that has no open transaction."""
    FENCE = "FENCE"
    """The open transaction is aborted over its producer's head: by another's init, or by an admin."""
    ENROL = "ENROL"
    """Partitions or groups join the transaction, before the first append to each."""
    PREPARE = "PREPARE"
    """Two-phase commit: a token is stored, and only its holder decides."""
    COMMIT = "COMMIT"
    """The producer commits."""
    COMMIT_MANIFEST = "COMMIT_MANIFEST"
    """The producer commits what enrolled nothing before: the decision itself carries all of it."""
    ABORT = "ABORT"
    """The producer aborts; where no transaction is open, this only raises the epoch."""
    TIME_OUT = "TIME_OUT"
    """Someone saw the transaction timeout pass."""
    COMPLETE = "COMPLETE"
    """All markers are written, all public tables reflect them, all offsets are settled."""
    EXPIRE = "EXPIRE"
    """The id was not used for ``transactional.id.expiration.ms``."""
    COMMIT_EMPTY_BATCH = "COMMIT_EMPTY_BATCH"
    """A batch id is committed by a transaction that enrolled nothing."""


_S = TransactionState
_O = Operation
_OPEN = frozenset({_S.ONGOING, _S.PREPARED})
_DECIDED = frozenset({_S.PREPARE_COMMIT, _S.PREPARE_ABORT})

VALID_TRANSITIONS: Mapping[tuple[TransactionState, Operation], TransactionState] = {
    (_S.EMPTY, _O.INIT): _S.EMPTY,
    (_S.EMPTY, _O.ENROL): _S.ONGOING,
    (_S.EMPTY, _O.PREPARE): _S.PREPARED,
    (_S.EMPTY, _O.ABORT): _S.COMPLETE_ABORT,
    (_S.EMPTY, _O.COMMIT_MANIFEST): _S.PREPARE_COMMIT,
    (_S.EMPTY, _O.COMMIT_EMPTY_BATCH): _S.COMPLETE_COMMIT,
    (_S.EMPTY, _O.EXPIRE): _S.DEAD,
    (_S.ONGOING, _O.FENCE): _S.PREPARE_ABORT,
    (_S.ONGOING, _O.ENROL): _S.ONGOING,
    (_S.ONGOING, _O.PREPARE): _S.PREPARED,
    (_S.ONGOING, _O.COMMIT): _S.PREPARE_COMMIT,
    (_S.ONGOING, _O.ABORT): _S.PREPARE_ABORT,
    (_S.ONGOING, _O.TIME_OUT): _S.PREPARE_ABORT,
    (_S.PREPARED, _O.FENCE): _S.PREPARE_ABORT,
    (_S.PREPARED, _O.COMMIT): _S.PREPARE_COMMIT,
    (_S.PREPARED, _O.ABORT): _S.PREPARE_ABORT,
    (_S.PREPARE_COMMIT, _O.COMPLETE): _S.COMPLETE_COMMIT,
    (_S.PREPARE_ABORT, _O.COMPLETE): _S.COMPLETE_ABORT,
    (_S.COMPLETE_COMMIT, _O.INIT): _S.EMPTY,
    (_S.COMPLETE_COMMIT, _O.ENROL): _S.ONGOING,
    (_S.COMPLETE_COMMIT, _O.PREPARE): _S.PREPARED,
    (_S.COMPLETE_COMMIT, _O.ABORT): _S.COMPLETE_ABORT,
    (_S.COMPLETE_COMMIT, _O.COMMIT_MANIFEST): _S.PREPARE_COMMIT,
    (_S.COMPLETE_COMMIT, _O.COMMIT_EMPTY_BATCH): _S.COMPLETE_COMMIT,
    (_S.COMPLETE_COMMIT, _O.EXPIRE): _S.DEAD,
    (_S.COMPLETE_ABORT, _O.INIT): _S.EMPTY,
    (_S.COMPLETE_ABORT, _O.ENROL): _S.ONGOING,
    (_S.COMPLETE_ABORT, _O.PREPARE): _S.PREPARED,
    (_S.COMPLETE_ABORT, _O.ABORT): _S.COMPLETE_ABORT,
    (_S.COMPLETE_ABORT, _O.COMMIT_MANIFEST): _S.PREPARE_COMMIT,
    (_S.COMPLETE_ABORT, _O.COMMIT_EMPTY_BATCH): _S.COMPLETE_COMMIT,
    (_S.COMPLETE_ABORT, _O.EXPIRE): _S.DEAD,
}
"""What follows when a state meets an operation; what is not here is illegal."""


def next_state(state: TransactionState, operation: Operation) -> TransactionState:
    """Return the state that follows.

    Parameters
    ----------
    state : TransactionState
        The present state.
    operation : Operation
        What happens to it.

    Returns
    -------
    TransactionState
        From :data:`VALID_TRANSITIONS`.

    Raises
    ------
    InvalidTxnStateError
        The transition is illegal.  The caller made a call out of order, or someone else ended the
        transaction: close the producer and make a new one.
    """
    following = VALID_TRANSITIONS.get((state, operation))
    if following is None:
        raise InvalidTxnStateError(
            "the transaction's state does not allow this: close the producer and make a new one",
            state=state.value,
            operation=operation.value,
        )
    return following
