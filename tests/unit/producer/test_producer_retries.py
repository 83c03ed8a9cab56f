"""Producers whose store fails for a moment: the call made again does all of the work, once."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.doubles.fault_plan import Fault, Operation, Rule, Step, on
from tests.doubles.stepping_store import SteppingStore
from tests.simulation.site import TWO_COLUMNS, Site, published
from txntable.errors import (
    CommitStateUnknownError,
    IllegalStateError,
    InvalidProducerEpochError,
    StoreUnavailableError,
)
from txntable.producer.producer import Producer
from txntable.warehouse.warehouse import Warehouse

PUT = Operation.PUT_IF_ABSENT
T_LOG = "transaction_log/_delta_log"


@pytest.fixture
def site() -> Site:
    site = Site()
    admin = site.create().admin()
    admin.create_topic("t", partitions=2, schema=TWO_COLUMNS)
    return site


def plan(warehouse: Warehouse, *rules: Rule) -> None:
    assert isinstance(warehouse.store, SteppingStore)
    warehouse.store.plan = rules
    warehouse.store._met.clear()


def started(warehouse: Warehouse) -> Producer:
    producer = warehouse.producer("etl")
    producer.init_transactions()
    return producer


def send(producer: Producer, account: str, partition: int = 0) -> None:
    producer.send("t", row={"account": account, "amount": 1}, partition=partition)


def accounts(site: Site) -> list[str]:
    return sorted(row["account"] for row in published(site.open(), "t"))


@pytest.mark.parametrize("failing", [1, 2])
@pytest.mark.parametrize("call", ["flush", "commit_transaction"])
def test_transaction_holds_every_record_when_an_upload_failed_once(site: Site, call: str, failing: int) -> None:
    warehouse = site.open()
    producer = started(warehouse)
    producer.begin_transaction()
    send(producer, "ann", 0)
    send(producer, "bob", 1)
    plan(warehouse, on(Operation.WRITE, "_segments/p", Fault.FAIL_BEFORE, occurrence=failing))

    with pytest.raises(StoreUnavailableError):
        getattr(producer, call)()
    producer.commit_transaction()

    assert accounts(site) == ["ann", "bob"]


def test_plain_flush_is_visible_when_it_returns_after_its_projection_failed(site: Site) -> None:
    warehouse = site.open()
    producer = warehouse.producer()
    send(producer, "ann")
    plan(warehouse, on(PUT, "topics/t/_delta_log", Fault.FAIL_BEFORE, occurrence=None))
    with pytest.raises(CommitStateUnknownError):
        producer.flush()
    plan(warehouse)

    producer.flush()

    assert accounts(site) == ["ann"]


def test_flush_that_one_topic_cannot_take_is_appended_to_the_others_and_repeated_for_the_one_only(site: Site) -> None:
    warehouse = site.open()
    warehouse.admin().create_topic("u", partitions=1, schema=TWO_COLUMNS)
    assert isinstance(warehouse.store, SteppingStore)
    producer = warehouse.producer()
    sent = [producer.send(topic, row={"account": topic, "amount": 1}, partition=0) for topic in ("t", "u")]
    warehouse.store.parallel_writes = 16
    plan(warehouse, on(PUT, "topics/t/_segments/_delta_log", Fault.FAIL_BEFORE, occurrence=None))
    with pytest.raises(CommitStateUnknownError):
        producer.flush()
    told = [one.is_delivered for one in sent]
    plan(warehouse)

    producer.flush()

    assert (told, [one.is_delivered for one in sent]) == ([False, True], [True, True])
    assert [[row["account"] for row in published(site.open(), topic)] for topic in ("t", "u")] == [["t"], ["u"]]


def test_idempotent_flush_of_many_batches_repeated_after_an_unknown_outcome_appends_once(site: Site) -> None:
    """More batches of one partition than a partition remembers of a producer."""
    warehouse = site.open()
    producer = warehouse.producer()
    for number in range(7):
        rows = [{"account": str(number), "amount": 1}]
        producer.send("t", rows=pa.Table.from_pylist(rows, TWO_COLUMNS), partition=0)
    slots = "t/_segments/_delta_log"
    plan(
        warehouse,
        on(PUT, slots, Fault.LOST_ANSWER, occurrence=None),
        on(Operation.GET, slots, Fault.FAIL_BEFORE, occurrence=None),
    )
    with pytest.raises(CommitStateUnknownError):
        producer.flush()
    plan(warehouse)

    producer.flush()

    assert accounts(site) == [str(number) for number in range(7)]


def with_unknown_commit(warehouse: Warehouse) -> Producer:
    producer = started(warehouse)
    producer.begin_transaction()
    send(producer, "ann")
    producer.flush()
    plan(
        warehouse,
        on(PUT, T_LOG, Fault.LOST_ANSWER, occurrence=None),
        on(Operation.GET, T_LOG, Fault.FAIL_BEFORE, occurrence=None),
    )
    with pytest.raises(CommitStateUnknownError):
        producer.commit_transaction()
    return producer


def test_commit_stays_unknown_when_the_store_is_unreachable_at_the_second_try(site: Site) -> None:
    """The first put may have landed: an error before the second one decides nothing."""
    warehouse = site.open()
    producer = with_unknown_commit(warehouse)
    site.advance_ms(1_000_000)
    plan(warehouse, on(None, "", Fault.FAIL_BEFORE, occurrence=None))

    with pytest.raises(StoreUnavailableError):
        producer.commit_transaction()

    assert producer.state == "COMMITTING"
    plan(warehouse)
    producer.commit_transaction()
    assert accounts(site) == ["ann"]


def test_send_is_refused_while_the_commit_is_unknown(site: Site) -> None:
    warehouse = site.open()
    producer = with_unknown_commit(warehouse)
    plan(warehouse)

    with pytest.raises(IllegalStateError, match="call commit_transaction again"):
        send(producer, "late")

    producer.commit_transaction()
    assert accounts(site) == ["ann"]


def test_empty_run_commits_when_the_last_transaction_was_left_to_others(site: Site) -> None:
    warehouse = site.open()
    producer = started(warehouse)
    producer.begin_transaction()
    send(producer, "ann")
    plan(warehouse, on(PUT, "topics/t/_segments/_delta_log", Fault.FAIL_BEFORE, occurrence=None))
    producer.commit_transaction()
    plan(warehouse)
    assert accounts(site) == []

    producer.begin_transaction(batch_id="monday")
    producer.commit_transaction()

    assert producer.is_committed("monday")
    assert accounts(site) == ["ann"]


def test_complete_publishes_what_a_dead_writer_appended(site: Site) -> None:
    warehouse = site.open()
    producer = warehouse.producer()
    send(producer, "ann")
    plan(warehouse, on(PUT, "topics/t/_delta_log", Fault.FAIL_BEFORE, occurrence=None))
    with pytest.raises(CommitStateUnknownError):
        producer.flush()

    site.open().complete()

    assert accounts(site) == ["ann"]


def test_append_is_refused_at_its_second_attempt_when_the_transaction_was_aborted_meanwhile(site: Site) -> None:
    """Aborted in the transaction log only: no marker is in the partition log yet that would refuse."""
    warehouse, other = site.open(), site.open()
    producer = started(warehouse)
    producer.begin_transaction()
    send(producer, "ann")
    took: list[str] = []

    def overtake(step: Step) -> None:
        if step.operation is PUT and "t/_segments/_delta_log" in step.path and not took:
            took.append(step.path)
            plan(other, on(Operation.PUT, "markers/", Fault.FAIL_BEFORE, occurrence=None))
            with pytest.raises(StoreUnavailableError):
                started(other)
            plan(other)
            plain = other.producer()
            send(plain, "plain")
            plain.flush()

    assert isinstance(warehouse.store, SteppingStore)
    warehouse.store.on_step = overtake

    with pytest.raises(InvalidProducerEpochError):
        producer.flush()

    assert took
    assert [add.partition_values["_producer_epoch"] for add in site.open().topic_log("t").segments.refresh().files] == [
        "0"
    ]
    assert accounts(site) == ["plain"]
