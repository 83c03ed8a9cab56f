"""Completion by bystanders, snapshots and projections of clients that came late (PROTOCOL.md §6.4, §7)."""

from __future__ import annotations

import pytest

from tests.doubles.fault_plan import Fault, Operation, Step, on
from tests.doubles.stepping_store import SteppingStore
from tests.simulation.site import TWO_COLUMNS, Site, published
from txntable.errors import CommitStateUnknownError
from txntable.producer.producer import Producer
from txntable.warehouse.warehouse import Warehouse


@pytest.fixture
def site() -> Site:
    site = Site()
    site.create().admin().create_topic("t", partitions=1, schema=TWO_COLUMNS)
    return site


def open_transaction(warehouse: Warehouse, account: str) -> Producer:
    producer = warehouse.producer(account)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("t", row={"account": account, "amount": 1})
    producer.flush()
    return producer


def decide_only(warehouse: Warehouse, producer: Producer) -> None:
    """Commit, and leave the completion to others."""
    assert isinstance(warehouse.store, SteppingStore)
    warehouse.store.plan = (on(Operation.PUT_IF_ABSENT, "_segments/_delta_log", Fault.FAIL_BEFORE, occurrence=None),)
    producer.commit_transaction()
    warehouse.store.plan = ()


def accounts(site: Site) -> list[str]:
    return sorted(row["account"] for row in published(site.open(), "t"))


def test_transaction_decided_while_another_is_completed_gets_its_marker_later(site: Site) -> None:
    """What a completer says that it knows, and what it writes, come from one reading of the transaction log."""
    first, second, bystander = site.open(), site.open(), site.open()
    ann, bob = open_transaction(first, "ann"), open_transaction(second, "bob")
    decide_only(first, ann)
    readings: list[str] = []

    def decide_bob(step: Step) -> None:
        readings.append(step.path)
        of_log = sum("transaction_log" in path for path in readings)
        tail_was_read = of_log > 1 and readings.count(step.path) > 1
        if bob.state == "IN_TRANSACTION" and (tail_was_read or "markers/" in step.path):
            decide_only(second, bob)

    assert isinstance(bystander.store, SteppingStore)
    bystander.store.on_step = decide_bob
    bystander.completer.complete_decided()
    assert accounts(site) == ["ann"]

    site.open().complete()

    assert accounts(site) == ["ann", "bob"]


def test_snapshot_completes_what_was_decided_before_it(site: Site) -> None:
    warehouse = site.open()
    decide_only(warehouse, open_transaction(warehouse, "ann"))
    assert accounts(site) == []

    reader = site.open()
    snapshot = reader.snapshot()

    version = snapshot.version("t")
    assert reader.topic_log("t").public.table.version == version
    assert accounts(site) == ["ann"]


def test_projection_of_a_client_that_came_late_holds_what_its_journal_does_not(site: Site) -> None:
    """The view begins at a checkpoint above what is published: the commit below its first one is not in its journal."""
    warehouse = site.open()
    producer = warehouse.producer()
    assert isinstance(warehouse.store, SteppingStore)
    warehouse.store.plan = (on(Operation.PUT_IF_ABSENT, "topics/t/_delta_log", Fault.FAIL_BEFORE, occurrence=None),)
    producer.send("t", row={"account": "ann", "amount": 1})
    with pytest.raises(CommitStateUnknownError):
        producer.flush()
    log = warehouse.topic_log("t").segments
    log.write_checkpoint()
    late = site.open()
    late.topic_log("t").segments.refresh()

    plain = late.producer()
    plain.send("t", row={"account": "bob", "amount": 1})
    plain.flush()

    assert accounts(site) == ["ann", "bob"]


def test_one_entry_completes_every_transaction_that_is_complete_by_the_same_work(site: Site) -> None:
    warehouse = site.open()
    for account in ("ann", "bob", "cid"):
        decide_only(warehouse, open_transaction(warehouse, account))
    head = warehouse.transactions.refresh()

    warehouse.completer.complete("ann")

    assert warehouse.transactions.refresh() == head + 1
    assert not site.open().transactions.log.fold.under_way
    assert accounts(site) == ["ann", "bob", "cid"]


def test_transaction_of_another_topic_is_not_completed_along_with_it(site: Site) -> None:
    warehouse = site.open()
    warehouse.admin().create_topic("other", partitions=1, schema=TWO_COLUMNS)
    decide_only(warehouse, open_transaction(warehouse, "ann"))
    both = open_transaction(warehouse, "bob")
    both.send("other", row={"account": "bob", "amount": 1})
    decide_only(warehouse, both)

    warehouse.completer.complete("ann")

    assert [row.transactional_id for row in warehouse.transactions.log.fold.decided()] == ["bob"]
    assert published(site.open(), "other") == []


def test_transaction_decided_after_the_reading_of_the_log_is_not_completed_along(site: Site) -> None:
    """Its marker is not written: the completer knew the transaction log only up to before its decision."""
    warehouse, second = site.open(), site.open()
    ann, bob = open_transaction(warehouse, "ann"), open_transaction(second, "bob")
    decide_only(warehouse, ann)

    def decide_bob(step: Step) -> None:
        if bob.state == "IN_TRANSACTION" and "topics/t/_delta_log" in step.path:
            decide_only(second, bob)

    assert isinstance(warehouse.store, SteppingStore)
    warehouse.store.on_step = decide_bob
    warehouse.completer.complete("ann")

    assert bob.state == "READY"
    site.open().complete()
    assert accounts(site) == ["ann", "bob"]
