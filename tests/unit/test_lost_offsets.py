"""An offset log that has lost its newest entries: nobody goes on from where groups stood before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.doubles.fault_plan import Fault, Operation, on
from tests.doubles.memory_store import MemoryStore
from tests.simulation.site import Site
from tests.unit.lost_ends import entries_of, site_with_records
from tests.unit.producer.producing import store_of
from tests.unit.reading import TOPIC, transactional
from tests.unit.upkeep.coordinating import DAY_MS, run_once
from txntable.admin.restoration import Restoration
from txntable.admin.upkeep import Duty
from txntable.errors import DamagedDataError, WarehouseReplacedError
from txntable.format.layout import OFFSET_LOG_ROOT, TRANSACTION_LOG_ROOT
from txntable.format.records import TopicPartition
from txntable.log.cleanup import clean_up
from txntable.log.delta_log import DeltaLog
from txntable.log.table_state import TableState
from txntable.producer.producer import Producer
from txntable.verification.damage import DamageKind
from txntable.warehouse.stored_warehouse import verify_stored
from txntable.warehouse.warehouse import Warehouse, open_on

FIRST = TopicPartition(TOPIC, 0)
LOST = "the offset log has lost its newest entries"


@pytest.fixture
def site() -> Site:
    """A group that commits with transactions of one producer, whose last one is complete."""
    made = site_with_records()
    producer = transactional(made.open(), "copier")
    for offset in (1, 2, 3):
        send_offset(producer, offset)
    producer.close()
    return made


def send_offset(producer: Producer, offset: int) -> None:
    with producer.transaction():
        producer.send_offsets_to_transaction({FIRST: offset}, "readers")


def lose(site: Site, count: int) -> None:
    for path in entries_of(site, OFFSET_LOG_ROOT)[-count:]:
        site.objects.delete(path)


def restore(site: Site) -> None:
    warehouse = open_on(site.store(), site.environment(), recovering=True)
    Restoration(warehouse.completer, warehouse.admin()).fence_all()


def stands_at(site: Site) -> int | None:
    found = site.open().admin().list_consumer_group_offsets("readers")[FIRST]
    return None if found is None else found.offset


def joined(warehouse: Warehouse) -> None:
    consumer = warehouse.consumer(group_id="readers", background_heartbeat=False)
    consumer.subscribe([TOPIC])
    consumer.poll()


def assigned(warehouse: Warehouse) -> None:
    consumer = warehouse.consumer(group_id="readers", background_heartbeat=False)
    consumer.assign([FIRST])
    consumer.poll()


USES: list[Callable[[Warehouse], object]] = [
    joined,
    assigned,
    lambda warehouse: send_offset(transactional(warehouse, "copier"), 2),
    lambda warehouse: send_offset(transactional(warehouse, "new"), 2),
    lambda warehouse: warehouse.admin().alter_consumer_group_offsets("readers", {FIRST: 2}),
    lambda warehouse: warehouse.admin().find_blocking_transactions(),
]


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_nobody_goes_on_from_where_a_group_stood_before(
    site: Site, count: int, use: Callable[[Warehouse], object]
) -> None:
    """Bug: nobody stopped, records were processed twice, and the next transaction hid the loss."""
    lose(site, count)
    left = entries_of(site, OFFSET_LOG_ROOT)

    for _ in range(2):
        with pytest.raises(DamagedDataError, match=LOST):
            use(site.open())

    assert entries_of(site, OFFSET_LOG_ROOT) == left


@pytest.mark.parametrize("use", USES)
def test_everybody_goes_on_where_the_end_is_there(site: Site, use: Callable[[Warehouse], object]) -> None:
    use(site.open())

    assert [one for one in site.open().admin().check_upkeep() if one.duty is Duty.READ] == []


@pytest.mark.parametrize("count", [1, 2, 3])
def test_check_and_the_job_tell_of_the_lost_end(site: Site, count: int) -> None:
    lose(site, count)

    findings = site.open().admin().check_upkeep()

    assert [LOST in one.note for one in findings if one.duty is Duty.READ] == [True]


def test_job_does_not_settle_in_the_place_of_what_is_lost(site: Site) -> None:
    warehouse = site.open()
    producer = transactional(warehouse, "other")
    producer.begin_transaction()
    producer.send_offsets_to_transaction({FIRST: 4}, "readers")
    store_of(warehouse).plan = (on(Operation.PUT_IF_ABSENT, "offset_log", Fault.FAIL_BEFORE, occurrence=None),)
    producer.commit_transaction()
    lose(site, 2)
    left = entries_of(site, OFFSET_LOG_ROOT)

    report = run_once(site)

    assert report.failures
    assert entries_of(site, OFFSET_LOG_ROOT) == left


@pytest.mark.parametrize("count", [1, 2, 3])
def test_who_restores_takes_it_as_it_is_and_sets_the_offsets(site: Site, count: int) -> None:
    lose(site, count)

    restore(site)

    site.open().admin().alter_consumer_group_offsets("readers", {FIRST: 3})
    joined(site.open())
    assert stands_at(site) == 3
    assert site.open().offsets.pending() == []
    assert list(verify_stored(MemoryStore(site.objects), environment=site.time).damages) == []


def commit_unsettled(site: Site) -> None:
    """Commit an offset of another group, and leave it to others to settle it."""
    warehouse = site.open()
    other = transactional(warehouse, "other")
    other.begin_transaction()
    other.send_offsets_to_transaction({FIRST: 7}, "others")
    store_of(warehouse).plan = (on(Operation.PUT_IF_ABSENT, "offset_log", Fault.FAIL_BEFORE, occurrence=None),)
    other.commit_transaction()


def test_log_that_has_lost_nothing_is_restored_as_ever(site: Site) -> None:
    commit_unsettled(site)

    restore(site)

    entries = [site.objects.snapshot()[path].data for path in entries_of(site, OFFSET_LOG_ROOT)]
    assert [data for data in entries if b"TAKE AS IT IS" in data] == []


def test_offsets_that_wait_for_a_decision_which_is_known_count_when_the_log_is_taken_as_it_is(site: Site) -> None:
    """Bug: they stayed pending for ever, and what had decided of them was forgotten."""
    commit_unsettled(site)
    last = transactional(site.open(), "last")
    send_offset(last, 4)
    last.close()
    lose(site, 1)

    restore(site)

    found = site.open().admin().list_consumer_group_offsets("others")[FIRST]
    assert found is not None
    assert found.offset == 7
    assert stands_at(site) == 4
    assert list(verify_stored(MemoryStore(site.objects), environment=site.time).damages) == []


def test_offsets_of_a_prepared_transaction_wait_on_when_the_log_is_taken_as_it_is(site: Site) -> None:
    warehouse = site.open()
    prepared = transactional(warehouse, "prepared")
    prepared.begin_transaction()
    prepared.send_offsets_to_transaction({FIRST: 7}, "others")
    prepared.prepare_transaction()
    lost = transactional(site.open(), "last")
    send_offset(lost, 4)
    lost.close()
    lose(site, 1)

    restore(site)

    assert [row.group for row in site.open().offsets.pending()] == ["others"]


def test_settings_are_not_altered_in_the_place_of_what_is_lost(site: Site) -> None:
    lose(site, 2)
    left = [entries_of(site, root) for root in (OFFSET_LOG_ROOT, TRANSACTION_LOG_ROOT)]

    with pytest.raises(DamagedDataError, match=LOST):
        site.open().admin().alter_warehouse({"offsets_retention_ms": 8 * DAY_MS})

    assert [entries_of(site, root) for root in (OFFSET_LOG_ROOT, TRANSACTION_LOG_ROOT)] == left


def test_what_another_thread_learns_meanwhile_is_no_loss(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse, refresh = site.open(), DeltaLog.refresh
    send_offset_and_close(site, 4)
    warehouse.transactions.refresh()

    def refresh_and_learn(log: DeltaLog[Any]) -> TableState:
        found = refresh(log)
        if log is warehouse.offsets.log:
            send_offset_and_close(site, 5)
            refresh(warehouse.transactions.log)
        return found

    monkeypatch.setattr(DeltaLog, "refresh", refresh_and_learn)

    warehouse.offsets.require_whole()


def send_offset_and_close(site: Site, offset: int) -> None:
    producer = transactional(site.open(), "copier")
    send_offset(producer, offset)
    producer.close()


@pytest.mark.parametrize("use", [USES[4], lambda warehouse: warehouse.offsets.require_whole()])
def test_view_of_before_a_restore_is_no_witness(site: Site, use: Callable[[Warehouse], object]) -> None:
    older, warehouse = site.objects.snapshot(), site.open()
    producer = transactional(site.open(), "copier")
    send_offset(producer, 4)
    producer.close()
    warehouse.transactions.refresh()
    site.objects.restore(older)

    with pytest.raises(WarehouseReplacedError):
        use(warehouse)


def test_what_was_seen_settled_never_falls(site: Site) -> None:
    first, second = (transactional(site.open(), name) for name in ("first", "second"))
    send_offset(first, 4)
    send_offset(second, 5)

    second.close()
    first.close()

    assert list(verify_stored(MemoryStore(site.objects), environment=site.time).damages) == []


def test_offsets_that_were_settled_since_the_log_was_read_are_no_loss(site: Site) -> None:
    warehouse = site.open()
    producer = transactional(site.open(), "copier")
    send_offset(producer, 4)
    producer.close()
    warehouse.transactions.refresh()

    warehouse.offsets.require_whole()
    warehouse.admin().alter_consumer_group_offsets("readers", {FIRST: 2})

    assert stands_at(site) == 2


def test_verification_finds_the_lost_end_when_nothing_says_any_more_whose_offsets_they_were(site: Site) -> None:
    warehouse = site.open()
    warehouse.transactions.log.write_checkpoint()
    warehouse.offsets.log.write_checkpoint()
    lose(site, 3)
    site.advance_ms(400 * DAY_MS)
    clean_up(warehouse.context, TRANSACTION_LOG_ROOT, DAY_MS)

    found = [
        one
        for one in verify_stored(MemoryStore(site.objects), environment=site.time).damages
        if one.path == OFFSET_LOG_ROOT
    ]

    assert [one.kind for one in found] == [DamageKind.LOG_END]
    assert "fence-all" in found[0].remedy
