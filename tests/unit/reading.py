"""What tests of readers share: a topic, transactions that end in every way, and what is read as plain rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from tests.doubles.fault_plan import Fault, Operation, on
from tests.doubles.read_only_store import ReadOnlyStore
from tests.simulation.site import TWO_COLUMNS, Site
from tests.unit.producer.producing import store_of
from txntable.errors import CommitStateUnknownError
from txntable.partition.topic_view import TopicView
from txntable.producer.producer import Producer
from txntable.snapshot.topic_reader import TopicReader
from txntable.warehouse.warehouse import Warehouse, open_on

TOPIC = "u"


def site_with_topic(partitions: int = 2, topic: str = TOPIC) -> tuple[Site, Warehouse]:
    """A warehouse with one topic of two columns."""
    site = Site()
    warehouse = site.create()
    warehouse.admin().create_topic(topic, partitions=partitions, schema=TWO_COLUMNS)
    return site, warehouse


def read_only(site: Site) -> Warehouse:
    """Open the warehouse with credentials that may not write."""
    return open_on(ReadOnlyStore(site.store()), site.environment())


def transactional(warehouse: Warehouse, transactional_id: str = "etl") -> Producer:
    producer = warehouse.producer(transactional_id)
    producer.init_transactions()
    return producer


def send(producer: Producer, *accounts: str, partition: int = 0, topic: str = TOPIC, at_ms: int | None = None) -> None:
    """Send a record for each account."""
    for account in accounts:
        producer.send(topic, row={"account": account, "amount": 1}, partition=partition, timestamp_ms=at_ms)


def commit(producer: Producer, *accounts: str, partition: int = 0, topic: str = TOPIC) -> None:
    """Write a transaction and commit it."""
    producer.begin_transaction()
    send(producer, *accounts, partition=partition, topic=topic)
    producer.commit_transaction()


def abort(producer: Producer, *accounts: str, partition: int = 0) -> None:
    """Write a transaction and abort it."""
    producer.begin_transaction()
    send(producer, *accounts, partition=partition)
    producer.flush()
    producer.abort_transaction()


def leave_open(warehouse: Warehouse, *accounts: str, transactional_id: str = "open", partition: int = 0) -> Producer:
    """Append in a transaction, and do not end it."""
    producer = transactional(warehouse, transactional_id)
    producer.begin_transaction()
    send(producer, *accounts, partition=partition)
    producer.flush()
    return producer


def plain(warehouse: Warehouse, *accounts: str, partition: int = 0, at_ms: int | None = None) -> None:
    """Append and publish without a transaction."""
    with warehouse.producer() as producer:
        send(producer, *accounts, partition=partition, at_ms=at_ms)


def accounts_in(records: pa.Table | pa.RecordBatchReader) -> list[str]:
    """The accounts read, in order."""
    table = records.read_all() if isinstance(records, pa.RecordBatchReader) else records
    found: list[str] = table["account"].to_pylist()
    return found


def places(records: pa.RecordBatchReader) -> list[tuple[int, int, str]]:
    """Partition, offset and account of each record."""
    rows: list[Mapping[str, Any]] = records.read_all().to_pylist()
    return [(row["_partition"], row["_offset"], row["account"]) for row in rows]


def segments_of(site: Site, topic: str = TOPIC) -> list[str]:
    """The paths of a topic's segments, sorted."""
    return sorted(path for path in site.objects.snapshot() if path.startswith(f"topics/{topic}/_segments/p"))


def append_without_publishing(warehouse: Warehouse, account: str) -> None:
    """A plain writer that dies between its append and the projection."""
    store_of(warehouse).plan = (
        on(Operation.PUT_IF_ABSENT, f"topics/{TOPIC}/_delta_log", Fault.FAIL_BEFORE, occurrence=None),
    )
    producer = warehouse.producer()
    send(producer, account)
    with pytest.raises(CommitStateUnknownError):
        producer.flush()
    store_of(warehouse).plan = ()


def accounts(reader: TopicReader, view: TopicView) -> list[str]:
    """The accounts that a view shows."""
    found: list[str] = reader.batches(view, ["account"], ({}, {})).read_all()["account"].to_pylist()
    return found
