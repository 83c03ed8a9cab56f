"""Transactions entry by entry, ends made again, and a store that is away for a while."""

from __future__ import annotations

import json

import pytest

from tests.doubles.fault_plan import Fault, Step, on
from tests.simulation.site import TWO_COLUMNS, Site
from tests.unit.producer.producing import PUT, T_LOG, accounts, lose_answers, row, started, store_of, unreachable
from tests.unit.upkeep.coordinating import SETTINGS, run_once
from txntable.coordinator import past_decisions
from txntable.errors import (
    CommitStateUnknownError,
    IllegalStateError,
    InvalidPidMappingError,
    InvalidProducerEpochError,
    InvalidTxnStateError,
    ProducerFencedError,
    StorePermissionError,
    StoreUnavailableError,
    TransactionOutcomeUnknownError,
    UnknownTopicOrPartitionError,
)
from txntable.format.records import TopicPartition
from txntable.log.actions import Add
from txntable.producer.producer import Producer
from txntable.warehouse.warehouse import Warehouse


def entries(site: Site, log: str) -> list[dict]:
    """What the commits of a log say of themselves, oldest first."""
    found = site.objects_below(f"{log}/_delta_log")
    return [
        json.loads(found[path].data.splitlines()[0])["commitInfo"] for path in sorted(found) if path.endswith(".json")
    ]


def operations(site: Site, log: str = "system/transaction_log") -> list[str]:
    return [entry["operation"] for entry in entries(site, log)]


def rows_of_s(site: Site, topic: str) -> list[Add]:
    return list(site.open().topic_log(topic).segments.refresh().files)


def with_data(warehouse: Warehouse, account: str = "x") -> Producer:
    producer = started(warehouse)
    producer.begin_transaction()
    producer.send("u", row=row(account))
    producer.flush()
    return producer


# -- what is written ----------------------------------------------------------------------------


def test_partition_joins_a_transaction_once_however_often_it_is_appended_to(site: Site) -> None:
    producer = started(site.open())
    producer.begin_transaction()
    for number in range(3):
        producer.send("t", row=row(str(number)), partition=0)
        producer.flush()
    producer.send("t", row=row("other"), partition=1)
    producer.flush()
    producer.commit_transaction()

    assert operations(site).count("ENROL") == 2


def test_sequences_start_at_zero_in_every_transaction_and_markers_carry_the_raised_epoch(site: Site) -> None:
    producer = started(site.open())
    for end in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        producer.send("u", row=row("x"))
        producer.flush()
        end()

    found = {
        (add.partition_values["_producer_epoch"], add.partition_values["_control"]): add for add in rows_of_s(site, "u")
    }
    assert set(found) == {("0", None), ("1", "COMMIT"), ("1", None), ("2", "ABORT")}
    assert [json.loads(found[epoch, None].tag or "")["first_sequence"] for epoch in ("0", "1")] == [0, 0]


def test_transaction_in_many_partitions_joins_them_at_once_and_ends_them_by_one_entry_of_each_topic(site: Site) -> None:
    producer = started(site.open())
    with producer.transaction() as txn:
        for partition in (0, 1):
            txn.send("t", row=row("x"), partition=partition)
        txn.send("u", row=row("y"))

    assert operations(site, "topics/t/_segments").count("MARKERS") == 1
    assert operations(site, "topics/u/_segments").count("MARKERS") == 1
    assert operations(site)[-2:] == ["INIT", "COMMIT"], "the decision carries all of them"
    (marker,) = (add for add in rows_of_s(site, "t") if add.partition_values["_control"] is not None)
    assert json.loads(marker.partition_values["_marker"] or "")["offsets"] == {"0": 1, "1": 1}


def test_abort_drops_what_was_not_sent_yet_and_writes_nothing(site: Site) -> None:
    producer = started(site.open())
    before = operations(site)
    producer.begin_transaction()
    producer.send("u", row=row("never"))
    producer.abort_transaction()
    with producer.transaction() as txn:
        kept = txn.send("u", row=row("kept"))

    assert operations(site)[len(before) :] == ["COMMIT"]
    assert (accounts(site, "u"), kept.offset) == (["kept"], 0)


@pytest.mark.parametrize("ending", ["commit_transaction", "abort_transaction"])
def test_empty_abort_after_any_ending_does_not_fence_its_own_producer(site: Site, ending: str) -> None:
    producer = with_data(site.open(), "first")
    getattr(producer, ending)()
    producer.begin_transaction()
    producer.abort_transaction()
    producer.begin_transaction()
    producer.send("u", row=row("last"))

    producer.commit_transaction()

    assert accounts(site, "u") == (["first"] if ending == "commit_transaction" else []) + ["last"]


