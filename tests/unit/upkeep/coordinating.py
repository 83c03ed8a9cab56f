"""What tests of the coordinator job share: transactions in every state, and one round of a new job."""

from __future__ import annotations

from tests.doubles.fault_plan import Fault, Operation, on
from tests.simulation.site import Site
from tests.unit.producer.producing import row, started, store_of
from txntable.coordinator.transaction_state import TransactionState
from txntable.format.warehouse_settings import WarehouseSettings
from txntable.producer.producer import Producer
from txntable.upkeep.coordinator_round import CoordinatorReport
from txntable.warehouse.warehouse import Warehouse

TIMEOUT_MS = 60_000
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
SETTINGS = WarehouseSettings()
# Each in-commit time is later than the one before: while the clock stands still, a decision is a little ahead of it.
A_MOMENT_MS = 100


def run_once(site: Site) -> CoordinatorReport:
    return site.open().coordinator().run_once()


def state_of(site: Site, transactional_id: str = "etl") -> TransactionState | None:
    found = site.open().transactions.row(transactional_id)
    return None if found is None else found.state


def opened(warehouse: Warehouse, transactional_id: str = "etl", topic: str = "t") -> Producer:
    """A producer with a record appended in an open transaction."""
    producer = started(warehouse, transactional_id, TIMEOUT_MS)
    producer.begin_transaction()
    producer.send(topic, row=row(transactional_id))
    producer.flush()
    return producer


def decide_only(warehouse: Warehouse, producer: Producer) -> None:
    """Commit, and leave the completion to others."""
    store_of(warehouse).plan = (on(Operation.PUT, "markers/", Fault.FAIL_BEFORE, occurrence=None),)
    producer.commit_transaction()
    store_of(warehouse).plan = ()


def committed(site: Site, transactional_id: str = "etl", batch_id: str | None = None) -> Producer:
    warehouse = site.open()
    producer = started(warehouse, transactional_id, TIMEOUT_MS)
    producer.begin_transaction(batch_id=batch_id)
    producer.send("t", row=row(transactional_id))
    producer.commit_transaction()
    warehouse.completer.record()
    return producer
