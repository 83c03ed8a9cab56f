"""Warehouses with something to compact: written now, and compacted by a clock that is two hours ahead."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulation.site import TWO_COLUMNS
from txntable.producer.producer import Producer
from txntable.storage.store_clock import StoreClock
from txntable.warehouse.warehouse import Warehouse

MERGED, CLEANED = "merged", "cleaned"
AHEAD_MS = 2 * 3600 * 1000

_now_ms = StoreClock.now_ms


def _later_ms(clock: StoreClock) -> int:
    return _now_ms(clock) + AHEAD_MS


def later_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let two hours pass in this process, for a test."""
    monkeypatch.setattr(StoreClock, "now_ms", _later_ms)


def let_time_pass() -> None:
    """Let two hours pass in this process, for good."""
    StoreClock.now_ms = _later_ms  # type: ignore[assignment, method-assign]


def create(url: Path) -> Warehouse:
    """A warehouse with a topic that keeps every record, and one that keeps the latest of each key."""
    warehouse = Warehouse.create(str(url), durability="page-cache")
    admin = warehouse.admin()
    admin.create_topic(MERGED, partitions=3, schema=TWO_COLUMNS)
    compacted = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0", "delete.retention.ms": "0"}
    admin.create_topic(CLEANED, partitions=3, schema=TWO_COLUMNS, key=["account"], config=compacted)
    return warehouse


def append_all(warehouse: Warehouse) -> None:
    """Write both topics in every way: transactions of either outcome, one that stays open, and none at all."""
    producer = warehouse.producer("etl", transaction_timeout_ms=900_000)
    producer.init_transactions()
    for number in range(6):
        producer.begin_transaction()
        send(producer, number)
        producer.flush()
        (producer.abort_transaction if number % 3 == 1 else producer.commit_transaction)()
        with warehouse.producer() as plain:
            send(plain, 100 + number)
    producer.begin_transaction()
    producer.send(MERGED, row={"account": "open", "amount": 0}, partition=2)
    producer.flush()


def send(producer: Producer, number: int) -> None:
    """Send records to every partition of both topics; of the keys some come again, and some end in a tombstone."""
    for partition in range(3):
        producer.send(MERGED, row={"account": f"a{number}", "amount": number}, partition=partition)
    for account in range(number % 4, 9):
        amount = None if number % 6 == 2 else number
        producer.send(CLEANED, row={"account": f"a{account}", "amount": amount})