def test_two_that_complete_at_once_write_one_marker_and_one_completion(site: Site) -> None:
    warehouse = site.open()
    producer = with_data(warehouse)
    store_of(warehouse).plan = (on(None, "markers/", Fault.FAIL_BEFORE, occurrence=None),)
    producer.commit_transaction()
    one, other = site.open(), site.open()
    met: list[str] = []

    def overtake(step: Step) -> None:
        if step.operation is PUT and ("u/_segments/_delta_log" in step.path or T_LOG in step.path):
            met.append(step.path)
            if len(met) == 1:
                other.complete()

    store_of(one).on_step = overtake
    one.complete()

    assert met
    assert operations(site).count("COMPLETE") == 1
    assert operations(site, "topics/u/_segments").count("MARKERS") == 1
    assert accounts(site, "u") == ["x"]


# -- unknown outcomes ---------------------------------------------------------------------------


@pytest.mark.parametrize("applied", [True, False])
@pytest.mark.parametrize(("call", "other"), [("commit", "abort"), ("abort", "commit")])
def test_end_of_unknown_outcome_is_made_again_and_never_switched(
    site: Site, call: str, other: str, applied: bool
) -> None:
    warehouse = site.open()
    producer = with_data(warehouse)
    lose_answers(warehouse, applied=applied)
    with pytest.raises(CommitStateUnknownError):
        getattr(producer, f"{call}_transaction")()

    for wrong in (getattr(producer, f"{other}_transaction"), producer.begin_transaction, producer.flush):
        with pytest.raises(IllegalStateError, match=f"call {call}_transaction again"):
            wrong()
    store_of(warehouse).plan = ()
    getattr(producer, f"{call}_transaction")()

    assert accounts(site, "u") == (["x"] if call == "commit" else [])
    assert (producer.state, producer.producer_epoch) == ("READY", 1)


def test_repeated_commit_does_not_touch_a_transaction_that_began_since(site: Site) -> None:
    """Its outcome was unknown, another process of the same id went on; the answer is still the first one."""
    warehouse = site.open()
    producer = with_data(warehouse, "first")
    lose_answers(warehouse, applied=True)
    with pytest.raises(CommitStateUnknownError):
        producer.commit_transaction()
    heir = with_data(site.open(), "second")

    store_of(warehouse).plan = ()
    producer.commit_transaction()

    assert accounts(site, "u") == ["first"]
    heir.commit_transaction()
    assert accounts(site, "u") == ["first", "second"]


def test_commit_of_unknown_outcome_that_never_arrived_is_refused_after_the_timeout(site: Site) -> None:
    warehouse = site.open()
    producer = with_data(warehouse)
    lose_answers(warehouse, applied=False)
    with pytest.raises(CommitStateUnknownError):
        producer.commit_transaction()
    site.advance_ms(60_001)
    site.open().complete()

    store_of(warehouse).plan = ()
    with pytest.raises(InvalidTxnStateError):
        producer.commit_transaction()

    assert producer.state == "FATAL_ERROR"
    assert accounts(site, "u") == []


# -- a store that is away -----------------------------------------------------------------------


@pytest.mark.parametrize("call", ["init", "flush", "send offsets", "commit", "abort"])
def test_call_says_that_the_store_is_away_and_the_producer_works_on_when_it_is_back(site: Site, call: str) -> None:
    warehouse = site.open()
    producer = warehouse.producer("etl")
    if call != "init":
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("u", row=row("x"))
    if call in ("commit", "abort"):
        producer.flush()
    calls = {
        "init": producer.init_transactions,
        "flush": producer.flush,
        "send offsets": lambda: producer.send_offsets_to_transaction({TopicPartition("u", 0): 1}, "g"),
        "commit": producer.commit_transaction,
        "abort": producer.abort_transaction,
    }
    store_of(warehouse).plan = (on(None, "", Fault.FAIL_BEFORE, occurrence=None),)
    with pytest.raises((StoreUnavailableError, CommitStateUnknownError)):
        calls[call]()

    store_of(warehouse).plan = ()
    calls[call]()
    if call in ("flush", "send offsets"):
        producer.commit_transaction()

    assert producer.state == "READY"
    assert accounts(site, "u") == ([] if call in ("init", "abort") else ["x"])


def test_marker_that_could_not_be_written_does_not_fail_the_commit(site: Site) -> None:
    warehouse = site.open()
    producer = with_data(warehouse)
    store_of(warehouse).plan = (*unreachable("u/_segments/_delta_log"),)

    producer.commit_transaction()

    assert (producer.state, accounts(site, "u")) == ("READY", [])
    assert site.open().complete() == 1
    assert accounts(site, "u") == ["x"]


