"""Batch ids and two-phase commit: what a commit remembers, and what only a token's holder decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from txntable.coordinator.batch_memory import BatchId, BatchMemory, BatchRow
from txntable.coordinator.decision import Decision, Outcome, PastDecision
from txntable.coordinator.errors import (
    BatchAlreadyCommittedError,
    BatchOutOfOrderError,
    ConcurrentTransactionsError,
    InvalidPidMappingError,
    InvalidRequestError,
    InvalidTxnStateError,
    ProducerFencedError,
    TxnTableError,
)
from txntable.coordinator.transaction import TransactionMetadata
from txntable.coordinator.transaction_request import EndRequest, PrepareRequest, ProducerIdentity, Transition
from txntable.coordinator.transaction_shard import carried_batch, end, prepare
from txntable.coordinator.transaction_state import TransactionState as S

RowBuilder = Callable[..., TransactionMetadata]
COMMIT, ABORT = Outcome.COMMIT, Outcome.ABORT
_SLOT = 20


def _end(outcome: Outcome = COMMIT, epoch: int = 5, **changes: object) -> EndRequest:
    return replace(EndRequest(7, epoch, outcome, _SLOT), **changes)  # type: ignore[arg-type]


def _committed(transition: Transition[Decision | PastDecision]) -> TransactionMetadata:
    assert transition.row is not None
    return transition.row


def _remembering(batch_id: BatchId) -> BatchMemory:
    return BatchMemory(last_integer=batch_id) if isinstance(batch_id, int) else BatchMemory(name_known=True)


# -- batch ids ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "following"),
    [
        (S.ONGOING, S.PREPARE_COMMIT),
        (S.EMPTY, S.COMPLETE_COMMIT),
        (S.COMPLETE_COMMIT, S.COMPLETE_COMMIT),
        (S.COMPLETE_ABORT, S.COMPLETE_COMMIT),
    ],
)
@pytest.mark.parametrize("batch_id", ["run", 3])
def test_commit_of_a_batch_writes_its_row_also_when_the_transaction_is_empty(
    a_row: RowBuilder, state: S, following: S, batch_id: BatchId
) -> None:
    transition = end(a_row(state), _end(batch_id=batch_id, decided_at_ms=99))

    assert _committed(transition).state is following
    assert transition.answer == Decision(5, COMMIT, _SLOT, batch_id)
    assert transition.batch_row == BatchRow("etl", batch_id, 7, 5, _SLOT, 99)


@pytest.mark.parametrize(
    ("batch_id", "remembered", "error"),
    [
        ("run", "run", BatchAlreadyCommittedError),
        (3, 3, BatchAlreadyCommittedError),
        (3, 4, BatchOutOfOrderError),
    ],
)
def test_commit_is_refused_when_the_batch_was_committed(
    a_row: RowBuilder, batch_id: BatchId, remembered: BatchId, error: type[TxnTableError]
) -> None:
    memory = _remembering(remembered)

    with pytest.raises(error):
        end(a_row(S.ONGOING), _end(batch_id=batch_id, memory=memory))


def test_commit_retried_answers_its_decision_although_its_batch_is_remembered_by_now(a_row: RowBuilder) -> None:
    first = end(a_row(S.ONGOING), _end(batch_id="run"))

    retried = end(first.row, _end(batch_id="run", position=_SLOT + 1, memory=_remembering("run")))

    assert retried == Transition(None, first.answer)


def test_abort_of_a_batch_remembers_nothing_so_that_the_run_can_be_done_again(a_row: RowBuilder) -> None:
    aborted = end(a_row(S.ONGOING), _end(ABORT, batch_id="run"))

    assert aborted.batch_row is None
    assert aborted.answer == Decision(5, ABORT, _SLOT, "run")


def test_batch_of_a_prepared_transaction_is_committed_by_who_does_not_know_it(a_row: RowBuilder) -> None:
    row = a_row(S.PREPARED, batch_id="run")
    found = carried_batch(row, ProducerIdentity(7, 5), None)

    transition = end(row, _end(token="t", batch_id=found))

    assert transition.batch_row == BatchRow("etl", "run", 7, 5, _SLOT)
    assert _committed(transition).batch_id is None


@pytest.mark.parametrize("batch_id", [None, "other"])
def test_commit_of_a_prepared_batch_is_refused_under_another_because_its_memory_proves_nothing(
    a_row: RowBuilder, batch_id: BatchId | None
) -> None:
    row = a_row(S.PREPARED, batch_id="run")

    with pytest.raises(InvalidRequestError, match="carried='run'"):
        end(row, _end(token="t", batch_id=batch_id))
    assert end(row, _end(ABORT, token="t")).answer == Decision(5, ABORT, _SLOT, "run")


@pytest.mark.parametrize(
    ("carried", "known", "found"), [(None, "a", "a"), ("b", None, "b"), (0, 1, 0), (None, None, None)]
)
def test_batch_that_a_prepared_transaction_carries_goes_before_the_callers(
    a_row: RowBuilder, carried: BatchId | None, known: BatchId | None, found: BatchId | None
) -> None:
    row, mine, older = a_row(S.PREPARED, batch_id=carried), ProducerIdentity(7, 5), ProducerIdentity(7, 4)

    assert carried_batch(row, mine, known) == found
    assert carried_batch(row, older, known) == carried_batch(None, mine, known) == known


def test_end_and_prepare_are_refused_when_the_batch_id_is_none() -> None:
    with pytest.raises(InvalidRequestError):
        _end(batch_id="")
    with pytest.raises(InvalidRequestError):
        PrepareRequest(7, 5, "t", _SLOT, batch_id=-1)


# -- prepare --------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [S.EMPTY, S.ONGOING, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_prepare_stores_the_token_and_the_batch_also_when_the_transaction_is_empty(a_row: RowBuilder, state: S) -> None:
    row = a_row(state)

    transition = prepare(row, PrepareRequest(7, 5, "t", _SLOT, batch_id="run"))

    started = 10 if state is S.ONGOING else _SLOT
    assert transition.row == replace(
        row,
        state=S.PREPARED,
        token="t",
        prepared_epoch=5,
        batch_id="run",
        started_position=started,
        position=_SLOT,
    )
    assert transition.answer == ProducerIdentity(7, 5, "t")


def test_prepare_writes_nothing_when_repeated(a_row: RowBuilder) -> None:
    assert prepare(a_row(S.PREPARED), PrepareRequest(7, 5, "t", _SLOT)) == Transition(None, ProducerIdentity(7, 5, "t"))


@pytest.mark.parametrize(
    ("state", "change", "error"),
    [
        (S.PREPARED, {"token": "u"}, InvalidTxnStateError),
        (S.PREPARE_COMMIT, {}, ConcurrentTransactionsError),
        (S.PREPARE_ABORT, {}, ConcurrentTransactionsError),
        (S.ONGOING, {"epoch": 4}, ProducerFencedError),
        (S.ONGOING, {"producer_id": 8}, InvalidPidMappingError),
    ],
)
def test_prepare_is_refused_out_of_order(
    a_row: RowBuilder, state: S, change: dict[str, object], error: type[TxnTableError]
) -> None:
    request = replace(PrepareRequest(7, 5, "t", _SLOT), **change)  # type: ignore[arg-type]

    with pytest.raises(error):
        prepare(a_row(state), request)


def test_prepare_is_refused_when_the_id_is_unknown_or_the_token_empty() -> None:
    with pytest.raises(InvalidPidMappingError):
        prepare(None, PrepareRequest(7, 5, "t", _SLOT))
    with pytest.raises(InvalidRequestError, match="a token"):
        PrepareRequest(7, 5, "", _SLOT)
