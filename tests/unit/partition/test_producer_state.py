"""Kafka's checks on a producer's batch, as a truth table (PROTOCOL.md §5.4)."""

from __future__ import annotations

import pytest

from tests.unit.partition.history import DIGEST
from txntable.errors import TxnTableError
from txntable.partition.batch import Batch, ProducerEpoch
from txntable.partition.markers import Control, Marker
from txntable.partition.producer_state import (
    BatchMetadata,
    IncomingBatch,
    ProducerEntry,
    after_append,
    after_marker,
    check_append,
)

ONE = BatchMetadata(0, 4, 10, 14, "a")
TWO = BatchMetadata(5, 9, 15, 19, "b")
KNOWN = ProducerEntry(3, (ONE, TWO), last_offset=19)
MARKED = ProducerEntry(4, last_offset=20)


@pytest.mark.parametrize(
    ("entry", "name", "epoch", "first", "records", "transactional", "in_transaction", "expected"),
    [
        (None, "c", 0, 0, 5, True, False, None),
        (None, "c", 0, 3, 5, False, False, None),
        (None, "c", 0, 3, 5, True, False, "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        (KNOWN, "c", 3, 10, 5, False, False, None),
        (KNOWN, "a", 3, 0, 5, False, False, ONE),
        (KNOWN, "b", 3, 5, 5, False, False, TWO),
        (KNOWN, "c", 3, 5, 5, False, False, "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        (KNOWN, "a", 3, 5, 5, True, True, "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        (KNOWN, "c", 3, 5, 4, False, False, "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        (KNOWN, "c", 3, 11, 1, False, False, "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        (KNOWN, "c", 3, 2, 5, False, False, "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        (KNOWN, "c", 2, 10, 5, False, False, "INVALID_PRODUCER_EPOCH"),
        (KNOWN, "c", 2, 0, 5, False, False, "INVALID_PRODUCER_EPOCH"),
        (KNOWN, "c", 4, 0, 5, True, False, None),
        (KNOWN, "c", 4, 10, 5, True, False, "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        (MARKED, "c", 4, 0, 1, True, False, None),
        (MARKED, "c", 4, 1, 1, True, False, "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        (MARKED, "c", 3, 0, 1, True, False, "INVALID_PRODUCER_EPOCH"),
        (KNOWN, "c", 3, 10, 1, True, True, None),
        (KNOWN, "c", 3, 10, 1, False, True, "INVALID_TXN_STATE"),
    ],
)
def test_batch_is_answered_by_epoch_and_sequence(  # noqa: PLR0913  the columns of the table
    entry: ProducerEntry | None,
    name: str,
    epoch: int,
    first: int,
    records: int,
    transactional: bool,
    in_transaction: bool,
    expected: BatchMetadata | str | None,
) -> None:
    batch = IncomingBatch(1, epoch, first, records, transactional, name)
    try:
        found: object = check_append(entry, batch, in_transaction=in_transaction)
    except TxnTableError as error:
        found = error.code
    assert found == expected


def appended(entry: ProducerEntry | None, epoch: int, first: int, base: int) -> ProducerEntry:
    batch = Batch("x", 0, base, base, 1, ProducerEpoch(1, epoch), True, first, 5, 6, 50, DIGEST)
    following = after_append(entry, batch)
    assert following is not None
    return following


def marker(ends: int) -> Marker:
    return Marker("m", 1, ends, Control.ABORT, 9, 77, 2, {0: 30})


def test_only_the_last_five_batches_of_the_epoch_are_remembered() -> None:
    entry = None
    for number in range(7):
        entry = appended(entry, 0, number, number)

    assert entry is not None
    assert [batch.first_sequence for batch in entry.batches] == [2, 3, 4, 5, 6]
    assert [batch.first_sequence for batch in appended(entry, 1, 0, 7).batches] == [0]


def test_marker_raises_the_epoch_and_forgets_the_batches() -> None:
    entry = after_marker(appended(None, 3, 0, 0), marker(3), 0)

    assert entry == ProducerEntry(4, (), 77, 2, 30)


def test_marker_of_an_earlier_epoch_changes_nothing() -> None:
    later = appended(None, 4, 0, 0)

    assert after_marker(later, marker(3), 0) is later


def test_batch_without_sequence_leaves_no_trace() -> None:
    assert after_append(None, Batch("x", 0, 0, 0, 1, None, False, None, 5, 6, 50, DIGEST)) is None
