"""A warehouse restored from a backup, and the processes of before: what they could do, and cannot once fenced."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.simulation.site import TWO_COLUMNS, Site, published
from txntable.admin.restoration import Restoration
from txntable.coordinator.producer_ids import LEAP
from txntable.errors import (
    IllegalStateError,
    WarehouseReplacedError,
)
from txntable.format.records import TopicPartition
from txntable.producer.producer import Producer
from txntable.warehouse.warehouse import Warehouse

GUARD_MS = 5 * 60_000


def restoration(warehouse: Warehouse) -> Restoration:
    return Restoration(warehouse.completer, warehouse.admin())


@dataclass
class Restored:
    """A site at its backup, and a producer that went on after the backup had been made."""

    site: Site
    zombie: Producer


def transfer(producer: Producer, account: str) -> None:
    producer.begin_transaction()
    producer.send("t", row={"account": account, "amount": 1})
    producer.commit_transaction()


@pytest.fixture
def restored() -> Restored:
    """Make a backup, let a new producer of an id come after it, lose everything, restore."""
    site = Site()
    warehouse = site.create()
    warehouse.admin().create_topic("t", schema=TWO_COLUMNS)
    first = warehouse.producer("etl")
    first.init_transactions()
    transfer(first, "before the backup")
    backup = site.objects.snapshot()
    zombie = site.open().producer("etl")
    zombie.init_transactions()
    transfer(zombie, "lost")
    site.objects.restore(backup)
    # Its views age; what it asks from now on is answered by the restored logs.
    site.advance_ms(GUARD_MS + 1)
    return Restored(site, zombie)


def test_zombie_learns_that_its_logs_are_gone_also_where_nobody_was_fenced(restored: Restored) -> None:
    """Without the fencing it would be taken for the new producer: the log gives away again what it gave before."""
    again = restored.site.open().producer("etl")
    again.init_transactions()
    transfer(again, "new")

    with pytest.raises(WarehouseReplacedError):
        transfer(restored.zombie, "zombie")
    with pytest.raises(IllegalStateError):
        restored.zombie.begin_transaction()

    assert [row["account"] for row in published(restored.site.open(), "t")] == ["before the backup", "new"]


def test_zombie_that_has_read_nothing_later_than_the_backup_is_fenced_after_everyone_was(restored: Restored) -> None:
    restored.zombie.close()
    zombie = restored.site.open().producer("etl")
    zombie.init_transactions()
    restoration(restored.site.open()).fence_all()
    again = restored.site.open().producer("etl")
    again.init_transactions()
    again.begin_transaction()
    again.send("t", row={"account": "new", "amount": 1})
    again.flush()

    with pytest.raises(WarehouseReplacedError):
        transfer(zombie, "zombie")
    again.commit_transaction()

    assert [row["account"] for row in published(restored.site.open(), "t")] == ["before the backup", "new"]


def test_producer_ids_that_were_given_after_the_backup_are_not_given_again(restored: Restored) -> None:
    before = restored.site.open().transactions.row("etl")
    report = restoration(restored.site.open()).fence_all()
    restored.site.open().producer("etl").init_transactions()

    after = restored.site.open().transactions.row("etl")
    assert before is not None
    assert after is not None
    assert after.producer_id == report.next_producer_id >= before.producer_id + LEAP


def test_open_transaction_of_the_backup_is_aborted_and_a_prepared_one_stays() -> None:
    site = Site()
    warehouse = site.create()
    warehouse.admin().create_topic("t", schema=TWO_COLUMNS)
    for name in ("open", "prepared", "done"):
        producer = warehouse.producer(name)
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("t", row={"account": name, "amount": 1})
        if name == "prepared":
            producer.prepare_transaction()
        elif name == "done":
            producer.commit_transaction()
        else:
            producer.flush()

    planned = restoration(site.open()).plan()
    done = restoration(site.open()).fence_all()

    assert (planned.aborted_transactions, planned.forgotten_transactional_ids, planned.prepared) == (
        1,
        2,
        ("prepared",),
    )
    assert planned == done
    assert [row.transactional_id for row in site.open().admin().list_transactions()] == ["prepared"]


def test_members_of_the_backup_are_expelled_and_offsets_stay() -> None:
    site = Site()
    warehouse = site.create()
    warehouse.admin().create_topic("t", schema=TWO_COLUMNS)
    transfer_producer = warehouse.producer("etl")
    transfer_producer.init_transactions()
    transfer(transfer_producer, "a")
    consumer = warehouse.consumer(group_id="g", auto_offset_reset="earliest", enable_auto_commit=False)
    consumer.subscribe(["t"])
    consumer.poll()
    consumer.commit()

    report = restoration(site.open()).fence_all()

    assert report.expelled_members == 1
    with pytest.raises(WarehouseReplacedError):
        consumer.commit({TopicPartition("t", 0): 0})
    committed = site.open().admin().list_consumer_group_offsets("g")[TopicPartition("t", 0)]
    assert committed is not None
    assert committed.offset == 2


def test_lease_is_taken_from_the_coordinator_job_of_before(restored: Restored) -> None:
    restored.site.open().coordinator().claim()

    restoration(restored.site.open()).fence_all()

    assert restored.site.open().transactions.coordinator_epoch() == 2


def test_plan_writes_nothing(restored: Restored) -> None:
    warehouse = restored.site.open()
    before = restored.site.objects.snapshot()

    restoration(warehouse).plan()

    assert restored.site.objects.snapshot() == before
