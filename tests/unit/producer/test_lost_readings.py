"""Offsets that leave out what a consumer has read and lost, by what the producer knows of offsets."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from txntable.coordinator.assignment import NamedPartition
from txntable.coordinator.group_request import GroupMetadata, Loss
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

    def has_joined_since(self) -> bool:
        return False

    def losses(self) -> Mapping[NamedPartition, Loss]:
        return self.lost

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


def test_metadata_can_be_compared_and_hashed_whatever_is_lost() -> None:
    plain, told = GroupMetadata("g", "m", 2), GroupMetadata("g", "m", 2, reader=Reader(READ_AND_LOST))

    assert len({plain, told}) == 1
