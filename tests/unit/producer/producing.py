"""What tests of producers share: a warehouse with three topics, and short words for its use."""

from __future__ import annotations

from tests.doubles.fault_plan import Fault, Operation, on
from tests.doubles.stepping_store import SteppingStore
from tests.simulation.site import Site, published
from txntable.producer.producer import Producer
from txntable.warehouse.warehouse import Warehouse

PUT = Operation.PUT_IF_ABSENT
T_LOG = "transaction_log/_delta_log"


def store_of(warehouse: Warehouse) -> SteppingStore:
    assert isinstance(warehouse.store, SteppingStore)
    return warehouse.store


def started(warehouse: Warehouse, transactional_id: str = "etl", transaction_timeout_ms: int = 60_000) -> Producer:
    producer = warehouse.producer(transactional_id, transaction_timeout_ms=transaction_timeout_ms)
    producer.init_transactions()
    return producer


def row(account: str, amount: int = 1) -> dict:
    return {"account": account, "amount": amount}


def accounts(site: Site, topic: str) -> list[str]:
    return [found["account"] for found in published(site.open(), topic)]


def lose_answers(warehouse: Warehouse, *, applied: bool) -> None:
    """From here on every answer about T's entries is lost; the first put is applied."""
    store_of(warehouse).plan = (
        on(PUT, T_LOG, Fault.LOST_ANSWER if applied else Fault.FAIL_BEFORE, occurrence=None),
        on(Operation.GET, T_LOG, Fault.FAIL_BEFORE, occurrence=None),
    )


def unreachable(path: str) -> tuple:
    return (
        on(PUT, path, Fault.FAIL_BEFORE, occurrence=None),
        on(Operation.GET, path, Fault.FAIL_BEFORE, occurrence=None),
    )
