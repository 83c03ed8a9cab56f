"""Tokens of prepared transactions, and what a holder may conclude from the row that it finds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from coordinator.batch_memory import BatchMemory
from coordinator.decision import Decision, Outcome
from coordinator.errors import (
    BatchAlreadyCommittedError,
    InvalidRequestError,
    InvalidTxnStateError,
    TxnTableError,
)
from coordinator.prepared_token import PreparedToken, settle
from coordinator.transaction import TransactionMetadata
from coordinator.transaction_request import PrepareRequest
from coordinator.transaction_shard import prepare
from coordinator.transaction_state import TransactionState as S

RowBuilder = Callable[..., TransactionMetadata]
NEVER, BEFORE, NOW, LATER = None, "7:4:ab", "7:5:cd", "7:6:ef"


def test_token_is_read_as_it_was_written() -> None:
    token = PreparedToken(7, 5, "cd")

    assert PreparedToken.parse(str(token)) == token


@pytest.mark.parametrize("text", ["", "7:5", "7:5:xy", "7:5:cd ", "-7:5:cd", 5, None])
def test_text_that_is_no_token_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequestError, match="prepare_transaction"):
        PreparedToken.parse(text)


@pytest.mark.parametrize(("token", "outcome"), [(NOW, Outcome.COMMIT), (BEFORE, Outcome.ABORT), (NEVER, Outcome.ABORT)])
def test_prepared_transaction_ends_as_the_outside_database_did(
    a_row: RowBuilder, token: str | None, outcome: Outcome
) -> None:
    row = a_row(S.PREPARED, token=NOW, decision=Decision(4, Outcome.COMMIT, 9))

    assert settle(row, token) is outcome


@pytest.mark.parametrize(
    ("state", "token"),
    [(S.EMPTY, NEVER), (S.COMPLETE_COMMIT, BEFORE), (S.COMPLETE_COMMIT, "7:3:00"), (S.COMPLETE_ABORT, "7:3:00")],
)
def test_nothing_is_to_be_done_when_nothing_is_prepared_and_the_token_fits(
    a_row: RowBuilder, state: S, token: str | None
) -> None:
    assert settle(a_row(state), token) is None


@pytest.mark.parametrize(("state", "outcome"), [(S.EMPTY, None), (S.PREPARED, Outcome.ABORT)])
def test_token_from_before_the_id_expired_is_an_earlier_one(
    a_row: RowBuilder, state: S, outcome: Outcome | None
) -> None:
    """Bug: who came back after the expiry could never complete, and so never begin, again."""
    row = a_row(state, token=NOW) if state is S.PREPARED else a_row(state)

    assert settle(row, str(PreparedToken.new(row.transactional_id, 6, 9, "00"))) is outcome


@pytest.mark.parametrize(("transactional_id", "producer_id"), [("other", 6), ("etl", 8)])
def test_token_of_another_id_or_of_a_producer_id_not_given_yet_is_refused(
    a_row: RowBuilder, transactional_id: str, producer_id: int
) -> None:
    row = a_row(S.PREPARED, token=NOW)
    assert row.transactional_id == "etl"

    with pytest.raises(InvalidRequestError, match="another producer id"):
        settle(row, str(PreparedToken.new(transactional_id, producer_id, 5, "00")))


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
        settle(a_row(**row), token)


@pytest.mark.parametrize("state", [S.EMPTY, S.ONGOING])
def test_prepare_is_refused_when_its_batch_has_committed(a_row: RowBuilder, state: S) -> None:
    """Once it is prepared the outside database may commit: the decision would find out too late."""
    request = PrepareRequest(7, 5, NOW, 20, "monday", BatchMemory(name_known=True))

    with pytest.raises(BatchAlreadyCommittedError):
        prepare(a_row(state), request)
