"""Positions that leave out what a consumer has read and lost since: Kafka's idiom, over several polls."""

from __future__ import annotations

import copy
import pickle

import pytest

from tests.simulation.site import Site
from tests.unit.consumer.consuming import poll_all, send
from tests.unit.consumer.members import RAW, copier, member, numbers, offset_of, settle
from tests.unit.consumer.test_group_ownership import filled, sent
from txntable.consumer.consumer import Consumer
from txntable.errors import IllegalStateError, StaleMemberEpochError, UnknownMemberIdError
from txntable.format.records import TopicPartition
from txntable.producer.producer import Producer


def offer_positions(consumer: Consumer, producer: Producer) -> None:
    positions = {each: consumer.position(each) for each in consumer.assignment()}
    producer.send_offsets_to_transaction(positions, consumer.group_metadata())


def send_positions(consumer: Consumer, producer: Producer) -> None:
    """Commit as Kafka's examples do: the positions of what is assigned now."""
    with producer.transaction():
        offer_positions(consumer, producer)


def read_and_lost(site: Site) -> tuple[Consumer, Producer]:
    """A member that has read both partitions, and lost one of them; and who writes its copies."""
    filled(site)
    consumer, producer = member(site), copier(site)
    poll_all(consumer)
    settle(site, consumer, member(site))
    return consumer, producer


@pytest.mark.parametrize("others", [1, 2])
def test_positions_that_leave_out_what_was_read_and_lost_are_refused_until_the_consumer_polls_on(
    site: Site, others: int
) -> None:
    filled(site)
    consumer, producer = member(site), copier(site)
    assert len(poll_all(consumer)) == 6
    joined = [member(site) for _ in range(others)]
    settle(site, consumer, *joined)
    assert len(numbers(consumer)) < 2

    for _ in range(2):
        with pytest.raises(StaleMemberEpochError, match="abort, and read again from what is committed"):
            send_positions(consumer, producer)

    assert [offset_of(consumer, each) for each in RAW] == [None, None]
    consumer.poll()
    send_positions(consumer, producer)


def test_positions_that_leave_out_what_was_lost_are_refused_after_more_polls_too(site: Site) -> None:
    """Also where the program has asked who it is in between."""
    consumer, producer = read_and_lost(site)
    for _ in range(2):
        consumer.group_metadata()
        consumer.poll()

    with pytest.raises(StaleMemberEpochError, match="abort, and read again"):
        send_positions(consumer, producer)

    assert [offset_of(consumer, each) for each in RAW] == [None, None]


@pytest.mark.parametrize("asked", ["before the poll", "before the partition was gained"])
def test_positions_that_leave_out_what_was_lost_are_refused_whenever_the_metadata_was_asked_for(
    site: Site, asked: str
) -> None:
    filled(site)
    consumer, producer, other = member(site), copier(site), member(site, subscribed=False)
    if asked == "before the partition was gained":
        other.subscribe(["raw"])
        consumer.poll()
        settle(site, consumer, other)
    else:
        consumer.poll()
        consumer.seek_to_beginning()
    metadata = consumer.group_metadata()
    if asked == "before the partition was gained":
        other.close()
        settle(site, consumer)
    poll_all(consumer)
    settle(site, consumer, member(site))
    (kept,) = consumer.assignment()

    with pytest.raises(StaleMemberEpochError, match="abort, and read again"), producer.transaction():
        producer.send_offsets_to_transaction({kept: consumer.position(kept)}, metadata)

    assert [offset_of(consumer, each) for each in RAW] == [None, None]


def test_group_metadata_from_before_the_consumer_has_joined_are_refused(site: Site) -> None:
    """As of no member they would pass unchecked."""
    filled(site)
    consumer, producer = member(site), copier(site)
    metadata = consumer.group_metadata()
    poll_all(consumer)
    positions = {each: consumer.position(each) for each in consumer.assignment()}

    with producer.transaction():
        with pytest.raises(IllegalStateError, match="from before the consumer joined its group; ask for them again"):
            producer.send_offsets_to_transaction(positions, metadata)
        producer.send_offsets_to_transaction(positions, consumer.group_metadata())

    assert [offset_of(consumer, each) for each in RAW] == [3, 3]


