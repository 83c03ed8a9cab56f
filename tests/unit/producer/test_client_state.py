"""The states of a producer object: which call each allows, and where each error leads (KIP-1050)."""

from __future__ import annotations

import pytest

from txntable import errors
from txntable.errors import CommitStateUnknownError, IllegalStateError, TransactionAbortableError, TxnTableError
from txntable.producer.client_state import ALLOWED, Call, ClientState, next_client_state
from txntable.producer.client_status import ClientStatus

# One row per state, one column per call; "-" is an illegal state.
_COLUMNS = "INIT  BEGIN SEND SEND_OFFSETS PREPARE COMPLETE COMMIT ABORT"
_SHORT = {
    "R": ClientState.READY,
    "T": ClientState.IN_TRANSACTION,
    "pp": ClientState.PREPARING,
    "P": ClientState.PREPARED_TRANSACTION,
    "c": ClientState.COMMITTING,
    "a": ClientState.ABORTING,
}
_GRID = """
    UNINITIALIZED         R  -  -  -  -   -   -  -
    READY                 -  T  -  -  -   R   -  -
    IN_TRANSACTION        -  -  T  T  pp  -   c  a
    PREPARING             -  -  -  -  pp  -   -  -
    PREPARED_TRANSACTION  -  -  -  -  -   P   c  a
    COMMITTING            -  -  -  -  -   c   c  -
    ABORTING              -  -  -  -  -   a   -  a
    ABORTABLE_ERROR       -  -  -  -  -   -   -  a
    FATAL_ERROR           -  -  -  -  -   -   -  -
    CLOSED                -  -  -  -  -   -   -  -
"""
_CELLS = [
    (ClientState[line.split()[0]], Call[call], _SHORT.get(cell))
    for line in _GRID.strip().splitlines()
    for call, cell in zip(_COLUMNS.split(), line.split()[1:], strict=True)
]

# What Kafka's client does with each error of a transaction: make the call again, abort, or close.
_KINDS = {
    "retry": {
        "COMMIT_STATE_UNKNOWN",
        "CONCURRENT_TRANSACTIONS",
        "STORE_FULL",
        "STORE_UNAVAILABLE",
        "UNSTABLE_OFFSET_COMMIT",
    },
    "abort": {
        "COMMIT_FAILED",
        "FENCED_INSTANCE_ID",
        "FENCED_MEMBER_EPOCH",
        "GROUP_ID_NOT_FOUND",
        "ILLEGAL_GENERATION",
        "INVALID_PRODUCER_EPOCH",
        "MESSAGE_TOO_LARGE",
        "OUT_OF_ORDER_SEQUENCE_NUMBER",
        "STALE_MEMBER_EPOCH",
        "TRANSACTION_ABORTABLE",
        "TRANSACTION_ABORTED",
        "UNKNOWN_MEMBER_ID",
    },
    "close": {
        "CORRUPT_MESSAGE",
        "INCONSISTENT_CLUSTER_ID",
        "INVALID_PRODUCER_ID_MAPPING",
        "INVALID_TRANSACTION_TIMEOUT",
        "INVALID_TXN_STATE",
        "KAFKA_STORAGE_ERROR",
        "PRODUCER_FENCED",
        "TRANSACTION_COORDINATOR_FENCED",
        "TRANSACTION_OUTCOME_UNKNOWN",
        "UNSUPPORTED_VERSION",
    },
}


def kinds_below(kind: type[TxnTableError]) -> list[type[TxnTableError]]:
    return [kind, *(found for below in kind.__subclasses__() for found in kinds_below(below))]


_ERRORS = {kind.code: kind for kind in kinds_below(TxnTableError) if kind.__module__ == "txntable"}


def in_transaction() -> ClientStatus:
    status = ClientStatus()
    status.reach(ClientState.IN_TRANSACTION)
    return status


def failing(status: ClientStatus, error: TxnTableError) -> None:
    """Run a step that fails."""

    def step() -> None:
        raise error

    with pytest.raises(TxnTableError):
        status.guard(step)


# -- calls --------------------------------------------------------------------------------------


def test_grid_has_every_state_and_every_call() -> None:
    assert len(_CELLS) == len({(state, call) for state, call, _ in _CELLS}) == len(ClientState) * len(Call)
    assert {(state, call) for state, call, following in _CELLS if following is not None} == set(ALLOWED)


