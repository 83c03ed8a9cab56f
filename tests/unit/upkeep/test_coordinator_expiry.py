"""The coordinator job: what expires, what never does, and the cleanup of logs."""

from __future__ import annotations

import pytest

from tests.doubles.fault_plan import Fault, Operation, Step, on
from tests.simulation.site import Site
from tests.unit.producer.producing import PUT, T_LOG, accounts, row, started, store_of
from tests.unit.upkeep.coordinating import (
    A_MOMENT_MS,
    DAY_MS,
    SETTINGS,
    committed,
    decide_only,
    opened,
    run_once,
    state_of,
)
from txntable.coordinator.transaction_state import TransactionState
from txntable.errors import (
    BatchAlreadyCommittedError,
    InvalidPidMappingError,
    TxnTableError,
)

# -- expiry of transactional ids and batch names ------------------------------------------------


def test_idle_id_expires_its_producer_is_told_and_a_new_one_gets_a_new_producer_id(site: Site) -> None:
    producer = committed(site)
    site.advance_ms(SETTINGS.transactional_id_expiration_ms)

    assert run_once(site).expired_transactional_ids == 1

    assert state_of(site) is None
    producer.begin_transaction()
    producer.send("t", row=row("zombie"))
    with pytest.raises(InvalidPidMappingError):
        producer.commit_transaction()
    assert started(site.open()).producer_id != producer.producer_id
    assert accounts(site, "t") == ["etl"]


def test_id_that_was_used_within_the_expiration_time_stays(site: Site) -> None:
    committed(site, "old")
    site.advance_ms(SETTINGS.transactional_id_expiration_ms - 1)
    committed(site, "used")

    assert run_once(site).expired_transactional_ids == 0
    site.advance_ms(1)
    assert run_once(site).expired_transactional_ids == 1

    assert (state_of(site, "old"), state_of(site, "used")) == (None, TransactionState.COMPLETE_COMMIT)


def test_id_whose_entry_was_cleaned_up_is_older_than_anything(site: Site) -> None:
    committed(site)
    warehouse = site.open()
    warehouse.transactions.log.write_checkpoint()
    for path in list(site.objects_below(f"system/{T_LOG}")):
        if path.endswith(".json") and path < f"system/{T_LOG}/{warehouse.transactions.log.table.version:020d}":
            site.objects.delete(path)
    site.advance_ms(SETTINGS.transactional_id_expiration_ms)

    assert run_once(site).expired_transactional_ids == 1


def test_open_prepared_and_decided_transactions_never_expire(site: Site) -> None:
    opened(site.open(), "prepared").prepare_transaction()
    warehouse = site.open()
    decide_only(warehouse, opened(warehouse, "decided", "u"))
    opened(site.open(), "open")
    warehouse = site.open()
    site.advance_ms(300 * DAY_MS)
    spoiled = (
        on(None, "topics/u/", Fault.FAIL_BEFORE, occurrence=None),
        on(PUT, "topics/t/", Fault.FAIL_BEFORE, occurrence=None),
    )
    store_of(warehouse).plan = spoiled

    report = warehouse.coordinator().run_once()

    assert report.expired_transactional_ids == 0
    assert state_of(site, "prepared") is TransactionState.PREPARED
    assert state_of(site, "decided") is TransactionState.PREPARE_COMMIT
    assert state_of(site, "open") is TransactionState.PREPARE_ABORT


def test_batch_name_outlives_its_id_and_is_forgotten_after_its_own_retention(site: Site) -> None:
    committed(site, batch_id="2026-11-20")
    site.advance_ms(SETTINGS.transactional_id_expiration_ms)
    report = run_once(site)
    assert (report.expired_transactional_ids, report.expired_batch_names) == (1, 0)
    with pytest.raises(BatchAlreadyCommittedError):
        committed(site, batch_id="2026-11-20")

    site.advance_ms(SETTINGS.batch_retention_ms)
    assert run_once(site).expired_batch_names == 1

    committed(site, batch_id="2026-11-20")
    assert accounts(site, "t") == ["etl", "etl"]


def test_integer_batch_is_never_forgotten(site: Site) -> None:
    producer = started(site.open())
    producer.begin_transaction(batch_id=4)
    producer.commit_transaction()
    site.advance_ms(10 * SETTINGS.batch_retention_ms)

    assert run_once(site).expired_batch_names == 0

    with pytest.raises(BatchAlreadyCommittedError):
        started(site.open()).begin_transaction(batch_id=4)


@pytest.mark.parametrize("committed_meanwhile", [False, True])
def test_id_that_is_used_while_it_expires_stays(site: Site, committed_meanwhile: bool) -> None:
    """Behaviour 37 of Kafka: the removal is decided again on the row below its slot."""
    producer = committed(site)
    committed(site, "idle")
    site.advance_ms(SETTINGS.transactional_id_expiration_ms)
    warehouse = site.open()
    coordinator = warehouse.coordinator()
    coordinator.claim()
    store = store_of(warehouse)

    def use(step: Step) -> None:
        if step.operation is PUT and T_LOG in step.path:
            store.on_step = None
            producer.begin_transaction()
            producer.send("t", row=row("again"))
            producer.flush()
            if committed_meanwhile:
                producer.commit_transaction()

    store.on_step = use

    report = coordinator.run_once()

    assert report.expired_transactional_ids == 1
    expected = TransactionState.PREPARE_COMMIT if committed_meanwhile else TransactionState.ONGOING
    assert (state_of(site), state_of(site, "idle")) == (expected, None)
    if not committed_meanwhile:
        producer.commit_transaction()
    assert sorted(accounts(site, "t")) == ["again", "etl", "idle"]


