"""Clients on a small warehouse, for calls to be made on them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from txntable.admin.admin import Admin
from txntable.consumer.consumer import Consumer
from txntable.format.records import TopicPartition
from txntable.producer.producer import Producer
from txntable.producer.transaction import Transaction
from txntable.snapshot.snapshot import Snapshot
from txntable.upkeep.transaction_coordinator import TransactionCoordinator
from txntable.warehouse.warehouse import Warehouse

_QUIET: dict[str, Any] = {"background_heartbeat": False, "prefetch": False, "default_api_timeout_ms": 0}


@dataclass
class Stage:
    """Clients on a warehouse, made when they are asked for.

    Attributes
    ----------
    open_warehouse : callable
        Opens it in the process that makes the calls.
    """

    open_warehouse: Callable[[], Warehouse]

    @functools.cached_property
    def warehouse(self) -> Warehouse:
        """Of the process that makes the calls."""
        return self.open_warehouse()

    @functools.cached_property
    def admin(self) -> Admin:
        """Of that process."""
        return self.warehouse.admin()

    @functools.cached_property
    def producer(self) -> Producer:
        """One in a transaction that holds records."""
        producer = self.warehouse.producer("etl")
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("t", row={"x": 1, "y": "a"}, partition=0)
        return producer

    @functools.cached_property
    def transaction(self) -> Transaction:
        """Of that producer."""
        return Transaction(self.producer)

    @functools.cached_property
    def consumer(self) -> Consumer:
        """A member of a group that has read something."""
        consumer = self.warehouse.consumer(group_id="g", auto_offset_reset="earliest", **_QUIET)
        consumer.subscribe(["t"])
        consumer.poll()
        return consumer

    @functools.cached_property
    def reader(self) -> Consumer:
        """One that assigns its partitions itself."""
        consumer = self.warehouse.consumer(group_id="assigned", enable_auto_commit=False, **_QUIET)
        consumer.assign([TopicPartition("t", 0)])
        return consumer

    @functools.cached_property
    def snapshot(self) -> Snapshot:
        """Of now."""
        return self.warehouse.snapshot()

    @functools.cached_property
    def coordinator(self) -> TransactionCoordinator:
        """A job."""
        return self.warehouse.coordinator()
