"""Large topics on a store whose every answer takes 30 ms: 1,000 and 10,000 partitions, 10,000 to 1,000,000 segments.

Seconds of a clock, and in the notes what they consist of: CPU, and round trips, which follow one another.  Many
partitions: create the topic, write a record to each in one transaction, read them all.  Many segments: a synthetic log
(no data files) in one checkpoint; a handle opens it, then transactions of one record are made and read there.  Bytes
cost no time, and there are few: digests are alike here, so that a checkpoint takes 7 bytes a segment; real ones have
48 bytes of names and digests that no codec makes smaller.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import pyarrow as pa

from benchmarks.cold_start import PARTITIONS, SyntheticFile, fill
from benchmarks.measurement import Figure
from benchmarks.round_trips import TimedStore, chain
from benchmarks.wide_topic import steps
from tests.doubles.memory_store import MemoryObjects, MemoryStore
from txntable.format.records import TopicPartition
from txntable.format.warehouse_settings import WarehouseSettings
from txntable.producer.producer import Producer
from txntable.runtime.environment import SystemEnvironment
from txntable.warehouse.warehouse import Warehouse, create_on, open_on

WIDE = (1_000, 10_000)
LONG = (10_000, 100_000, 1_000_000)
_PLACE = TopicPartition("big", 7)
_TRANSACTIONS = 11
# The first ones open logs, and say COMPLETE by entries of their own.
_WARM_UP = 3


def measure(folder: Path) -> list[Figure]:
    """Return seconds of each step, with the CPU and the round trips in them."""
    most = int(os.environ.get("TXNTABLE_LARGE", LONG[-1]))
    wide = [figure for partitions in WIDE if partitions <= most for figure in _wide(partitions)]
    return wide + [figure for segments in LONG if segments <= most for figure in _long(segments)]


def _wide(partitions: int) -> Iterator[Figure]:
    store = TimedStore(_objects())
    warehouse = create_on(store, SystemEnvironment(), exist_ok=False, settings=WarehouseSettings())
    for step, call in steps(warehouse, partitions).items():
        yield _figure(f"{partitions:,} partitions: {step}", store, call)


def _long(segments: int) -> Iterator[Figure]:
    objects, environment = _objects(), SystemEnvironment()
    created = create_on(MemoryStore(objects), environment, exist_ok=False, settings=WarehouseSettings())
    schema = pa.schema([pa.field("x", pa.int64())])
    topic_id = created.admin().create_topic(_PLACE.topic, partitions=PARTITIONS, schema=schema).topic_id
    fill(created.topic_log(_PLACE.topic), topic_id, SyntheticFile(), segments)
    name = f"{segments:,} segments"
    store = TimedStore(objects)
    yield _figure(f"{name}: open, end offset of a partition", store, lambda: _end(open_on(store, environment)))
    warehouse = open_on(store, environment)
    producer = warehouse.producer("etl")
    yield _figure(f"{name}: open, first transaction of one record", store, lambda: _begin(producer))
    later = [_figure("", store, lambda: _transact(producer)) for _ in range(_TRANSACTIONS)][_WARM_UP:]
    yield Figure(f"{name}: each further one", median(one.value for one in later), "s", later[-1].notes)
    # Before its marker.
    newest = _end(warehouse) - 2
    yield _figure(f"{name}: open, poll what it wrote", store, lambda: _poll(open_on(store, environment), newest))
    producer.close()


def _objects() -> MemoryObjects:
    return MemoryObjects(lambda: time.time_ns() // 1_000_000)


def _end(warehouse: Warehouse) -> int:
    with warehouse.consumer() as consumer:
        return consumer.end_offsets([_PLACE])[_PLACE]


def _begin(producer: Producer) -> None:
    producer.init_transactions()
    _transact(producer)


def _transact(producer: Producer) -> None:
    with producer.transaction() as txn:
        txn.send(_PLACE.topic, row={"x": 1}, partition=_PLACE.partition)


def _poll(warehouse: Warehouse, offset: int) -> None:
    with warehouse.consumer() as consumer:
        consumer.assign([_PLACE])
        consumer.seek(_PLACE, offset)
        if not consumer.poll(timeout_ms=10_000):
            raise RuntimeError(f"nothing at {offset}")


def _figure(name: str, store: TimedStore, call: Callable[[], object]) -> Figure:
    store.requests.clear()
    began, spent = time.perf_counter(), time.process_time()
    call()
    seconds, cpu = time.perf_counter() - began, time.process_time() - spent
    notes = f"{cpu:.2f} s of CPU, {len(store.requests):,} requests in {chain(store.requests):,} round trips"
    return Figure(name, seconds, "s", notes)