def test_many_ids_expire_in_few_commits_and_few_questions(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("txntable.transactions.transaction_expiration.LARGEST_COMMIT_ROWS", 4)
    for number in range(10):
        started(site.open(), f"id-{number}")
    site.advance_ms(SETTINGS.transactional_id_expiration_ms)
    warehouse = site.open()
    coordinator = warehouse.coordinator()
    coordinator.claim()
    store_of(warehouse).steps.clear()

    assert coordinator.run_once().expired_transactional_ids == 10

    steps = store_of(warehouse).steps
    entries = [step for step in steps if step.operation is PUT and step.path.endswith(".json")]
    assert len([step for step in entries if T_LOG in step.path]) == 3
    assert len([step for step in steps if step.operation is Operation.HEAD and T_LOG in step.path]) <= 6


# -- expiry of producer ids, and cleanup --------------------------------------------------------


def test_idle_producer_id_is_forgotten_by_its_partitions_while_its_transactional_id_stays(site: Site) -> None:
    """Behaviour 114 of Kafka: the id keeps its producer id, and goes on under the next epoch."""
    producer = committed(site)
    site.advance_ms(SETTINGS.producer_id_expiration_ms + A_MOMENT_MS)

    report = run_once(site)

    assert (report.expired_producers, report.expired_transactional_ids) == (1, 0)
    assert not site.open().topic_log("t").segments.fold.producers
    producer.begin_transaction()
    producer.send("t", row=row("later"))
    producer.commit_transaction()
    assert accounts(site, "t") == ["etl", "later"]


def test_zombie_of_an_old_epoch_is_refused_after_the_partition_forgot_its_producer(site: Site) -> None:
    zombie = opened(site.open())
    committed(site)
    site.advance_ms(SETTINGS.producer_id_expiration_ms + A_MOMENT_MS)
    assert run_once(site).expired_producers > 0

    zombie.send("t", row=row("zombie"))
    with pytest.raises(TxnTableError) as refused:
        zombie.flush()

    assert refused.value.code == "INVALID_PRODUCER_EPOCH"
    assert accounts(site, "t") == ["etl"]


def test_producer_that_appends_while_it_expires_is_remembered(site: Site) -> None:
    """What was idle is decided again on the state below the slot: a batch sent again must still be known."""
    writing = site.open()
    producer = writing.producer()
    producer.send("t", row=row("a"), partition=0)
    producer.flush()
    site.advance_ms(SETTINGS.producer_id_expiration_ms)
    warehouse = site.open()
    store = store_of(warehouse)

    def use(step: Step) -> None:
        if step.operation is PUT and "t/_segments/_delta_log" in step.path:
            store.on_step = None
            producer.send("t", row=row("b"), partition=0)
            producer.flush()

    store.on_step = use

    assert warehouse.coordinator().run_once().expired_producers == 0

    assert store.on_step is None
    live = site.open().topic_log("t").segments
    live.refresh()
    assert set(live.fold.producers) == {(0, producer.producer_id)}


def test_idempotent_producer_goes_on_after_its_partition_forgot_it(site: Site) -> None:
    """Behaviour 115 of Kafka."""
    producer = site.open().producer()
    producer.send("t", row=row("ann"), partition=0)
    producer.flush()
    site.advance_ms(SETTINGS.producer_id_expiration_ms + A_MOMENT_MS)
    assert run_once(site).expired_producers == 1

    producer.send("t", row=row("ann", 2), partition=0)
    producer.flush()

    assert accounts(site, "t") == ["ann", "ann"]


def test_round_cleans_up_every_log_by_its_own_retention(site: Site) -> None:
    committed(site)
    warehouse = site.open()
    topic = warehouse.topic_log("t")
    topic.segments.refresh()
    topic.public.refresh()
    warehouse.offsets.refresh()
    for log in (warehouse.transactions.log, topic.segments, topic.public):
        log.write_checkpoint()
    site.advance_ms(DAY_MS + 1)

    def oldest(root: str) -> str:
        return min(path for path in site.objects_below(f"{root}/_delta_log") if path.endswith(".json"))

    assert run_once(site).cleaned_log_files == 1
    assert not oldest("topics/t/_segments").endswith("0.json")
    assert oldest("topics/t").endswith("0.json")
    site.advance_ms(SETTINGS.vacuum_retention_ms)
    assert run_once(site).cleaned_log_files > 0
    assert not oldest("topics/t").endswith("0.json")
    assert not oldest("system/transaction_log").endswith("0.json")
    assert accounts(site, "t") == ["etl"]
