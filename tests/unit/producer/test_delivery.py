"""What callers learn of their records: offsets, times, errors, and the call on delivery."""

from __future__ import annotations

import logging

import pyarrow as pa
import pytest

from tests.doubles.fault_plan import Fault, Operation, on
from tests.simulation.site import TWO_COLUMNS, Site
from tests.unit.producer.producing import PUT, accounts, row, started, store_of
from txntable.errors import (
    CommitStateUnknownError,
    IllegalStateError,
    ProducerFencedError,
    TransactionAbortedError,
    TxnTableError,
    UnknownTopicOrPartitionError,
)
from txntable.format.records import RecordMetadata


class Told:
    """Takes what ``on_delivery`` is called with."""

    def __init__(self) -> None:
        self.calls: list[tuple[RecordMetadata, TxnTableError | None]] = []

    def __call__(self, metadata: RecordMetadata, error: TxnTableError | None) -> None:
        self.calls.append((metadata, error))

    @property
    def errors(self) -> list[str | None]:
        return [None if error is None else error.code for _, error in self.calls]


def test_metadata_tells_the_time_of_the_first_record(site: Site) -> None:
    producer = site.open().producer()
    times = pa.array([7_000_999, 5_000_000], pa.timestamp("us", tz="UTC"))
    table = pa.Table.from_pylist([row("a"), row("b")], TWO_COLUMNS)

    given = producer.send("u", row=row("a"), timestamp_ms=1_234)
    brought = producer.send("u", rows=table.append_column("_timestamp", times), timestamp_ms=1)
    now = producer.send("u", row=row("a"))

    assert (given.timestamp_ms, brought.timestamp_ms) == (1_234, 7_000)
    assert now.timestamp_ms == site.open().context.clock.now_ms()


def test_metadata_does_not_look_empty_before_its_records_are_somewhere(site: Site) -> None:
    producer = site.open().producer()

    metadata = producer.send("u", rows=pa.Table.from_pylist([row("a"), row("b")], TWO_COLUMNS))

    assert "records=2, not known yet where" in repr(metadata)
    producer.flush()
    assert "records=2, ranges=(OffsetRange(partition=0, base_offset=0, last_offset=1),)" in repr(metadata)


def test_metadata_tells_the_time_of_the_upload_when_the_topic_goes_by_it(site: Site) -> None:
    site.open().admin().create_topic("log", schema=TWO_COLUMNS, config={"message.timestamp.type": "LogAppendTime"})
    with site.open().producer() as producer:
        metadata = producer.send("log", row=row("a"), timestamp_ms=1)

    assert metadata.timestamp_ms == site.open().context.clock.now_ms()


def test_aborted_record_that_was_not_appended_is_never_delivered(site: Site) -> None:
    told = Told()
    producer = started(site.open())
    producer.begin_transaction()
    appended = producer.send("u", row=row("appended"), on_delivery=told)
    producer.flush()
    dropped = producer.send("u", row=row("dropped"), on_delivery=told)

    producer.abort_transaction()

    assert appended.offset == 0
    assert isinstance(dropped.error, TransactionAbortedError)
    assert not dropped.is_delivered
    with pytest.raises(TransactionAbortedError, match="send it again"):
        _ = dropped.offset
    assert told.errors == [None, "TRANSACTION_ABORTED"]


def test_call_comes_once_the_append_is_durable_and_before_the_transaction_is_decided(site: Site) -> None:
    states: list[str] = []
    producer = started(site.open())
    producer.begin_transaction()
    producer.send("u", row=row("a"), on_delivery=lambda metadata, error: states.append(producer.state))
    assert states == []

    producer.flush()
    assert states == ["IN_TRANSACTION"]
    producer.commit_transaction()

    assert states == ["IN_TRANSACTION"]


def test_send_of_many_rows_is_told_once_when_all_its_partitions_have_them(site: Site) -> None:
    told = Told()
    producer = site.open().producer()
    names = [f"k{number}" for number in range(20)]

    metadata = producer.send("t", rows=pa.Table.from_pylist([row(n) for n in names], TWO_COLUMNS), on_delivery=told)
    producer.flush()

    assert told.calls == [(metadata, None)]
    assert [one.partition for one in metadata.ranges] == [0, 1]
    assert sum(one.last_offset - one.base_offset + 1 for one in metadata.ranges) == 20


