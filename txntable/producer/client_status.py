"""Where a transactional producer stands, and how a failed step moves it.

Owns the rule of KIP-1050: an error's class says what the caller does next, and the state holds the
caller to it.  An error that was met once is repeated by every call that it rules out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from txntable.errors import (
    CommitStateUnknownError,
    StorePermissionError,
    TransactionAbortableError,
    TxnTableError,
)
from txntable.producer.client_state import Call, ClientState, next_client_state

T = TypeVar("T")

# Calls whose answer may be unknown; a definite no brings back the state that they were made in.
_DECIDING = (ClientState.COMMITTING, ClientState.PREPARING)


class ClientStatus:
    """The state of one transactional producer.

    Attributes
    ----------
    state : ClientState
        Where it stands.
    unsure : bool
        Whether a decision had an unknown answer: then only the same call may follow.
    """

    def __init__(self) -> None:
        self.state = ClientState.UNINITIALIZED
        self._before = self.state
        self.unsure = False
        self._failure: TxnTableError | None = None

    def check(self, call: Call) -> ClientState:
        """Return the state in which `call` would run.

        Raises
        ------
        IllegalStateError
            The call has no meaning now.
        TxnTableError
            An earlier failure rules it out: that failure again.
        """
        if self._failure is not None:
            if self.state is ClientState.FATAL_ERROR:
                raise self._failure
            if self.state is ClientState.ABORTABLE_ERROR and call is not Call.ABORT:
                raise _abortable(self._failure) from self._failure
        return next_client_state(self.state, call)

    def enter(self, call: Call) -> None:
        """Go to the state in which `call` runs; raises as :meth:`check`."""
        following = self.check(call)
        if following is not self.state:
            self._before, self.state = self.state, following

    def reach(self, state: ClientState) -> None:
        """Take note that a call has succeeded: nothing of an earlier failure is left."""
        self.state, self.unsure, self._failure = state, False, None

    def fail(self, error: TxnTableError) -> None:
        """Let only abort follow; the error says so itself from now on, whatever its class says elsewhere."""
        self.state, self._failure = ClientState.ABORTABLE_ERROR, error
        error.txn_requires_abort = True

    def guard(self, step: Callable[[], T]) -> T:
        """Run a step; move by what its error says that the caller must do."""
        try:
            return step()
        except CommitStateUnknownError as error:
            if self.state is ClientState.IN_TRANSACTION:
                # An append of unknown outcome: aborting is always right, asking again is not.
                self.fail(error)
                raise _abortable(error) from error
            self.unsure = True
            raise
        except TxnTableError as error:
            self._move(error)
            raise

    def look(self, step: Callable[[], T]) -> T:
        """Run a step that writes nothing: only a fatal error moves the state."""
        try:
            return step()
        except TxnTableError as error:
            if error.fatal:
                self._move(error)
            raise

    def _move(self, error: TxnTableError) -> None:
        if error.fatal:
            self.state, self._failure = ClientState.FATAL_ERROR, error
        elif self.unsure and isinstance(error, StorePermissionError):
            # Expired credentials decide nothing about a call of unknown outcome: only the same call may follow.
            return
        elif not error.retriable and self.state is not ClientState.UNINITIALIZED:
            self.fail(error)
        elif self.state in _DECIDING and not self.unsure:
            # Nothing was decided: the store was unreachable before the decision was put.
            self.state = self._before


def _abortable(failure: TxnTableError) -> TxnTableError:
    """Return the failure as one that says itself that the transaction must be aborted."""
    if type(failure).txn_requires_abort:
        return failure
    facts = {name: value for name, value in failure.facts.items() if name != "cause"}
    return TransactionAbortableError(
        f"a call of this transaction failed: abort it; the failure was: {failure.message}", cause=failure.code, **facts
    )