@pytest.mark.parametrize(("state", "call", "following"), _CELLS)
def test_call_leads_where_the_grid_says_or_is_illegal(
    state: ClientState, call: Call, following: ClientState | None
) -> None:
    if following is not None:
        assert next_client_state(state, call) is following
        return
    status = ClientStatus()
    status.reach(state)

    with pytest.raises(IllegalStateError, match=rf"{call.value} is not possible now; .* state={state.value}"):
        status.enter(call)

    assert status.state is state


# -- errors -------------------------------------------------------------------------------------


def test_every_error_says_to_the_caller_what_kafkas_does() -> None:
    told = {
        "retry": {code for code, kind in _ERRORS.items() if kind.retriable},
        "abort": {code for code, kind in _ERRORS.items() if kind.txn_requires_abort},
        "close": {code for code, kind in _ERRORS.items() if kind.fatal},
    }

    assert told == _KINDS


@pytest.mark.parametrize("code", sorted(_ERRORS))
def test_error_of_a_send_leads_where_its_kind_says(code: str) -> None:
    status = in_transaction()

    failing(status, _ERRORS[code]("something failed: do this"))

    if code in _KINDS["close"]:
        assert status.state is ClientState.FATAL_ERROR
    elif code in _KINDS["retry"] - {"COMMIT_STATE_UNKNOWN"}:
        assert status.state is ClientState.IN_TRANSACTION
    else:
        assert status.state is ClientState.ABORTABLE_ERROR


@pytest.mark.parametrize("code", sorted(_ERRORS))
@pytest.mark.parametrize("call", [Call.COMMIT, Call.ABORT])
def test_error_of_an_end_leads_where_its_kind_says(code: str, call: Call) -> None:
    status = in_transaction()
    status.enter(call)
    deciding = status.state

    failing(status, _ERRORS[code]("something failed: do this"))

    if code in _KINDS["close"]:
        assert status.state is ClientState.FATAL_ERROR
    elif code == "COMMIT_STATE_UNKNOWN":
        assert status.state is deciding
    elif code in _KINDS["retry"]:
        assert status.state in (ClientState.IN_TRANSACTION, deciding)
    else:
        assert status.state is ClientState.ABORTABLE_ERROR


def test_failure_is_repeated_by_every_call_but_abort_until_it_is_aborted() -> None:
    status = in_transaction()
    failing(status, errors.OutOfOrderSequenceError("a gap: abort", expected=3))

    for call in (Call.SEND, Call.COMMIT, Call.BEGIN, Call.PREPARE):
        with pytest.raises(errors.OutOfOrderSequenceError, match="expected=3"):
            status.enter(call)
    status.enter(Call.ABORT)
    status.reach(ClientState.READY)
    status.enter(Call.BEGIN)

    assert status.state is ClientState.IN_TRANSACTION


def test_failure_that_says_nothing_of_aborting_is_repeated_as_one_that_does() -> None:
    status = in_transaction()
    failing(status, errors.UnknownTopicOrPartitionError("no such topic: create it", topic="t"))

    with pytest.raises(TransactionAbortableError, match="topic=t") as refused:
        status.enter(Call.COMMIT)

    assert refused.value.facts == {"cause": "UNKNOWN_TOPIC_OR_PARTITION", "topic": "t"}


def test_fatal_failure_is_repeated_for_ever() -> None:
    status = in_transaction()
    failing(status, errors.ProducerFencedError("close this one", epoch=3))

    for call in Call:
        with pytest.raises(errors.ProducerFencedError, match="epoch=3"):
            status.enter(call)


def test_append_of_unknown_outcome_is_an_abortable_failure() -> None:
    status = in_transaction()

    with pytest.raises(TransactionAbortableError):
        status.guard(lambda: (_ for _ in ()).throw(CommitStateUnknownError("the store is away: ask again")))

    assert status.state is ClientState.ABORTABLE_ERROR


def test_failure_of_the_first_init_leaves_it_to_be_called_again() -> None:
    status = ClientStatus()

    failing(status, errors.InvalidRequestError("no such id: name it"))
    failing(status, errors.StoreUnavailableError("the store is away: ask again"))
    failing(status, CommitStateUnknownError("the store is away: ask again"))

    status.check(Call.INIT)
    assert status.state is ClientState.UNINITIALIZED


def test_abort_without_a_transaction_is_told_that_there_is_none_and_not_to_begin_one() -> None:
    with pytest.raises(IllegalStateError, match="there is nothing to abort") as caught:
        next_client_state(ClientState.READY, Call.ABORT)

    assert "begin_transaction" not in str(caught.value)
