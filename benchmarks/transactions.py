"""Small transactions per second by one producer, beside ``deltalake`` appends; and their requests.

One record in one partition, and one record in each of 100 partitions; on a local folder with equal
durability (deltalake does not sync), in turns with the peer; and by kind of request against S3's API.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import deltalake
import pyarrow as pa

from benchmarks.measurement import Figure, median_ratio
from tests.doubles.stepping_store import SteppingStore
from txntable.format.warehouse_settings import WarehouseSettings
from txntable.producer.producer import Producer
from txntable.runtime.environment import SystemEnvironment
from txntable.storage.object_store import StoreSpec
from txntable.storage.open import open_store
from txntable.testing.moto_server import LockedMotoServer
from txntable.warehouse.warehouse import Warehouse, create_on

SECONDS = 1.5
ROUNDS = 5
_SCHEMA = pa.schema([pa.field("x", pa.int64())])
_ROW = pa.table({"x": pa.array([1], pa.int64())})


def measure(folder: Path) -> list[Figure]:
    """Return transactions per second, their ratio to deltalake's appends, and requests."""
    deltalake.write_deltalake(str(folder / "theirs"), _ROW)
    # With the table at hand: by its path it would be opened anew for each append.
    theirs = deltalake.DeltaTable(str(folder / "theirs"))
    calls: dict[str, Callable[[], object]] = {
        "deltalake append, 1 row": lambda: deltalake.write_deltalake(theirs, _ROW, mode="append")
    }
    for durability in ("page-cache", "full"):
        warehouse = Warehouse.create(str(folder / durability), durability=durability)
        warehouse.admin().create_topic("t", partitions=100, schema=_SCHEMA)
        producer = warehouse.producer("bench")
        producer.init_transactions()
        for partitions in (1, 100):
            name = f"transaction, 1 record in each of {partitions} partitions, {durability}"
            calls[name] = partial(_transaction, producer, partitions)
    rates: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            rates[name].append(_rate(call))
    return [*_compared(rates), *_requests()]


def _compared(rates: dict[str, list[float]]) -> list[Figure]:
    """Return the median rate of each, and the median of its ratios to the peer's rate of the same round."""
    peer, *ours = rates
    figures = [Figure(peer, median(rates[peer]), "appends/s", _range(rates[peer]))]
    for name in ours:
        ratios = [mine / theirs for mine, theirs in zip(rates[name], rates[peer], strict=True)]
        figures.append(Figure(name, median(rates[name]), "transactions/s", _range(rates[name])))
        figures.append(median_ratio(f"{name} ÷ deltalake append", ratios))
    return figures


def _range(values: list[float]) -> str:
    return f"median of {len(values)} rounds, {min(values):.2f}–{max(values):.2f}"


def _transaction(producer: Producer, partitions: int) -> None:
    producer.begin_transaction()
    for partition in range(partitions):
        producer.send("t", row={"x": 1}, partition=partition)
    producer.commit_transaction()


def _rate(call: Callable[[], object]) -> float:
    call()
    done, start = 0, time.monotonic()
    while time.monotonic() - start < SECONDS:
        call()
        done += 1
    return done / (time.monotonic() - start)


def _requests() -> list[Figure]:
    """Count the requests of steady transactions by kind, over S3's API; the segments' own puts are named apart."""
    figures = []
    with LockedMotoServer("benchmark") as server:
        for partitions in (1, 100):
            spec = StoreSpec(f"s3://benchmark/p{partitions}", server.storage_options)
            store = SteppingStore(open_store(spec))
            warehouse = create_on(store, SystemEnvironment(), exist_ok=False, settings=WarehouseSettings())
            warehouse.admin().create_topic("t", partitions=partitions, schema=_SCHEMA)
            producer = warehouse.producer("bench")
            producer.init_transactions()
            for _ in range(3):
                _transaction(producer, partitions)
            store.steps.clear()
            server.requests.clear()
            _transaction(producer, partitions)
            figures.append(_counted(partitions, store, sum(server.requests.values())))
    return figures


def _counted(partitions: int, store: SteppingStore, arrived: int) -> Figure:
    segments = sum("/_segments/p0" in step.path for step in store.steps)
    kinds = Counter({"PUT": -segments, "GET": 0, "HEAD": 0, "LIST": 0}) + store.requests
    asked = ", ".join(f"{kind} {kinds[kind]}" for kind in ("PUT", "GET", "HEAD", "LIST"))
    notes = f"{asked}; beside {segments} PUTs of segments; the server saw {arrived} requests in all"
    return Figure(f"requests of a steady transaction, {partitions} partitions", sum(kinds.values()), "requests", notes)
