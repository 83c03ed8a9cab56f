"""Committing what was read: who may, what counts, and what a transaction sends of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.doubles.fault_plan import Fault, Operation, on
from tests.simulation.site import Site, published
from tests.unit.consumer.consuming import poll_all, send, values
from tests.unit.consumer.members import RAW, copier, member, offset_of, settle
from txntable.consumer.consumer import Consumer
from txntable.errors import (
    FencedInstanceIdError,
    IllegalStateError,
    InvalidRequestError,
    OffsetMetadataTooLargeError,
    ProducerFencedError,
    StaleMemberEpochError,
    UnknownTopicOrPartitionError,
    UnstableOffsetCommitError,
)
from txntable.format.records import TopicPartition
from txntable.offsets.group_commit import OffsetAndMetadata
from txntable.producer.producer import Producer

FIRST, SECOND = RAW


def filled(site: Site) -> None:
    """Three records in each partition."""
    for partition in (0, 1):
        send(site.open().producer(), "a", "b", "c", partition=partition)


def copied(site: Site) -> list[str]:
    return sorted(row["value"].decode() for row in published(site.open(), "copy"))


@pytest.fixture
def copy(site: Site) -> None:
    """A topic to copy to."""
    site.open().admin().create_topic("copy", partitions=1)


# -- plain commits --------------------------------------------------------------------------


def test_commit_without_arguments_commits_the_positions(site: Site) -> None:
    filled(site)
    consumer = member(site, max_poll_records=2)
    consumer.poll()

    consumer.commit()

    moved = [each for each in RAW if consumer.position(each)]
    assert {each: offset_of(consumer, each) for each in moved} == {each: consumer.position(each) for each in moved}


def test_positions_that_are_committed_are_not_written_again(site: Site) -> None:
    filled(site)
    warehouse = site.open()
    consumer = member(warehouse)
    poll_all(consumer)
    consumer.commit()
    before = warehouse.offsets.refresh()

    consumer.commit()

    assert warehouse.offsets.refresh() == before


def test_commit_while_iterating_stops_before_what_was_not_handed_out(site: Site) -> None:
    send(site.open().producer(), "a", "b", "c")
    consumer = member(site)
    next(consumer)

    consumer.commit()

    assert offset_of(consumer, FIRST) == 1


def test_committed_offset_keeps_its_text_and_goes_backwards_and_beyond_the_end_as_in_kafka(site: Site) -> None:
    consumer = member(site)
    consumer.poll()
    for offset in (99, 2):
        consumer.commit({FIRST: OffsetAndMetadata(offset, "note")})

    assert consumer.committed([FIRST, SECOND]) == {FIRST: OffsetAndMetadata(2, "note"), SECOND: None}


@pytest.mark.parametrize(
    ("offsets", "error"),
    [
        ({FIRST: -1}, InvalidRequestError),
        ({FIRST: True}, InvalidRequestError),
        ({FIRST: OffsetAndMetadata(1, "x" * 4097)}, OffsetMetadataTooLargeError),
        ({TopicPartition("raw", 7): 1}, UnknownTopicOrPartitionError),
        ({TopicPartition("nowhere", 0): 1}, UnknownTopicOrPartitionError),
        ({TopicPartition("u", 0): 1}, StaleMemberEpochError),
    ],
)
def test_commit_refuses_what_no_group_can_hold_or_this_member_does_not_own(
    site: Site, offsets: dict, error: type[Exception]
) -> None:
    consumer = member(site)
    consumer.poll()

    with pytest.raises(error):
        consumer.commit(offsets)

    assert offset_of(consumer, FIRST) is None


def test_commit_of_a_partition_that_another_member_has_is_refused(site: Site) -> None:
    first, second = member(site), member(site)
    settle(site, first, second)
    (others,) = second.assignment()

    with pytest.raises(StaleMemberEpochError):
        first.commit({others: 1})


def test_commit_whose_answer_was_lost_may_be_made_again(site: Site) -> None:
    warehouse = site.open()
    consumer = member(warehouse)
    consumer.poll()
    warehouse.store.plan = (  # type: ignore[attr-defined]
        on(Operation.PUT_IF_ABSENT, "offset_log/_delta_log", Fault.LOST_ANSWER, occurrence=1),
    )

    consumer.commit({FIRST: 2})

    assert offset_of(consumer, FIRST) == 2


# -- fetching -------------------------------------------------------------------------------


def test_committed_waits_for_an_open_transaction_and_says_so_when_it_does_not_end(site: Site) -> None:
    consumer = member(site, default_api_timeout_ms=5_000)
    pending = copier(site)
    with pending.transaction():
        pending.send_offsets_to_transaction({FIRST: 1}, "g")
    pending.begin_transaction()
    pending.send_offsets_to_transaction({FIRST: 2}, "g")

    with pytest.raises(UnstableOffsetCommitError):
        consumer.committed([FIRST])
    pending.abort_transaction()

    assert offset_of(consumer, FIRST) == 1


def test_committed_waits_no_longer_than_it_is_told_and_leaves_the_transaction_alone(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    warehouse = site.open()
    consumer, own = member(warehouse), copier(warehouse)
    warehouse.context.environment.sleep_ms = site.advance_ms  # type: ignore[method-assign,assignment]
    own.begin_transaction()
    own.send_offsets_to_transaction({FIRST: 2}, "g")

    with pytest.raises(UnstableOffsetCommitError, match="tried_for_ms=2000"):
        consumer.committed([FIRST], timeout_ms=2_000)
    assert caplog.records == []
    with pytest.raises(UnstableOffsetCommitError, match="tried_for_ms=9000"):
        consumer.committed(FIRST, timeout_ms=9_000)
    assert ["waits for a transaction that has offsets" in one.getMessage() for one in caplog.records] == [True]
    with pytest.raises(InvalidRequestError, match="timeout_ms=-1"):
        consumer.committed(FIRST, timeout_ms=-1)
    own.commit_transaction()

    assert offset_of(consumer, FIRST) == 2


def test_committed_settles_what_is_decided_and_was_left_by_a_dead_producer(site: Site) -> None:
    warehouse = site.open()
    dead = copier(warehouse)
    dead.begin_transaction()
    dead.send_offsets_to_transaction({FIRST: 2}, "g")
    warehouse.completer.settle_offsets = lambda: (_ for _ in ()).throw(UnstableOffsetCommitError("killed"))  # type: ignore[method-assign]
    dead.commit_transaction()

    assert offset_of(member(site), FIRST) == 2


def test_offset_of_a_topic_that_was_made_again_is_none(site: Site) -> None:
    consumer = member(site)
    consumer.poll()
    consumer.commit({FIRST: 2})
    consumer.close()
    admin = site.open().admin()
    admin.delete_topic("raw")
    admin.create_topic("raw", partitions=2)

    assert offset_of(member(site), FIRST) is None


# -- in transactions ------------------------------------------------------------------------


def test_copy_and_its_offsets_are_one_decision(site: Site, copy: None) -> None:
    filled(site)
    consumer, producer = member(site), copier(site)
    aborting = pytest.raises(ZeroDivisionError)
    with aborting, producer.transaction() as txn:
        copy_polled(consumer, producer)
        txn.send_offsets(consumer)
        raise ZeroDivisionError
    assert offset_of(consumer, FIRST) is None
    consumer.seek_to_committed()

    with producer.transaction() as txn:
        copy_polled(consumer, producer)
        txn.send_offsets(consumer)

    assert copied(site) == ["a", "a", "b", "b", "c", "c"]
    assert [offset_of(consumer, each) for each in RAW] == [3, 3]


@pytest.mark.parametrize("read", [poll_all, lambda consumer: consumer.read_arrow().read_all()])
def test_transaction_that_is_tried_again_with_the_same_records_has_their_offsets(
    site: Site, copy: None, read: Callable[[Consumer], object]
) -> None:
    filled(site)
    consumer, producer = member(site), copier(site)
    read(consumer)
    aborting = pytest.raises(ZeroDivisionError)
    with aborting, producer.transaction() as txn:
        txn.send_offsets(consumer)
        raise ZeroDivisionError

    with producer.transaction() as txn:
        txn.send_offsets(consumer)

    assert [offset_of(consumer, each) for each in RAW] == [3, 3]


def test_offsets_of_an_aborted_transaction_are_not_sent_again_when_the_consumer_went_back(
    site: Site, copy: None
) -> None:
    filled(site)
    consumer, producer = member(site), copier(site)
    producer.begin_transaction()
    poll_all(consumer)
    producer.send_offsets_of(consumer)
    consumer.seek_to_committed()
    producer.abort_transaction()

    with producer.transaction() as txn:
        txn.send_offsets(consumer)

    assert [offset_of(consumer, each) for each in RAW] == [None, None]


def copy_polled(consumer: Consumer, producer: Producer) -> None:
    while polled := consumer.poll():
        for value in values(polled):
            producer.send("copy", value=value.encode())


def test_offsets_that_are_sent_are_the_positions_so_that_markers_are_passed(site: Site) -> None:
    source = copier(site, "source")
    with source.transaction() as txn:
        txn.send("raw", value=b"a", partition=0)
    consumer, producer = member(site), copier(site)
    assert poll_all(consumer) == ["a"]

    with producer.transaction() as txn:
        txn.send_offsets(consumer)

    assert offset_of(consumer, FIRST) == 2


def test_offsets_that_are_sent_while_iterating_stop_before_what_was_not_handed_out(site: Site) -> None:
    send(site.open().producer(), "a", "b", "c")
    consumer = member(site)
    next(consumer)

    with copier(site).transaction() as txn:
        txn.send_offsets(consumer)

    assert offset_of(consumer, FIRST) == 1


def test_who_is_told_by_a_refused_commit_that_a_newer_consumer_has_its_name_reads_no_more(site: Site) -> None:
    filled(site)
    consumer = member(site, group_instance_id="one")
    poll_all(consumer)
    member(site, group_instance_id="one").poll()
    with pytest.raises(FencedInstanceIdError):
        consumer.commit()

    with pytest.raises(FencedInstanceIdError):
        consumer.poll()


def test_nothing_is_sent_twice_and_nothing_when_nothing_was_read(site: Site) -> None:
    filled(site)
    warehouse = site.open()
    consumer, producer = member(warehouse), copier(warehouse)
    poll_all(consumer)
    with producer.transaction() as txn:
        txn.send_offsets(consumer)
    before = warehouse.offsets.refresh()

    with producer.transaction() as txn:
        txn.send_offsets(consumer)

    assert warehouse.offsets.refresh() == before


def test_offsets_in_a_transaction_are_refused_of_a_consumer_that_commits_by_itself(site: Site) -> None:
    filled(site)
    consumer, producer = member(site, enable_auto_commit=True), copier(site)
    consumer.poll()
    producer.begin_transaction()

    with pytest.raises(IllegalStateError, match="enable_auto_commit=False"):
        producer.send_offsets_of(consumer)


def test_newer_producer_fences_who_sends_offsets(site: Site) -> None:
    filled(site)
    consumer, zombie = member(site), copier(site)
    consumer.poll()
    zombie.begin_transaction()
    copier(site)

    with pytest.raises(ProducerFencedError):
        zombie.send_offsets_of(consumer)

    assert offset_of(consumer, FIRST) is None


def test_assigned_consumer_sends_offsets_that_nobody_checks_as_in_kafka(site: Site) -> None:
    filled(site)
    member(site).poll()
    consumer, producer = member(site, subscribed=False), copier(site)
    consumer.assign([FIRST])
    poll_all(consumer)

    with producer.transaction():
        producer.send_offsets_to_transaction({FIRST: 1}, consumer.group_metadata())
    with producer.transaction() as txn:
        txn.send_offsets(consumer)

    assert offset_of(consumer, FIRST) == 3


def test_range_is_sent_past_the_offsets_of_a_transaction_whose_abort_nobody_has_settled(site: Site) -> None:
    filled(site)
    consumer = member(site, subscribed=False)
    consumer.assign([FIRST])
    consumer.read_arrow()
    warehouse = site.open()
    dead = copier(warehouse, "dead")
    dead.begin_transaction()
    dead.send_offsets_to_transaction({FIRST: 2}, "g")
    warehouse.completer.settle_offsets = lambda: (_ for _ in ()).throw(UnstableOffsetCommitError("killed"))  # type: ignore[method-assign]
    dead.abort_transaction()

    with copier(site).transaction() as txn:
        txn.send_offsets(consumer)

    assert offset_of(consumer, FIRST) == 3
