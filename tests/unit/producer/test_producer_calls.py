"""Calls of a producer: out of order, with wrong arguments, without transactions."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.doubles.fault_plan import Fault, Operation, on
from tests.simulation.site import TWO_COLUMNS, Site, published
from tests.unit.producer.producing import PUT, T_LOG, accounts, row, started, store_of
from txntable.errors import (
    CommitStateUnknownError,
    IllegalStateError,
    InvalidConfigError,
    InvalidRequestError,
    InvalidTopicError,
    InvalidTransactionTimeoutError,
    SchemaMismatchError,
    TransactionAbortableError,
    UnknownTopicOrPartitionError,
)
from txntable.format.records import LATEST_TIMESTAMP_MS

# -- asking -------------------------------------------------------------------------------------


def test_whether_a_batch_has_committed_is_answered_to_who_has_not_taken_the_id_and_fences_nobody(site: Site) -> None:
    holder = started(site.open())
    answers = []
    for batch_id in ("a", "b"):
        answers.append(site.open().producer("etl").is_committed("a"))
        with holder.transaction(batch_id) as transaction:
            transaction.send("t", row=row(batch_id))

    assert answers == [False, True]
    assert accounts(site, "t") == ["a", "b"]


# -- wrong use ----------------------------------------------------------------------------------


def test_every_call_out_of_order_is_an_illegal_state_and_harms_nothing(site: Site) -> None:
    producer = site.open().producer("etl")
    for call in (producer.begin_transaction, producer.commit_transaction, producer.abort_transaction):
        with pytest.raises(IllegalStateError):
            call()
    producer.init_transactions()
    for call in (producer.init_transactions, producer.commit_transaction, producer.abort_transaction):
        with pytest.raises(IllegalStateError):
            call()
    with pytest.raises(IllegalStateError):
        producer.send("u", row=row("x"))
    producer.begin_transaction()
    for call in (producer.init_transactions, producer.begin_transaction):
        with pytest.raises(IllegalStateError):
            call()
    producer.send("u", row=row("x"))
    producer.commit_transaction()

    assert accounts(site, "u") == ["x"]


def test_closed_producer_says_so(site: Site) -> None:
    producer = started(site.open())
    producer.close()

    with pytest.raises(IllegalStateError, match="closed"):
        producer.begin_transaction()


def test_close_aborts_the_open_transaction(site: Site) -> None:
    warehouse = site.open()
    with started(warehouse) as producer:
        producer.begin_transaction()
        producer.send("u", row=row("x"))
        producer.flush()

    assert accounts(site, "u") == []
    assert not site.open().transactions.log.fold.under_way


def test_transaction_calls_need_a_transactional_id(site: Site) -> None:
    with pytest.raises(IllegalStateError, match="transactional_id"):
        site.open().producer().init_transactions()


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_timeout_out_of_bounds_is_refused(site: Site, timeout_ms: int) -> None:
    with pytest.raises(InvalidTransactionTimeoutError):
        started(site.open(), transaction_timeout_ms=timeout_ms)


@pytest.mark.parametrize("timeout", [3_601, 10_000, 30_000, float("nan"), float("inf"), -1, True, "10"])
def test_timeout_of_a_call_that_was_meant_in_milliseconds_is_refused(site: Site, timeout: float) -> None:
    producer = site.open().producer("etl")

    for call in (producer.init_transactions, producer.flush, producer.commit_transaction):
        if call == producer.commit_transaction:
            producer.init_transactions(3_600)
            producer.begin_transaction()
        with pytest.raises(InvalidRequestError, match="seconds from 0 to 3600, not of milliseconds"):
            call(timeout)


@pytest.mark.parametrize("timeout_ms", [1, 60, 999])
def test_transaction_timeout_that_was_meant_in_seconds_is_refused(site: Site, timeout_ms: int) -> None:
    with pytest.raises(InvalidConfigError, match="milliseconds"):
        site.open().producer({"transactional.id": "etl", "transaction.timeout.ms": timeout_ms})
    assert site.open().producer("etl", transaction_timeout_ms=1_000).config.transaction_timeout_ms == 1_000


def test_transactional_producer_without_idempotence_is_refused(site: Site) -> None:
    with pytest.raises(InvalidConfigError):
        site.open().producer("etl", enable_idempotence=False)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"topic": "t", "row": {"account": "a"}, "partition": -1}, InvalidRequestError),
        ({"topic": "t", "row": {"account": None}}, SchemaMismatchError),
        ({"topic": "t", "row": {"account": 7}}, SchemaMismatchError),
        ({"topic": "t", "row": {"account": "a", "amonut": 1}}, SchemaMismatchError),
        ({"topic": "t", "rows": pa.table({"account": ["a"], "amount": ["1"]})}, SchemaMismatchError),
        ({"topic": "t", "value": b"x"}, InvalidRequestError),
        ({"topic": "raw", "value": b"x", "timestamp_ms": -1}, InvalidRequestError),
        ({"topic": "raw", "value": b"x", "timestamp_ms": 1.5}, InvalidRequestError),
        ({"topic": "raw", "value": b"x", "timestamp_ms": "1"}, InvalidRequestError),
        ({"topic": "raw", "value": b"x", "timestamp_ms": LATEST_TIMESTAMP_MS + 1}, InvalidRequestError),
        ({"topic": "raw", "value": b"x", "headers": {"name": b"x"}}, InvalidRequestError),
        ({"topic": "raw", "value": b"x", "headers": 5}, InvalidRequestError),
        ({"topic": "raw", "value": b"x", "headers": iter([("name", b"x")])}, InvalidRequestError),
        ({"topic": "raw", "value": b"x", "headers": [(None, b"x")]}, InvalidRequestError),
        ({"topic": "raw", "value": b"x", "on_delivery": 5}, InvalidRequestError),
        ({"topic": None, "value": b"x"}, InvalidTopicError),
        ({"topic": "raw", "value": b"x", "row": {}}, InvalidRequestError),
        ({"topic": "t", "row": [("account", "a")]}, InvalidRequestError),
        ({"topic": "t", "rows": [{"account": "a", "amount": 1}]}, InvalidRequestError),
    ],
)
def test_wrong_argument_is_named_and_the_transaction_goes_on(
    site: Site, arguments: dict, error: type[Exception]
) -> None:
    producer = started(site.open())
    producer.begin_transaction()

    with pytest.raises(error):
        producer.send(**arguments)
    producer.send("u", row=row("fine"))
    producer.commit_transaction()

    assert accounts(site, "u") == ["fine"]


@pytest.mark.parametrize(
    "arguments", [{"topic": "nowhere", "row": {}}, {"topic": "t", "row": {"account": "a"}, "partition": 2}]
)
def test_send_to_an_unknown_topic_or_partition_spoils_the_transaction(site: Site, arguments: dict) -> None:
    """Who goes on after a failed send would commit a transaction that lacks the record."""
    producer = started(site.open())
    producer.begin_transaction()
    producer.send("u", row=row("lost"))

    with pytest.raises(UnknownTopicOrPartitionError):
        producer.send(**arguments)
    with pytest.raises(TransactionAbortableError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        producer.commit_transaction()
    producer.abort_transaction()
    with producer.transaction() as txn:
        txn.send("u", row=row("fine"))

    assert accounts(site, "u") == ["fine"]


def test_record_batch_is_sent_as_a_table_is(site: Site) -> None:
    producer = started(site.open())

    with producer.transaction() as txn:
        metadata = txn.send("t", rows=pa.RecordBatch.from_pylist([row("a"), row("b")]))

    assert accounts(site, "t") == ["a", "b"]
    assert sum(given.last_offset - given.base_offset + 1 for given in metadata.ranges) == 2


@pytest.mark.parametrize("batch_id", ["", "\ud800", b"x", True, 5.0, -1])
def test_what_is_no_batch_id_is_refused_before_any_work(site: Site, batch_id: object) -> None:
    producer = started(site.open())

    for call in (producer.begin_transaction, producer.is_committed):
        with pytest.raises(InvalidRequestError, match="batch"):
            call(batch_id)  # type: ignore[arg-type]

    assert producer.state == "READY"


def test_write_of_what_is_no_dataframe_is_refused_and_the_transaction_goes_on(site: Site) -> None:
    with started(site.open()).transaction() as txn:
        with pytest.raises(InvalidRequestError, match=r"send\(topic, rows=table\) topic=t found=Table"):
            txn.write("t", pa.Table.from_pylist([row("a")]))
        txn.send("t", rows=pa.Table.from_pylist([row("a")]))

    assert accounts(site, "t") == ["a"]


def test_latest_timestamp_is_taken(site: Site) -> None:
    with site.open().producer() as producer:
        sent = producer.send("raw", b"x", timestamp_ms=LATEST_TIMESTAMP_MS)

    assert (sent.offset, sent.timestamp_ms) == (0, LATEST_TIMESTAMP_MS)


# -- without transactions -----------------------------------------------------------------------


@pytest.mark.parametrize("idempotent", [True, False])
def test_plain_append_is_visible_when_flush_returns(site: Site, idempotent: bool) -> None:
    producer = site.open().producer(enable_idempotence=idempotent)
    first = producer.send("u", row=row("a"))
    second = producer.send("u", row=row("b"))
    with pytest.raises(IllegalStateError, match="flush"):
        _ = first.offset
    producer.flush()

    assert accounts(site, "u") == ["a", "b"]
    assert (first.offset, second.offset) == (0, 1)
    assert (producer.producer_id is not None) is idempotent


def test_idempotent_flush_repeated_after_an_unknown_outcome_appends_once(site: Site) -> None:
    warehouse = site.open()
    producer = warehouse.producer()
    producer.send("u", row=row("x"))
    log = "u/_segments/_delta_log"
    store_of(warehouse).plan = (
        on(PUT, log, Fault.LOST_ANSWER, occurrence=None),
        on(Operation.GET, log, Fault.FAIL_BEFORE, occurrence=None),
    )
    with pytest.raises(CommitStateUnknownError):
        producer.flush()

    store_of(warehouse).plan = ()
    producer.flush()

    assert accounts(site, "u") == ["x"]


def test_keyed_records_keep_their_order_in_their_partition(site: Site) -> None:
    with site.open().producer() as producer:
        sent = [producer.send("t", row=row(f"k{number % 5}", number)) for number in range(50)]

    found = published(site.open(), "t")
    by_key: dict[str, list[int]] = {}
    for record in found:
        by_key.setdefault(record["account"], []).append(record["amount"])
    assert all(amounts == sorted(amounts) for amounts in by_key.values())
    where = {(record["_partition"], record["_offset"]): record["amount"] for record in found}
    assert [where[metadata.partition, metadata.offset] for metadata in sent] == list(range(50))


def test_default_topic_takes_keys_values_headers_and_tombstones(site: Site) -> None:
    with site.open().producer() as producer:
        producer.send("raw", b"v", key=b"k", headers=[("h", b"1")], partition=1)
        producer.send("raw", None, key=b"k", partition=1)

    found = published(site.open(), "raw")
    assert [(r["key"], r["value"]) for r in found] == [(b"k", b"v"), (b"k", None)]
    assert found[0]["headers"] == [{"key": "h", "value": b"1"}]


def test_append_to_a_topic_that_was_deleted_and_created_again_is_refused(site: Site) -> None:
    producer = started(site.open())
    producer.begin_transaction()
    producer.send("u", row=row("old"))
    admin = site.open().admin()
    admin.delete_topic("u")
    admin.create_topic("u", schema=TWO_COLUMNS)

    with pytest.raises(UnknownTopicOrPartitionError, match="created again"):
        producer.flush()
    producer.abort_transaction()

    assert accounts(site, "u") == []


def test_transaction_over_a_deleted_topic_completes_in_the_others(site: Site) -> None:
    producer = started(site.open())
    producer.begin_transaction()
    producer.send("t", row=row("a"))
    producer.send("u", row=row("b"))
    producer.flush()
    site.open().admin().delete_topic("u")

    producer.commit_transaction()
    producer.close()

    assert accounts(site, "t") == ["a"]
    assert not site.open().transactions.log.fold.under_way


@pytest.mark.parametrize("waited_ms", [0, 310_000])
def test_enrolment_is_the_reading_of_the_transaction_log_that_the_first_append_needs(
    site: Site, waited_ms: int
) -> None:
    """Also when all views have become too old to be trusted: the partition logs are read before."""
    warehouse = site.open()
    producer = started(warehouse)
    producer.begin_transaction()
    producer.send("u", row=row("x"))
    site.advance_ms(waited_ms)
    since = len(store_of(warehouse).steps)

    producer.flush()

    asked = [step.operation for step in store_of(warehouse).steps[since:] if T_LOG in step.path]
    assert PUT in asked
    assert asked[-1] is PUT
