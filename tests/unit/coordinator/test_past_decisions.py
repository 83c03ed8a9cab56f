"""The outcomes that a row keeps of the epochs before its last decision, and what a late end is answered with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txntable.coordinator.batch_memory import BatchId, BatchMemory
from txntable.coordinator.decision import Decision, Outcome, PastDecision
from txntable.coordinator.errors import (
    DamagedDataError,
    InvalidPidMappingError,
    InvalidTxnStateError,
    ProducerFencedError,
    TransactionOutcomeUnknownError,
    TxnTableError,
)
from txntable.coordinator.past_decisions import LONGEST_TEXT, Ended, PastDecisions
from txntable.coordinator.transaction import TransactionMetadata
from txntable.coordinator.transaction_request import EndRequest
from txntable.coordinator.transaction_shard import end
from txntable.coordinator.transaction_state import TransactionState as S

RowBuilder = Callable[..., TransactionMetadata]
COMMIT, ABORT = Outcome.COMMIT, Outcome.ABORT
_RUNS = st.lists(st.tuples(st.sampled_from(Ended), st.integers(1, 20)), max_size=200)


@given(_RUNS)
def test_past_says_how_each_of_its_epochs_ended_and_stays_short(runs: list[tuple[Ended, int]]) -> None:
    past, epochs = PastDecisions(), []
    for ended, count in runs:
        past = past.followed_by(ended, count)
        epochs += [ended] * count

    known = epochs[len(epochs) - past.epochs :]
    assert [past.ago(distance) for distance in range(past.epochs, 0, -1)] == known
    assert past.ago(past.epochs + 1) is None
    assert len(str(past)) <= LONGEST_TEXT
    assert past.epochs == len(epochs) or len(str(past)) > LONGEST_TEXT - 3
    assert PastDecisions.parse(str(past)) == past


def test_oldest_epochs_are_forgotten_when_the_text_would_be_too_long() -> None:
    past = PastDecisions()
    for number in range(300):
        past = past.followed_by(Ended.COMMITTED if number % 2 else Ended.ABORTED)

    assert str(past) == "AC" * (LONGEST_TEXT // 2)
    assert past.ago(LONGEST_TEXT + 1) is None


def test_past_stays_as_it_is_when_no_epoch_follows() -> None:
    past = PastDecisions().followed_by(Ended.ABORTED)

    assert past.followed_by(Ended.COMMITTED, 0) == past


def test_past_of_a_producer_that_always_commits_is_known_for_ever() -> None:
    assert str(PastDecisions().followed_by(Ended.COMMITTED, 10**9).followed_by(Ended.COMMITTED)) == "C1000000001"


@pytest.mark.parametrize("text", ["C0", "C1", "CC", "X", "C2C", "c", "3C", " C", "CA" * 129, "C" + "9" * 300])
def test_past_that_is_spelt_otherwise_is_damage(text: str) -> None:
    with pytest.raises(DamagedDataError, match="misspelt"):
        PastDecisions.parse(text)


def test_row_whose_past_is_longer_than_its_epochs_is_damage(a_row: RowBuilder) -> None:
    with pytest.raises(DamagedDataError, match="the past ends below"):
        a_row(S.COMPLETE_COMMIT, past=PastDecisions.parse("C5"))


_F, _S, _U, _M = ProducerFencedError, InvalidTxnStateError, TransactionOutcomeUnknownError, InvalidPidMappingError
# What epoch 3 of a row at epoch 5 is answered with whose last decision is that of epoch 4.
_TABLE: list[tuple[Any, ...]] = [
    # past of 0 to 3, asked, token, repeated -> answer
    ("N3C", COMMIT, None, False, COMMIT),
    ("N3C", COMMIT, None, True, COMMIT),
    ("N3C", COMMIT, "t", False, COMMIT),
    ("N3C", ABORT, None, True, _F),
    ("N3C", ABORT, "t", False, _S),
    ("N3A", COMMIT, None, True, _F),
    ("N3A", COMMIT, "t", False, _S),
    ("N3A", ABORT, None, True, _F),
    ("N3A", ABORT, "t", False, ABORT),
    ("N4", COMMIT, None, True, _F),
    ("N4", COMMIT, "t", True, _F),
    ("N4", ABORT, None, True, _F),
    ("", COMMIT, None, False, _F),
    ("", COMMIT, None, True, _U),
    ("", COMMIT, "t", False, _U),
    ("", ABORT, None, True, _F),
    ("", ABORT, "t", False, _U),
]


@pytest.mark.parametrize("state", [S.EMPTY, S.ONGOING, S.PREPARED, S.COMPLETE_ABORT])
@pytest.mark.parametrize(("past", "asked", "expected"), [(past, asked, found) for past, *asked, found in _TABLE])
def test_end_after_later_transactions_is_answered_by_what_is_kept_or_by_unknown(
    a_row: RowBuilder, state: S, past: str, asked: list[Any], expected: Outcome | type[TxnTableError]
) -> None:
    """Bug: a commit whose answer was lost was told "fenced" after another's transaction, and sent again."""
    outcome, token, repeated = asked
    row = a_row(state, decision=Decision(4, ABORT, 9), past=PastDecisions.parse(past))
    request = EndRequest(7, 3, outcome, 20, token, repeated=repeated)

    if isinstance(expected, Outcome):
        found = end(row, request)
        assert (found.row, found.answer) == (None, PastDecision(3, expected))
    else:
        with pytest.raises(expected):
            end(row, request)


@pytest.mark.parametrize(
    ("batch_id", "memory", "committed"),
    [
        ("run", BatchMemory(name_known=True, committed_by=(7, 3)), True),
        ("run", BatchMemory(name_known=True, committed_by=(7, 2)), False),
        ("run", BatchMemory(), False),
        (6, BatchMemory(6, committed_by=(7, 3)), True),
        (6, BatchMemory(6, committed_by=(7, 2)), False),
        (6, BatchMemory(5, committed_by=(7, 3)), False),
        (6, BatchMemory(), False),
        (6, BatchMemory(8, committed_by=(7, 4)), None),
    ],
)
@pytest.mark.parametrize("where", ["below what is kept", "of an id that is gone", "of a producer id that is gone"])
def test_commit_of_a_batch_asked_again_is_answered_by_the_batch_memory(
    a_row: RowBuilder, batch_id: BatchId, memory: BatchMemory, committed: bool | None, where: str
) -> None:
    kept = where == "below what is kept"
    row = None if where == "of an id that is gone" else a_row(S.COMPLETE_COMMIT, past=PastDecisions())
    row = row if kept or row is None else a_row(S.COMPLETE_COMMIT, producer_id=8)
    request = EndRequest(7, 3, COMMIT, 20, None, batch_id, memory, repeated=True)

    if committed:
        assert end(row, request).answer == PastDecision(3, COMMIT)
        return
    with pytest.raises(_U if committed is None else _F if kept else _M):
        end(row, request)


def test_end_of_an_id_that_is_gone_is_unknown_only_where_it_may_have_been_the_commit() -> None:
    with pytest.raises(TransactionOutcomeUnknownError, match="batch ids"):
        end(None, EndRequest(7, 3, COMMIT, 20, repeated=True))
    for request in (EndRequest(7, 3, COMMIT, 20), EndRequest(7, 3, ABORT, 20, repeated=True)):
        with pytest.raises(InvalidPidMappingError):
            end(None, request)
