"""The newest entries of T, or of O, are gone: one row says it, by what the other logs show."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.doubles.fault_plan import Fault, Operation, on
from tests.doubles.memory_store import MemoryStore
from tests.simulation.site import Site
from tests.unit.producer.producing import row, started, store_of
from tests.unit.verification.stored import FIRST, damages, delete_newest, fill, only
from txntable.format.layout import OFFSET_LOG_ROOT, TRANSACTION_LOG_ROOT, segments_root
from txntable.log.actions import Txn
from txntable.offsets.offset_log import DECIDED_THROUGH
from txntable.partition.offsets import DECIDED_THROUGH as OF_TOPIC
from txntable.partition.offsets import per_topic
from txntable.producer.producer import Producer
from txntable.topics.topic_log import TopicLog
from txntable.verification.damage import Damage, DamageKind
from txntable.warehouse.stored_warehouse import verify_stored
from txntable.warehouse.warehouse import Warehouse

T_END = (DamageKind.LOG_END, TRANSACTION_LOG_ROOT)
O_END = (DamageKind.LOG_END, OFFSET_LOG_ROOT)

# -- the transaction log ----------------------------------------------------------------------


def commit(warehouse: Warehouse, transactional_id: str, topic: str) -> int:
    """Commit a record, and return the position."""
    with started(warehouse, transactional_id) as producer, producer.transaction() as transaction:
        transaction.send(topic, row=row("one"))
    return end_of(warehouse)


def end_of(warehouse: Warehouse) -> int:
    return warehouse.transactions.log.refresh().next_version - 1


def lose_decisions(site: Site, warehouse: Warehouse, count: int) -> int:
    """Commit in one topic after another, lose all that T says of it, and return where it ends now."""
    end = end_of(warehouse)
    for turn in range(count):
        commit(warehouse, f"lost-{turn}", "tu"[turn % 2])
    delete_newest(site, TRANSACTION_LOG_ROOT, end_of(warehouse) - end)
    return end


@pytest.mark.parametrize(("count", "said"), [(1, "1 decision up to"), (3, "3 decisions up to")])
def test_end_of_the_transaction_log_is_told_once_when_markers_of_lost_decisions_are_there(
    site: Site, warehouse: Warehouse, count: int, said: str
) -> None:
    end = lose_decisions(site, warehouse, count)

    (found,) = damages(site)

    assert (found.kind, found.path) == T_END
    assert found.problem.startswith(f"it ends at version {end}, and markers of {said}")
    assert ("topic t" in found.problem) is (count != 2)


def test_end_of_the_transaction_log_names_the_topic_with_the_newest_marker(site: Site, warehouse: Warehouse) -> None:
    lose_decisions(site, warehouse, 2)

    (found,) = damages(site)

    assert "the newest in topic u" in found.problem


@pytest.mark.parametrize("beyond", [0, 1])
def test_end_of_the_transaction_log_is_told_when_a_topic_is_settled_beyond_it_without_a_marker(
    site: Site, warehouse: Warehouse, u: TopicLog, beyond: int
) -> None:
    end = end_of(warehouse)
    name = per_topic(OF_TOPIC, u.settings().topic_id)
    u.segments.commit("TEST", lambda table: [Txn(name, end + beyond)])
    u.project()

    found = damages(site)

    assert [(one.kind, one.path) for one in found] == [T_END] * beyond
    assert all(f"topic u is settled through {end + 1}" in one.problem for one in found)


@pytest.mark.parametrize("beyond", [0, 1])
def test_end_of_the_transaction_log_is_told_when_offsets_are_settled_beyond_it(
    site: Site, warehouse: Warehouse, beyond: int
) -> None:
    end = end_of(warehouse)
    warehouse.offsets.refresh()
    warehouse.offsets.log.commit("TEST", lambda table: [Txn(DECIDED_THROUGH, end + beyond)])

    found = damages(site)

    assert [(one.kind, one.path) for one in found] == [T_END] * beyond
    assert all(f"the offset log is settled through {end + 1}" in one.problem for one in found)


@pytest.mark.parametrize("while_reading", ["topics/t/_segments: entry", "topics/u/_segments: entry", OFFSET_LOG_ROOT])
def test_no_end_of_a_log_is_missed_when_others_commit_during_the_verification(site: Site, while_reading: str) -> None:
    fill(site)
    committed: list[int] = []

    def write(done: str) -> None:
        if done.startswith(while_reading) and not committed:
            fill(site)
            committed.append(commit(site.open(), "meanwhile", "u"))

    found = verify_stored(MemoryStore(site.objects), progress=write, environment=site.time)

    assert committed
    assert found.damages == ()


def test_remedy_of_the_end_of_the_transaction_log_puts_nothing_lost_upon_what_was_written_since() -> None:
    remedy = Damage(*T_END, "").remedy

    said = ("stop every writer now", "Restore the newest entries", "do not put the lost ones back", "fence-all")
    assert sorted(said, key=remedy.index) == list(said)
    assert "public table: only it" not in remedy


# -- the offset log ---------------------------------------------------------------------------


def sent(warehouse: Warehouse, *groups: str, transactional_id: str = "reader") -> Producer:
    """A producer with an open transaction that has offsets of some groups."""
    producer = started(warehouse, transactional_id)
    producer.begin_transaction()
    for group in groups:
        producer.send_offsets_to_transaction({FIRST: 3}, group)
    return producer


def settle_nothing(warehouse: Warehouse, decide: Callable[[], None]) -> None:
    """Decide, and leave the offsets to others."""
    put = on(Operation.PUT_IF_ABSENT, f"{OFFSET_LOG_ROOT}/_delta_log", Fault.FAIL_BEFORE, occurrence=None)
    store_of(warehouse).plan = (put,)
    decide()
    store_of(warehouse).plan = ()


def decided(warehouse: Warehouse, *groups: str) -> None:
    producer = sent(warehouse, *groups)
    settle_nothing(warehouse, producer.commit_transaction)


def test_nothing_is_found_when_committed_offsets_wait_for_who_settles_them(site: Site, warehouse: Warehouse) -> None:
    decided(warehouse, "readers", "more")

    assert damages(site) == []


@pytest.mark.parametrize("goes_on", [False, True])
def test_end_of_the_offset_log_is_told_when_a_commit_has_lost_its_pending_offsets(
    site: Site, warehouse: Warehouse, goes_on: bool
) -> None:
    decided(warehouse, "kept", "lost")
    position = end_of(warehouse)
    delete_newest(site, OFFSET_LOG_ROOT, 1)
    if goes_on:
        site.open().admin().alter_consumer_group_offsets("others", {FIRST: 2})

    (found,) = damages(site)

    assert (found.kind, found.path) == O_END
    assert f"reader committed offsets of group lost at {position}" in found.problem
    assert "kept" not in found.problem
    assert "newest entries" in found.problem
    assert "deleted" in found.problem


def test_end_of_the_offset_log_is_repaired_by_its_entry(site: Site, warehouse: Warehouse) -> None:
    decided(warehouse, "lost")
    ((path, data),) = delete_newest(site, OFFSET_LOG_ROOT, 1)
    assert only(site) == O_END

    site.objects.put(path, data)

    assert damages(site) == []


def test_end_of_the_offset_log_is_no_matter_of_what_was_aborted(site: Site, warehouse: Warehouse) -> None:
    producer = sent(warehouse, "lost")
    settle_nothing(warehouse, producer.abort_transaction)
    delete_newest(site, OFFSET_LOG_ROOT, 1)

    assert damages(site) == []


def test_nothing_is_found_when_the_offsets_of_a_commit_were_deleted_before_they_were_settled(
    site: Site, warehouse: Warehouse
) -> None:
    decided(warehouse, "deleted")
    warehouse.admin().delete_consumer_group_offsets("deleted", [FIRST])

    assert damages(site) == []


@pytest.mark.parametrize("while_reading", [TRANSACTION_LOG_ROOT, segments_root("u"), OFFSET_LOG_ROOT])
def test_nothing_is_found_when_offsets_are_settled_during_the_verification(
    site: Site, warehouse: Warehouse, while_reading: str
) -> None:
    decided(warehouse, "readers")
    settled: list[str] = []

    def settle(done: str) -> None:
        if done.startswith(f"{while_reading}: entry") and not settled:
            site.open().coordinator().run_once()
            decided(site.open(), "later")
            settled.append(done)

    found = verify_stored(MemoryStore(site.objects), progress=settle, environment=site.time)

    assert settled
    assert found.damages == ()


@pytest.mark.parametrize("lost", [2, 3])
def test_what_was_settled_and_is_no_more_is_told_with_its_groups(site: Site, warehouse: Warehouse, lost: int) -> None:
    delete_newest(site, OFFSET_LOG_ROOT, lost)

    (found,) = damages(site)

    assert (found.kind, found.path) == (DamageKind.INCOMPLETE, OFFSET_LOG_ROOT)
    assert "with offsets of group readers, and offsets are settled to 0" in found.problem


@pytest.mark.parametrize("kind", [DamageKind.LOG_END, DamageKind.INCOMPLETE])
def test_remedy_of_the_end_of_the_offset_log_sets_the_offsets_before_consumers_go_on(kind: DamageKind) -> None:
    remedy = Damage(kind, OFFSET_LOG_ROOT, "").remedy

    said = ("stop every writer now", "Restore the newest entries", "txntable groups reset-offsets", "go on")
    assert sorted(said, key=remedy.index) == list(said)
    assert "restore the whole warehouse" not in remedy


def test_remedy_of_the_end_of_a_partition_log_keeps_the_public_table() -> None:
    assert "Do not delete the public table" in Damage(DamageKind.LOG_END, segments_root("u"), "").remedy
