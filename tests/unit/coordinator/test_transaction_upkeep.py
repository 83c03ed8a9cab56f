"""What others than the producer do to every kind of row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.unit.coordinator.pasts import past_at_five
from txntable.coordinator.decision import Decision, Outcome
from txntable.coordinator.errors import InvalidTxnStateError, ProducerFencedError
from txntable.coordinator.transaction import TransactionMetadata
from txntable.coordinator.transaction_request import EndRequest, Transition
from txntable.coordinator.transaction_shard import end
from txntable.coordinator.transaction_state import TransactionState as S
from txntable.coordinator.transaction_upkeep import complete, expire, terminate, time_out

RowBuilder = Callable[..., TransactionMetadata]
_STATES = [state for state in S if state is not S.DEAD]
_SLOT = 20


@pytest.mark.parametrize("state", _STATES)
@pytest.mark.parametrize(("elapsed_ms", "passed"), [(59_999, False), (60_000, False), (60_001, True), (None, True)])
def test_time_out_aborts_only_an_ongoing_transaction_whose_timeout_has_passed(
    a_row: RowBuilder, state: S, elapsed_ms: int | None, passed: bool
) -> None:
    row = a_row(state)

    transition = time_out(row, elapsed_ms, _SLOT)

    if state is S.ONGOING and passed:
        decision = Decision(5, Outcome.ABORT, _SLOT)
        aborted = replace(
            row, state=S.PREPARE_ABORT, producer_epoch=6, decision=decision, past=past_at_five(row), position=_SLOT
        )
        assert transition == Transition(aborted, decision)
    else:
        assert transition == Transition(None, None)


def test_producer_goes_on_after_a_timeout_by_its_abort_but_not_by_its_commit(a_row: RowBuilder) -> None:
    timed_out = time_out(a_row(S.ONGOING), None, _SLOT).row
    abort, commit = (EndRequest(7, 5, outcome, _SLOT + 1) for outcome in (Outcome.ABORT, Outcome.COMMIT))

    assert end(timed_out, abort).answer.next_epoch == 6
    with pytest.raises(InvalidTxnStateError):
        end(timed_out, commit)


@pytest.mark.parametrize("state", _STATES)
def test_terminate_aborts_only_an_open_transaction_prepared_or_not(a_row: RowBuilder, state: S) -> None:
    row = a_row(state)
    if not state.is_open:
        with pytest.raises(InvalidTxnStateError):
            terminate(row, _SLOT)
        return

    transition = terminate(row, _SLOT)

    decision = Decision(5, Outcome.ABORT, _SLOT)
    aborted = replace(
        row,
        state=S.PREPARE_ABORT,
        producer_epoch=6,
        decision=decision,
        past=past_at_five(row),
        token=None,
        position=_SLOT,
    )
    assert transition == Transition(aborted, decision)


def test_terminated_producer_cannot_commit_and_a_higher_epoch_is_fenced(a_row: RowBuilder) -> None:
    terminated = terminate(a_row(S.ONGOING), _SLOT).row

    with pytest.raises(InvalidTxnStateError):
        end(terminated, EndRequest(7, 5, Outcome.COMMIT, _SLOT + 1))
    with pytest.raises(ProducerFencedError):
        end(terminated, EndRequest(7, 9, Outcome.COMMIT, _SLOT + 1))


@pytest.mark.parametrize(
    ("state", "following"), [(S.PREPARE_COMMIT, S.COMPLETE_COMMIT), (S.PREPARE_ABORT, S.COMPLETE_ABORT)]
)
def test_complete_ends_a_decided_transaction_once(a_row: RowBuilder, state: S, following: S) -> None:
    row = a_row(state)

    first = complete(row, decision_position=11, position=_SLOT)
    second = complete(first.row, decision_position=11, position=_SLOT + 1)

    done = replace(row, state=following, topics={}, groups=(), started_position=None, position=_SLOT)
    assert first == Transition(done, done)
    assert second == Transition(None, done)


@pytest.mark.parametrize(
    ("state", "following"), [(S.PREPARE_COMMIT, S.COMPLETE_COMMIT), (S.PREPARE_ABORT, S.COMPLETE_ABORT)]
)
def test_row_that_is_known_complete_is_as_complete_leaves_it_at_its_own_position(
    a_row: RowBuilder, state: S, following: S
) -> None:
    row = a_row(state)

    known = row.known_complete()

    assert known.state is following
    assert replace(known, position=_SLOT) == row.prepare_complete(_SLOT)
    assert known.position == row.position


@pytest.mark.parametrize("state", [each for each in S if not each.is_decided])
def test_row_that_is_not_decided_is_never_known_complete(a_row: RowBuilder, state: S) -> None:
    with pytest.raises(InvalidTxnStateError):
        a_row(state).known_complete()


@pytest.mark.parametrize("state", _STATES)
def test_complete_writes_nothing_when_the_decision_is_another(a_row: RowBuilder, state: S) -> None:
    row = a_row(state)

    assert complete(row, decision_position=9, position=_SLOT) == Transition(None, row)


def test_complete_writes_nothing_when_the_id_is_gone() -> None:
    assert complete(None, decision_position=11, position=_SLOT) == Transition(None, None)


@pytest.mark.parametrize("state", _STATES)
@pytest.mark.parametrize(("idle_ms", "passed"), [(6_999, False), (7_000, True), (None, True)])
def test_expire_lets_go_only_of_an_idle_id_without_a_transaction(
    a_row: RowBuilder, state: S, idle_ms: int | None, passed: bool
) -> None:
    row = a_row(state)

    transition = expire(row, idle_ms, 7_000, _SLOT)

    if passed and state in {S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT}:
        dead = replace(row, state=S.DEAD, position=_SLOT)
        assert transition == Transition(dead, dead)
    else:
        assert transition == Transition(None, None)
