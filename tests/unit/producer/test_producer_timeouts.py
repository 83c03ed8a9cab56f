"""Transaction timeouts: when the clock runs, what a late producer is told, and who is left alone."""

from __future__ import annotations

import pytest

from tests.doubles.fault_plan import Fault, on
from tests.simulation.site import Site
from tests.unit.producer.producing import T_LOG, accounts, row, started, store_of, unreachable
from txntable.errors import (
    CommitStateUnknownError,
    InvalidProducerEpochError,
    InvalidTxnStateError,
    StoreUnavailableError,
    TxnTableError,
)
from txntable.producer.producer import Producer

TIMEOUT_MS = 10_000


def with_data(site: Site) -> Producer:
    """A producer whose transaction has one record in the log."""
    producer = started(site.open(), transaction_timeout_ms=TIMEOUT_MS)
    producer.begin_transaction()
    producer.send("u", row=row("first"))
    producer.flush()
    return producer


def timed_out(site: Site) -> Producer:
    """The same, aborted by somebody after its timeout."""
    producer = with_data(site)
    site.advance_ms(TIMEOUT_MS + 1)
    assert site.open().complete() == 1
    return producer


def test_clock_starts_when_the_first_partition_joins_and_not_at_begin(site: Site) -> None:
    producer = started(site.open(), transaction_timeout_ms=TIMEOUT_MS)
    producer.begin_transaction()
    site.advance_ms(10 * TIMEOUT_MS)
    producer.send("u", row=row("x"))
    producer.flush()
    site.advance_ms(TIMEOUT_MS)

    assert site.open().complete() == 0
    producer.commit_transaction()

    assert accounts(site, "u") == ["x"]


def test_later_sends_and_partitions_do_not_extend_the_timeout(site: Site) -> None:
    producer = with_data(site)
    site.advance_ms(TIMEOUT_MS - 1)
    producer.send("u", row=row("more"))
    producer.send("t", row=row("elsewhere"))
    producer.flush()
    site.advance_ms(2)

    assert site.open().complete() == 1
    assert accounts(site, "u") == []


def test_next_transaction_has_a_clock_of_its_own(site: Site) -> None:
    producer = with_data(site)
    site.advance_ms(TIMEOUT_MS)
    producer.commit_transaction()
    producer.begin_transaction()
    producer.send("u", row=row("second"))
    producer.flush()
    site.advance_ms(TIMEOUT_MS)

    assert site.open().complete() == 0
    producer.commit_transaction()

    assert accounts(site, "u") == ["first", "second"]


def test_producer_may_commit_late_as_long_as_nobody_looked(site: Site) -> None:
    producer = with_data(site)
    site.advance_ms(10 * TIMEOUT_MS)

    producer.commit_transaction()

    assert accounts(site, "u") == ["first"]


def test_timeout_spares_what_is_not_open(site: Site) -> None:
    idle, begun, done = (started(site.open(), name, TIMEOUT_MS) for name in ("idle", "begun", "done"))
    begun.begin_transaction()
    with done.transaction() as txn:
        txn.send("u", row=row("x"))
    done.close()
    rows = site.open().admin().list_transactions()
    site.advance_ms(10 * TIMEOUT_MS)

    assert site.open().complete() == 0

    assert site.open().admin().list_transactions() == rows
    assert idle.state == "READY"


def test_only_what_was_sent_before_the_timeout_is_in_the_log_and_none_of_it_is_visible(site: Site) -> None:
    producer = timed_out(site)
    producer.send("u", row=row("late"))
    with pytest.raises(InvalidProducerEpochError):
        producer.flush()

    rows = [add.partition_values for add in site.open().topic_log("u").segments.refresh().files]
    assert [values["_control"] for values in sorted(rows, key=lambda values: values["_control"] or "")] == [
        None,
        "ABORT",
    ]
    assert accounts(site, "u") == []