# -- refused batches ----------------------------------------------------------------------------


def test_idempotent_producer_goes_on_under_a_raised_epoch_from_zero_when_a_batch_was_refused(site: Site) -> None:
    warehouse = site.open()
    producer = warehouse.producer()
    producer.send("u", row=row("first"))
    producer.flush()
    producer.send("t", row=row("refused"))
    admin = site.open().admin()
    admin.delete_topic("t")
    admin.create_topic("t", schema=TWO_COLUMNS)
    with pytest.raises(UnknownTopicOrPartitionError):
        producer.flush()

    producer.send("u", row=row("second"))
    producer.flush()

    assert (accounts(site, "u"), producer.producer_epoch) == (["first", "second"], 1)
    tags = {add.partition_values["_producer_epoch"]: json.loads(add.tag or "") for add in rows_of_s(site, "u")}
    assert {epoch: tag["first_sequence"] for epoch, tag in tags.items()} == {"0": 0, "1": 0}


def test_commit_stays_unknown_when_credentials_end_before_its_second_try(site: Site) -> None:
    warehouse = site.open()
    producer = started(warehouse)
    producer.begin_transaction()
    producer.send("u", row=row("x"))
    producer.flush()
    lose_answers(warehouse, applied=True)
    with pytest.raises(CommitStateUnknownError):
        producer.commit_transaction()

    def expire(step: Step) -> None:
        raise StorePermissionError("credentials expired")

    store_of(warehouse).plan, store_of(warehouse).on_step = (), expire
    with pytest.raises(StorePermissionError):
        producer.commit_transaction()

    store_of(warehouse).on_step = None
    with pytest.raises(IllegalStateError, match="call commit_transaction again"):
        producer.abort_transaction()
    producer.commit_transaction()

    assert accounts(site, "u") == ["x"]


# -- commits asked again after others' transactions ----------------------------------------------


def _unsure(site: Site, warehouse: Warehouse, *, applied: bool, batch_id: str | None = None) -> Producer:
    """A producer whose commit was not answered."""
    producer = started(warehouse)
    producer.begin_transaction(batch_id)
    producer.send("u", row=row("mine"))
    producer.flush()
    lose_answers(warehouse, applied=applied)
    with pytest.raises((CommitStateUnknownError, StoreUnavailableError)):
        producer.commit_transaction()
    store_of(warehouse).plan = ()
    return producer


def _another_commits(site: Site, times: int = 1) -> None:
    for number in range(times):
        with started(site.open()) as producer, producer.transaction() as txn:
            txn.send("u", row=row(f"other {number}"))


@pytest.mark.parametrize("times", [1, 3])
def test_commit_that_happened_is_told_so_after_other_processes_transactions(site: Site, times: int) -> None:
    """Bug: it was told that it was fenced, although its records were there: who sends them again doubles them."""
    producer = _unsure(site, site.open(), applied=True)
    _another_commits(site, times)

    producer.commit_transaction()

    assert accounts(site, "u") == ["mine", *(f"other {number}" for number in range(times))]
    producer.begin_transaction()
    producer.send("u", row=row("zombie"))
    with pytest.raises(InvalidProducerEpochError):
        producer.flush()


def test_commit_that_did_not_happen_is_fenced_after_another_processs_transaction(site: Site) -> None:
    producer = _unsure(site, site.open(), applied=False)
    _another_commits(site)

    with pytest.raises(ProducerFencedError):
        producer.commit_transaction()

    assert accounts(site, "u") == ["other 0"]


@pytest.mark.parametrize("gone", ["forgotten", "expired"])
@pytest.mark.parametrize("applied", [True, False])
@pytest.mark.parametrize("batch_id", ["run", None])
def test_commit_asked_again_when_its_decision_is_not_kept_is_unknown_unless_its_batch_id_tells(
    site: Site, monkeypatch: pytest.MonkeyPatch, gone: str, applied: bool, batch_id: str | None
) -> None:
    monkeypatch.setattr(past_decisions, "LONGEST_TEXT", 1)
    producer = _unsure(site, site.open(), applied=applied, batch_id=batch_id)
    if gone == "expired":
        if not applied:
            site.open().admin().abort_transaction("etl")
        site.open().complete()
        site.advance_ms(SETTINGS.transactional_id_expiration_ms)
        assert run_once(site).expired_transactional_ids == 1
    _another_commits(site, 2)

    if applied and batch_id:
        producer.commit_transaction()
    else:
        definite = InvalidPidMappingError if gone == "expired" else ProducerFencedError
        with pytest.raises(definite if batch_id else TransactionOutcomeUnknownError):
            producer.commit_transaction()

    assert accounts(site, "u")[: int(applied)] == ["mine"] * applied
