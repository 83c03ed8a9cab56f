"""Producers of one process on a store whose every answer takes 30 ms: what they gain by sharing entries of T.

Each producer commits one transaction after the other, of one record; all to one topic, or each to its own.  The peer is
the same process, whose requests for T wait for each other.  Owns nothing but the measurement; how requests share an
entry is :mod:`txntable.log.request_queue`'s.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from benchmarks.delayed_store import DelayedStore
from benchmarks.measurement import Figure, ratio
from tests.doubles.memory_store import MemoryObjects
from txntable.format.warehouse_settings import WarehouseSettings
from txntable.log import request_queue
from txntable.runtime.environment import SystemEnvironment
from txntable.storage.remote import RemoteStore
from txntable.warehouse.warehouse import Warehouse, create_on, open_on

SECONDS = 6.0
PRODUCERS = (1, 8, 16)
_SHARED = "one topic"
_OWN = "a topic each"


def measure(folder: Path) -> list[Figure]:
    """Return transactions a second by number of producers, with entries that are shared and without."""
    figures: list[Figure] = []
    for topics in (_SHARED, _OWN):
        rates = {count: rate(count, topics) for count in PRODUCERS}
        figures.extend(Figure(f"{_name(count)}, {topics}", each, "/s") for count, each in rates.items())
        most = PRODUCERS[-1]
        with _each_alone():
            alone = rate(most, topics)
        figures.append(Figure(f"{_name(most)}, {topics}, an entry for each", alone, "/s"))
        figures.append(ratio(f"{_name(most)} ÷ one, {topics}", rates[most], rates[1]))
        figures.append(ratio(f"{_name(most)}, {topics}, shared entries ÷ an entry for each", rates[most], alone))
    return figures


def rate(producers: int, topics: str) -> float:
    """Return the transactions a second of so many producers in one process."""
    objects = MemoryObjects(lambda: time.time_ns() // 1_000_000)
    environment = SystemEnvironment()
    admin = create_on(_store(objects), environment, exist_ok=False, settings=WarehouseSettings()).admin()
    names = ["t"] * producers if topics == _SHARED else [f"t{number}" for number in range(producers)]
    for name in dict.fromkeys(names):
        admin.create_topic(name, partitions=1)
    warehouse, until, done = open_on(_store(objects), environment), threading.Event(), [0] * producers
    started = threading.Barrier(producers + 1)
    works: list[Callable[[], None]] = [
        lambda number=number, name=name: _commit(warehouse, (number, name), started, until, done)  # type: ignore[misc]
        for number, name in enumerate(names)
    ]
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    started.wait()
    began, before = time.perf_counter(), sum(done)
    until.wait(SECONDS)
    count, took_s = sum(done) - before, time.perf_counter() - began
    until.set()
    for thread in threads:
        thread.join()
    return count / took_s


def _commit(
    warehouse: Warehouse, who: tuple[int, str], started: threading.Barrier, until: threading.Event, done: list[int]
) -> None:
    number, topic = who
    with warehouse.producer(f"id-{number}") as producer:
        producer.init_transactions()
        # What is created, opened and read once is not measured.
        for is_measured in (False, True):
            if is_measured:
                started.wait()
            while True:
                with producer.transaction() as transaction:
                    transaction.send(topic, value=b"value")
                done[number] += 1
                if not is_measured or until.is_set():
                    break


def _store(objects: MemoryObjects) -> DelayedStore:
    return DelayedStore(objects, RemoteStore.parallel_reads)


def _name(producers: int) -> str:
    return "1 producer" if producers == 1 else f"{producers} producers"


@contextmanager
def _each_alone() -> Iterator[None]:
    with patch.object(request_queue, "MOST_TOGETHER", 1):
        yield
