"""What tests of admins share: transactions in every state, and damage to the transaction log done by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.doubles.fault_plan import Fault, Operation, on
from tests.simulation.site import Site
from tests.unit.producer.producing import row, started, store_of
from txntable.coordinator.transaction import TransactionMetadata
from txntable.log.actions import Action
from txntable.log.keyed_table import find_row, keyed_add, keyed_remove
from txntable.log.table_state import TableState
from txntable.partition.stable_offset import high_watermark, last_stable_offset
from txntable.producer.producer import Producer
from txntable.transactions.transaction_rows import ID_KIND, id_columns
from txntable.warehouse.warehouse import Warehouse

PLACE: dict[str, Any] = {"topic": "u", "partition": 0}


def lose_id(warehouse: Warehouse, transactional_id: str = "etl") -> None:
    """Remove the row of an id, whatever it is doing."""
    log = warehouse.transactions
    row = row_of(warehouse, transactional_id)

    def decide(table: TableState) -> Sequence[Action]:
        add = find_row(table, ID_KIND, row.key)
        assert add is not None
        return [keyed_remove(add, 0)]

    log.commit("TEST", decide)


def replace_row(warehouse: Warehouse, row: TransactionMetadata) -> None:
    """Write a row that no request would write."""
    warehouse.transactions.commit("TEST", lambda table: [keyed_add(id_columns(row), 0)])


def row_of(warehouse: Warehouse, transactional_id: str = "etl") -> TransactionMetadata:
    """The row of an id, now."""
    warehouse.transactions.refresh()
    row = warehouse.transactions.row(transactional_id)
    assert row is not None
    return row


def opened(warehouse: Warehouse, transactional_id: str = "etl", topic: str = "u", **settings: int) -> Producer:
    """A producer with an open transaction that has one record in a topic."""
    producer = started(warehouse, transactional_id, **settings)
    producer.begin_transaction()
    producer.send(topic, row=row("open"))
    producer.flush()
    return producer


def decide_only(warehouse: Warehouse, producer: Producer) -> None:
    """Commit, and leave the completion to others."""
    store_of(warehouse).plan = (on(Operation.PUT, "markers/", Fault.FAIL_BEFORE, occurrence=None),)
    producer.commit_transaction()
    store_of(warehouse).plan = ()


def prepare(warehouse: Warehouse) -> None:
    """Two-phase commit: the open transaction waits for its token."""
    seen = row_of(warehouse)
    replace_row(warehouse, seen.prepare_token("secret", None, seen.position + 1))


def is_stable(site: Site, topic: str = "u", partition: int = 0) -> bool:
    """Whether nothing holds back the readers of a partition."""
    log = site.open().topic_log(topic)
    topic_id = log.settings().topic_id
    stable = last_stable_offset(log.segments.fold, log.segments.table, topic_id, partition)
    return stable == high_watermark(log.segments.table, topic_id, partition)


def names(warehouse: Warehouse, way: str) -> dict[str, Any]:
    """The arguments that name the open transaction of u-0 in one of Kafka's two ways."""
    found = row_of(warehouse)
    epoch = {"producer_id": found.producer_id, "producer_epoch": found.producer_epoch}
    return {**PLACE, **({"start_offset": 0} if way == "offset" else epoch)}