def test_static_member_that_is_closed_has_what_it_read_still(site: Site) -> None:
    """It has not left: until its session is over nobody else reads its partitions."""
    filled(site)
    consumer, producer = member(site, group_instance_id="i"), copier(site)
    poll_all(consumer)
    metadata, position = consumer.group_metadata(), consumer.position(RAW[0])
    consumer.close()

    with producer.transaction():
        producer.send_offsets_to_transaction({RAW[0]: position}, metadata)

    assert offset_of(member(site), RAW[0]) == 3


@pytest.mark.parametrize("copied", [False, True], ids=["as it is", "copied"])
def test_group_metadata_from_before_the_join_are_refused_though_everything_read_is_committed_and_left(
    site: Site, copied: bool
) -> None:
    filled(site)
    consumer, producer = member(site), copier(site)
    metadata = consumer.group_metadata()
    metadata = copy.deepcopy(metadata) if copied else metadata
    poll_all(consumer)
    consumer.commit()
    consumer.unsubscribe()

    with pytest.raises(IllegalStateError, match="from before the consumer joined"), producer.transaction():
        producer.send_offsets_to_transaction({RAW[0]: 1}, metadata)


def test_consumer_that_assigns_itself_after_it_was_a_member_is_not_checked_as_in_kafka(site: Site) -> None:
    filled(site)
    consumer, producer = member(site), copier(site)
    poll_all(consumer)
    consumer.commit()
    consumer.unsubscribe()
    consumer.assign([RAW[0]])

    with producer.transaction():
        producer.send_offsets_to_transaction({RAW[0]: 2}, consumer.group_metadata())

    assert offset_of(consumer, RAW[0]) == 2


def test_group_metadata_of_another_process_tells_what_was_lost_when_it_was_taken_there(site: Site) -> None:
    consumer, producer = read_and_lost(site)
    (kept,) = consumer.assignment()
    copied = pickle.loads(pickle.dumps(consumer.group_metadata()))

    for _ in range(2):
        with pytest.raises(StaleMemberEpochError, match="abort, and read again"), producer.transaction():
            producer.send_offsets_to_transaction({kept: consumer.position(kept)}, copied)


def test_positions_that_leave_out_what_was_iterated_in_an_earlier_transaction_only_in_part_are_refused(
    site: Site,
) -> None:
    filled(site)
    consumer, producer = member(site), copier(site)
    for _ in range(2):
        next(consumer)
    send_positions(consumer, producer)
    for _ in range(4):
        next(consumer)
    settle(site, consumer, member(site))
    assert len(numbers(consumer)) == 1

    with pytest.raises(StaleMemberEpochError):
        send_positions(consumer, producer)


@pytest.mark.parametrize("fresh", [False, True], ids=["the same producer", "a producer for each transaction"])
@pytest.mark.parametrize("rewound", [False, True])
def test_who_goes_on_after_the_refusal_comes_to_commit(site: Site, fresh: bool, rewound: bool) -> None:
    consumer, producer = read_and_lost(site)
    with pytest.raises(StaleMemberEpochError):
        send_positions(consumer, producer)
    if rewound:
        for each, found in consumer.committed(list(consumer.assignment())).items():
            consumer.seek(each, 0 if found is None else found.offset)

    consumer.poll()
    send_positions(consumer, copier(site) if fresh else producer)


def test_offsets_of_the_consumer_are_refused_until_it_reads_on(site: Site) -> None:
    filled(site)
    consumer = member(site)
    poll_all(consumer)
    settle(site, consumer, member(site))

    for _ in range(2):
        with pytest.raises(StaleMemberEpochError):
            sent(consumer, site)

    consumer.poll()
    sent(consumer, site)


