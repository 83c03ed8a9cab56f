"""Epochs have 64 bits: what Kafka does at its last epoch (another producer id, a pending switch) never happens."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from txntable.coordinator.decision import Decision, Outcome
from txntable.coordinator.transaction import TransactionMetadata
from txntable.coordinator.transaction_request import EndRequest, EnrolRequest, InitRequest, ProducerIdentity
from txntable.coordinator.transaction_shard import complete, end, enrol, init_producer, time_out
from txntable.coordinator.transaction_state import TransactionState as S

RowBuilder = Callable[..., TransactionMetadata]
# Kafka's last usable epoch, the one that it keeps for fencing, and beyond.
_EPOCHS = [2**15 - 2, 2**15 - 1, 2**15, 2**31]
_SLOT = 20


@pytest.mark.parametrize("epoch", _EPOCHS)
def test_init_raises_any_epoch_and_keeps_the_producer_id(a_row: RowBuilder, epoch: int) -> None:
    row = a_row(S.EMPTY, producer_epoch=epoch)

    transition = init_producer(row, InitRequest("etl", 40, 1_000, _SLOT))

    assert transition.answer == ProducerIdentity(7, epoch + 1)
    assert transition.next_producer_id is None


@pytest.mark.parametrize("epoch", _EPOCHS)
def test_fencing_raises_any_epoch_and_can_be_done_again_by_the_next(a_row: RowBuilder, epoch: int) -> None:
    row = a_row(S.ONGOING, producer_epoch=epoch)

    fenced = init_producer(row, InitRequest("etl", 40, 1_000, _SLOT)).row
    completed = complete(fenced, _SLOT, _SLOT + 1).row
    taken = init_producer(completed, InitRequest("etl", 40, 1_000, _SLOT + 2))

    assert taken.answer == ProducerIdentity(7, epoch + 2)


@pytest.mark.parametrize("epoch", _EPOCHS)
@pytest.mark.parametrize("outcome", Outcome)
def test_end_at_any_epoch_is_answered_again_with_the_same_producer_id(
    a_row: RowBuilder, epoch: int, outcome: Outcome
) -> None:
    request = EndRequest(7, epoch, outcome, _SLOT)

    decided = end(a_row(S.ONGOING, producer_epoch=epoch), request)
    again = end(decided.row, request)

    assert decided.answer == again.answer == Decision(epoch, outcome, _SLOT)
    assert decided.row is not None
    assert (decided.row.producer_id, decided.row.producer_epoch, again.row) == (7, epoch + 1, None)


@pytest.mark.parametrize("epoch", _EPOCHS)
def test_timed_out_transaction_of_any_epoch_leaves_an_id_that_works(a_row: RowBuilder, epoch: int) -> None:
    aborted = time_out(a_row(S.ONGOING, producer_epoch=epoch), None, _SLOT).row
    completed = complete(aborted, _SLOT, _SLOT + 1).row
    assert completed is not None

    joined = enrol(completed, EnrolRequest(7, epoch + 1, _SLOT + 2, groups=("g",)))

    assert joined.answer.state is S.ONGOING
