"""How the transaction log stands to a transaction that a partition log shows as open, and ending exactly that one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.unit.coordinator.pasts import past_at_five
from txntable.coordinator.decision import Decision, Outcome
from txntable.coordinator.enrolment import EnrolledTopic
from txntable.coordinator.open_epoch_status import OpenEpoch, OpenEpochStatus, open_epoch_status, terminate_epoch
from txntable.coordinator.transaction import TransactionMetadata
from txntable.coordinator.transaction_request import Transition
from txntable.coordinator.transaction_state import TransactionState as S

RowBuilder = Callable[..., TransactionMetadata]
ENROLLED, OTHER = "a" * 32, "b" * 32
_SLOT = 20


@pytest.mark.parametrize(
    ("state", "epoch", "topic_id", "status"),
    [
        (S.ONGOING, 5, ENROLLED, OpenEpochStatus.OPEN),
        (S.ONGOING, 5, OTHER, OpenEpochStatus.UNENROLLED),
        (S.ONGOING, 4, ENROLLED, OpenEpochStatus.PAST),
        (S.ONGOING, 6, ENROLLED, OpenEpochStatus.AHEAD),
        (S.PREPARED, 5, ENROLLED, OpenEpochStatus.OPEN),
        (S.PREPARED, 5, OTHER, OpenEpochStatus.UNENROLLED),
        (S.PREPARE_COMMIT, 4, ENROLLED, OpenEpochStatus.DECIDED),
        (S.PREPARE_ABORT, 4, ENROLLED, OpenEpochStatus.DECIDED),
        (S.PREPARE_ABORT, 4, OTHER, OpenEpochStatus.PAST),
        (S.PREPARE_ABORT, 3, ENROLLED, OpenEpochStatus.PAST),
        (S.PREPARE_ABORT, 5, ENROLLED, OpenEpochStatus.IDLE),
        (S.COMPLETE_COMMIT, 4, ENROLLED, OpenEpochStatus.PAST),
        (S.COMPLETE_ABORT, 5, ENROLLED, OpenEpochStatus.IDLE),
        (S.EMPTY, 4, ENROLLED, OpenEpochStatus.PAST),
        (S.EMPTY, 5, ENROLLED, OpenEpochStatus.IDLE),
        (S.EMPTY, 6, ENROLLED, OpenEpochStatus.AHEAD),
    ],
)
def test_status_follows_from_the_row_of_the_producer_id(
    a_row: RowBuilder, state: S, epoch: int, topic_id: str, status: OpenEpochStatus
) -> None:
    assert open_epoch_status(a_row(state), OpenEpoch(7, epoch, topic_id), next_producer_id=8) is status


@pytest.mark.parametrize(
    ("producer_id", "status"), [(7, OpenEpochStatus.PAST), (8, OpenEpochStatus.AHEAD), (9, OpenEpochStatus.AHEAD)]
)
def test_producer_id_without_an_id_is_past_unless_it_was_never_given(producer_id: int, status: OpenEpochStatus) -> None:
    assert open_epoch_status(None, OpenEpoch(producer_id, 0, ENROLLED), next_producer_id=8) is status


def test_only_what_something_ends_does_not_hang() -> None:
    assert [status for status in OpenEpochStatus if not status.hangs] == [OpenEpochStatus.OPEN, OpenEpochStatus.DECIDED]


@pytest.mark.parametrize("state", [state for state in S if state is not S.DEAD])
@pytest.mark.parametrize(("producer_id", "epoch"), [(7, 4), (7, 5), (7, 6), (8, 5)])
def test_terminate_epoch_raises_exactly_the_epoch_that_it_names(
    a_row: RowBuilder, state: S, producer_id: int, epoch: int
) -> None:
    row = a_row(state)

    transition = terminate_epoch(row, producer_id, epoch, _SLOT)

    if (producer_id, epoch) != (7, 5) or state.is_decided:
        assert transition == Transition(None, None)
        return
    decision = Decision(5, Outcome.ABORT, _SLOT)
    following = S.PREPARE_ABORT if state.is_open else S.COMPLETE_ABORT
    aborted = replace(
        row, state=following, producer_epoch=6, decision=decision, past=past_at_five(row), token=None, position=_SLOT
    )
    assert transition == Transition(aborted, decision)


def test_terminate_epoch_of_an_id_that_is_gone_writes_nothing() -> None:
    assert terminate_epoch(None, 7, 5, _SLOT) == Transition(None, None)


def test_prepared_transaction_that_is_terminated_keeps_its_batch_id_in_the_decision(a_row: RowBuilder) -> None:
    topics = {OTHER: EnrolledTopic("delays", frozenset({3}))}
    row = a_row(S.PREPARED, topics=topics, batch_id="run")

    decided = terminate_epoch(row, 7, 5, _SLOT).answer

    assert decided == Decision(5, Outcome.ABORT, _SLOT, "run")
