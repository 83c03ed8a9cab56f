"""A topic of 1,000 and of 10,000 partitions: create it, write one record to each in one transaction, read it all.

The floor of both is bare Parquet: as many files of one record, written and synced as often, and read by pyarrow.  The
peer is a deltalake table with a partition column of as many values; it does not sync, and so stands beside
`page-cache`.  The page of costs has create, write and poll beside that floor: the goal is 10 s where that is 7.2 s.
CPU seconds of this process; one round, because a round of 10,000 leaves 10,000 files.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measurement import Figure, paired_ratio
from tests.doubles.memory_store import MemoryObjects, MemoryStore
from tests.doubles.stepping_store import SteppingStore
from txntable.consumer.consumer import Consumer
from txntable.format.records import TopicPartition
from txntable.format.warehouse_settings import WarehouseSettings
from txntable.runtime.environment import SystemEnvironment
from txntable.warehouse.warehouse import Warehouse, create_on

POINTS = (1_000, 10_000)
_TOPIC = "wide"


def measure(folder: Path) -> list[Figure]:
    """Return CPU seconds, their ratios to the floor and to the peer, and requests."""
    figures: list[Figure] = []
    for partitions in POINTS:
        place = folder / str(partitions)
        for durability in ("page-cache", "full"):
            ours = _ours(place / durability, partitions, durability)
            floor = _floor(place / f"bare-{durability}", partitions, synced=durability == "full")
            figures += _beside_parquet(f"{partitions:,} partitions, {durability}", ours, floor)
            if durability == "page-cache":
                theirs = _peer(place / "deltalake", partitions)
                figures += _compared(f"{partitions:,} partitions", ours, theirs, "deltalake")
        figures += _requests(partitions)
    return figures


def _ours(folder: Path, partitions: int, durability: str) -> dict[str, float]:
    warehouse = Warehouse.create(str(folder), durability=durability)
    return {name: _cpu(call) for name, call in steps(warehouse, partitions).items()}


def _beside_parquet(place: str, ours: dict[str, float], floor: dict[str, float]) -> list[Figure]:
    name, whole = "bare Parquet", ("create", "write", "poll")
    told = f"{place}: create, write and poll ÷ {name}"
    in_all = paired_ratio(told, [sum(ours[step] for step in whole)], [sum(floor.values())])
    return [*_compared(place, ours, floor, name), in_all]


def steps(warehouse: Warehouse, partitions: int) -> dict[str, Callable[[], object]]:
    """Return what is done, in its order."""

    def write() -> None:
        producer = warehouse.producer("bench")
        producer.init_transactions()
        with producer.transaction() as transaction:
            for number in range(partitions):
                transaction.send(_TOPIC, key=b"key", value=b"value", partition=number)

    def poll() -> None:
        _until_all(warehouse, partitions, lambda consumer: sum(map(len, consumer.poll().values())))

    def poll_batches() -> None:
        _until_all(
            warehouse, partitions, lambda consumer: sum(batch.num_rows for batch in consumer.poll_batches().values())
        )

    return {
        "create": lambda: warehouse.admin().create_topic(_TOPIC, partitions=partitions),
        "write": write,
        "read_arrow": lambda: warehouse.snapshot().read_arrow(_TOPIC).read_all(),
        "poll": poll,
        "poll_batches": poll_batches,
    }


def _until_all(warehouse: Warehouse, partitions: int, polled: Callable[[Consumer], int]) -> None:
    consumer = warehouse.consumer(auto_offset_reset="earliest")
    consumer.assign([TopicPartition(_TOPIC, number) for number in range(partitions)])
    found = 0
    while found < partitions:
        found += polled(consumer)
    consumer.close()


def _floor(folder: Path, partitions: int, *, synced: bool) -> dict[str, float]:
    table = pa.table({"key": [b"key"], "value": [b"value"], "timestamp": [0], "delta": [0]})
    paths = [folder / f"p{number}" / "0.parquet" for number in range(partitions)]

    def write() -> None:
        for path in paths:
            path.parent.mkdir(parents=True)
            with path.open("wb") as file:
                pq.write_table(table, file)
                if synced:
                    file.flush()
                    os.fsync(file.fileno())

    def read() -> None:
        for path in paths:
            pq.ParquetFile(path, pre_buffer=False).read(use_threads=False)

    return {"write": _cpu(write), "read": _cpu(read)}


def _peer(folder: Path, partitions: int) -> dict[str, float]:
    table = pa.table({"partition": list(range(partitions)), "value": [b"value"] * partitions})

    def create() -> None:
        deltalake.DeltaTable.create(str(folder), schema=table.schema, partition_by=["partition"])

    def read() -> None:
        deltalake.DeltaTable(str(folder)).to_pyarrow_table()

    return {
        "create": _cpu(create),
        "write": _cpu(lambda: deltalake.write_deltalake(str(folder), table, mode="append")),
        "read": _cpu(read),
    }


def _compared(place: str, ours: dict[str, float], peer: dict[str, float], name: str) -> list[Figure]:
    figures = [Figure(f"{place}: {step}", seconds, "s of CPU") for step, seconds in ours.items()]
    figures += [Figure(f"{place}: {name}, {step}", seconds, "s of CPU") for step, seconds in peer.items()]
    pairs = ((step, step if step in peer else "read") for step in ours if step != "create" or step in peer)
    return figures + [paired_ratio(f"{place}: {step} ÷ {name}", [ours[step]], [peer[other]]) for step, other in pairs]


def _requests(partitions: int) -> list[Figure]:
    """Count the requests of each step by kind, on a store in memory."""
    store = SteppingStore(MemoryStore(MemoryObjects()))
    warehouse = create_on(store, SystemEnvironment(), exist_ok=False, settings=WarehouseSettings())
    figures = []
    for step, call in steps(warehouse, partitions).items():
        store.steps.clear()
        call()
        notes = ", ".join(f"{kind} {count}" for kind, count in sorted(store.requests.items()))
        figures.append(
            Figure(f"{partitions:,} partitions: requests of {step}", sum(store.requests.values()), "requests", notes)
        )
    return figures


def _cpu(call: Callable[[], object]) -> float:
    before = os.times()
    call()
    after = os.times()
    return after.user + after.system - before.user - before.system
