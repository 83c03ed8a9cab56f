"""Transactions of producers over a store in memory: Kafka's outcomes (PROTOCOL.md §6)."""

from __future__ import annotations

import gc

import pytest

from tests.doubles.fault_plan import Fault, on
from tests.simulation.site import Site
from tests.unit.producer.producing import PUT, accounts, lose_answers, row, started, store_of, unreachable
from txntable.errors import (
    BatchAlreadyCommittedError,
    BatchOutOfOrderError,
    CommitStateUnknownError,
    IllegalStateError,
    InvalidProducerEpochError,
    InvalidTxnStateError,
    ProducerFencedError,
    StoreUnavailableError,
    TransactionAbortableError,
)

# -- transactions -------------------------------------------------------------------------------


def test_committed_transaction_is_visible_in_every_topic_when_commit_returns(site: Site) -> None:
    producer = started(site.open())
    with producer.transaction() as txn:
        first = txn.send("t", row=row("a"))
        txn.send("u", row=row("b"))

    assert (accounts(site, "t"), accounts(site, "u")) == (["a"], ["b"])
    assert first.offset == 0
    assert producer.state == "READY"


def test_aborted_transaction_is_invisible_and_its_offsets_are_a_gap(site: Site) -> None:
    producer = started(site.open())
    producer.begin_transaction()
    producer.send("u", row=row("gone"))
    producer.flush()
    producer.abort_transaction()
    with producer.transaction() as txn:
        kept = txn.send("u", row=row("kept"))

    assert accounts(site, "u") == ["kept"]
    assert kept.offset == 2, "one aborted record and its marker lie below"


def test_epoch_rises_at_every_decision_and_not_for_an_empty_transaction(site: Site) -> None:
    producer = started(site.open())
    seen = [producer.producer_epoch]
    for sends, ends in (
        (True, producer.commit_transaction),
        (True, producer.abort_transaction),
        (False, producer.commit_transaction),
    ):
        producer.begin_transaction()
        if sends:
            producer.send("u", row=row("x"))
            producer.flush()
        ends()
        seen.append(producer.producer_epoch)

    assert seen == [0, 1, 2, 2]


def test_exception_in_the_block_aborts_and_is_raised(site: Site) -> None:
    producer = started(site.open())

    def fail() -> None:
        with producer.transaction() as txn:
            txn.send("u", row=row("x"))
            txn.flush()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()

    assert accounts(site, "u") == []
    assert producer.state == "READY"


def test_open_transaction_of_the_id_is_aborted_by_the_next_init(site: Site) -> None:
    old = started(site.open())
    old.begin_transaction()
    old.send("u", row=row("old"))
    old.flush()

    new = started(site.open())
    with new.transaction() as txn:
        txn.send("u", row=row("new"))

    assert accounts(site, "u") == ["new"]
    assert new.producer_epoch == 3, "abort raised it by one, init by one, the commit by one"


@pytest.mark.parametrize(
    ("call", "error", "state"),
    [
        ("flush", InvalidProducerEpochError, "ABORTABLE_ERROR"),
        ("commit", ProducerFencedError, "FATAL_ERROR"),
        ("abort", ProducerFencedError, "FATAL_ERROR"),
    ],
)
def test_zombie_is_refused_by_what_it_does_first(site: Site, call: str, error: type[Exception], state: str) -> None:
    zombie = started(site.open())
    zombie.begin_transaction()
    zombie.send("u", row=row("zombie"))
    zombie.flush()
    started(site.open())

    if call == "flush":
        zombie.send("u", row=row("again"))
    calls = {"flush": zombie.flush, "commit": zombie.commit_transaction, "abort": zombie.abort_transaction}
    with pytest.raises(error):
        calls[call]()

    assert zombie.state == state
    assert accounts(site, "u") == []


def test_zombie_that_appends_after_its_verification_is_refused_at_its_slot(site: Site) -> None:
    """The fencing lands between the zombie's reading of T and its append: the slot is taken by the marker."""
    warehouse = site.open()
    zombie = started(warehouse)
    zombie.begin_transaction()
    zombie.send("u", row=row("first"))
    zombie.flush()
    zombie.send("u", row=row("late"))
    fenced: list[int] = []

    def fence(step) -> None:
        if step.operation is PUT and "u/_segments/_delta_log" in step.path and not fenced:
            fenced.append(1)
            started(site.open())

    store_of(warehouse).on_step = fence
    with pytest.raises(InvalidProducerEpochError):
        zombie.flush()

    assert fenced
    assert accounts(site, "u") == []


def test_timed_out_transaction_is_aborted_by_whoever_looks_and_its_producer_can_go_on(site: Site) -> None:
    producer = started(site.open(), transaction_timeout_ms=10_000)
    producer.begin_transaction()
    producer.send("u", row=row("late"))
    producer.flush()

    other = site.open()
    assert other.complete() == 0
    site.advance_ms(10_001)
    assert other.complete() == 1

    producer.abort_transaction()
    with producer.transaction() as txn:
        txn.send("u", row=row("next"))
    assert accounts(site, "u") == ["next"]


def test_commit_after_the_timeout_is_refused_for_good(site: Site) -> None:
    producer = started(site.open(), transaction_timeout_ms=10_000)
    producer.begin_transaction()
    producer.send("u", row=row("late"))
    producer.flush()
    site.advance_ms(10_001)
    site.open().complete()

    with pytest.raises(InvalidTxnStateError):
        producer.commit_transaction()
    assert producer.state == "FATAL_ERROR"


