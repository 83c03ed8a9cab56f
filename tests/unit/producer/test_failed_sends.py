"""Sends that fail inside a transaction, by each interface: which of them leave only abort, and which change nothing."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from tests.simulation.site import TWO_COLUMNS, Site
from txntable.errors import (
    InvalidRequestError,
    MissingKeyError,
    RecordTooLargeError,
    SchemaMismatchError,
    StoreUnavailableError,
    TransactionAbortableError,
    UnknownTopicOrPartitionError,
)
from txntable.producer.producer import Producer
from txntable.producer.transaction import Transaction

KEYED = pa.schema([pa.field("account", pa.string()), pa.field("amount", pa.int64())])


@pytest.fixture
def site() -> Site:
    site = Site()
    admin = site.create().admin()
    admin.create_topic("t", partitions=2, schema=TWO_COLUMNS, key=["account"])
    admin.create_topic("raw", partitions=1, config={"cleanup.policy": "compact"})
    admin.create_topic("keyed", schema=KEYED, key=["account"], config={"cleanup.policy": "compact"})
    return site


def _table(*accounts: Any) -> pa.Table:
    return pa.table({"account": pa.array(accounts, pa.string()), "amount": pa.array([1] * len(accounts), pa.int64())})


# Topic, arguments -> the error, and whether only abort may follow.
_SENDS = [
    ("nowhere", {"row": {"account": "a"}}, UnknownTopicOrPartitionError, True),
    ("nowhere", {"rows": _table("a")}, UnknownTopicOrPartitionError, True),
    ("nowhere", {"value": b"x", "key": b"k"}, UnknownTopicOrPartitionError, True),
    ("t", {"row": {"account": "a"}, "partition": 2}, UnknownTopicOrPartitionError, True),
    ("t", {"rows": _table("a"), "partition": 2}, UnknownTopicOrPartitionError, True),
    ("t", {"row": {"account": "a" * 2_000_000}}, RecordTooLargeError, True),
    ("t", {"rows": _table("a", "a" * 2_000_000)}, RecordTooLargeError, True),
    ("raw", {"value": b"x" * 2_000_000, "key": b"k"}, RecordTooLargeError, True),
    ("raw", {"value": b"x"}, MissingKeyError, True),
    ("raw", {"value": b"x", "partition": 0}, MissingKeyError, True),
    ("keyed", {"row": {"account": None, "amount": 1}}, MissingKeyError, True),
    ("keyed", {"row": {"amount": 1}}, MissingKeyError, True),
    ("keyed", {"rows": _table("a", None)}, MissingKeyError, True),
    ("t", {"row": {"account": None}}, SchemaMismatchError, False),
    ("t", {"rows": _table(None)}, SchemaMismatchError, False),
    ("t", {"row": {"account": 7}}, SchemaMismatchError, False),
    ("t", {"row": {"account": "a"}, "partition": -1}, InvalidRequestError, False),
    ("t", {"value": b"x"}, InvalidRequestError, False),
    ("keyed", {"row": {"account": "a", "other": 1}}, SchemaMismatchError, False),
]


def _begun(site: Site) -> Producer:
    producer = site.open().producer("etl")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("t", row={"account": "before", "amount": 1})
    return producer


def _must_abort(producer: Producer) -> bool:
    try:
        producer.commit_transaction()
    except TransactionAbortableError:
        pass
    except RecordTooLargeError:
        # It says itself that it leads to abort.
        pass
    else:
        return False
    producer.abort_transaction()
    return True


@pytest.mark.parametrize(("topic", "arguments", "error", "spoils"), _SENDS)
def test_failed_send_leaves_only_abort_where_a_record_is_missing_and_nothing_else_where_the_call_was_wrong(
    site: Site, topic: str, arguments: dict[str, Any], error: type[Exception], spoils: bool
) -> None:
    """Bug: a null key to a compacted topic left a transaction that could be committed without the record."""
    producer = _begun(site)

    with pytest.raises(error) as refused:
        producer.send(topic, **arguments)

    assert type(refused.value) is error
    assert _must_abort(producer) is spoils
    assert site.open().read_arrow("t").read_all().num_rows == (0 if spoils else 1)


def _failing(error: BaseException) -> Callable[..., Any]:
    def write(producer: object, dataframes: object, mode: str) -> Any:
        raise error

    return write


@pytest.mark.parametrize(
    ("error", "spoils"),
    [
        (MissingKeyError("no key: fill it"), True),
        (UnknownTopicOrPartitionError("no such topic: create it"), True),
        (RecordTooLargeError("too many segments: write in parts"), True),
        (RuntimeError("the job failed"), True),
        (KeyboardInterrupt(), True),
        (SchemaMismatchError("another type: cast it"), False),
        (InvalidRequestError("no such mode: give another"), False),
        (StoreUnavailableError("away: call again"), False),
    ],
    ids=lambda each: type(each).__name__,
)
def test_failed_write_of_a_dataframe_leaves_only_abort_unless_the_call_was_wrong_or_can_be_made_again(
    site: Site, error: BaseException, spoils: bool
) -> None:
    producer = _begun(site)
    producer.config = SimpleNamespace(transactional_id="etl", write_dataframes=_failing(error))  # type: ignore[assignment]

    with pytest.raises(type(error)):
        Transaction(producer).write("t", object())

    assert _must_abort(producer) is spoils


def test_dataframes_without_topics_are_a_wrong_call_that_changes_nothing(site: Site) -> None:
    producer = _begun(site)

    with pytest.raises(InvalidRequestError, match="mapping"):
        Transaction(producer).write_all([("t", object())])  # type: ignore[arg-type]

    assert not _must_abort(producer)


def test_failed_send_outside_of_a_transaction_spoils_nothing(site: Site) -> None:
    with site.open().producer() as producer:
        for topic, arguments, error, _ in _SENDS:
            with pytest.raises(error):
                producer.send(topic, **arguments)
        producer.send("t", row={"account": "fine", "amount": 1})

    assert site.open().read_arrow("t").read_all()["account"].to_pylist() == ["fine"]


@pytest.mark.parametrize(("row", "lost"), [({"account": 7, "amount": 1}, False), ({"account": "a", "amount": 1}, True)])
def test_dropped_producer_says_what_is_lost_and_nothing_where_its_only_record_was_refused(
    site: Site, caplog: pytest.LogCaptureFixture, row: dict[str, Any], lost: bool
) -> None:
    producer = site.open().producer()
    with contextlib.suppress(SchemaMismatchError):
        producer.send("t", row=row)

    del producer
    gc.collect()

    said = [record.message for record in caplog.records if "is lost" in record.message]
    assert len(said) == lost
    assert all(message.endswith("topics=t") for message in said)
