"""The coordinator job and groups: offsets that nobody goes on from, topics that are gone, members that are silent."""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

import pytest

from tests.doubles.fault_plan import Fault, Operation, on
from tests.simulation.site import TWO_COLUMNS, Site
from tests.unit.admin.group_members import IN, SESSION_MS, committed_offset, joined, sent, site_with_topics
from tests.unit.upkeep.coordinating import run_once
from txntable.coordinator.group_state import GroupState
from txntable.errors import CommitStateUnknownError, InvalidConfigError
from txntable.format.layout import commit_path, heartbeat_path
from txntable.format.records import TopicPartition
from txntable.format.warehouse_settings import WarehouseSettings
from txntable.groups.heartbeats import beat
from txntable.upkeep import offset_expiration
from txntable.upkeep.transaction_coordinator import CoordinatorConfig
from txntable.warehouse.warehouse import Warehouse

RETENTION_MS = WarehouseSettings().offsets_retention_ms
OUT = TopicPartition("out", 0)
O_ENTRIES = "system/offset_log/_delta_log"


@pytest.fixture
def site() -> Site:
    return site_with_topics()


def commit(warehouse: Warehouse, group: str = "g", offset: int = 5, partition: TopicPartition = IN) -> None:
    assert warehouse.admin().alter_consumer_group_offsets(group, {partition: offset}) == {partition: None}


def keep_alive(site: Site, member_id: str = "m", group: str = "g") -> None:
    beat(site.store(), group, member_id)


# -- expiry of offsets --------------------------------------------------------------------------


def test_offsets_expire_when_they_are_as_old_as_the_retention_and_not_before(site: Site) -> None:
    commit(site.open(), "old")
    site.advance_ms(RETENTION_MS - 1_000)
    commit(site.open(), "young")

    assert run_once(site).expired_offsets == 0
    site.advance_ms(1_000)
    report = run_once(site)

    assert (report.expired_offsets, report.expired_groups) == (1, 0)
    assert (committed_offset(site, group="old"), committed_offset(site, group="young")) == (None, 5)
    assert not run_once(site).did_something


def test_empty_group_goes_with_its_last_offset_that_long_after_it_became_empty(site: Site) -> None:
    warehouse = site.open()
    commit(warehouse)
    joined(warehouse)
    site.advance_ms(RETENTION_MS)
    keep_alive(site)
    assert run_once(site).expired_offsets == 0
    site.open().admin().remove_members_from_consumer_group("g")

    site.advance_ms(RETENTION_MS - 1_000)
    assert run_once(site).expired_offsets == 0
    site.advance_ms(1_000)
    report = run_once(site)

    assert (report.expired_offsets, report.expired_groups) == (1, 1)
    assert site.open().admin().list_consumer_groups() == []


def test_offsets_of_topics_that_no_member_subscribes_to_expire_while_the_group_lives(site: Site) -> None:
    warehouse = site.open()
    commit(warehouse)
    commit(warehouse, partition=OUT)
    joined(warehouse)
    site.advance_ms(RETENTION_MS)
    keep_alive(site)

    assert run_once(site).expired_offsets == 1

    assert list(site.open().admin().list_consumer_group_offsets("g")) == [IN]


def test_pending_offsets_never_expire(site: Site) -> None:
    producer = site.open().producer("etl", transaction_timeout_ms=900_000)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send_offsets_to_transaction({IN: 9}, "g")
    token = producer.prepare_transaction()
    site.advance_ms(RETENTION_MS)

    assert run_once(site).expired_offsets == 0

    producer.complete_transaction(token)
    assert committed_offset(site) == 9


def test_offset_that_was_committed_between_plan_and_commit_stays(site: Site) -> None:
    warehouse = site.open()
    commit(warehouse)
    site.advance_ms(RETENTION_MS)
    spec = offset_expiration.plan_offset_expiry(warehouse.offsets, RETENTION_MS)
    commit(site.open(), offset=6)

    assert not offset_expiration.expire_offsets_part(warehouse.offsets, spec).something

    assert committed_offset(site) == 6


def test_ages_are_asked_of_the_store_only_when_something_has_no_user(site: Site) -> None:
    warehouse = site.open()
    joined(warehouse)
    warehouse.store.steps.clear()  # type: ignore[attr-defined]

    offset_expiration.plan_offset_expiry(warehouse.offsets, RETENTION_MS)

    assert not [step for step in warehouse.store.steps if step.operation is Operation.HEAD]  # type: ignore[attr-defined]


def lose_entries(site: Site) -> None:
    """Clean up all of the offset log that a checkpoint says."""
    log = site.open().offsets.log
    log.refresh()
    log.write_checkpoint()
    for version in range(log.table.next_version - 1):
        site.objects.delete(commit_path("system/offset_log", version))


def test_row_that_is_younger_than_the_retention_stays_although_its_entry_is_gone(site: Site) -> None:
    """Log cleanup may keep entries for a shorter time than offsets are kept."""
    commit(site.open())
    commit(site.open(), "other")
    lose_entries(site)
    site.advance_ms(RETENTION_MS - 1_000)

    assert run_once(site).expired_offsets == 0
    site.advance_ms(1_000)
    assert run_once(site).expired_offsets == 2