def test_positions_of_two_consumers_in_one_transaction_are_refused_where_one_has_read_again_what_the_other_lost(
    site: Site,
) -> None:
    filled(site)
    first, second, producer = member(site), member(site, subscribed=False), copier(site)
    poll_all(first)
    second.subscribe(["raw"])
    settle(site, first, second)
    poll_all(second)
    producer.begin_transaction()
    offer_positions(second, producer)

    with pytest.raises(StaleMemberEpochError):
        offer_positions(first, producer)


def test_positions_may_leave_out_a_partition_whose_offset_was_sent_before_it_was_lost(site: Site) -> None:
    filled(site)
    consumer, producer, other = member(site, subscribed=False), copier(site), member(site, subscribed=False)

    def on_revoke(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        positions = {each: consumer.position(each) for each in partitions}
        producer.send_offsets_to_transaction(positions, consumer.group_metadata())

    consumer.subscribe(["raw"], on_revoke=on_revoke)
    poll_all(consumer)
    other.subscribe(["raw"])
    with producer.transaction():
        settle(site, consumer, other)
        positions = {each: consumer.position(each) for each in consumer.assignment()}
        producer.send_offsets_to_transaction(positions, consumer.group_metadata())

    assert len(positions) == 1
    assert [offset_of(consumer, each) for each in RAW] == [3, 3]


def test_positions_leave_out_a_partition_that_was_committed_before_it_was_lost(site: Site) -> None:
    filled(site)
    consumer, producer = member(site), copier(site)
    poll_all(consumer)
    send_positions(consumer, producer)
    settle(site, consumer, member(site))
    assert len(numbers(consumer)) == 1

    send_positions(consumer, producer)

    assert [offset_of(consumer, each) for each in RAW] == [3, 3]


def expelled(site: Site, consumer: Consumer) -> Consumer:
    """Let a member be expelled, another have everything, and the first come back for a share."""
    site.open().admin().remove_members_from_consumer_group("g")
    other = member(site)
    other.poll()
    settle(site, other)
    consumer.poll()
    settle(site, consumer, other)
    consumer.poll()
    assert len(numbers(consumer)) == 1
    return other


def test_positions_may_leave_out_what_was_committed_before_the_member_was_expelled(site: Site) -> None:
    filled(site)
    consumer, producer = member(site), copier(site)
    poll_all(consumer)
    send_positions(consumer, producer)
    expelled(site, consumer)
    (kept,) = consumer.assignment()
    # It has been read under another member id: until the consumer goes back, that one is refused.
    with pytest.raises(UnknownMemberIdError):
        send_positions(consumer, producer)
    consumer.seek(kept, 3)
    send(site.open().producer(), "d", partition=kept.partition)
    poll_all(consumer)

    send_positions(consumer, producer)

    assert offset_of(consumer, kept) == 4


def test_who_was_expelled_and_rewinds_as_in_kafka_comes_to_commit(site: Site) -> None:
    filled(site)
    consumer, producer = member(site), copier(site)
    poll_all(consumer)
    expelled(site, consumer)
    with pytest.raises(StaleMemberEpochError):
        send_positions(consumer, producer)
    for each in consumer.assignment():
        consumer.seek_to_beginning([each])
    consumer.poll()

    send_positions(consumer, producer)


def test_offset_that_was_sent_before_an_abort_does_not_count(site: Site) -> None:
    filled(site)
    consumer, producer = member(site), copier(site)
    poll_all(consumer)
    producer.begin_transaction()
    offer_positions(consumer, producer)
    producer.abort_transaction()
    settle(site, consumer, member(site))

    with pytest.raises(StaleMemberEpochError):
        send_positions(consumer, producer)


def test_who_reads_a_range_after_the_refusal_comes_to_commit(site: Site) -> None:
    consumer, producer = read_and_lost(site)
    with pytest.raises(StaleMemberEpochError):
        send_positions(consumer, producer)

    consumer.read_arrow().read_all()
    send_positions(consumer, producer)
