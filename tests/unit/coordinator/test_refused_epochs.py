"""What the error of a refused epoch says: who ended it, as far as the row tells, and what became of its transaction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from txntable.coordinator.decision import Decision, Outcome
from txntable.coordinator.errors import InvalidProducerEpochError, ProducerFencedError
from txntable.coordinator.past_decisions import PastDecisions
from txntable.coordinator.transaction import TransactionMetadata
from txntable.coordinator.transaction_guard import refused
from txntable.coordinator.transaction_request import InitRequest
from txntable.coordinator.transaction_shard import init_producer, terminate, time_out
from txntable.coordinator.transaction_state import TransactionState as S

ARow = Callable[..., TransactionMetadata]


def told(row: TransactionMetadata | None, epoch: int) -> InvalidProducerEpochError | ProducerFencedError:
    assert row is not None
    return refused(InvalidProducerEpochError, row, epoch)


@pytest.mark.parametrize("by", ["timeout", "admin"])
@pytest.mark.parametrize("completed", [False, True])
def test_epoch_that_a_timeout_or_an_admin_ended_is_told_from_one_that_a_newer_producer_took(
    a_row: ARow, by: str, completed: bool
) -> None:
    ongoing = a_row(S.ONGOING)
    row = (time_out(ongoing, 60_001, 20) if by == "timeout" else terminate(ongoing, 20)).row
    if completed and row is not None:
        row = row.prepare_complete(21)

    error = told(row, 5)

    assert error.message.startswith("the transaction was aborted over this producer's head: its timeout had")
    assert (error.facts["transaction"], error.facts["transaction_timeout_ms"]) == ("ABORTED", 60_000)


def test_epoch_that_a_newer_producer_gave_up_says_so_and_that_nothing_was_decided(a_row: ARow) -> None:
    taken = init_producer(a_row(S.COMPLETE_COMMIT), InitRequest("etl", 40, 30_000, 20)).row

    error = told(taken, 5)

    assert error.message.startswith("a newer producer has the transactional id")
    assert (error.facts["transaction"], error.facts.get("transaction_timeout_ms")) == ("NOTHING", None)


def test_epoch_whose_open_transaction_a_newer_producer_met_says_that_it_was_aborted(a_row: ARow) -> None:
    met = init_producer(a_row(S.ONGOING), InitRequest("etl", 40, 30_000, 20)).row
    assert met is not None
    taken = init_producer(met.prepare_complete(21), InitRequest("etl", 40, 30_000, 22)).row

    error = told(taken, 5)

    assert error.message.startswith("a newer producer has the transactional id")
    assert error.facts["transaction"] == "ABORTED"


def test_epoch_that_is_older_than_what_the_row_keeps_is_a_newer_producers(a_row: ARow) -> None:
    row = replace(
        a_row(S.COMPLETE_COMMIT),
        producer_epoch=500,
        decision=Decision(499, Outcome.COMMIT, 11),
        past=PastDecisions.parse("C3"),
    )

    error = told(row, 4)

    assert error.message.startswith("a newer producer has the transactional id")
    assert "transaction" not in error.facts


def test_epoch_that_is_committed_and_that_nobody_took_over_is_said_to_be_committed(a_row: ARow) -> None:
    error = told(a_row(S.COMPLETE_COMMIT), 4)

    assert error.message.startswith("the transaction is committed already")
    assert error.facts["transaction"] == "COMMITTED"


def test_epoch_that_was_never_given_out_is_a_sign_of_a_restore(a_row: ARow) -> None:
    error = told(a_row(S.EMPTY), 6)

    assert error.message.startswith("the transaction log has never given out this epoch")
    assert "transaction" not in error.facts


@pytest.mark.parametrize(
    ("kind", "epoch", "remedy"),
    [
        (InvalidProducerEpochError, 4, "abort the transaction"),
        (InvalidProducerEpochError, 3, "abort the transaction and close this producer"),
        (ProducerFencedError, 4, "close this producer"),
        (ProducerFencedError, 3, "close this producer"),
    ],
    ids=["timed out, data", "fenced, data", "timed out, offsets", "fenced, offsets"],
)
def test_remedy_is_that_of_the_kind_of_the_error_and_of_who_still_has_the_id(
    a_row: ARow, kind: type[InvalidProducerEpochError | ProducerFencedError], epoch: int, remedy: str
) -> None:
    error = refused(kind, a_row(S.COMPLETE_ABORT), epoch)

    assert error.message.endswith(f": {remedy}")
    assert (error.facts["epoch"], error.facts["current"]) == (epoch, 5)