@pytest.mark.parametrize("fault", [Fault.LOST_ANSWER, Fault.EXISTS_LOST, Fault.FAIL_BEFORE, Fault.CONFLICT_409])
def test_transaction_commits_once_when_any_put_of_it_is_answered_wrongly(site: Site, fault: Fault) -> None:
    trial = site.copy().open()
    with started(trial).transaction() as txn:
        txn.send("u", row=row("x"))
    puts = [step for step in store_of(trial).steps if step.operation is PUT]

    for number in range(1, len(puts) + 1):
        crashed = site.copy()
        warehouse = crashed.open(on(PUT, lambda path: True, fault, occurrence=number))
        with started(warehouse).transaction() as txn:
            txn.send("u", row=row("x"))
        assert accounts(crashed, "u") == ["x"], puts[number - 1]


def test_commit_of_unknown_outcome_can_only_be_asked_again_and_then_tells(site: Site) -> None:
    warehouse = site.open()
    producer = started(warehouse)
    producer.begin_transaction()
    producer.send("u", row=row("x"))
    producer.flush()
    lose_answers(warehouse, applied=True)

    with pytest.raises(CommitStateUnknownError):
        producer.commit_transaction()
    with pytest.raises(IllegalStateError, match="call commit_transaction again"):
        producer.abort_transaction()
    store_of(warehouse).plan = ()
    producer.commit_transaction()

    assert accounts(site, "u") == ["x"]
    assert producer.state == "READY"


def test_append_of_unknown_outcome_allows_only_abort(site: Site) -> None:
    warehouse = site.open()
    producer = started(warehouse)
    producer.begin_transaction()
    producer.send("u", row=row("x"))
    store_of(warehouse).plan = unreachable("u/_segments/_delta_log")

    with pytest.raises(TransactionAbortableError):
        producer.flush()
    store_of(warehouse).plan = ()
    with pytest.raises(TransactionAbortableError, match="COMMIT_STATE_UNKNOWN"):
        producer.commit_transaction()
    producer.abort_transaction()

    assert accounts(site, "u") == []


@pytest.mark.parametrize("end", ["commit_transaction", "abort_transaction"])
def test_commit_that_cannot_read_a_topic_decides_nothing_and_may_be_asked_again_or_aborted(
    site: Site, end: str
) -> None:
    warehouse = site.open()
    producer = started(warehouse)
    producer.begin_transaction()
    producer.send("u", row=row("x"))
    store_of(warehouse).plan = unreachable("u/_segments/_delta_log")

    with pytest.raises(StoreUnavailableError):
        producer.commit_transaction()
    store_of(warehouse).plan = ()
    getattr(producer, end)()

    assert accounts(site, "u") == (["x"] if end == "commit_transaction" else [])


# -- batch ids ----------------------------------------------------------------------------------


def test_named_batch_is_refused_before_any_work_once_it_committed(site: Site) -> None:
    producer = started(site.open())
    with producer.transaction(batch_id="run") as txn:
        txn.send("u", row=row("x"))

    with pytest.raises(BatchAlreadyCommittedError):
        started(site.open()).begin_transaction(batch_id="run")
    producer.begin_transaction(batch_id="another run")


def test_aborted_batch_may_be_run_again(site: Site) -> None:
    producer = started(site.open())
    producer.begin_transaction(batch_id="run")
    producer.send("u", row=row("x"))
    producer.flush()
    producer.abort_transaction()

    producer.begin_transaction(batch_id="run")


def test_empty_run_with_a_batch_id_is_remembered(site: Site) -> None:
    producer = started(site.open())
    with producer.transaction(batch_id="empty"):
        pass

    assert producer.is_committed("empty")
    with pytest.raises(BatchAlreadyCommittedError):
        producer.begin_transaction(batch_id="empty")


@pytest.mark.parametrize(
    ("batch_id", "error"), [(6, BatchAlreadyCommittedError), (5, BatchOutOfOrderError), (7, None), (9, None)]
)
def test_integer_batch_is_a_sequence(site: Site, batch_id: int, error: type[Exception] | None) -> None:
    producer = started(site.open())
    with producer.transaction(batch_id=6) as txn:
        txn.send("u", row=row("x"))

    if error is None:
        producer.begin_transaction(batch_id=batch_id)
    else:
        with pytest.raises(error):
            producer.begin_transaction(batch_id=batch_id)


@pytest.mark.parametrize("committed", [(4, 5, 6), (4, 6)])
def test_integer_below_the_last_is_told_alike_whether_it_was_done_or_passed_over(
    site: Site, committed: tuple[int, ...]
) -> None:
    producer = started(site.open())
    for batch_id in committed:
        with producer.transaction(batch_id=batch_id):
            pass

    with pytest.raises(BatchOutOfOrderError, match="whether this one was is not remembered: skip"):
        producer.begin_transaction(batch_id=5)

    assert producer.is_committed(5)
    producer.begin_transaction(batch_id="run-5")


def test_records_that_nobody_flushed_are_told_of_when_their_producer_is_dropped(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    flushed, dropped = site.open().producer(), site.open().producer()
    flushed.send("u", row=row("ann"))
    flushed.close()
    dropped.send("t", row=row("bob"))

    del flushed, dropped
    gc.collect()

    assert [record.args for record in caplog.records] == [("t",)]
