"""Builders of rows in the domain's words; every one has defaults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from txntable.coordinator.decision import Decision, Outcome
from txntable.coordinator.enrolment import EnrolledTopic
from txntable.coordinator.past_decisions import PastDecisions
from txntable.coordinator.transaction import TransactionMetadata
from txntable.coordinator.transaction_state import TransactionState

_OUTCOME_OF = {
    TransactionState.PREPARE_COMMIT: Outcome.COMMIT,
    TransactionState.COMPLETE_COMMIT: Outcome.COMMIT,
    TransactionState.PREPARE_ABORT: Outcome.ABORT,
    TransactionState.COMPLETE_ABORT: Outcome.ABORT,
}


def _a_row(state: TransactionState, **changes: object) -> TransactionMetadata:
    busy = state.is_open or state.is_decided
    outcome = _OUTCOME_OF.get(state)
    position = 12 if outcome is not None and not state.is_decided else 11
    row = TransactionMetadata(
        transactional_id="etl",
        producer_id=7,
        producer_epoch=5,
        timeout_ms=60_000,
        state=state,
        position=position,
        topics={"a" * 32: EnrolledTopic("flights", frozenset({0, 1}))} if busy else {},
        groups=("g",) if busy else (),
        started_position=10 if busy else None,
        decision=None if outcome is None else Decision(4, outcome, 11),
        token="t" if state is TransactionState.PREPARED else None,
        prepared_epoch=5 if state is TransactionState.PREPARED else None,
        past=PastDecisions.parse("" if outcome is None else "N4"),
    )
    return replace(row, **changes)  # type: ignore[arg-type]


@pytest.fixture
def a_row() -> Callable[..., TransactionMetadata]:
    """Producer 7, epoch 5; what is decided is epoch 4 at position 11; flights/0-1 and group g are enrolled."""
    return _a_row
