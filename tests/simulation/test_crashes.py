"""A kill before and after every storage call of every operation, then recovery by another process.

The crash points are found by running the operation, so that a new storage call cannot be
forgotten.  PROTOCOL.md §11 says what is true at each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict

import pytest

from tests.doubles.fault_plan import WRITES, Fault, Operation, Step, at, on
from tests.doubles.stepping_store import ProcessKilled, SteppingStore
from tests.simulation.site import TWO_COLUMNS, Site, published
from tests.unit.admin.group_members import joined
from txntable.errors import (
    BatchAlreadyCommittedError,
    CommitStateUnknownError,
    InvalidPartitionsError,
    TopicAlreadyExistsError,
    TransactionCoordinatorFencedError,
    UnknownTopicOrPartitionError,
)
from txntable.format.layout import commit_path
from txntable.format.records import TopicPartition
from txntable.format.warehouse_settings import WarehouseSettings
from txntable.log.cleanup import clean_up
from txntable.warehouse.warehouse import Warehouse, create_on

TIMEOUT_MS = 60_000
DAY_MS = 86_400_000
BATCH = "2026-11-20"


def prepared(*, topics: bool = True, open_transaction: bool = False) -> Site:
    site = Site()
    warehouse = site.create()
    if topics:
        for name in ("debit", "credit"):
            warehouse.admin().create_topic(name, partitions=2, schema=TWO_COLUMNS, key=["account"])
    if open_transaction:
        producer = warehouse.producer("etl", transaction_timeout_ms=TIMEOUT_MS)
        producer.init_transactions()
        producer.begin_transaction()
        send(producer, "open")
        producer.flush()
    return site


def send(producer, tag: str) -> None:
    for account in ("ann", "bob", "cid"):
        producer.send("debit", row={"account": account, "amount": len(tag)})
    producer.send("credit", row={"account": tag, "amount": 1})


def transfer(warehouse: Warehouse) -> None:
    """One transaction over two topics, by batch id: safe to run again."""
    producer = warehouse.producer("etl", transaction_timeout_ms=TIMEOUT_MS)
    producer.init_transactions()
    try:
        producer.begin_transaction(batch_id=BATCH)
    except BatchAlreadyCommittedError:
        return
    send(producer, "done")
    producer.flush()
    send(producer, "more")
    producer.commit_transaction()
    producer.close()


def abort(warehouse: Warehouse) -> None:
    producer = warehouse.producer("etl", transaction_timeout_ms=TIMEOUT_MS)
    producer.init_transactions()
    producer.begin_transaction()
    send(producer, "never")
    producer.flush()
    producer.abort_transaction()


def take_over(warehouse: Warehouse) -> None:
    warehouse.producer("etl").init_transactions()


def append_plain(warehouse: Warehouse) -> None:
    with warehouse.producer() as producer:
        producer.send("debit", row={"account": "plain", "amount": 1}, partition=0)


def complete(warehouse: Warehouse) -> None:
    warehouse.complete()


PUBLIC_PUT = re.compile(r"put-if-absent topics/[^/]+/_delta_log/")


def kills(site: Site, operation: Callable[[Warehouse], object]) -> Iterator[tuple[Site, str]]:
    """Every (site, description) that a process may leave that dies at a storage call of the operation.

    What it leaves is what it wrote: one that dies at a read leaves no more than it did behind the write before it.
    """
    trial = site.copy()
    warehouse = trial.open()
    store = warehouse.store
    assert isinstance(store, SteppingStore)
    operation(warehouse)
    writes = [step for step in store.steps if step.operation in WRITES]
    assert writes
    for fault, step in [(Fault.KILL_BEFORE, writes[0]), *((Fault.KILL_AFTER, step) for step in writes)]:
        crashed = site.copy()
        with pytest.raises(ProcessKilled):
            operation(crashed.open(at(step.number, fault)))
        yield crashed, f"{fault.name} {step.operation.value} {step.path}"


def committed_transfers(site: Site, where: str) -> int:
    """How many transfers are visible; never a part of one."""
    warehouse = site.open()
    debit, credit = published(warehouse, "debit"), published(warehouse, "credit")
    tags = [row["account"] for row in credit]
    by_amount = [row["amount"] for row in debit]
    assert by_amount.count(4) == 3 * len(tags), where
    assert tags.count("done") == tags.count("more"), where
    assert not {"never", "open"} & set(tags), where
    return tags.count("done")


def recover(site: Site) -> Warehouse:
    """Another process comes by after the transaction timeout."""
    site.advance_ms(TIMEOUT_MS + 1)
    other = site.open()
    other.complete()
    for topic in other.admin().list_topics():
        other.topic_log(topic).catch_up()
    assert not other.transactions.log.fold.under_way
    return other


def test_transaction_is_whole_or_nothing_and_its_rerun_makes_it_exactly_once() -> None:
    outcomes = []
    for crashed, where in kills(prepared(), transfer):
        recover(crashed)
        before = committed_transfers(crashed, where)
        transfer(crashed.open())
        assert committed_transfers(crashed, where) == 1, where
        outcomes.append(before)
    assert set(outcomes) == {0, 1}, "the kills must lie on both sides of the decision"


def test_transaction_killed_after_its_decision_is_committed() -> None:
    """Nothing of a transaction is in a public table before it is decided."""
    decided = [
        committed
        for crashed, where in kills(prepared(), transfer)
        if PUBLIC_PUT.search(where)
        for committed in [(recover(crashed), committed_transfers(crashed, where))[1]]
    ]
    assert decided
    assert set(decided) == {1}


def test_aborted_transaction_is_never_visible_wherever_it_dies() -> None:
    for crashed, where in kills(prepared(), abort):
        recover(crashed)
        assert committed_transfers(crashed, where) == 0
        transfer(crashed.open())
        assert committed_transfers(crashed, where) == 1, where


def test_take_over_killed_anywhere_leaves_the_id_usable_and_the_old_transaction_aborted() -> None:
    for crashed, where in kills(prepared(open_transaction=True), take_over):
        transfer(crashed.open())
        assert committed_transfers(crashed, where) == 1, where


def test_completion_killed_anywhere_is_finished_by_another() -> None:
    site = prepared()
    decided = None
    for crashed, where in kills(site, transfer):
        if "transaction_log/_delta_log" in where and crashed.open().transactions.log.fold.decided():
            decided = crashed
            break
    assert decided is not None, "no kill lies between decision and completion"

    for crashed, where in kills(decided, complete):
        recover(crashed)
        assert committed_transfers(crashed, where) == 1, where


def test_plain_append_killed_anywhere_is_whole_or_nothing() -> None:
    seen = set()
    for crashed, where in kills(prepared(), append_plain):
        other = recover(crashed)
        rows = [row for row in published(other, "debit") if row["account"] == "plain"]
        assert len(rows) <= 1, where
        seen.add(len(rows))
    assert seen == {0, 1}


def test_topic_creation_killed_anywhere_is_finished_by_the_same_call() -> None:
    def create(warehouse: Warehouse) -> None:
        warehouse.admin().create_topic("fresh", partitions=2, schema=TWO_COLUMNS, key=["account"])

    for crashed, where in kills(prepared(topics=False), create):
        warehouse = crashed.open()
        try:
            create(warehouse)
        except TopicAlreadyExistsError:
            assert warehouse.admin().list_topics() == ["fresh"], where
        assert warehouse.topic_log("fresh").public.refresh().version == 0, where


def test_new_partitions_killed_anywhere_are_there_or_made_by_the_same_call_and_published() -> None:
    def grow(warehouse: Warehouse) -> None:
        warehouse.admin().create_partitions({"debit": 3})

    found = set()
    for crashed, where in kills(prepared(), grow):
        found.add(crashed.open().topic_log("debit").settings().partitions)
        with suppress(InvalidPartitionsError):
            grow(crashed.open())
        transfer(crashed.open())
        assert committed_transfers(crashed, where) == 1, where
        topic = crashed.open().topic_log("debit")
        public = topic.public.refresh().metadata
        assert topic.settings().partitions == 3, where
        assert public is not None
        assert public.configuration["txntable.topic.partitions"] == "3", where
    assert found == {2, 3}, "the kills must lie on both sides of the commit"


def test_topic_deletion_killed_anywhere_is_finished_by_the_same_call() -> None:
    site = prepared()
    transfer(site.open())

    def delete(warehouse: Warehouse) -> None:
        warehouse.admin().delete_topic("debit")

    for crashed, where in kills(site, delete):
        warehouse = crashed.open()
        try:
            delete(warehouse)
        except UnknownTopicOrPartitionError:
            warehouse.topic_log("debit").catch_up()
        assert published(warehouse, "debit") == [], where
        assert warehouse.admin().list_topics() == ["credit"], where
        warehouse.admin().create_topic("debit", partitions=1, schema=TWO_COLUMNS)
        assert published(warehouse, "debit") == [], where


def test_warehouse_creation_killed_anywhere_is_finished_by_the_same_call() -> None:
    trial = Site()
    store = trial.store()
    create_on(store, trial.environment(), exist_ok=True, settings=WarehouseSettings())
    # The probe races threads: its calls come in any order, so the kill is placed by number only.
    for number in range(1, len(store.steps) + 1):
        for fault in (Fault.KILL_BEFORE, Fault.KILL_AFTER):
            crashed = Site()
            with pytest.raises(ProcessKilled):
                crashed.create(at(number, fault))
            crashed.create().admin().create_topic("t")
            assert crashed.open().admin().list_topics() == ["t"]


def test_checkpoint_killed_anywhere_leaves_the_log_readable() -> None:
    site = prepared()
    transfer(site.open())

    def checkpoint(warehouse: Warehouse) -> None:
        warehouse.transactions.log.write_checkpoint()
        warehouse.topic_log("debit").segments.write_checkpoint()
        warehouse.topic_log("debit").public.write_checkpoint()

    for crashed, where in kills(site, checkpoint):
        assert committed_transfers(crashed, where) == 1
        transfer(crashed.open())
        assert committed_transfers(crashed, where) == 1


def test_cleanup_killed_anywhere_leaves_every_log_readable_and_is_finished_by_the_next() -> None:
    site = prepared()
    transfer(site.open())
    warehouse = site.open()
    logs = (warehouse.transactions.log, warehouse.topic_log("debit").segments, warehouse.topic_log("debit").public)
    for log in logs:
        log.write_checkpoint()
    site.advance_ms(3 * DAY_MS)

    def clean(cleaner: Warehouse) -> None:
        for log in logs:
            assert clean_up(cleaner.context, log.root, DAY_MS).paths

    for crashed, where in kills(site, clean):
        assert committed_transfers(crashed, where) == 1
        for log in logs:
            clean_up(crashed.open().context, log.root, DAY_MS)
            assert not crashed.objects.get(commit_path(log.root, 0)), where
        transfer(crashed.open())
        assert committed_transfers(crashed, where) == 1, where


def leave_groups(warehouse: Warehouse) -> None:
    """A group that is empty for long, one whose only member is silent, and offsets without a group."""
    admin, debit = warehouse.admin(), TopicPartition("debit", 0)
    admin.alter_consumer_group_offsets("old", {debit: 1})
    for group in ("empty", "silent"):
        joined(warehouse, "m", group, topic="debit")
    admin.remove_members_from_consumer_group("empty")
    admin.alter_consumer_group_offsets("empty", {debit: 2})


def site_with_work_for_the_coordinator() -> Site:
    """Work of every kind.

    Idle ids, producers, batch names and groups, logs to clean up, a time-out, a decision, an unpublished append.
    """
    site = prepared()
    idle = site.open()
    idle.admin().create_topic("audit", schema=TWO_COLUMNS)
    abort(idle)
    producer = idle.producer("idle")
    producer.init_transactions()
    producer.begin_transaction(batch_id="2025-10-01")
    producer.commit_transaction()
    append_plain(idle)
    leave_groups(idle)
    for log in (idle.transactions.log, idle.topic_log("debit").segments, idle.topic_log("debit").public):
        log.write_checkpoint()
    site.advance_ms(401 * DAY_MS)

    late = site.open()
    producer = late.producer("late", transaction_timeout_ms=TIMEOUT_MS)
    producer.init_transactions()
    producer.begin_transaction()
    send(producer, "open")
    producer.flush()
    site.advance_ms(TIMEOUT_MS + 1)
    left = site.open(on(Operation.PUT_IF_ABSENT, "debit/_delta_log", Fault.FAIL_BEFORE, occurrence=None))
    transfer(left)
    dying = site.open(on(Operation.PUT_IF_ABSENT, "audit/_delta_log", Fault.FAIL_BEFORE, occurrence=None))
    plain = dying.producer()
    plain.send("audit", row={"account": "unpublished", "amount": 1})
    with pytest.raises(CommitStateUnknownError):
        plain.flush()
    return site


def coordinate(warehouse: Warehouse) -> None:
    warehouse.coordinator().run_once()


def test_coordinator_job_killed_anywhere_is_replaced_by_another_that_finishes_its_work() -> None:
    site = site_with_work_for_the_coordinator()
    report = site.copy().open().coordinator().run_once()
    undone = [name for name, value in asdict(report).items() if not value]
    assert undone == ["failures"], "there must be work of every kind, or its crashes are not enumerated"

    for crashed, where in kills(site, coordinate):
        other = crashed.open().coordinator()
        assert other.run_once().failures == 0, where

        assert not other.run_once().did_something, where
        left = crashed.open()
        assert not left.transactions.log.fold.under_way, where
        assert {row.transactional_id for row in left.transactions.rows()} == {"late", "etl"}, where
        assert not left.transactions.memory("idle", "2025-10-01").name_known, where
        assert left.transactions.memory("etl", BATCH).name_known, where
        assert committed_transfers(crashed, where) == 1, where
        assert [row["account"] for row in published(left, "audit")] == ["unpublished"], where
        groups = [(one.group_id, one.state.name) for one in left.admin().list_consumer_groups()]
        assert groups == [("silent", "EMPTY")], where


def test_two_coordinator_jobs_do_together_what_one_does_wherever_the_second_takes_over() -> None:
    """The second does a whole round at each write of the first, and at each of its looks at the transaction log."""
    site = site_with_work_for_the_coordinator()
    trial = site.copy().open()
    assert isinstance(trial.store, SteppingStore)
    coordinate(trial)

    of_log = "transaction_log/_delta_log"
    for number in [step.number for step in trial.store.steps if step.operation in WRITES or of_log in step.path]:
        shared = site.copy()
        first = shared.open()
        replaced_at(shared, first, number)

        assert not shared.open().transactions.log.fold.under_way, number
        assert committed_transfers(shared, f"step {number}") == 1
        assert [row["account"] for row in published(shared.open(), "audit")] == ["unpublished"], number


def replaced_at(site: Site, first: Warehouse, number: int) -> None:
    """Run a job to its end; at one of its steps another one does a whole round."""
    store = first.store
    assert isinstance(store, SteppingStore)

    def replace(step: Step) -> None:
        if step.number == number:
            assert site.open().coordinator().run_once().failures == 0

    store.on_step = replace
    with suppress(TransactionCoordinatorFencedError):
        coordinate(first)
