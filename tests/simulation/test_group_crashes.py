"""Kills at every storage call of what groups and their admins do, then another process, then the same call again.

PROTOCOL.md §11 says what is true at each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

import pytest

from tests.simulation.site import TWO_COLUMNS, Site, published
from tests.simulation.test_crashes import TIMEOUT_MS, kills, prepared, recover
from tests.unit.admin.group_members import SESSION_MS, joined
from txntable.coordinator.group import GroupTopic
from txntable.coordinator.group_request import MemberAssignment
from txntable.coordinator.group_state import GroupState
from txntable.errors import GroupIdNotFoundError, UnknownTopicOrPartitionError
from txntable.format.records import TopicPartition
from txntable.groups.group_client import GroupClient
from txntable.groups.member_config import MemberConfig
from txntable.offsets.group_commit import GroupCommit, OffsetAndMetadata, new_offsets
from txntable.warehouse.warehouse import Warehouse

GROUP = "g"
IN, IN_1 = TopicPartition("debit", 0), TopicPartition("debit", 1)


# -- operations ---------------------------------------------------------------------------------


def copy(warehouse: Warehouse) -> None:
    """Copy what the group has not copied yet, up to two records; the output and the offset are one transaction."""
    producer = warehouse.producer("copier", transaction_timeout_ms=TIMEOUT_MS)
    producer.init_transactions()
    done = committed(warehouse)
    producer.begin_transaction()
    for number in range(done, 2):
        producer.send("credit", row={"account": f"copy {number}", "amount": 1})
    producer.send_offsets_to_transaction({IN: OffsetAndMetadata(2)}, GROUP)
    producer.commit_transaction()
    producer.close()


def abort_copy(warehouse: Warehouse) -> None:
    producer = warehouse.producer("copier", transaction_timeout_ms=TIMEOUT_MS)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send_offsets_to_transaction({IN: OffsetAndMetadata(9)}, GROUP)
    producer.abort_transaction()


def commit_plain(warehouse: Warehouse) -> None:
    topics = {"debit": warehouse.topic_log("debit").settings()}
    client_of(warehouse).commit(GroupCommit(GROUP, new_offsets({IN: 1, IN_1: 1}, topics)))


def join(warehouse: Warehouse, member_id: str = "b") -> MemberAssignment:
    client, topics = client_of(warehouse), topics_of(warehouse)
    client.beat(GROUP, member_id)
    return client.join(MemberConfig(GROUP), member_id, topics)


def release(warehouse: Warehouse) -> MemberAssignment:
    client = client_of(warehouse)
    (assignment,) = assignments(warehouse, "a")
    return client.release(assignment.metadata, [TopicPartition(*each) for each in assignment.to_release])


def leave(warehouse: Warehouse) -> None:
    with suppress(ValueError):
        (assignment,) = assignments(warehouse, "a")
        client_of(warehouse).leave(assignment.metadata)


def expel(warehouse: Warehouse) -> None:
    warehouse.offsets.refresh()
    client_of(warehouse).expel(GROUP)


def refresh(warehouse: Warehouse) -> None:
    warehouse.offsets.refresh()
    client_of(warehouse).refresh(GROUP, topics_of(warehouse))


def reset(warehouse: Warehouse) -> None:
    warehouse.admin().alter_consumer_group_offsets(GROUP, {IN: 1, IN_1: 1})


def delete_offsets(warehouse: Warehouse) -> None:
    with suppress(GroupIdNotFoundError):
        warehouse.admin().delete_consumer_group_offsets(GROUP, [IN, IN_1])


def delete_group(warehouse: Warehouse) -> None:
    warehouse.admin().delete_consumer_groups([GROUP])


def delete_topic(warehouse: Warehouse) -> None:
    with suppress(UnknownTopicOrPartitionError):
        warehouse.admin().delete_topic("debit")


# -- sites --------------------------------------------------------------------------------------


def site_with_input() -> Site:
    site = prepared()
    with site.open().producer() as producer:
        for number in range(2):
            producer.send("debit", row={"account": str(number), "amount": 1}, partition=0)
    return site


def site_with_offsets() -> Site:
    site = prepared()
    reset(site.open())
    return site


def site_with_member() -> Site:
    site = prepared()
    joined(site.open(), "a", GROUP, topic="debit")
    return site


def site_with_two_members() -> Site:
    site = site_with_member()
    joined(site.open(), "b", GROUP, topic="debit")
    return site


def site_with_silent_member() -> Site:
    site = site_with_member()
    site.advance_ms(SESSION_MS + 1)
    return site


def site_with_topic_created_again() -> Site:
    site = site_with_member()
    admin = site.open().admin()
    admin.delete_topic("debit")
    admin.create_topic("debit", partitions=3, schema=TWO_COLUMNS)
    return site


# -- what is there ------------------------------------------------------------------------------


def client_of(warehouse: Warehouse) -> GroupClient:
    return GroupClient(warehouse.offsets, warehouse.completer)


def topics_of(warehouse: Warehouse) -> Mapping[str, GroupTopic]:
    settings = warehouse.topic_log("debit").settings()
    return {"debit": GroupTopic(settings.topic_id, settings.partitions)}


def assignments(warehouse: Warehouse, *member_ids: str) -> list[MemberAssignment]:
    """What the members of these ids have, as far as they are members."""
    warehouse.offsets.refresh()
    row = warehouse.offsets.group(GROUP)
    found = [each for each in member_ids if row is not None and each in row.members]
    return [join_again(warehouse, each) for each in found]


def join_again(warehouse: Warehouse, member_id: str) -> MemberAssignment:
    """The same join once more writes nothing, and answers."""
    row = warehouse.offsets.group(GROUP)
    assert row is not None
    return joined(warehouse, member_id, GROUP, topic="debit")


def owners(site: Site) -> dict[str, int]:
    """How many partitions each member owns."""
    described = site.open().admin().describe_consumer_groups([GROUP])[GROUP]
    return {member.member_id: len(member.assignment) for member in described.members}


def committed(warehouse: Warehouse, partition: TopicPartition = IN) -> int:
    found = warehouse.admin().list_consumer_group_offsets(GROUP, [partition])[partition]
    return 0 if found is None else found.offset


def offsets(site: Site) -> tuple[int, int]:
    warehouse = site.open()
    return committed(warehouse), committed(warehouse, IN_1)


def copies(site: Site) -> list[str]:
    return sorted(row["account"] for row in published(site.open(), "credit"))


# -- transactions -------------------------------------------------------------------------------


def test_copy_and_its_offset_are_one_wherever_it_dies_and_its_rerun_makes_it_exactly_once() -> None:
    outcomes = set()
    for crashed, where in kills(site_with_input(), copy):
        recover(crashed)
        assert len(copies(crashed)) == committed(crashed.open()), where
        outcomes.add(committed(crashed.open()))

        copy(crashed.open())

        assert copies(crashed) == ["copy 0", "copy 1"], where
        assert committed(crashed.open()) == 2, where
    assert outcomes == {0, 2}, "the kills must lie on both sides of the decision"


def test_aborted_offset_never_counts_and_is_not_left_pending_wherever_it_dies() -> None:
    for crashed, where in kills(site_with_input(), abort_copy):
        other = recover(crashed)

        assert committed(other) == 0, where
        assert not other.offsets.log.fold.pending, where
        assert not other.offsets.names(), where


def test_plain_commit_of_several_partitions_is_whole_or_nothing_wherever_it_dies() -> None:
    seen = set()
    for crashed, where in kills(prepared(), commit_plain):
        seen.add(offsets(crashed))
        commit_plain(crashed.open())
        assert offsets(crashed) == (1, 1), where
    assert seen == {(0, 0), (1, 1)}


# -- members ------------------------------------------------------------------------------------


def test_join_killed_anywhere_leaves_the_others_theirs_and_is_made_again() -> None:
    for crashed, where in kills(site_with_member(), join):
        assert owners(crashed) in ({"a": 2}, {"a": 2, "b": 0}), where

        join(crashed.open())

        release(crashed.open())
        assert owners(crashed) == {"a": 1, "b": 1}, where


def test_release_killed_anywhere_gives_a_partition_to_nobody_or_to_its_next_owner() -> None:
    seen = []
    for crashed, where in kills(site_with_two_members(), release):
        seen.append(owners(crashed))
        release(crashed.open())
        assert owners(crashed) == {"a": 1, "b": 1}, where
    assert all(each in ({"a": 2, "b": 0}, {"a": 1, "b": 1}) for each in seen)


def test_leave_killed_anywhere_is_finished_by_the_same_call_or_by_the_session_timeout() -> None:
    for crashed, where in kills(site_with_two_members(), leave):
        crashed.advance_ms(SESSION_MS - 1_000)
        joined(crashed.open(), "b", GROUP, topic="debit")
        crashed.advance_ms(2_000)

        expel(crashed.open())

        assert owners(crashed) == {"b": 2}, where


@pytest.mark.parametrize(
    ("make", "operation"), [(site_with_silent_member, expel), (site_with_topic_created_again, refresh)]
)
def test_change_by_anyone_killed_anywhere_is_finished_by_another(
    make: Callable[[], Site], operation: Callable[[Warehouse], None]
) -> None:
    whole = make()
    operation(whole.open())
    expected = owners(whole)
    for crashed, where in kills(make(), operation):
        operation(crashed.open())
        assert owners(crashed) == expected, where
    assert expected in ({}, {"a": 3})


# -- admins -------------------------------------------------------------------------------------


def test_reset_killed_anywhere_moves_all_or_none_and_is_finished_by_the_same_call() -> None:
    for crashed, where in kills(prepared(), reset):
        assert offsets(crashed) in {(0, 0), (1, 1)}, where
        reset(crashed.open())
        assert offsets(crashed) == (1, 1), where


@pytest.mark.parametrize("operation", [delete_offsets, delete_group, delete_topic])
def test_deletion_killed_anywhere_is_finished_by_the_same_call_or_by_the_job(
    operation: Callable[[Warehouse], None],
) -> None:
    for crashed, where in kills(site_with_offsets(), operation):
        assert offsets(crashed) in {(0, 0), (1, 1)}, where

        operation(crashed.open())
        crashed.open().coordinator().run_once()

        left = crashed.open()
        left.offsets.refresh()
        assert left.offsets.names() == [], where


def test_group_without_members_stays_empty_wherever_the_removal_of_its_last_one_dies() -> None:
    def remove(warehouse: Warehouse) -> None:
        warehouse.admin().remove_members_from_consumer_group(GROUP)

    for crashed, where in kills(site_with_member(), remove):
        remove(crashed.open())
        found = crashed.open().admin().describe_consumer_groups([GROUP])[GROUP]
        assert found.state is GroupState.EMPTY, where
