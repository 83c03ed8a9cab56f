"""What was handed out and is not committed: whose it was when it was read."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from txntable.consumer.readings import Reading, Readings
from txntable.coordinator.group_request import GroupMetadata
from txntable.coordinator.offset_request import RangeStart
from txntable.format.records import TopicPartition

ZERO, ONE = TopicPartition("t", 0), TopicPartition("t", 1)


def owner(generation: int = 5, *, member_id: str = "m", zero: int | None = 5, one: int | None = 5) -> GroupMetadata:
    """A member with its ownership epochs of two partitions."""
    epochs: list[tuple[tuple[str, int], int | None]] = [(ZERO, zero), (ONE, one)]
    ownership = {each: epoch for each, epoch in epochs if epoch is not None}
    return GroupMetadata("g", member_id, generation, "i", ownership)


def polled(end: int, who: GroupMetadata | None) -> Reading:
    return Reading("id", 0, end, who)


def test_ownership_is_that_of_the_first_reading_since_the_commit() -> None:
    readings = Readings()
    readings.polled(ZERO, polled(3, owner(5, zero=5)))
    readings.polled(ZERO, polled(9, owner(7, zero=7)))

    frozen = readings.metadata(owner(7, zero=7, one=6))

    assert readings.by_partition[ZERO].end == 9
    assert frozen == owner(7, zero=5, one=6)


def test_ownership_is_the_present_one_again_when_what_was_read_is_committed() -> None:
    readings = Readings()
    readings.polled(ZERO, polled(3, owner(5, zero=5)))

    readings.committed({ZERO: 2})
    assert readings.metadata(owner(7, zero=7)) == owner(7, zero=5)
    readings.committed({ZERO: 3, ONE: 1})

    assert readings.metadata(owner(7, zero=7)) == owner(7, zero=7)


def test_what_was_given_up_is_lost_although_the_ownership_went_on() -> None:
    readings = Readings()
    readings.polled(ZERO, polled(3, owner(5)))
    readings.polled(ONE, polled(3, owner(5)))

    readings.give_up([ZERO])

    assert readings.lost(owner(5)) == [ZERO]
    assert readings.metadata(owner(5)) == owner(5, zero=None)


def test_what_was_given_up_is_lost_when_another_has_it() -> None:
    readings = Readings()
    readings.polled(ZERO, polled(3, owner(5)))
    readings.polled(ONE, polled(3, owner(5)))

    readings.give_up([ZERO])

    assert readings.lost(owner(6, zero=None)) == [ZERO]


def test_only_the_partitions_that_are_committed_count_when_they_are_named() -> None:
    readings = Readings()
    readings.polled(ZERO, polled(3, owner(5, zero=5)))
    readings.polled(ONE, polled(3, owner(5, one=5)))

    assert readings.metadata(owner(7, zero=7, one=7), [ONE]) == owner(7, zero=7, one=5)


def test_what_was_read_as_a_former_member_is_for_that_one_to_be_refused() -> None:
    readings = Readings()
    readings.polled(ZERO, polled(3, owner(5, member_id="former")))

    frozen = readings.metadata(owner(7))

    assert frozen is not None
    assert (frozen.member_id, frozen.instance_id) == ("former", None)


def test_who_is_no_member_has_no_metadata() -> None:
    readings = Readings()
    readings.polled(ZERO, polled(3, None))

    assert readings.metadata(None) is None
    assert readings.lost(None) == []


@pytest.mark.parametrize(
    ("now", "lost"),
    [
        (owner(7), []),
        (owner(7, zero=7), [ZERO]),
        (owner(7, zero=None), [ZERO]),
        (owner(7, member_id="other"), [ZERO, ONE]),
        (None, [ZERO, ONE]),
    ],
    ids=["owned since", "had again", "not had", "another member", "no member"],
)
def test_lost_is_what_is_not_owned_as_it_was_when_it_was_read(
    now: GroupMetadata | None, lost: list[TopicPartition]
) -> None:
    readings = Readings()
    for each in (ZERO, ONE):
        readings.polled(each, polled(3, owner()))

    assert readings.lost(now) == lost


def test_what_a_transaction_aborts_goes_on_with_what_was_read_since() -> None:
    readings = Readings()
    readings.polled(ZERO, polled(3, owner(5, zero=5)))
    readings.sent([ZERO])
    readings.polled(ZERO, Reading("id", 3, 4, owner(5, zero=5)))
    readings.sent([ZERO, ONE])
    readings.polled(ZERO, Reading("id", 4, 6, owner(7, zero=7)))

    readings.decided([ZERO, ONE], committed=False)

    assert readings.by_partition == {ZERO: polled(6, owner(5, zero=5))}


@pytest.mark.parametrize(
    "since",
    [
        lambda readings: readings.decided([ZERO], committed=True),
        lambda readings: readings.drop([ZERO]),
    ],
)
def test_what_was_committed_or_given_up_is_not_there_again(since: Callable[[Readings], None]) -> None:
    readings = Readings()
    readings.polled(ZERO, polled(3, owner()))
    readings.sent([ZERO])

    since(readings)
    readings.decided([ZERO], committed=False)

    assert readings.by_partition == {}


def test_what_was_read_anew_is_not_joined_with_what_was_aborted_of_another_topic_or_range() -> None:
    readings = Readings()
    again = {ZERO: Reading("new id", 0, 1), ONE: Reading("id", 0, 2, read_from=RangeStart(None))}
    for partition in again:
        readings.polled(partition, polled(9, owner()))
    readings.sent(again)
    for partition, reading in again.items():
        readings.took(partition, reading)

    readings.decided(again, committed=False)

    assert readings.by_partition == again


def test_what_a_rebalance_took_while_a_transaction_had_it_is_lost_when_it_aborts() -> None:
    readings = Readings()
    readings.polled(ZERO, polled(3, owner()))
    readings.sent([ZERO])
    readings.give_up([ZERO])

    readings.decided([ZERO], committed=False)

    assert readings.lost(owner()) == [ZERO]


def test_range_takes_the_place_of_what_was_polled_and_is_told_apart() -> None:
    readings = Readings()
    readings.polled(ZERO, polled(3, owner()))
    readings.polled(ONE, polled(3, owner()))

    readings.took(ZERO, Reading("id", 0, 9, owner(), RangeStart(None)))

    assert list(readings.ranges) == [ZERO]
    readings.drop([ZERO, ONE, ZERO])
    assert readings.by_partition == {}


def test_losses_are_told_though_the_consumer_polls_on_meanwhile() -> None:
    """A producer asks in a thread of its own."""
    readings = Readings()

    class Owner:
        """Whose look lets the consumer drop a partition."""

        member_id = "gone"
        ownership: Mapping[tuple[str, int], int] = {}

        def __getattribute__(self, name: str) -> object:
            readings.by_partition.pop(ONE, None)
            return object.__getattribute__(self, name)

    for partition in (ZERO, ONE):
        readings.polled(partition, Reading("0" * 32, 0, 3, Owner()))  # type: ignore[arg-type]

    assert set(readings.losses(GroupMetadata("g", "now", 2))) == {tuple(ZERO), tuple(ONE)}
