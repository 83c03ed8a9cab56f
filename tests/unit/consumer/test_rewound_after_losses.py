"""Who went back in all that it is assigned, between an abort and the next transaction, has given up what it lost."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.simulation.site import Site
from tests.unit.consumer.consuming import poll_all, send
from tests.unit.consumer.members import copier, member, numbers, offset_of, settle
from tests.unit.consumer.test_lost_positions import offer_positions, send_positions
from txntable.consumer.consumer import Consumer
from txntable.errors import StaleMemberEpochError
from txntable.format.records import TopicPartition
from txntable.producer.producer import Producer

WIDE = [TopicPartition("raw", number) for number in range(4)]
Rewind = Callable[[Consumer], object]
End = Callable[[Consumer, Producer], object]


@pytest.fixture
def other(site: Site) -> Consumer:
    """Four partitions with three records each, and a consumer that may join for some of them."""
    site.open().admin().create_partitions({"raw": 4})
    for each in WIDE:
        send(site.open().producer(), "a", "b", "c", partition=each.partition)
    return member(site, subscribed=False)


def to_committed(consumer: Consumer) -> None:
    for each, found in consumer.committed(sorted(consumer.assignment())).items():
        consumer.seek(each, 0 if found is None else found.offset)


def to_the_beginning(consumer: Consumer) -> None:
    consumer.seek_to_beginning()


def by_name(consumer: Consumer) -> None:
    consumer.seek_to_committed(*sorted(consumer.assignment()))


def at_all(consumer: Consumer) -> None:
    consumer.seek_to_committed()


def some(consumer: Consumer) -> None:
    consumer.seek(min(consumer.assignment()), 0)


def nowhere(consumer: Consumer) -> None:
    pass


def to_where_it_stands(consumer: Consumer) -> None:
    for each, position in consumer.positions().items():
        consumer.seek(each, position)


def to_the_end(consumer: Consumer) -> None:
    consumer.seek_to_end()


def back_and_forth(consumer: Consumer) -> None:
    first, *others = sorted(consumer.assignment())
    consumer.seek(first, 0)
    consumer.seek(first, 3)
    consumer.seek_to_beginning(others)


def by_consumer(consumer: Consumer, producer: Producer) -> None:
    with producer.transaction() as txn:
        txn.send_offsets(consumer)


ENDS = {"positions": send_positions, "send_offsets": by_consumer}


def lose(site: Site, consumer: Consumer, other: Consumer) -> None:
    other.subscribe(["raw"])
    settle(site, consumer, other)
    assert len(numbers(consumer)) == 2


def read_lost_and_aborted(site: Site, other: Consumer) -> tuple[Consumer, Producer]:
    """A member whose transaction, with records of all partitions, was aborted after it has lost two of these."""
    consumer, producer = member(site), copier(site)
    producer.begin_transaction()
    assert len(poll_all(consumer)) == 12
    lose(site, consumer, other)
    producer.abort_transaction()
    return consumer, producer


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("rewind", [to_committed, to_the_beginning, by_name, at_all])
def test_what_was_lost_counts_no_more_when_the_consumer_went_back_in_all_that_it_has_after_the_abort(
    site: Site, other: Consumer, rewind: Rewind, end: End
) -> None:
    consumer, producer = read_lost_and_aborted(site, other)
    rewind(consumer)
    assert len(poll_all(consumer)) == 6

    end(consumer, producer)

    assert sorted(str(offset_of(consumer, each)) for each in WIDE) == ["3", "3", "None", "None"]


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_what_was_lost_counts_no_more_where_the_abort_followed_a_refusal_of_the_log(
    site: Site, other: Consumer, end: End
) -> None:
    consumer, producer = member(site), copier(site)
    poll_all(consumer)
    lose(site, consumer, other)
    with (
        pytest.raises(StaleMemberEpochError, match=r"does not own the partition|has not owned"),
        producer.transaction(),
    ):
        producer.send_offsets_to_transaction(dict.fromkeys(WIDE, 3), consumer.group_metadata())
    to_committed(consumer)

    with producer.transaction():
        poll_all(consumer)
    end(consumer, producer)


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("rewind", [some, nowhere, to_where_it_stands, to_the_end, back_and_forth])
def test_what_was_lost_is_refused_still_when_the_consumer_went_back_in_less_than_all(
    site: Site, other: Consumer, rewind: Rewind, end: End
) -> None:
    consumer, producer = read_lost_and_aborted(site, other)
    rewind(consumer)

    with pytest.raises(StaleMemberEpochError):
        end(consumer, producer)

    poll_all(consumer)
    end(consumer, producer)


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("when", ["before the abort", "in the next transaction", "without an abort"])
def test_what_was_lost_is_refused_once_when_the_consumer_went_back_while_a_transaction_was_open(
    site: Site, other: Consumer, when: str, end: End
) -> None:
    consumer, producer = member(site), copier(site)
    producer.begin_transaction()
    poll_all(consumer)
    lose(site, consumer, other)
    if when != "in the next transaction":
        to_committed(consumer)
    if when != "without an abort":
        producer.abort_transaction()
        producer.begin_transaction()
    if when == "in the next transaction":
        to_committed(consumer)
    poll_all(consumer)

    with pytest.raises(StaleMemberEpochError):
        offer_positions(consumer, producer) if end is send_positions else producer.send_offsets_of(consumer)

    producer.abort_transaction()
    consumer.poll()
    end(consumer, producer)


def test_what_was_lost_is_refused_after_a_commit_without_offsets_though_the_consumer_went_back(
    site: Site, other: Consumer
) -> None:
    """The records may be in it."""
    consumer, producer = member(site), copier(site)
    with producer.transaction():
        poll_all(consumer)
        lose(site, consumer, other)
    to_committed(consumer)

    with pytest.raises(StaleMemberEpochError):
        send_positions(consumer, producer)


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_partition_that_comes_back_after_the_rewind_is_read_and_committed(
    site: Site, other: Consumer, end: End
) -> None:
    consumer, producer = read_lost_and_aborted(site, other)
    to_committed(consumer)
    other.close()
    settle(site, consumer)
    assert len(poll_all(consumer)) == 12

    end(consumer, producer)

    assert [offset_of(consumer, each) for each in WIDE] == [3, 3, 3, 3]


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_partition_that_comes_back_after_a_rewind_in_the_transaction_is_refused(
    site: Site, other: Consumer, end: End
) -> None:
    """The transaction has its records already."""
    consumer, producer = member(site), copier(site)
    producer.begin_transaction()
    poll_all(consumer)
    lose(site, consumer, other)
    to_committed(consumer)
    other.close()
    settle(site, consumer)
    poll_all(consumer)

    with pytest.raises(StaleMemberEpochError):
        offer_positions(consumer, producer) if end is send_positions else producer.send_offsets_of(consumer)


def left_and_aborted(site: Site) -> tuple[Consumer, Producer]:
    """A consumer that has read, has nothing assigned any more, and whose transaction was aborted."""
    consumer, producer = member(site), copier(site)
    producer.begin_transaction()
    poll_all(consumer)
    consumer.unsubscribe()
    producer.abort_transaction()
    return consumer, producer


def test_what_was_read_by_who_has_nothing_any_more_is_refused_until_it_polls(site: Site, other: Consumer) -> None:
    consumer, producer = left_and_aborted(site)

    with pytest.raises(StaleMemberEpochError), producer.transaction():
        producer.send_offsets_to_transaction({}, consumer.group_metadata())

    consumer.subscribe(["raw"])
    assert len(poll_all(consumer)) == 12
    send_positions(consumer, producer)


def test_who_has_nothing_any_more_gives_up_what_it_read_by_the_call_for_it(site: Site, other: Consumer) -> None:
    consumer, producer = left_and_aborted(site)
    consumer.seek_to_committed()

    with producer.transaction():
        producer.send_offsets_to_transaction({}, consumer.group_metadata())


@pytest.mark.parametrize("made", ["before the rewind", "after the rewind"])
def test_what_was_lost_counts_no_more_for_a_new_producer_when_the_consumer_went_back_before_its_first_transaction(
    site: Site, other: Consumer, made: str
) -> None:
    consumer, _ = read_lost_and_aborted(site, other)
    producer = copier(site) if made == "before the rewind" else None
    to_committed(consumer)
    poll_all(consumer)

    send_positions(consumer, producer or copier(site))


def test_what_another_producer_holds_is_refused_though_the_consumer_went_back_after_the_abort_of_one(
    site: Site, other: Consumer
) -> None:
    holder = copier(site, "holder")
    holder.begin_transaction()
    consumer, producer = read_lost_and_aborted(site, other)
    to_committed(consumer)
    poll_all(consumer)
    send_positions(consumer, producer)

    with pytest.raises(StaleMemberEpochError):
        offer_positions(consumer, holder)


def test_rewind_goes_to_where_the_last_transaction_has_left_the_group(site: Site, other: Consumer) -> None:
    """Whether the program asks for it, or remembers where its batch has begun."""
    consumer, producer = member(site), copier(site)
    poll_all(consumer)
    send_positions(consumer, producer)
    for each in WIDE:
        send(site.open().producer(), "d", partition=each.partition)
    producer.begin_transaction()
    assert len(poll_all(consumer)) == 4
    lose(site, consumer, other)
    producer.abort_transaction()
    for each in sorted(consumer.assignment()):
        consumer.seek(each, 3)
    assert poll_all(consumer) == ["d", "d"]

    send_positions(consumer, producer)


def test_what_was_given_up_stays_so_over_later_transactions_and_rewinds_in_them(site: Site, other: Consumer) -> None:
    consumer, producer = read_lost_and_aborted(site, other)
    to_committed(consumer)
    for _ in range(20):
        with producer.transaction():
            to_committed(consumer)
            poll_all(consumer)
            offer_positions(consumer, producer)
