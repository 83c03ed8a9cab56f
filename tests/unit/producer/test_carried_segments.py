"""Commits whose decision carries the segments: what is written, refused, told (PROTOCOL.md §6.3)."""

from __future__ import annotations

import pytest

from tests.doubles.fault_plan import Fault, on
from tests.simulation.site import Site
from tests.unit.producer.producing import PUT, accounts, row, started, store_of, unreachable
from tests.unit.producer.test_transaction_retries import operations
from txntable.coordinator.manifest import LONGEST_UPLOAD_MS
from txntable.errors import (
    CommitStateUnknownError,
    IllegalStateError,
    TransactionAbortableError,
    TxnTableError,
    UnknownTopicOrPartitionError,
)
from txntable.format.records import RecordMetadata
from txntable.partition.batch import batch_of

LOGS = ("system/transaction_log", "topics/t/_segments", "topics/u/_segments")


def test_commit_is_one_entry_of_the_transaction_log_and_one_of_each_topic(site: Site) -> None:
    producer = started(site.open())
    before = {log: operations(site, log) for log in LOGS}

    with producer.transaction() as txn:
        first = txn.send("t", row=row("x"), partition=0)
        txn.send("u", row=row("y"))

    now = {log: operations(site, log)[len(before[log]) :] for log in LOGS}
    assert now == {
        "system/transaction_log": ["COMMIT"],
        "topics/t/_segments": ["MARKERS"],
        "topics/u/_segments": ["MARKERS"],
    }
    assert first.offset == 0
    assert (accounts(site, "t"), accounts(site, "u")) == (["x"], ["y"])


def test_commit_after_a_flush_carries_the_rest_and_goes_on_in_the_sequence(site: Site) -> None:
    producer = started(site.open())
    producer.begin_transaction()
    flushed = producer.send("u", row=row("x"))
    producer.flush()
    carried = producer.send("u", row=row("y"))
    producer.commit_transaction()

    assert (flushed.offset, carried.offset) == (0, 1)
    assert accounts(site, "u") == ["x", "y"]
    sequences = [
        batch_of(add).first_sequence
        for add in site.open().topic_log("u").segments.ensure_fresh().files
        if add.partition_values["_control"] is None
    ]
    assert sequences == [0, 1]


def test_transaction_that_is_too_large_for_a_decision_is_appended_before_it(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("txntable.partition.manifest.LARGEST_MANIFEST_BYTES", 100)
    producer = started(site.open())

    with producer.transaction() as txn:
        sent = txn.send("u", row=row("x"))

    assert operations(site)[-2:] == ["ENROL", "COMMIT"]
    assert sent.offset == 0
    assert accounts(site, "u") == ["x"]


def test_commit_is_refused_when_a_topic_was_deleted_since_the_send_and_carries_nothing(site: Site) -> None:
    producer = started(site.open())
    producer.begin_transaction()
    producer.send("u", row=row("x"))
    producer.send("t", row=row("x"), partition=0)
    site.open().admin().delete_topic("u")

    with pytest.raises(UnknownTopicOrPartitionError):
        producer.commit_transaction()
    producer.abort_transaction()

    assert "COMMIT" not in operations(site)
    assert accounts(site, "t") == []


def test_commit_is_refused_when_keys_were_mapped_to_fewer_partitions(site: Site) -> None:
    producer = started(site.open())
    producer.begin_transaction()
    producer.send("t", row=row("x"))
    site.open().admin().create_partitions({"t": 5})

    with pytest.raises(TransactionAbortableError, match="more partitions"):
        producer.commit_transaction()
    producer.abort_transaction()

    assert "COMMIT" not in operations(site)


def test_offsets_of_a_commit_that_others_complete_are_told_by_the_next_call(site: Site) -> None:
    warehouse = site.open()
    producer = started(warehouse)
    producer.begin_transaction()
    sent = producer.send("u", row=row("x"))
    store_of(warehouse).plan = (on(PUT, "topics/u/_segments/_delta_log", Fault.FAIL_BEFORE, occurrence=None),)
    producer.commit_transaction()
    unknown = sent.is_delivered
    store_of(warehouse).plan = ()
    site.open().complete()

    producer.begin_transaction()

    assert (unknown, sent.is_delivered, sent.offset) == (False, True, 0)


def test_offsets_that_no_call_can_learn_are_given_up_when_the_producer_is_closed(site: Site) -> None:
    warehouse = site.open()
    producer = started(warehouse)
    told: list[tuple[RecordMetadata, TxnTableError | None]] = []
    producer.begin_transaction()
    sent = producer.send("u", row=row("x"), on_delivery=lambda metadata, error: told.append((metadata, error)))
    store_of(warehouse).plan = (on(PUT, "topics/u/_segments/_delta_log", Fault.FAIL_BEFORE, occurrence=None),)
    producer.commit_transaction()
    producer.close()

    assert told == [(sent, None)]
    with pytest.raises(IllegalStateError, match="the records are committed"):
        _ = sent.offset
    site.open().complete()
    assert accounts(site, "u") == ["x"]


def test_abort_after_a_refused_decision_takes_the_slot_that_it_may_still_take(site: Site) -> None:
    """The uploads become too old between a put of unknown outcome and the call that asks again."""
    warehouse = site.open()
    producer = started(warehouse)
    producer.begin_transaction()
    producer.send("u", row=row("x"))
    slot = "system/transaction_log/_delta_log"
    store_of(warehouse).plan = unreachable(slot)
    with pytest.raises(CommitStateUnknownError):
        producer.commit_transaction()
    store_of(warehouse).plan = ()
    site.advance_ms(LONGEST_UPLOAD_MS + 60_000)

    with pytest.raises(TransactionAbortableError, match="too long ago"):
        producer.commit_transaction()
    producer.abort_transaction()

    assert operations(site)[-1] == "ABORT"
    assert accounts(site, "u") == []
