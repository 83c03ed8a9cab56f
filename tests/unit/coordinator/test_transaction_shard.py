"""What a producer's requests do to every kind of row (KAFKA_SEMANTICS: retry matrix, fencing)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.unit.coordinator.pasts import past_at_five
from txntable.coordinator.decision import Decision, Outcome, PastDecision
from txntable.coordinator.enrolment import EnrolledTopic
from txntable.coordinator.errors import (
    ConcurrentTransactionsError,
    InvalidPidMappingError,
    InvalidProducerEpochError,
    InvalidRequestError,
    InvalidTransactionTimeoutError,
    InvalidTxnStateError,
    ProducerFencedError,
    TxnTableError,
)
from txntable.coordinator.transaction import TransactionMetadata
from txntable.coordinator.transaction_request import (
    EndRequest,
    EnrolRequest,
    InitRequest,
    ProducerIdentity,
    Transition,
)
from txntable.coordinator.transaction_shard import end, enrol, init_producer
from txntable.coordinator.transaction_state import TransactionState as S

RowBuilder = Callable[..., TransactionMetadata]
COMMIT, ABORT = Outcome.COMMIT, Outcome.ABORT
_TOPIC = "a" * 32
_SLOT = 20


def _init(**changes: object) -> InitRequest:
    return replace(InitRequest("etl", next_producer_id=40, timeout_ms=30_000, position=_SLOT), **changes)  # type: ignore[arg-type]


def _enrol(**changes: object) -> EnrolRequest:
    topics = {_TOPIC: EnrolledTopic("flights", frozenset({2}))}
    return replace(EnrolRequest(7, 5, _SLOT, topics=topics), **changes)  # type: ignore[arg-type]


def _end(outcome: Outcome = COMMIT, epoch: int = 5, **changes: object) -> EndRequest:
    return replace(EndRequest(7, epoch, outcome, _SLOT), **changes)  # type: ignore[arg-type]


def _committed(transition: Transition[Decision | PastDecision]) -> TransactionMetadata:
    assert transition.row is not None
    return transition.row


# -- init -----------------------------------------------------------------------------------


def test_init_makes_an_empty_row_and_takes_a_producer_id_when_the_id_is_unknown() -> None:
    transition = init_producer(None, _init(expected=(3, 3)))

    assert transition.row == TransactionMetadata("etl", 40, 0, 30_000, S.EMPTY, _SLOT)
    assert transition.answer == ProducerIdentity(40, 0)
    assert transition.next_producer_id == 41


@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_init_raises_the_epoch_and_keeps_the_decision_when_no_transaction_is_open(a_row: RowBuilder, state: S) -> None:
    row = a_row(state)

    transition = init_producer(row, _init(expected=(7, 5)))

    assert transition.row == replace(row, state=S.EMPTY, producer_epoch=6, timeout_ms=30_000, position=_SLOT)
    assert transition.answer == ProducerIdentity(7, 6)
    assert transition.next_producer_id is None


def test_init_aborts_an_ongoing_transaction_and_fences_its_producer(a_row: RowBuilder) -> None:
    row = a_row(S.ONGOING)

    transition = init_producer(row, _init())

    decision = Decision(5, ABORT, _SLOT)
    assert transition.answer == decision
    assert transition.row == replace(
        row, state=S.PREPARE_ABORT, producer_epoch=6, decision=decision, past=past_at_five(row), position=_SLOT
    )


@pytest.mark.parametrize("state", [S.PREPARE_COMMIT, S.PREPARE_ABORT])
def test_init_waits_for_completion_when_the_transaction_is_decided(a_row: RowBuilder, state: S) -> None:
    with pytest.raises(ConcurrentTransactionsError, match="position=11"):
        init_producer(a_row(state), _init())


def test_init_is_refused_when_a_transaction_is_prepared(a_row: RowBuilder) -> None:
    with pytest.raises(InvalidTxnStateError, match="keep_prepared"):
        init_producer(a_row(S.PREPARED), _init())


def test_init_takes_a_prepared_transaction_over_when_asked_to(a_row: RowBuilder) -> None:
    transition = init_producer(a_row(S.PREPARED), _init(keep_prepared=True))

    assert transition == Transition(None, ProducerIdentity(7, 5, token="t"))


@pytest.mark.parametrize("state", [state for state in S if state is not S.DEAD])
@pytest.mark.parametrize("expected", [(7, 4), (7, 6), (8, 5)])
def test_init_is_fenced_when_the_caller_is_no_longer_the_producer(
    a_row: RowBuilder, state: S, expected: tuple[int, int]
) -> None:
    with pytest.raises(ProducerFencedError):
        init_producer(a_row(state), _init(expected=expected))


@pytest.mark.parametrize(("timeout_ms", "max_timeout_ms"), [(0, 900_000), (-1, 900_000), (900_001, 900_000), (2, 1)])
def test_init_is_refused_when_the_timeout_is_out_of_bounds(timeout_ms: int, max_timeout_ms: int) -> None:
    with pytest.raises(
        InvalidTransactionTimeoutError, match=rf"transaction_max_timeout_ms, .*\bmax_timeout_ms={max_timeout_ms}"
    ):
        InitRequest("etl", 0, timeout_ms, _SLOT, max_timeout_ms)


@pytest.mark.parametrize("timeout_ms", [1, 900_000])
def test_init_accepts_the_smallest_and_the_largest_timeout(timeout_ms: int) -> None:
    assert InitRequest("etl", 0, timeout_ms, _SLOT, 900_000).timeout_ms == timeout_ms


def test_init_is_refused_when_the_id_is_empty() -> None:
    with pytest.raises(InvalidRequestError):
        _init(transactional_id="")


# -- enrol ----------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_enrol_opens_a_transaction_when_none_is_open(a_row: RowBuilder, state: S) -> None:
    row = a_row(state)
    request = _enrol(groups=("g",))

    transition = enrol(row, request)

    expected = replace(
        row, state=S.ONGOING, topics=request.topics, groups=("g",), started_position=_SLOT, position=_SLOT
    )
    assert transition == Transition(expected, expected)


def test_enrol_adds_to_an_ongoing_transaction_and_keeps_its_start(a_row: RowBuilder) -> None:
    grown = enrol(a_row(S.ONGOING), _enrol()).answer

    assert grown.topics[_TOPIC].partitions == {0, 1, 2}
    assert (grown.started_position, grown.position) == (10, _SLOT)


def test_enrol_writes_nothing_when_all_is_known(a_row: RowBuilder) -> None:
    row = a_row(S.ONGOING)
    known = {_TOPIC: EnrolledTopic("flights", frozenset({1}))}

    assert enrol(row, _enrol(topics=known, groups=("g",))) == Transition(None, row)


@pytest.mark.parametrize(
    ("state", "error"),
    [
        (S.PREPARED, InvalidTxnStateError),
        (S.PREPARE_COMMIT, ConcurrentTransactionsError),
        (S.PREPARE_ABORT, ConcurrentTransactionsError),
    ],
)
def test_enrol_is_refused_when_the_transaction_is_prepared_or_decided(
    a_row: RowBuilder, state: S, error: type[TxnTableError]
) -> None:
    with pytest.raises(error):
        enrol(a_row(state), _enrol())


@pytest.mark.parametrize("state", [state for state in S if state is not S.DEAD])
@pytest.mark.parametrize("epoch", [4, 6])
def test_enrol_refuses_another_epoch_as_data_or_as_offsets(a_row: RowBuilder, state: S, epoch: int) -> None:
    with pytest.raises(InvalidProducerEpochError):
        enrol(a_row(state), _enrol(epoch=epoch))
    with pytest.raises(ProducerFencedError):
        enrol(a_row(state), _enrol(epoch=epoch, groups=("g",)))


def test_enrol_is_refused_when_the_id_is_unknown_or_of_another_producer(a_row: RowBuilder) -> None:
    with pytest.raises(InvalidPidMappingError):
        enrol(None, _enrol())
    with pytest.raises(InvalidPidMappingError):
        enrol(a_row(S.EMPTY), _enrol(producer_id=8))


@pytest.mark.parametrize("change", [{"topics": {}}, {"groups": ("",)}])
def test_enrol_is_refused_when_it_names_nothing(change: dict[str, object]) -> None:
    with pytest.raises(InvalidRequestError):
        _enrol(**change)


# -- end ------------------------------------------------------------------------------------

_S, _F, _C = InvalidTxnStateError, ProducerFencedError, ConcurrentTransactionsError

# What commit and abort answer: at the current epoch 5, as a retry of epoch 4, and at epochs that never were.
# A state is what a decision now writes; "same" is the decision at position 11 again; else the error.
_RETRY_MATRIX = {
    #                    commit 5           abort 5            commit 4  abort 4   any of 3, 6
    S.EMPTY: (_S, S.COMPLETE_ABORT, _F, _F, _F),
    S.ONGOING: (S.PREPARE_COMMIT, S.PREPARE_ABORT, _F, _F, _F),
    S.PREPARED: (_S, _S, _F, _F, _F),
    S.PREPARE_COMMIT: (_C, _C, "same", _S, _F),
    S.PREPARE_ABORT: (_C, _C, _S, "same", _F),
    S.COMPLETE_COMMIT: (_S, S.COMPLETE_ABORT, "same", _S, _F),
    S.COMPLETE_ABORT: (_S, S.COMPLETE_ABORT, _S, "same", _F),
}
_ENDS = [(COMMIT, 5, 0), (ABORT, 5, 1), (COMMIT, 4, 2), (ABORT, 4, 3), *[(o, e, 4) for o in Outcome for e in (3, 6)]]
_END_CELLS = [
    (state, outcome, epoch, cells[column]) for state, cells in _RETRY_MATRIX.items() for outcome, epoch, column in _ENDS
]


@pytest.mark.parametrize(("state", "outcome", "epoch", "expected"), _END_CELLS)
def test_end_answers_as_the_retry_matrix_says(
    a_row: RowBuilder, state: S, outcome: Outcome, epoch: int, expected: S | str | type[TxnTableError]
) -> None:
    row = a_row(state)
    if isinstance(expected, type):
        with pytest.raises(expected):
            end(row, _end(outcome, epoch))
        return

    transition = end(row, _end(outcome, epoch))

    if isinstance(expected, str):
        assert transition == Transition(None, row.decision)
    else:
        decision = Decision(5, outcome, _SLOT)
        decided = replace(
            row, state=expected, producer_epoch=6, decision=decision, past=past_at_five(row), position=_SLOT
        )
        assert transition == Transition(decided, decision)


def test_end_is_refused_when_the_id_is_unknown_or_of_another_producer(a_row: RowBuilder) -> None:
    with pytest.raises(InvalidPidMappingError):
        end(None, _end())
    with pytest.raises(InvalidPidMappingError):
        end(a_row(S.ONGOING), _end(producer_id=8))


@pytest.mark.parametrize("state", [S.ONGOING, S.PREPARED])
@pytest.mark.parametrize("outcome", Outcome)
def test_late_end_never_touches_the_next_transaction_of_the_same_producer(
    a_row: RowBuilder, state: S, outcome: Outcome
) -> None:
    row = a_row(state, decision=Decision(4, outcome, 9))
    opposite = ABORT if outcome is COMMIT else COMMIT

    assert end(row, _end(outcome, 4)) == Transition(None, row.decision)
    with pytest.raises(InvalidTxnStateError, match="decided otherwise" if outcome is COMMIT else "was aborted over"):
        end(row, _end(opposite, 4))


# The same requests after another producer's init: epoch 5, the decision is of epoch 3.
@pytest.mark.parametrize("state", [S.EMPTY, S.ONGOING])
@pytest.mark.parametrize(
    ("outcomes", "token", "expected"),
    [
        ((COMMIT, COMMIT), None, "same"),
        ((COMMIT, COMMIT), "t", "same"),
        ((COMMIT, ABORT), None, _F),
        ((COMMIT, ABORT), "t", _S),
        ((ABORT, ABORT), None, _F),
        ((ABORT, ABORT), "t", "same"),
        ((ABORT, COMMIT), None, _F),
        ((ABORT, COMMIT), "t", _S),
    ],
)
def test_end_after_another_producers_init_learns_only_of_its_commit_or_by_token(
    a_row: RowBuilder,
    state: S,
    outcomes: tuple[Outcome, Outcome],
    token: str | None,
    expected: str | type[TxnTableError],
) -> None:
    decided, requested = outcomes
    row = a_row(state, decision=Decision(3, decided, 9))
    request = _end(requested, epoch=3, token=token)

    if isinstance(expected, type):
        with pytest.raises(expected):
            end(row, request)
    else:
        assert end(row, request) == Transition(None, row.decision)


@pytest.mark.parametrize(
    ("state", "token", "allowed"),
    [(S.PREPARED, "t", True), (S.PREPARED, "u", False), (S.ONGOING, "t", False), (S.EMPTY, "t", False)],
)
@pytest.mark.parametrize("outcome", Outcome)
def test_end_of_a_prepared_transaction_needs_its_token(
    a_row: RowBuilder, state: S, token: str, allowed: bool, outcome: Outcome
) -> None:
    row = a_row(state)
    if not allowed:
        with pytest.raises(InvalidTxnStateError, match="token"):
            end(row, _end(outcome, token=token))
        return

    decided = _committed(end(row, _end(outcome, token=token)))

    assert (decided.state.is_decided, decided.token, decided.batch_id) == (True, None, None)
    assert (decided.topics, decided.groups) == (row.topics, row.groups)