def test_flush_that_failed_between_two_commits_goes_on_with_the_second(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("txntable.partition.append.LARGEST_COMMIT_SEGMENTS", 1)
    warehouse = site.open()
    producer = warehouse.producer()
    first, second = (producer.send("t", row=row(tag), partition=at) for at, tag in enumerate("ab"))
    log = "t/_segments/_delta_log"
    store_of(warehouse).plan = (
        *(on(PUT, log, Fault.FAIL_BEFORE, occurrence=each) for each in range(2, 20)),
        on(Operation.GET, log, Fault.FAIL_BEFORE, occurrence=None),
    )
    with pytest.raises(CommitStateUnknownError):
        producer.flush()
    assert (first.is_delivered, second.is_delivered) == (True, False)

    store_of(warehouse).plan = ()
    producer.flush()

    assert (second.partition, second.offset) == (1, 0)
    assert sorted(accounts(site, "t")) == ["a", "b"]


def test_send_of_many_rows_is_not_delivered_while_a_part_of_it_waits(site: Site) -> None:
    told = Told()
    rows = [row("x" * 92, 1), row("y", 2)]
    places = iter([0, 1])
    producer = site.open().producer(batch_size=100, partitioner=lambda *_: next(places))

    metadata = producer.send("t", rows=pa.Table.from_pylist(rows, TWO_COLUMNS), on_delivery=told)

    assert len(accounts(site, "t")) == 1
    assert told.calls == []
    with pytest.raises(IllegalStateError, match="not flushed"):
        _ = metadata.offset
    producer.flush()
    assert told.calls == [(metadata, None)]


def test_refused_batch_of_an_idempotent_producer_fails_with_the_cause_and_the_producer_goes_on(site: Site) -> None:
    told = Told()
    producer = site.open().producer()
    metadata = producer.send("u", row=row("a"), on_delivery=told)
    site.open().admin().delete_topic("u")

    with pytest.raises(UnknownTopicOrPartitionError):
        producer.flush()
    with pytest.raises(UnknownTopicOrPartitionError):
        _ = metadata.offset
    with producer:
        producer.send("t", row=row("b"))

    assert told.errors == ["UNKNOWN_TOPIC_OR_PARTITION"]
    assert accounts(site, "t") == ["b"]


def test_refused_batch_of_an_at_least_once_producer_is_not_tried_for_ever(site: Site) -> None:
    producer = site.open().producer(enable_idempotence=False)
    metadata = producer.send("u", row=row("a"))
    site.open().admin().delete_topic("u")
    with pytest.raises(UnknownTopicOrPartitionError):
        producer.flush()

    producer.send("t", row=row("b"))
    producer.flush()

    assert metadata.error is not None
    assert accounts(site, "t") == ["b"]


def test_nothing_is_told_while_the_outcome_of_an_append_is_unknown(site: Site) -> None:
    told = Told()
    warehouse = site.open()
    producer = warehouse.producer()
    producer.send("u", row=row("a"), on_delivery=told)
    store_of(warehouse).plan = (
        on(PUT, "u/_segments/_delta_log", Fault.LOST_ANSWER, occurrence=None),
        on(Operation.GET, "u/_segments/_delta_log", Fault.FAIL_BEFORE, occurrence=None),
    )
    with pytest.raises(CommitStateUnknownError):
        producer.flush()
    assert told.calls == []

    store_of(warehouse).plan = ()
    producer.flush()

    assert told.errors == [None]


def test_records_of_a_fenced_producer_fail_when_it_is_closed(site: Site) -> None:
    zombie = started(site.open())
    zombie.begin_transaction()
    zombie.send("u", row=row("a"))
    zombie.flush()
    waiting = zombie.send("t", row=row("b"))
    started(site.open())
    with pytest.raises(TxnTableError):
        zombie.flush()
    with pytest.raises(ProducerFencedError):
        zombie.abort_transaction()

    zombie.close()

    with pytest.raises(TxnTableError):
        _ = waiting.offset


def test_records_that_wait_fail_when_an_exception_leaves_the_producers_block(site: Site) -> None:
    sent: list[RecordMetadata] = []

    def work() -> None:
        with site.open().producer() as producer:
            sent.append(producer.send("u", row=row("a")))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()

    with pytest.raises(IllegalStateError, match="closed before"):
        _ = sent[0].offset
    assert accounts(site, "u") == []


def test_error_of_the_callers_function_is_logged_and_harms_nothing(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(metadata: RecordMetadata, error: TxnTableError | None) -> None:
        raise ZeroDivisionError

    with caplog.at_level(logging.ERROR), site.open().producer() as producer:
        first = producer.send("u", row=row("a"), on_delivery=fail)
        second = producer.send("u", row=row("b"))

    assert (first.offset, second.offset) == (0, 1)
    assert [record.message for record in caplog.records] == ["on_delivery failed topic=u"]


def test_caller_may_send_and_flush_from_its_function(site: Site) -> None:
    with site.open().producer(enable_idempotence=False) as producer:

        def follow(metadata: RecordMetadata, error: TxnTableError | None) -> None:
            producer.send("t", row=row("second"))
            producer.flush()

        producer.send("u", row=row("first"), on_delivery=follow)
        producer.send("t", row=row("beside"), partition=0)

    assert accounts(site, "u") == ["first"]
    assert sorted(accounts(site, "t")) == ["beside", "second"]
