"""The states of a producer object, and what each call may do in them: a literal table.

Kafka's client states (KAFKA clients, TransactionManager).  A missing key is the illegal call: it
is refused and nothing is harmed.  Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from txntable.errors import IllegalStateError


class ClientState(Enum):
    """Where a producer object stands."""

    UNINITIALIZED = "UNINITIALIZED"
    READY = "READY"
    IN_TRANSACTION = "IN_TRANSACTION"
    PREPARING = "PREPARING"
    PREPARED_TRANSACTION = "PREPARED_TRANSACTION"
    COMMITTING = "COMMITTING"
    ABORTING = "ABORTING"
    ABORTABLE_ERROR = "ABORTABLE_ERROR"
    FATAL_ERROR = "FATAL_ERROR"
    CLOSED = "CLOSED"


class Call(Enum):
    """What a user asks of a transactional producer."""

    INIT = "init_transactions"
    BEGIN = "begin_transaction"
    SEND = "send"
    SEND_OFFSETS = "send_offsets_to_transaction"
    PREPARE = "prepare_transaction"
    COMPLETE = "complete_transaction"
    COMMIT = "commit_transaction"
    ABORT = "abort_transaction"


_S = ClientState

ALLOWED: Mapping[tuple[ClientState, Call], ClientState] = {
    (_S.UNINITIALIZED, Call.INIT): _S.READY,
    (_S.READY, Call.BEGIN): _S.IN_TRANSACTION,
    # After a restart, when nothing turned out to be prepared.
    (_S.READY, Call.COMPLETE): _S.READY,
    (_S.IN_TRANSACTION, Call.SEND): _S.IN_TRANSACTION,
    (_S.IN_TRANSACTION, Call.SEND_OFFSETS): _S.IN_TRANSACTION,
    (_S.IN_TRANSACTION, Call.PREPARE): _S.PREPARING,
    (_S.IN_TRANSACTION, Call.COMMIT): _S.COMMITTING,
    (_S.IN_TRANSACTION, Call.ABORT): _S.ABORTING,
    (_S.PREPARED_TRANSACTION, Call.COMPLETE): _S.PREPARED_TRANSACTION,
    (_S.PREPARED_TRANSACTION, Call.COMMIT): _S.COMMITTING,
    (_S.PREPARED_TRANSACTION, Call.ABORT): _S.ABORTING,
    (_S.ABORTABLE_ERROR, Call.ABORT): _S.ABORTING,
    # A call of unknown outcome may only be made again, never switched (KafkaProducer).
    (_S.PREPARING, Call.PREPARE): _S.PREPARING,
    (_S.COMMITTING, Call.COMMIT): _S.COMMITTING,
    (_S.COMMITTING, Call.COMPLETE): _S.COMMITTING,
    (_S.ABORTING, Call.ABORT): _S.ABORTING,
    (_S.ABORTING, Call.COMPLETE): _S.ABORTING,
}

_REMEDIES: Mapping[ClientState, str] = {
    _S.UNINITIALIZED: "call init_transactions first",
    _S.READY: "call begin_transaction first",
    _S.IN_TRANSACTION: "commit or abort the open transaction first",
    _S.PREPARING: "its preparation has an unknown outcome: call prepare_transaction again",
    _S.PREPARED_TRANSACTION: "it is prepared: call complete_transaction with the external database's token",
    _S.COMMITTING: "its commit has an unknown outcome: call commit_transaction again",
    _S.ABORTING: "its abort has an unknown outcome: call abort_transaction again",
    _S.ABORTABLE_ERROR: "something in the transaction failed: call abort_transaction",
    _S.FATAL_ERROR: "close this producer and create a new one",
    _S.CLOSED: "the producer is closed: create a new one",
}

# Where the state's own remedy would not help with the call.
_REMEDIES_OF_CALLS: Mapping[tuple[ClientState, Call], str] = {
    (_S.READY, Call.INIT): "it was called before, and once is enough: call begin_transaction next",
    (_S.READY, Call.ABORT): "no transaction is open: there is nothing to abort",
}


def next_client_state(state: ClientState, call: Call) -> ClientState:
    """Return the state in which `call` runs.

    Raises
    ------
    IllegalStateError
        The call has no meaning now; the message says what to do instead.
    """
    following = ALLOWED.get((state, call))
    if following is None:
        remedy = _REMEDIES_OF_CALLS.get((state, call), _REMEDIES[state])
        raise IllegalStateError(f"{call.value} is not possible now; {remedy}", state=state.value, call=call.value)
    return following