@pytest.mark.parametrize("call", ["flush", "commit"])
def test_late_producer_is_told_that_its_timeout_had_passed_and_not_that_another_has_the_id(
    site: Site, call: str
) -> None:
    producer = timed_out(site)
    if call == "flush":
        producer.send("u", row=row("late"))

    with pytest.raises((InvalidProducerEpochError, InvalidTxnStateError)) as refused:
        (producer.flush if call == "flush" else producer.commit_transaction)()

    assert refused.value.message.startswith("the transaction was aborted over this producer's head: its timeout had")
    assert refused.value.facts["transaction_timeout_ms"] == TIMEOUT_MS


@pytest.mark.parametrize("call", ["flush", "commit"])
def test_refusal_that_a_late_producer_remembers_stays_true_when_another_takes_the_id(site: Site, call: str) -> None:
    producer = timed_out(site)
    if call == "flush":
        producer.send("u", row=row("late"))
    with pytest.raises((InvalidProducerEpochError, InvalidTxnStateError)):
        (producer.flush if call == "flush" else producer.commit_transaction)()
    started(site.open())

    with pytest.raises((InvalidProducerEpochError, InvalidTxnStateError)) as again:
        producer.commit_transaction()

    assert "no newer producer had the id by then" in again.value.message
    assert "no newer producer has" not in again.value.message


def test_late_producer_whose_send_was_refused_aborts_and_goes_on(site: Site) -> None:
    producer = timed_out(site)
    epoch = producer.producer_epoch
    producer.send("u", row=row("late"))
    with pytest.raises(InvalidProducerEpochError):
        producer.flush()
    assert producer.state == "ABORTABLE_ERROR"

    producer.abort_transaction()
    assert producer.producer_epoch == (epoch or 0) + 1
    with producer.transaction() as txn:
        txn.send("u", row=row("next"))

    assert accounts(site, "u") == ["next"]


def test_late_producer_hears_of_its_fencing_when_the_id_was_taken_after_the_timeout(site: Site) -> None:
    producer = timed_out(site)
    started(site.open())

    with pytest.raises(TxnTableError) as refused:
        producer.abort_transaction()

    assert (refused.value.code, producer.state) == ("PRODUCER_FENCED", "FATAL_ERROR")


def test_old_epoch_is_refused_while_the_timeouts_abort_waits_for_its_completion(site: Site) -> None:
    producer = with_data(site)
    site.advance_ms(TIMEOUT_MS + 1)
    other = site.open(on(None, "markers/", Fault.FAIL_BEFORE, occurrence=None))
    with pytest.raises(StoreUnavailableError):
        other.complete()
    producer.send("u", row=row("late"))

    with pytest.raises(InvalidProducerEpochError):
        producer.flush()

    producer.abort_transaction()
    with producer.transaction() as txn:
        txn.send("u", row=row("next"))
    assert accounts(site, "u") == ["next"]


def test_timeout_that_could_not_be_written_leaves_the_transaction_and_its_epoch(site: Site) -> None:
    producer = with_data(site)
    site.advance_ms(TIMEOUT_MS + 1)
    other = site.open()
    other.transactions.refresh()
    store_of(other).plan = unreachable(T_LOG)
    with pytest.raises((CommitStateUnknownError, StoreUnavailableError)):
        other.complete()

    producer.commit_transaction()

    assert producer.producer_epoch == 1
    assert accounts(site, "u") == ["first"]


def test_timeout_does_not_hit_a_transaction_that_began_while_it_was_decided(site: Site) -> None:
    producer = with_data(site)
    site.advance_ms(TIMEOUT_MS + 1)
    other = site.open()
    met: list[str] = []

    def go_on(step) -> None:
        if "transaction_log/_delta_log" in step.path and step.operation.value == "head" and not met:
            met.append(step.path)
            producer.commit_transaction()
            producer.begin_transaction()
            producer.send("u", row=row("second"))
            producer.flush()

    store_of(other).on_step = go_on
    assert other.complete() == 0
    producer.commit_transaction()

    assert met
    assert accounts(site, "u") == ["first", "second"]
