"""Reading a partition of 150 small segments from a store whose every answer takes 30 ms: round trips, and seconds.

Round trips are counted, for ``infra/REQUESTS.md``; seconds are measured, with the window of requests and without it in
alternating rounds.  The segments have one record each, and the topic's logs are maintained.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.delayed_store import DelayedStore
from benchmarks.measurement import Figure, alternate, paired_ratio
from tests.doubles.manual_environment import ManualEnvironment, StoreTime
from tests.doubles.memory_store import MemoryObjects, MemoryStore
from tests.doubles.round_trip_store import RoundTripStore
from txntable.format.isolation import IsolationLevel
from txntable.format.records import TopicPartition
from txntable.format.warehouse_settings import WarehouseSettings
from txntable.runtime.environment import Environment, SystemEnvironment
from txntable.segments.segment import SegmentPlan
from txntable.segments.segment_rewriting import RewritePlan, rewrite_segments
from txntable.warehouse.warehouse import Warehouse, create_on, open_on

SEGMENTS = 150
ROUNDS = 5
_TOPIC = "t"

Read = Callable[[Warehouse], None]


def small_segments(environment: Environment, clock: Callable[[], int]) -> MemoryObjects:
    """Return a warehouse whose only topic has 150 segments in its only partition."""
    objects = MemoryObjects(clock)
    warehouse = create_on(MemoryStore(objects), environment, exist_ok=False, settings=WarehouseSettings())
    warehouse.admin().create_topic(_TOPIC, partitions=1)
    with warehouse.producer() as producer:
        for number in range(SEGMENTS):
            producer.send(_TOPIC, value=f"{number}".encode())
            producer.flush()
    warehouse.coordinator().run_once()
    return objects


def _read_arrow(level: IsolationLevel, warehouse: Warehouse) -> None:
    assert warehouse.read_arrow(_TOPIC, isolation_level=level).read_all().num_rows == SEGMENTS


def _poll(warehouse: Warehouse) -> None:
    with warehouse.consumer(auto_offset_reset="earliest", prefetch=True) as consumer:
        consumer.assign([TopicPartition(_TOPIC, 0)])
        found = 0
        while found < SEGMENTS:
            found += sum(map(len, consumer.poll(timeout_ms=1_000).values()))


def _merge(warehouse: Warehouse) -> None:
    view = warehouse.topic_reader(_TOPIC).view(IsolationLevel.READ_UNCOMMITTED)
    plan = RewritePlan(SegmentPlan(view.root, view.settings, None, 0), 1 << 30, warehouse.context.environment.new_id)
    (output,) = rewrite_segments(warehouse.store, plan, list(view.plan()))
    assert output.segment.records == SEGMENTS


READS: dict[str, Read] = {
    "`read_arrow`, *snapshot*": partial(_read_arrow, IsolationLevel.SNAPSHOT),
    "`read_arrow`, *read_committed*": partial(_read_arrow, IsolationLevel.READ_COMMITTED),
    "`poll` until the end": _poll,
}


# -- counted --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CountedRead:
    """What one read asked of the store.

    Attributes
    ----------
    name : str
        Which.
    cold, warm : int
        Its round trips in a process that has opened the warehouse and nothing else, and in one that has read before.
    """

    name: str
    cold: int
    warm: int


def counted_reads() -> Iterator[CountedRead]:
    """Yield the round trips of reads."""
    machine = ManualEnvironment()
    objects = small_segments(machine, StoreTime(machine))
    for name, read in READS.items():
        store = RoundTripStore(objects)
        warehouse = open_on(store, machine)
        trips = []
        for _ in range(2):
            store.expect(SEGMENTS)
            read(warehouse)
            trips.append(store.round_trips)
        yield CountedRead(name, *trips)


# -- measured -------------------------------------------------------------------------------


def measure(folder: Path) -> list[Figure]:
    """Return seconds of reads in a process that has read before, and the ratios."""
    objects = small_segments(SystemEnvironment(), lambda: time.time_ns() // 1_000_000)
    parallel = RoundTripStore.parallel_reads
    ahead, in_turn = (open_on(DelayedStore(objects, most), SystemEnvironment()) for most in (parallel, 1))
    figures = []
    for name, read in {**READS, "reading and writing of a compaction": _merge}.items():
        windowed, serial = alternate(ROUNDS, partial(read, ahead), partial(read, in_turn))
        figures.append(Figure(f"{name}, {parallel} requests under way", min(windowed), "s", f"{SEGMENTS} segments"))
        figures.append(paired_ratio(f"{name}, {parallel} requests under way ÷ one", windowed, serial))
    return figures
