"""Tokens of prepared transactions, and what a holder may conclude from the row that it finds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from txntable.coordinator.batch_memory import BatchMemory
from txntable.coordinator.decision import Decision, Outcome
from txntable.coordinator.errors import (
    BatchAlreadyCommittedError,
    InvalidRequestError,
    InvalidTxnStateError,
    TransactionOutcomeUnknownError,
    TxnTableError,
)
from txntable.coordinator.past_decisions import PastDecisions
from txntable.coordinator.prepared_token import PreparedToken, compare_token
from txntable.coordinator.transaction import TransactionMetadata
from txntable.coordinator.transaction_request import PrepareRequest, ProducerIdentity
from txntable.coordinator.transaction_shard import prepare
from txntable.coordinator.transaction_state import TransactionState as S

RowBuilder = Callable[..., TransactionMetadata]
HOLDER = ProducerIdentity(7, 5)
NEVER, BEFORE, NOW, LATER = None, "7:4:ab", "7:5:cd", "7:6:ef"


def test_token_is_read_as_it_was_written() -> None:
    token = PreparedToken(7, 5, "cd")

    assert PreparedToken.parse(str(token)) == token


@pytest.mark.parametrize("text", ["", "7:5", "7:5:xy", "7:5:cd ", "-7:5:cd", 5, None])
def test_text_that_is_no_token_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequestError, match="prepare_transaction"):
        PreparedToken.parse(text)


@pytest.mark.parametrize(("token", "outcome"), [(NOW, Outcome.COMMIT), (BEFORE, Outcome.ABORT), (NEVER, Outcome.ABORT)])
def test_prepared_transaction_ends_as_the_external_database_did(
    a_row: RowBuilder, token: str | None, outcome: Outcome
) -> None:
    row = a_row(S.PREPARED, token=NOW, decision=Decision(4, Outcome.COMMIT, 9))

    assert compare_token(row, token, HOLDER) is outcome


@pytest.mark.parametrize("token", [BEFORE, NEVER])
@pytest.mark.parametrize("asks", [ProducerIdentity(7, 4), ProducerIdentity(6, 5)])
def test_what_another_process_has_prepared_since_is_left_to_it(
    a_row: RowBuilder, token: str | None, asks: ProducerIdentity
) -> None:
    """Bug: who had lost the id asked for an abort, and was told that the two sides differ."""
    row = a_row(S.PREPARED, token=NOW, decision=Decision(4, Outcome.COMMIT, 9))

    assert compare_token(row, token, asks) is None


@pytest.mark.parametrize(("state", "token"), [(S.EMPTY, NEVER), (S.COMPLETE_COMMIT, BEFORE)])
def test_nothing_is_to_be_done_when_nothing_is_prepared_and_the_token_fits(
    a_row: RowBuilder, state: S, token: str | None
) -> None:
    assert compare_token(a_row(state), token, HOLDER) is None


# Epochs 0 to 4 of a row at epoch 5; the last decision is that of 4.
_C, _A, _N = Decision(4, Outcome.COMMIT, 9), Decision(4, Outcome.ABORT, 9), None


@pytest.mark.parametrize(
    ("past", "last", "epoch", "expected"),
    [
        ("C4", _C, 0, None),
        ("C4", _A, 3, None),
        ("AC3", _C, 0, "aborted"),
        ("C3A", _C, 3, "aborted"),
        ("C3N", _C, 3, "not prepared"),
        ("CN2C", _A, 3, None),
        ("", _N, 4, "not prepared"),
        ("", _C, 3, "nobody knows"),
        ("CA", _C, 1, "nobody knows"),
        ("CA", _C, 2, None),
    ],
)
def test_token_of_an_earlier_transaction_is_told_how_that_ended_after_later_ones(
    a_row: RowBuilder, past: str, last: Decision | None, epoch: int, expected: str | None
) -> None:
    """Bug: of all transactions but the last one every token passed for a committed one's."""
    token = f"7:{epoch}:00"
    for state, outcome in ((S.EMPTY, None), (S.PREPARED, Outcome.ABORT)):
        row = a_row(state, past=PastDecisions.parse(past), decision=last, token=None if outcome is None else NOW)
        if expected is None:
            assert compare_token(row, token, HOLDER) is outcome
            continue
        error = TransactionOutcomeUnknownError if expected == "nobody knows" else InvalidTxnStateError
        with pytest.raises(error, match=expected):
            compare_token(row, token, HOLDER)


@pytest.mark.parametrize("producer_id", [6, 8])
@pytest.mark.parametrize("state", [S.EMPTY, S.PREPARED])
def test_token_of_another_producer_id_of_the_same_transactional_id_is_answered_by_unknown(
    a_row: RowBuilder, state: S, producer_id: int
) -> None:
    """Of before the id expired, or of before a restore: nothing is kept of it, and silence would be a guess."""
    row = a_row(state, token=NOW) if state is S.PREPARED else a_row(state)

    with pytest.raises(TransactionOutcomeUnknownError):
        compare_token(row, str(PreparedToken.new(row.transactional_id, producer_id, 9, "00")), HOLDER)


@pytest.mark.parametrize("producer_id", [6, 8])
def test_token_of_another_id_is_refused(a_row: RowBuilder, producer_id: int) -> None:
    row = a_row(S.PREPARED, token=NOW)
    assert row.transactional_id == "etl"

    with pytest.raises(InvalidRequestError, match="another producer id"):
        compare_token(row, str(PreparedToken.new("other", producer_id, 5, "00")), HOLDER)


@pytest.mark.parametrize(
    ("row", "token", "error"),
    [
        ({"state": S.COMPLETE_ABORT}, BEFORE, InvalidTxnStateError),
        ({"state": S.COMPLETE_COMMIT}, NOW, InvalidTxnStateError),
        ({"state": S.EMPTY}, BEFORE, InvalidTxnStateError),
        ({"state": S.PREPARED, "token": NOW}, LATER, InvalidTxnStateError),
        ({"state": S.PREPARED, "token": NOW}, "7:5:00", InvalidTxnStateError),
        ({"state": S.PREPARED, "token": NOW, "decision": Decision(4, Outcome.ABORT, 9)}, BEFORE, InvalidTxnStateError),
        ({"state": S.PREPARED, "token": NOW}, "8:5:cd", InvalidRequestError),
        ({"state": S.PREPARED, "token": NOW}, "nonsense", InvalidRequestError),
    ],
)
def test_token_that_contradicts_the_row_is_told(
    a_row: RowBuilder, row: dict, token: str, error: type[TxnTableError]
) -> None:
    with pytest.raises(error):
        compare_token(a_row(**row), token, HOLDER)


@pytest.mark.parametrize("state", [S.EMPTY, S.ONGOING])
def test_prepare_is_refused_when_its_batch_has_committed(a_row: RowBuilder, state: S) -> None:
    """Once it is prepared the external database may commit: the decision would find out too late."""
    request = PrepareRequest(7, 5, NOW, 20, "monday", BatchMemory(name_known=True))

    with pytest.raises(BatchAlreadyCommittedError):
        prepare(a_row(state), request)
