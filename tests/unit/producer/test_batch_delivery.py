"""What a batch tells the sends whose records it has: one answer for all of them, and a call for who waits for one."""

from __future__ import annotations

import sys

import pytest

from txntable.errors import IllegalStateError, TransactionAbortedError, TxnTableError
from txntable.format.records import BatchDelivery, OffsetRange, RecordMetadata, fail_all

ABORTED = TransactionAbortedError("the transaction was aborted")


@pytest.fixture
def told() -> list[tuple[bool, TxnTableError | None]]:
    return []


def send(told: list[tuple[bool, TxnTableError | None]], *parts: tuple[BatchDelivery, int]) -> RecordMetadata:
    """A send whose records lie in batches, so many in each."""
    metadata = RecordMetadata(
        "t", sum(records for _, records in parts), 7, lambda sent, error: told.append((sent.is_delivered, error))
    )
    for batch, records in parts:
        batch.add(metadata, records)
    return metadata


def deliver(batch: BatchDelivery, partition: int, base_offset: int) -> None:
    for metadata in batch.deliver(partition, base_offset, 9, stamped=False):
        metadata.announce()


def test_sends_of_one_batch_have_the_offsets_behind_each_other() -> None:
    batch, sent = BatchDelivery(), [RecordMetadata("t", count, 7) for count in (1, 3, 1)]
    for metadata, count in zip(sent, (1, 3, 1), strict=True):
        batch.add(metadata, count)

    deliver(batch, 2, 10)

    assert batch.records == 5
    assert [one.ranges for one in sent] == [
        (OffsetRange(2, first, last),) for first, last in ((10, 10), (11, 13), (14, 14))
    ]


def test_send_over_several_batches_is_told_once_when_the_last_one_is_delivered(
    told: list[tuple[bool, TxnTableError | None]],
) -> None:
    first, second = BatchDelivery(), BatchDelivery()
    sent = send(told, (first, 2), (second, 1), (first, 1))

    deliver(first, 1, 10)
    assert (told, sent.is_delivered) == ([], False)
    with pytest.raises(IllegalStateError, match="not flushed yet"):
        _ = sent.ranges
    deliver(second, 0, 4)

    assert told == [(True, None)]
    assert sent.ranges == (OffsetRange(0, 4, 4), OffsetRange(1, 10, 11), OffsetRange(1, 12, 12))
    assert (sent.partition, sent.offset) == (0, 4)


def test_send_of_which_a_part_is_dropped_has_failed_and_is_told_once(
    told: list[tuple[bool, TxnTableError | None]],
) -> None:
    batches = [BatchDelivery() for _ in range(3)]
    sent = send(told, *((batch, 1) for batch in batches))
    deliver(batches[0], 0, 0)

    fail_all(batches[1:], ABORTED)

    assert told == [(False, ABORTED)]
    assert (sent.is_delivered, sent.error) == (False, ABORTED)
    with pytest.raises(TransactionAbortedError):
        _ = sent.ranges


def test_send_of_which_a_part_is_somewhere_is_told_and_has_no_offsets(
    told: list[tuple[bool, TxnTableError | None]],
) -> None:
    known, unknown = BatchDelivery(), BatchDelivery()
    sent = send(told, (known, 1), (unknown, 1))
    deliver(known, 0, 0)

    for metadata in unknown.deliver_somewhere():
        metadata.announce()

    assert told == [(False, None)]
    with pytest.raises(IllegalStateError, match="read the topic"):
        _ = sent.ranges


@pytest.mark.parametrize(("sent_ms", "stamped", "shown"), [(7, False, 7), (7, True, 9), (None, False, 9)])
def test_timestamp_is_that_of_the_send_unless_the_delivery_gives_one(
    sent_ms: int | None, stamped: bool, shown: int
) -> None:
    batch, sent = BatchDelivery(), RecordMetadata("t", 1, sent_ms)
    batch.add(sent, 1)
    assert sent.timestamp_ms == sent_ms

    batch.deliver(0, 0, 9, stamped=stamped)

    assert sent.timestamp_ms == shown


def test_batch_keeps_no_send_that_nobody_waits_for() -> None:
    batch, sent = BatchDelivery(), RecordMetadata("t", 1, 7)
    before = sys.getrefcount(sent)

    batch.add(sent, 1)

    assert sys.getrefcount(sent) == before
