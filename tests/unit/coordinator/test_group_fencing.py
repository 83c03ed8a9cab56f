"""Who may commit: ownership since the read, whatever else happened to the group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.unit.coordinator.groups import GroupLog, of_flights
from txntable.coordinator.errors import (
    FencedInstanceIdError,
    GroupIdNotFoundError,
    IllegalGenerationError,
    StaleMemberEpochError,
    TxnTableError,
    UnknownMemberIdError,
)
from txntable.coordinator.group_fencing import check_member
from txntable.coordinator.group_request import GroupMetadata


@pytest.fixture
def log() -> GroupLog:
    """m1 owns 0-2 of flights, m2 3-5; generation 2."""
    log = GroupLog()
    log.join("m1")
    log.join("m2")
    log.release("m1")
    return log


def elsewhere(log: GroupLog) -> None:
    """A third member joins, and takes a partition of each of the others."""
    log.join("m3")
    log.release_all()


def lost_and_back(log: GroupLog) -> None:
    """m1 loses partition 2 to a third member, and has it back when that leaves."""
    elsewhere(log)
    log.leave("m3")


@pytest.mark.parametrize("transactional", [True, False])
@pytest.mark.parametrize(
    ("then", "partitions", "error"),
    [
        (lambda log: None, (0, 1, 2), None),
        (lambda log: None, (0, 3), StaleMemberEpochError),
        (lambda log: None, (6,), StaleMemberEpochError),
        (lambda log: log.join("m3"), (0, 1, 2), None),
        (elsewhere, (0, 1), None),
        (elsewhere, (2,), StaleMemberEpochError),
        (lost_and_back, (0, 1), None),
        (lost_and_back, (2,), StaleMemberEpochError),
        (lambda log: log.leave("m2"), (0, 1, 2), None),
        (lambda log: log.leave("m2"), (3,), StaleMemberEpochError),
        (lambda log: log.leave("m1"), (0,), UnknownMemberIdError),
        (lambda log: log.expel({"m2": 99_000}, 99_000), (0,), UnknownMemberIdError),
    ],
)
def test_member_commits_what_it_has_owned_without_a_break_since_it_read(
    log: GroupLog,
    then: Callable[[GroupLog], object],
    partitions: tuple[int, ...],
    error: type[TxnTableError] | None,
    transactional: bool,
) -> None:
    frozen = log.metadata("m1")

    then(log)

    if error is None:
        check_member(log.row, frozen, of_flights(*partitions), transactional=transactional)
        return
    with pytest.raises(error) as caught:
        check_member(log.row, frozen, of_flights(*partitions), transactional=transactional)
    assert caught.value.txn_requires_abort


def test_member_commits_what_it_has_back_once_it_has_read_it_again(log: GroupLog) -> None:
    lost_and_back(log)

    check_member(log.row, log.metadata("m1"), of_flights(0, 1, 2), transactional=True)


def test_member_commits_what_it_is_to_release_until_it_has_released_it(log: GroupLog) -> None:
    frozen = log.metadata("m1")
    log.join("m3")

    check_member(log.row, frozen, of_flights(2), transactional=False)
    log.release("m1")
    with pytest.raises(StaleMemberEpochError, match="ownership_epoch=1 generation=2 current_generation=3"):
        check_member(log.row, frozen, of_flights(2), transactional=False)


@pytest.mark.parametrize(("generation", "partition", "accepted"), [(1, 0, True), (1, 2, False), (4, 2, True)])
def test_metadata_without_ownership_commits_what_is_owned_since_its_generation(
    log: GroupLog, generation: int, partition: int, accepted: bool
) -> None:
    lost_and_back(log)
    metadata = GroupMetadata("g", "m1", generation)

    if accepted:
        check_member(log.row, metadata, of_flights(partition), transactional=True)
        return
    with pytest.raises(StaleMemberEpochError):
        check_member(log.row, metadata, of_flights(partition), transactional=True)


def test_metadata_of_a_generation_that_the_group_has_not_had_is_refused(log: GroupLog) -> None:
    invented = replace(log.metadata("m1"), generation=3)

    with pytest.raises(IllegalGenerationError, match="generation=3 current_generation=2"):
        check_member(log.row, invented, of_flights(0), transactional=True)


@pytest.mark.parametrize(
    ("then", "partition", "told"),
    [
        (
            lambda log: None,
            3,
            "does not own the partition, whose owner reads from what is committed",
        ),
        (lambda log: log.leave("m2"), 3, "has got the partition since; ask for its group metadata again"),
        (elsewhere, 2, "has not owned the partition since it read it; read again"),
        (lost_and_back, 2, "has not owned the partition since it read it; read again"),
    ],
)
def test_refusal_says_what_to_do_about_a_partition_that_was_lost_gained_or_never_owned(
    log: GroupLog, then: Callable[[GroupLog], object], partition: int, told: str
) -> None:
    frozen = log.metadata("m1")
    then(log)

    with pytest.raises(StaleMemberEpochError, match=told):
        check_member(log.row, frozen, of_flights(partition), transactional=True)


def test_static_member_that_was_replaced_is_fenced_and_its_successor_commits(log: GroupLog) -> None:
    log.join("m3", instance_id="i")
    log.release_all()
    frozen = log.metadata("m3", "i")
    log.join("m4", instance_id="i")
    mine = log.owned["m4"]

    check_member(log.row, log.metadata("m4", "i"), mine, transactional=True)
    with pytest.raises(FencedInstanceIdError):
        check_member(log.row, frozen, mine, transactional=True)


@pytest.mark.parametrize(
    ("members", "transactional", "error"),
    [
        (None, False, None),
        (None, True, None),
        (0, False, None),
        (0, True, None),
        (2, False, UnknownMemberIdError),
        (2, True, None),
    ],
)
def test_who_is_no_member_commits_plainly_only_while_the_group_has_none(
    log: GroupLog, members: int | None, transactional: bool, error: type[TxnTableError] | None
) -> None:
    if members == 0:
        log.leave("m1")
        log.leave("m2")
    row = None if members is None else log.row

    if error is None:
        check_member(row, None, of_flights(0), transactional=transactional)
        return
    with pytest.raises(error):
        check_member(row, None, of_flights(0), transactional=transactional)


def test_member_of_a_group_that_is_gone_is_refused(log: GroupLog) -> None:
    with pytest.raises(GroupIdNotFoundError):
        check_member(None, log.metadata("m1"), of_flights(0), transactional=True)
