"""Whether an append may go on, for every kind of row."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from txntable.coordinator.errors import (
    ConcurrentTransactionsError,
    InvalidPidMappingError,
    InvalidProducerEpochError,
    InvalidTxnStateError,
    ProducerFencedError,
    TransactionAbortableError,
    TxnTableError,
)
from txntable.coordinator.transaction import TransactionMetadata
from txntable.coordinator.transaction_state import TransactionState as S
from txntable.coordinator.verification import verify, verify_offsets

RowBuilder = Callable[..., TransactionMetadata]
_TOPIC = "a" * 32
_NOT_ONGOING = [
    (S.EMPTY, InvalidTxnStateError),
    (S.PREPARED, InvalidTxnStateError),
    (S.PREPARE_COMMIT, ConcurrentTransactionsError),
    (S.PREPARE_ABORT, ConcurrentTransactionsError),
    (S.COMPLETE_COMMIT, InvalidTxnStateError),
    (S.COMPLETE_ABORT, InvalidTxnStateError),
]


def test_append_goes_on_when_its_partitions_are_enrolled(a_row: RowBuilder) -> None:
    verify(a_row(S.ONGOING), 7, 5, _TOPIC, [1, 0])


def test_append_of_offsets_goes_on_when_the_group_is_enrolled(a_row: RowBuilder) -> None:
    verify_offsets(a_row(S.ONGOING), 7, 5, "g")


@pytest.mark.parametrize(("state", "error"), _NOT_ONGOING)
def test_append_is_refused_when_no_transaction_is_ongoing(
    a_row: RowBuilder, state: S, error: type[TxnTableError]
) -> None:
    with pytest.raises(error):
        verify(a_row(state), 7, 5, _TOPIC, [0])
    with pytest.raises(error):
        verify_offsets(a_row(state), 7, 5, "g")


@pytest.mark.parametrize("state", [state for state in S if state is not S.DEAD])
@pytest.mark.parametrize("epoch", [4, 6])
def test_append_is_refused_when_its_epoch_is_another(a_row: RowBuilder, state: S, epoch: int) -> None:
    with pytest.raises(InvalidProducerEpochError, match=r"abort the transaction .*epoch=\d current=5"):
        verify(a_row(state), 7, epoch, _TOPIC, [0])
    with pytest.raises(ProducerFencedError, match=r"close this producer .*epoch=\d current=5"):
        verify_offsets(a_row(state), 7, epoch, "g")


def test_append_is_refused_when_the_id_is_unknown_or_of_another_producer(a_row: RowBuilder) -> None:
    with pytest.raises(InvalidPidMappingError, match=r"producer_id=7$"):
        verify(None, 7, 5, _TOPIC, [0])
    with pytest.raises(InvalidPidMappingError, match="producer_id=8 stored=7"):
        verify_offsets(a_row(S.ONGOING), 8, 5, "g")


def test_append_must_abort_when_a_partition_is_not_enrolled(a_row: RowBuilder) -> None:
    with pytest.raises(TransactionAbortableError, match=r"partitions=\[2, 3\]"):
        verify(a_row(S.ONGOING), 7, 5, _TOPIC, [0, 3, 2])
    with pytest.raises(TransactionAbortableError, match="topic_id=b"):
        verify(a_row(S.ONGOING), 7, 5, "b", [0])
    with pytest.raises(TransactionAbortableError, match="group=h"):
        verify_offsets(a_row(S.ONGOING), 7, 5, "h")
