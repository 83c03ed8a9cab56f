"""Small transactions per second by one producer, beside ``deltalake`` appends; and their requests.

One record in one partition, and one record in each of 100 partitions; on a local folder with equal
durability (deltalake does not sync), and by kind of request against a store in memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import deltalake
import pyarrow as pa

from benchmarks.measurement import Figure, ratio
from txntable.client.producer import Producer
from txntable.environment import SystemEnvironment
from txntable.testing.memory_store import MemoryStore
from txntable.testing.stepping_store import SteppingStore
from txntable.warehouse import Warehouse, create_on
from txntable.warehouse_settings import WarehouseSettings

SECONDS = 4.0
_SCHEMA = pa.schema([pa.field("x", pa.int64())])
_ROW = pa.table({"x": pa.array([1], pa.int64())})


def measure(folder: Path) -> list[Figure]:
    """Return transactions per second, their ratio to deltalake's appends, and requests."""
    theirs = _rate(lambda: deltalake.write_deltalake(str(folder / "theirs"), _ROW, mode="append"))
    figures = [Figure("deltalake append, 1 row", theirs, "appends/s")]
    for durability in ("page-cache", "full"):
        warehouse = Warehouse.create(str(folder / durability), durability=durability)
        warehouse.admin().create_topic("t", partitions=100, schema=_SCHEMA)
        producer = warehouse.producer("bench")
        producer.init_transactions()
        for partitions in (1, 100):
            ours = _rate(partial(_transaction, producer, partitions))
            name = f"transaction, 1 record in each of {partitions} partitions, {durability}"
            figures.append(Figure(name, ours, "transactions/s"))
            figures.append(ratio(f"{name} ÷ deltalake append", ours, theirs))
    return figures + _requests()


def _transaction(producer: Producer, partitions: int) -> None:
    producer.begin_transaction()
    for partition in range(partitions):
        producer.send("t", row={"x": 1}, partition=partition)
    producer.commit_transaction()


def _rate(call: Callable[[], object]) -> float:
    call()
    done, end = 0, time.monotonic() + SECONDS
    start = time.monotonic()
    while time.monotonic() < end:
        call()
        done += 1
    return done / (time.monotonic() - start)


def _requests() -> list[Figure]:
    """Count the requests of one steady transaction of one topic, its segments' own puts apart."""
    store = SteppingStore(MemoryStore())
    warehouse = create_on(store, SystemEnvironment(), exist_ok=False, settings=WarehouseSettings())
    warehouse.admin().create_topic("t", partitions=4, schema=_SCHEMA)
    producer = warehouse.producer("bench")
    producer.init_transactions()
    for _ in range(3):
        _transaction(producer, 4)
    before = len(store.steps)
    _transaction(producer, 4)
    steps = [step for step in store.steps[before:] if "/p0" not in step.path]
    kinds = sorted({step.operation.value for step in steps})
    notes = ", ".join(f"{kind} {sum(step.operation.value == kind for step in steps)}" for kind in kinds)
    return [Figure("requests of a steady transaction, one topic", len(steps), "requests", notes)]
