"""Offsets that leave out what a consumer has read and lost, by what the producer knows of offsets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import pytest

from txntable.coordinator.assignment import NamedPartition
from txntable.coordinator.group_request import GroupMetadata, Loss, Rewind
from txntable.coordinator.offset_request import NewOffset
from txntable.errors import StaleMemberEpochError
from txntable.offsets.group_commit import GroupCommit
from txntable.producer.lost_readings import LostReadings

KEPT, LOST = ("in", 0), ("in", 1)
READ_AND_LOST = {LOST: Loss("m", 5)}


class Reader:
    """A consumer that has lost something."""

    def __init__(self, lost: Mapping[NamedPartition, Loss]) -> None:
        self.lost, self.refusals = lost, 0
        self.lost_before: Mapping[NamedPartition, Loss] = {}
        self.went_back: list[Rewind] = []
        self.told: dict[NamedPartition, int] = {}

    def has_joined_since(self) -> bool:
        return False

    def losses(self) -> Mapping[NamedPartition, Loss]:
        return self.lost

    def losses_before_a_rewind(self) -> Mapping[NamedPartition, Loss]:
        return self.lost_before

    def rewinds(self) -> Collection[Rewind]:
        return self.went_back

    def committed(self, offsets: Mapping[NamedPartition, int]) -> None:
        self.told |= offsets

    def refused(self) -> None:
        self.refusals += 1


def commit(
    lost: Mapping[NamedPartition, Loss] = READ_AND_LOST, *, lost_too: int | None = None, member: str = "m"
) -> GroupCommit:
    """Positions of what is kept, and perhaps of what is lost."""
    offsets: Mapping[NamedPartition, int] = {KEPT: 3} if lost_too is None else {KEPT: 3, LOST: lost_too}
    metadata = GroupMetadata("g", member, 2, reader=Reader(lost))
    return GroupCommit("g", {each: NewOffset(offset, "0" * 32) for each, offset in offsets.items()}, metadata)


def refuse(readings: LostReadings, offered: GroupCommit) -> None:
    with pytest.raises(StaleMemberEpochError) as refused:
        readings.check(offered)
    assert refused.value.facts["partitions"] == "in-1"


def send(readings: LostReadings, offered: GroupCommit) -> None:
    readings.check(offered)
    readings.sent(offered)


@pytest.fixture
def readings() -> LostReadings:
    readings = LostReadings()
    readings.begun()
    return readings


def test_offsets_are_refused_as_often_as_the_consumer_tells_of_the_loss(readings: LostReadings) -> None:
    for _ in range(3):
        refuse(readings, commit())


def test_refusal_is_told_to_the_consumer(readings: LostReadings) -> None:
    reader = Reader(READ_AND_LOST)

    with pytest.raises(StaleMemberEpochError):
        readings.check(GroupCommit("g", {}, GroupMetadata("g", "m", 2, reader=reader)))

    assert reader.refusals == 1


def test_offset_of_what_is_lost_is_for_the_log_to_refuse(readings: LostReadings) -> None:
    readings.check(commit(lost_too=5))


def test_offsets_without_a_member_are_not_checked(readings: LostReadings) -> None:
    readings.check(GroupCommit("g", {}))


@pytest.mark.parametrize(("sent", "refused"), [(4, True), (5, False), (6, False)], ids=["less", "all", "past a marker"])
@pytest.mark.parametrize("earlier", [False, True], ids=["this transaction", "one that has committed"])
def test_partition_may_be_left_out_whose_end_was_sent(
    readings: LostReadings, sent: int, refused: bool, earlier: bool
) -> None:
    send(readings, commit({}, lost_too=sent))
    if earlier:
        readings.committed()
        readings.begun()

    (refuse if refused else send)(readings, commit())


def test_offset_of_a_transaction_that_was_aborted_does_not_count(readings: LostReadings) -> None:
    send(readings, commit({}, lost_too=5))
    readings.begun()

    refuse(readings, commit())


def test_offset_that_another_member_has_sent_does_not_count(readings: LostReadings) -> None:
    """It has read the partition again."""
    send(readings, commit({}, lost_too=5, member="another"))

    refuse(readings, commit())


def test_offset_counts_that_the_consumer_has_sent_before_it_joined_again(readings: LostReadings) -> None:
    send(readings, commit({}, lost_too=5))
    readings.committed()
    readings.begun()

    send(readings, commit(member="the same under a new id"))


Step = Callable[[LostReadings], object]
ABORT, COMMIT, BEGIN = LostReadings.aborted, LostReadings.committed, LostReadings.begun


@pytest.mark.parametrize(
    ("steps", "refused"),
    [
        ([BEGIN, ABORT, None, BEGIN], False),
        ([None, BEGIN], False),
        ([None, BEGIN, ABORT, BEGIN, COMMIT, BEGIN], False),
        ([BEGIN, None, ABORT, BEGIN], True),
        ([BEGIN, ABORT, BEGIN, None], True),
        ([BEGIN, COMMIT, None, BEGIN], True),
    ],
    ids=["after an abort", "before the first", "then others", "before the abort", "too late", "after a commit"],
)
@pytest.mark.parametrize("has_it_again", [False, True])
def test_loss_before_a_rewind_is_settled_where_the_producer_held_nothing(
    steps: list[Step | None], refused: bool, has_it_again: bool
) -> None:
    numbers = iter(range(10, 100))
    readings = LostReadings(lambda: next(numbers))
    reader = Reader({})
    reader.lost_before = {LOST: Loss("m", 5, at=9)}
    for step in steps:
        if step is None:
            reader.went_back = [Rewind(next(numbers), next(numbers))]
        else:
            step(readings)
    offsets = {LOST: NewOffset(7, "0" * 32)} if has_it_again else {}

    (refuse if refused else send)(readings, GroupCommit("g", offsets, GroupMetadata("g", "m", 2, reader=reader)))

    assert reader.refusals == refused


def test_loss_after_the_rewind_is_refused() -> None:
    numbers = iter(range(10, 100))
    readings = LostReadings(lambda: next(numbers))
    reader = Reader({})
    reader.went_back = [Rewind(next(numbers), next(numbers))]
    readings.begun()
    for at, checked in ((9, send), (99, refuse)):
        reader.lost_before = {LOST: Loss("m", 5, at)}
        checked(readings, GroupCommit("g", {}, GroupMetadata("g", "m", 2, reader=reader)))


def test_what_was_given_up_is_remembered_when_the_consumer_tells_of_its_rewind_no_more() -> None:
    readings, reader = LostReadings(), Reader({})
    reader.lost_before, reader.went_back = {LOST: Loss("m", 5, at=1)}, [Rewind(2, 3)]
    offered = GroupCommit("g", {}, GroupMetadata("g", "m", 2, reader=reader))
    readings.begun()
    send(readings, offered)
    reader.went_back = []

    send(readings, offered)


def test_offsets_that_have_committed_are_told_to_the_consumer(readings: LostReadings) -> None:
    offered = commit({}, lost_too=5)
    send(readings, offered)
    assert offered.member is not None
    reader = offered.member.reader
    assert isinstance(reader, Reader)
    assert reader.told == {}

    readings.committed()

    assert reader.told == {KEPT: 3, LOST: 5}


def test_metadata_can_be_compared_and_hashed_whatever_is_lost() -> None:
    plain, told = GroupMetadata("g", "m", 2), GroupMetadata("g", "m", 2, reader=Reader(READ_AND_LOST))

    assert len({plain, told}) == 1