def test_empty_group_stays_while_one_of_its_offsets_does_although_their_entries_are_gone(site: Site) -> None:
    warehouse = site.open()
    joined(warehouse)
    warehouse.admin().remove_members_from_consumer_group("g")
    commit(warehouse)
    site.advance_ms(RETENTION_MS - 1_000)
    commit(site.open(), partition=OUT)
    commit(site.open(), "other")
    lose_entries(site)
    site.advance_ms(1_000)

    report = run_once(site)

    assert (report.expired_offsets, report.expired_groups) == (1, 0)
    (found,) = site.open().admin().describe_consumer_groups(["g"]).values()
    assert not found.is_simple


def test_many_offsets_go_in_several_commits(site: Site) -> None:
    warehouse = site.open()
    admin = warehouse.admin()
    admin.create_topic("wide", partitions=5, schema=TWO_COLUMNS)
    for group in ("g", "h"):
        admin.alter_consumer_group_offsets(group, {TopicPartition("wide", number): 1 for number in range(5)})
    joined(warehouse)
    admin.remove_members_from_consumer_group("g")
    site.advance_ms(RETENTION_MS)
    before = warehouse.offsets.refresh()

    with mock.patch.object(offset_expiration, "LARGEST_COMMIT_ROWS", 4):
        report = run_once(site)

    assert (report.expired_offsets, report.expired_groups, report.failures) == (10, 1, 0)
    assert warehouse.offsets.refresh() == before + 3
    assert warehouse.offsets.names() == []


def test_expiry_that_fails_is_left_to_the_next_round(site: Site) -> None:
    commit(site.open())
    site.advance_ms(RETENTION_MS)
    broken = site.open(on(Operation.PUT_IF_ABSENT, O_ENTRIES, Fault.FAIL_BEFORE, occurrence=None))

    report = broken.coordinator().run_once()

    assert (report.failures, report.expired_offsets) == (1, 0)
    assert run_once(site).expired_offsets == 1


def test_topic_that_can_not_be_read_keeps_no_offsets_from_expiring(site: Site) -> None:
    commit(site.open())
    site.advance_ms(RETENTION_MS)
    broken = site.open(on(None, "topics/in/_segments", Fault.FAIL_BEFORE, occurrence=None))

    report = broken.coordinator().run_once()

    assert report.expired_offsets == 1
    assert report.failures


# -- topics that are gone -----------------------------------------------------------------------


def test_offsets_of_a_topic_whose_deletion_was_killed_are_forgotten_by_the_job(site: Site) -> None:
    commit(site.open())
    commit(site.open(), partition=OUT)
    dying = site.open(on(Operation.PUT_IF_ABSENT, O_ENTRIES, Fault.FAIL_BEFORE, occurrence=None))
    with pytest.raises(CommitStateUnknownError):
        dying.admin().delete_topic("in")
    site.open().admin().create_topic("in", partitions=2, schema=TWO_COLUMNS)
    commit(site.open(), group="h", offset=8)

    assert run_once(site).expired_offsets == 1

    rows = site.open().offsets
    rows.refresh()
    assert {group: list(found) for group, found in rows.log.fold.offsets.items()} == {"g": [OUT], "h": [IN]}
    assert not run_once(site).did_something


# -- silent members -----------------------------------------------------------------------------


def test_member_without_a_heartbeat_for_longer_than_its_session_is_expelled(site: Site) -> None:
    joined(site.open(), "dead")
    joined(site.open(), "alive")
    site.advance_ms(SESSION_MS)
    keep_alive(site, "alive")
    assert run_once(site).expelled_members == 0
    site.advance_ms(1)

    assert run_once(site).expelled_members == 1

    (found,) = site.open().admin().describe_consumer_groups(["g"]).values()
    assert [(member.member_id, len(member.assignment)) for member in found.members] == [("alive", 2)]
    assert list(site.objects_below("system/heartbeats")) == [heartbeat_path("g", "alive")]


def test_last_member_expelled_leaves_an_empty_group_with_its_offsets(site: Site) -> None:
    commit(site.open())
    joined(site.open())
    site.advance_ms(SESSION_MS + 1)

    run_once(site)

    assert site.open().admin().describe_consumer_groups(["g"])["g"].state is GroupState.EMPTY
    assert committed_offset(site) == 5


def test_offset_of_a_transaction_that_ended_is_aged_by_its_request(site: Site) -> None:
    sent(site.open(), 9).commit_transaction()
    site.advance_ms(RETENTION_MS)

    assert run_once(site).expired_offsets == 1


# -- settings -----------------------------------------------------------------------------------


def test_retention_of_the_warehouse_counts(site: Site) -> None:
    with pytest.raises(InvalidConfigError, match=r"offsets_retention_ms"):
        WarehouseSettings(offsets_retention_ms=0)


@pytest.mark.parametrize("name", ["member_expulsion_interval_ms", "offset_expiration_interval_ms"])
def test_interval_below_a_millisecond_is_refused(name: str) -> None:
    with pytest.raises(InvalidConfigError):
        replace(CoordinatorConfig(), **{name: 0})  # type: ignore[arg-type]
