"""Offsets that leave out what a consumer has read and lost, by what the producer knows of the consumer's polls."""

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


def commit(polls: int, *, read_in: int | None = 1, reader: str = "m", lost_too: int | None = None) -> GroupCommit:
    """Positions after so many polls: of what is kept, and perhaps of the partition that poll `read_in` read."""
    lost = {} if read_in is None else {LOST: Loss(reader, 5, read_in)}
    offsets: Mapping[NamedPartition, int] = {KEPT: 3} if lost_too is None else {KEPT: 3, LOST: lost_too}
    member = GroupMetadata("g", "m", 2, lost=lost, polls=polls)
    return GroupCommit("g", {each: NewOffset(offset, "0" * 32) for each, offset in offsets.items()}, member)


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


def test_offsets_are_refused_however_many_polls_lie_between_the_loss_and_them(readings: LostReadings) -> None:
    for polls in (2, 3, 9):
        refuse(LostReadings(), commit(polls))


def test_offsets_are_refused_again_until_the_consumer_has_polled_on(readings: LostReadings) -> None:
    refuse(readings, commit(3))
    readings.begun()
    refuse(readings, commit(3))

    readings.begun()
    send(readings, commit(4))


def test_loss_that_comes_later_is_refused_though_an_earlier_one_was(readings: LostReadings) -> None:
    refuse(readings, commit(3))

    refuse(readings, commit(4, read_in=4))


def test_offset_of_what_is_lost_is_for_the_log_to_refuse(readings: LostReadings) -> None:
    readings.check(commit(3, lost_too=5))


def test_offsets_without_a_member_are_not_checked(readings: LostReadings) -> None:
    readings.check(GroupCommit("g", {}))


@pytest.mark.parametrize(("sent", "refused"), [(4, True), (5, False), (6, False)], ids=["less", "all", "past a marker"])
def test_partition_whose_offset_the_transaction_has_already_may_be_left_out(
    readings: LostReadings, sent: int, refused: bool
) -> None:
    send(readings, commit(1, read_in=None, lost_too=sent))

    (refuse if refused else send)(readings, commit(3))


def test_offset_of_an_earlier_transaction_does_not_count(readings: LostReadings) -> None:
    send(readings, commit(1, read_in=None, lost_too=5))
    readings.begun()

    refuse(readings, commit(3))


@pytest.mark.parametrize(("read_in", "refused"), [(1, False), (2, False), (3, True)])
def test_what_was_read_before_the_last_commit_is_of_an_earlier_transaction(
    readings: LostReadings, read_in: int, refused: bool
) -> None:
    send(readings, commit(2, read_in=None))
    readings.committed()
    readings.begun()

    (refuse if refused else send)(readings, commit(5, read_in=read_in))


def test_what_was_read_before_an_abort_may_be_at_hand_still(readings: LostReadings) -> None:
    send(readings, commit(2, read_in=None))
    readings.begun()

    refuse(readings, commit(3, read_in=1))


def test_polls_of_another_member_do_not_count(readings: LostReadings) -> None:
    send(readings, commit(2, read_in=None))
    readings.committed()
    readings.begun()

    refuse(readings, commit(3, read_in=1, reader="another"))
