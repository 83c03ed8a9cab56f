"""Sequences over whole appends: duplicates, several producers, epochs, and 64 bits (PROTOCOL.md §5.4)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.log.world import World
from tests.unit.partition.history import DIGEST, TOPIC_ID, History, refusal, topic_settings
from txntable.partition.append import AppendDecision, AppendRequest, SequencedSegment, decide_append
from txntable.partition.batch import Batch, ProducerEpoch
from txntable.partition.markers import Control
from txntable.partition.producer_state import (
    BatchMetadata,
    IncomingBatch,
    ProducerEntry,
    after_append,
    after_marker,
    check_append,
)
from txntable.topics.topic_log import TopicLog

ANN, BOB = ProducerEpoch(7, 0), ProducerEpoch(8, 0)
LAST_INT = 2**31 - 1


@pytest.fixture
def history() -> History:
    history = History(TopicLog(World().process().context, "t"))
    history.create(topic_settings())
    return history


def a_request(
    history: History, producer: ProducerEpoch | None, *parts: tuple[int, int | None, int], transactional: bool = False
) -> AppendRequest:
    """New files with batches of (partition, first sequence, records)."""
    segments = [SequencedSegment(history.staged(partition, records), first) for partition, first, records in parts]
    return AppendRequest(TOPIC_ID, producer, transactional, tuple(segments))


def decided(history: History, request: AppendRequest) -> AppendDecision:
    segments = history.topic.segments
    return decide_append(segments.fold, segments.table, request, 5)


def append(history: History, request: AppendRequest) -> tuple[int, ...]:
    offsets = decided(history, request).base_offsets
    history.commit(lambda table: decide_append(history.topic.segments.fold, table, request, 5).actions)
    return offsets


# -- duplicates ---------------------------------------------------------------------------------


def test_batch_sent_again_is_answered_with_the_first_offset_and_another_of_its_numbers_is_out_of_order(
    history: History,
) -> None:
    """Kafka answers both: who was copied with its identity would be told that what nobody has is stored."""
    request = a_request(history, ANN, (0, 0, 3))
    assert append(history, request) == (0,)

    again = decided(history, request)

    assert (again.base_offsets, again.actions) == ((0,), ())
    other = a_request(history, ANN, (0, 0, 3))
    assert refusal(lambda: decided(history, other)) == "OUT_OF_ORDER_SEQUENCE_NUMBER"


def test_append_of_many_partitions_sent_again_is_answered_partition_by_partition(history: History) -> None:
    append(history, a_request(history, BOB, (1, 0, 4)))
    request = a_request(history, ANN, (0, 0, 2), (1, 0, 3), (0, 2, 1))
    first = append(history, request)

    again = decided(history, request)

    assert again.base_offsets == first == (0, 4, 2)
    assert again.actions == ()


def test_append_that_is_new_in_part_writes_only_the_new_part(history: History) -> None:
    old = a_request(history, ANN, (0, 0, 2))
    append(history, old)
    new = a_request(history, ANN, (0, 2, 5))

    assert append(history, replace(old, segments=(*old.segments, *new.segments))) == (0, 2)
    assert history.topic.segments.fold.producers[0, 7].batches == (
        BatchMetadata(0, 1, 0, 1, "1"),
        BatchMetadata(2, 6, 2, 6, "2"),
    )


def test_duplicates_of_several_producers_in_one_partition_are_told_apart(history: History) -> None:
    sent = [(ANN, 0), (BOB, 0), (ANN, 1), (BOB, 1), (ProducerEpoch(9, 0), 0)]
    requests = [a_request(history, producer, (0, first, 1)) for producer, first in sent]
    offsets = [append(history, request) for request in requests]

    again = [decided(history, request) for request in requests]

    assert [answer.base_offsets for answer in again] == offsets == [(number,) for number in range(5)]
    assert all(answer.actions == () for answer in again)


@pytest.mark.parametrize(("first", "records", "answer"), [(0, 1, None), (1, 1, (1,)), (5, 1, (5,)), (5, 2, None)])
def test_only_the_last_five_batches_are_answered_and_older_or_overlapping_ones_are_out_of_order(
    history: History, first: int, records: int, answer: tuple[int] | None
) -> None:
    for number in range(6):
        append(history, a_request(history, ANN, (0, number, 1)))
    # Of the same name, and not live: as a batch that was merged away since.
    staged = replace(history.staged(0, records), path=f"p00000/gone-{first + 1}.parquet")
    request = AppendRequest(TOPIC_ID, ANN, False, (SequencedSegment(staged, first),))

    if answer is None:
        assert refusal(lambda: decided(history, request)) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    else:
        assert decided(history, request).base_offsets == answer


def test_batch_sent_again_after_its_transaction_ended_is_of_an_old_epoch(history: History) -> None:
    request = a_request(history, ANN, (0, 0, 2), transactional=True)
    append(history, request)
    history.decide(ANN, Control.COMMIT)

    other_file = a_request(history, ANN, (0, 0, 2), transactional=True)

    assert refusal(lambda: decided(history, request)) == "INVALID_PRODUCER_EPOCH"
    assert refusal(lambda: decided(history, other_file)) == "INVALID_PRODUCER_EPOCH"


# -- several producers and epochs ---------------------------------------------------------------


def test_producers_of_one_partition_have_sequences_of_their_own(history: History) -> None:
    append(history, a_request(history, ANN, (0, 0, 3)))

    assert refusal(lambda: append(history, a_request(history, ANN, (0, 0, 1)))) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert append(history, a_request(history, BOB, (0, 0, 1))) == (3,)
    assert append(history, a_request(history, ANN, (0, 3, 1))) == (4,)


def test_partitions_of_one_producer_have_sequences_of_their_own(history: History) -> None:
    append(history, a_request(history, ANN, (0, 0, 3)))

    assert append(history, a_request(history, ANN, (1, 0, 1))) == (0,)
    assert refusal(lambda: decided(history, a_request(history, ANN, (1, 3, 1)))) == "OUT_OF_ORDER_SEQUENCE_NUMBER"


def test_refused_part_of_an_append_refuses_all_of_it(history: History) -> None:
    before = history.topic.segments.table.version

    code = refusal(lambda: append(history, a_request(history, ANN, (0, 0, 3), (1, 0, 2), (0, 9, 1))))

    assert code == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert history.topic.segments.table.version == before


@pytest.mark.parametrize(
    ("epoch", "first", "expected"),
    [(0, 0, "INVALID_PRODUCER_EPOCH"), (1, 1, "OUT_OF_ORDER_SEQUENCE_NUMBER"), (1, 0, None)],
)
def test_marker_of_an_unknown_producer_demands_the_raised_epoch_and_sequence_zero(
    history: History, epoch: int, first: int, expected: str | None
) -> None:
    history.decide(ANN, Control.ABORT)
    request = a_request(history, ProducerEpoch(7, epoch), (0, first, 1), transactional=True)

    assert refusal(lambda: decided(history, request)) == expected


def test_batch_outside_of_the_producers_open_transaction_is_refused_in_that_partition_only(history: History) -> None:
    append(history, a_request(history, ANN, (0, 0, 1), transactional=True))

    assert refusal(lambda: decided(history, a_request(history, ANN, (0, 1, 1)))) == "INVALID_TXN_STATE"
    assert refusal(lambda: decided(history, a_request(history, ANN, (1, 0, 1)))) is None


def test_batch_of_a_producer_without_a_sequence_is_refused(history: History) -> None:
    assert refusal(lambda: decided(history, a_request(history, ANN, (0, None, 1)))) == "INVALID_REQUEST"


# -- 64 bits, and replay ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "expected"),
    [(LAST_INT, None), (LAST_INT + 1, "OUT_OF_ORDER_SEQUENCE_NUMBER"), (0, "OUT_OF_ORDER_SEQUENCE_NUMBER")],
)
def test_sequences_go_on_where_kafkas_begin_again(first: int, expected: str | None) -> None:
    entry = ProducerEntry(0, (BatchMetadata(LAST_INT - 5, LAST_INT - 1, 0, 4, "a"),))
    batch = IncomingBatch(7, 0, first, 10, False, "b")

    assert refusal(lambda: check_append(entry, batch, in_transaction=False)) == expected
    assert batch.last_sequence == first + 9


def test_epochs_go_on_where_kafkas_are_exhausted() -> None:
    entry = ProducerEntry(2**15 - 1)

    assert refusal(lambda: check_append(entry, IncomingBatch(7, 2**15, 0, 1, True, "b"), in_transaction=False)) is None


def test_replay_takes_what_the_log_holds_and_checks_nothing() -> None:
    """What is in the log was accepted; the batches below may be gone."""
    batch = Batch("x", 0, 90, 94, 5, ANN, False, 40, 5, 6, 50, DIGEST)

    first = after_append(None, batch)
    then = after_append(first, replace(batch, base_offset=100, last_offset=104, first_sequence=70))

    assert then is not None
    assert then.batches == (BatchMetadata(40, 44, 90, 94, "x"), BatchMetadata(70, 74, 100, 104, "x"))


def test_marker_that_ends_a_later_epoch_than_the_last_batch_raises_the_entry_to_it(history: History) -> None:
    """Transactions without data in the partition lie in between."""
    append(history, a_request(history, ANN, (0, 0, 1), transactional=True))
    history.decide(ANN, Control.COMMIT)
    later = ProducerEpoch(7, 5)
    history.decide(later, Control.ABORT)

    marker = history.topic.segments.fold.markers[7, 5]
    assert history.topic.segments.fold.producers[0, 7].epoch == 6
    assert after_marker(None, marker, 0).epoch == 6


@pytest.mark.parametrize(("partition", "expected"), [(0, "INVALID_TXN_STATE"), (1, None)])
def test_batch_outside_of_the_open_transaction_is_refused_only_where_that_has_data(
    history: History, partition: int, expected: str | None
) -> None:
    append(history, a_request(history, ANN, (0, 0, 1), (1, 0, 1)))
    append(history, a_request(history, ANN, (0, 1, 3), transactional=True))

    plain = a_request(history, ANN, (partition, 4 if partition == 0 else 1, 1))

    assert refusal(lambda: decided(history, plain)) == expected
