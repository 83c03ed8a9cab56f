"""Rows of groups: what is written is read back, nothing else is read, and no row contradicts itself."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.unit.coordinator.groups import FLIGHTS, GroupLog, of_flights
from txntable.coordinator.assignors import Assignor
from txntable.coordinator.errors import (
    DamagedDataError,
    GroupMaxSizeReachedError,
    IllegalStateError,
    InvalidRequestError,
    TxnTableError,
    UnsupportedFormatError,
)
from txntable.coordinator.group import GroupRow, GroupTopic, empty_group
from txntable.coordinator.group_member import GroupMember
from txntable.coordinator.group_state import GroupOperation, GroupState

GOLDEN = (
    '{"v":1,"group":"g","generation":2,"state":"RECONCILING","assignor":"sticky",'
    f'"topics":{{"flights":{{"topic_id":"{FLIGHTS}","partitions":6}}}},'
    '"members":['
    '{"member_id":"m1","client_id":"c","host":"h","topics":["flights"],"assignors":["sticky"],'
    '"session_timeout_ms":10000,"joined_ms":1000,"joined_generation":1,'
    '"owned":{"flights":{"1":"0-5"}},"target":{"flights":"0-2"}},'
    '{"member_id":"m2","instance_id":"i","client_id":"","host":"","topics":["flights"],"assignors":["sticky"],'
    '"session_timeout_ms":10000,"joined_ms":1000,"joined_generation":2,"target":{"flights":"3-5"}}'
    '],"position":2}'
)


@pytest.fixture
def row() -> GroupRow:
    """m1 owns all six partitions and is to release three of them to m2."""
    log = GroupLog()
    log.join("m1", client_id="c", host="h")
    log.join("m2", instance_id="i")
    assert log.row is not None
    return log.row


def test_group_row_has_this_spelling_and_reads_as_written(row: GroupRow) -> None:
    assert row.to_json() == GOLDEN
    assert GroupRow.from_json(GOLDEN) == row
    assert row.key == '["g"]'


def test_empty_group_reads_as_written() -> None:
    row = replace(empty_group("g"), generation=3, position=9)

    assert row.to_json() == '{"v":1,"group":"g","generation":3,"state":"EMPTY","position":9}'
    assert GroupRow.from_json(row.to_json()) == row


def test_ownership_epochs_are_kept_for_each_partition(row: GroupRow) -> None:
    owned = {("flights", partition): 1 + partition % 2 for partition in range(6)}
    mixed = replace(row, members={**row.members, "m1": replace(row.members["m1"], owned=owned)})

    assert json.loads(mixed.to_json())["members"][0]["owned"] == {"flights": {"1": "0,2,4", "2": "1,3,5"}}
    assert GroupRow.from_json(mixed.to_json()) == mixed


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ('"v":1', '"v":2', UnsupportedFormatError),
        ('"position":2', '"position":2,"leader":"m1"', UnsupportedFormatError),
        ('"host":"h"', '"host":"h","rack":"r"', UnsupportedFormatError),
        ('"assignor":"sticky"', '"assignor":"uniform"', UnsupportedFormatError),
        ('"assignors":["sticky"]', '"assignors":["uniform"]', UnsupportedFormatError),
        ('"assignors":["sticky"]', '"assignors":[1]', DamagedDataError),
        ('"topics":["flights"]', '"topics":[null]', DamagedDataError),
        ('"state":"RECONCILING"', '"state":"DEAD"', DamagedDataError),
        ('"state":"RECONCILING"', '"state":"ASSIGNING"', DamagedDataError),
        ('"state":"RECONCILING"', '"state":"STABLE"', DamagedDataError),
        ('"group":"g"', '"group":""', DamagedDataError),
        ('"member_id":"m1"', '"member_id":"m3"', DamagedDataError),
        ('"member_id":"m2"', '"member_id":"m1"', DamagedDataError),
        ('"member_id":"m1"', '"member_id":""', DamagedDataError),
        ('"instance_id":"i"', '"instance_id":""', DamagedDataError),
        ('"1":"0-5"', '"1":"0,1-5"', DamagedDataError),
        ('"1":"0-5"', '"-1":"0-5"', DamagedDataError),
        ('"1":"0-5"', '"3":"0-5"', DamagedDataError),
        ('{"1":"0-5"}', '"0-5"', DamagedDataError),
        ('"1":"0-5"', '"1":5', DamagedDataError),
        ('"joined_generation":2', '"joined_generation":3', DamagedDataError),
        ('"target":{"flights":"0-2"}', '"target":{"flights":"0-3"}', DamagedDataError),
        ('"1":"0-5"', '"1":"0-4"', DamagedDataError),
        ('"partitions":6', '"partitions":5', DamagedDataError),
        (f'"flights":{{"topic_id":"{FLIGHTS}"', f'"other":{{"topic_id":"{FLIGHTS}"', DamagedDataError),
        ('"assignor":"sticky",', "", DamagedDataError),
    ],
)
def test_stored_group_is_refused_when_the_format_does_not_have_it(
    old: str, new: str, error: type[TxnTableError]
) -> None:
    assert old in GOLDEN

    with pytest.raises(error):
        GroupRow.from_json(GOLDEN.replace(old, new))


def test_partition_with_two_owners_is_damage(row: GroupRow) -> None:
    members = {**row.members, "m2": replace(row.members["m2"], owned={("flights", 0): 1})}

    with pytest.raises(DamagedDataError, match="a partition has one owner"):
        replace(row, members=members)


def test_instance_id_of_two_members_is_damage(row: GroupRow) -> None:
    members = {**row.members, "m1": replace(row.members["m1"], instance_id="i")}

    with pytest.raises(DamagedDataError, match="no instance id is there twice"):
        replace(row, members=members)


def test_group_tells_its_subscriptions_and_members_what_they_owe_and_await(row: GroupRow) -> None:
    assert row.subscribed_topics == {"flights"}
    assert sorted(row.members["m1"].to_release) == sorted(row.members["m2"].awaited) == of_flights(3, 4, 5)


def test_dead_group_is_removed_and_never_written() -> None:
    dead = replace(empty_group("g"), position=3).moved(GroupOperation.DELETE, 4)

    assert (dead.state, dead.position) == (GroupState.DEAD, 4)
    with pytest.raises(IllegalStateError, match="removed, not written"):
        dead.to_json()


def test_row_is_never_written_at_or_below_the_version_it_was_read_from(row: GroupRow) -> None:
    with pytest.raises(IllegalStateError, match="position=2 read=2"):
        row.moved(GroupOperation.JOIN, 2)


def test_group_without_a_name_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="a group"):
        empty_group("")


def test_row_that_would_be_too_large_is_refused_before_it_is_written() -> None:
    topics = tuple(f"topic-{number:05}-{'x' * 200}" for number in range(5_000))
    member = GroupMember("m1", topics, (Assignor.RANGE,), 10_000, 0, 1)
    row = GroupRow("g", 1, GroupState.STABLE, 1, Assignor.RANGE, {"t": GroupTopic(FLIGHTS, 1)}, {"m1": member})

    with pytest.raises(GroupMaxSizeReachedError, match="largest_bytes=1048576"):
        row.to_json()
