"""What a warehouse costs after 1,000 and after 100,000 small transactions, with the maintenance jobs running.

A store in memory and a clock that is told: 250 transactions a day, one second apart, then the maintenance, so that
100,000 transactions take thirteen months.  At each point of the curve all retentions pass three times, with one
transaction and one round of maintenance each, and the store is copied.  In the end the copies are measured in turn:
a cold open, a look-up of the last stable offset, one transaction (the median of several), scans.
``TXNTABLE_FLAT_COST=<transactions>`` runs fewer.
"""

from __future__ import annotations

import os
import random
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pyarrow as pa

from benchmarks.curve import Curve, draw
from benchmarks.measurement import Figure, ratio
from tests.doubles.manual_environment import ManualEnvironment, StoreTime
from tests.doubles.memory_store import MemoryObjects, MemoryStore
from tests.doubles.stepping_store import SteppingStore
from txntable.compaction.compactor import compact
from txntable.compaction.vacuum import vacuum
from txntable.format.records import TopicPartition
from txntable.format.warehouse_settings import WarehouseSettings
from txntable.producer.producer import Producer
from txntable.storage.object_store import StoredObject
from txntable.warehouse.warehouse import Warehouse, create_on, open_on

POINTS = (1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
_BURST = 250
_DAY_MS = 86_400_000
_ACCOUNTS = 500
_RUNS = 7
_PICTURE = Path(__file__).with_name("flat_cost.svg")
_SCHEMA = pa.schema([pa.field("account", pa.int64(), nullable=False), pa.field("note", pa.binary())])
_PARTITION = TopicPartition("ledger", 0)
_NEWEST = 10
TOPICS: dict[str, dict[str, object]] = {
    "ledger": {},
    "week": {"retention.ms": 7 * _DAY_MS},
    "accounts": {"cleanup.policy": "compact"},
}
_LAYERS = (
    ("transaction log", re.compile(r"system/transaction_log/_delta_log/")),
    ("offset log", re.compile(r"system/offset_log/_delta_log/")),
    ("partition logs", re.compile(r"topics/[^/]+/_segments/_delta_log/")),
    ("public tables", re.compile(r"topics/[^/]+/_delta_log/")),
    ("segments", re.compile(r"topics/[^/]+/_segments/p\d+/")),
    ("constant files", re.compile(r"topics/[^/]+/_segments/(markers|state)/|system/[a-z_]+/k/")),
    ("other", re.compile(r"")),
)


@dataclass(frozen=True, slots=True)
class Point:
    """What was measured after some transactions.

    Attributes
    ----------
    transactions : int
        So far.
    seconds : dict of str to float
        By operation: the median.
    requests : dict of str to int
        By operation.
    objects, size : dict of str to int
        By layer: how many, and their bytes.
    live_bytes : int
        Of the segments that the public tables show.
    """

    transactions: int
    seconds: dict[str, float]
    requests: dict[str, int]
    objects: dict[str, int]
    size: dict[str, int]
    live_bytes: int

    @property
    def size_ratio(self) -> float:
        """Bytes of the warehouse ÷ bytes of its live segments."""
        return sum(self.size.values()) / self.live_bytes


def measure(folder: Path) -> list[Figure]:
    """Return what the last point costs ÷ what the first one cost, and draw the curve."""
    most = int(os.environ.get("TXNTABLE_FLAT_COST", POINTS[-1]))
    years = _Years()
    copies = [years.after(number) for number in POINTS if number <= most]
    points = _measured(copies)
    first, last = points[0], points[-1]
    figures = []
    for name in first.seconds:
        title = f"{name}: after {last.transactions:,} ÷ after {first.transactions:,}"
        figures.append(ratio(title, last.seconds[name], first.seconds[name]))
        notes = f"{first.requests[name]} → {last.requests[name]} requests"
        figures.append(Figure(f"{name} after {last.transactions:,}", 1000 * last.seconds[name], "ms", notes))
    notes = f"after {first.transactions:,}: {first.size_ratio:.2f}; live {last.live_bytes / 1e6:.1f} MB"
    figures.append(Figure("size of the warehouse ÷ its live data", last.size_ratio, "×", notes))
    for layer, count in last.objects.items():
        notes = f"{last.size[layer] / 1e3:,.0f} kB; after {first.transactions:,}: {first.objects[layer]}"
        figures.append(Figure(f"objects, {layer}", count, "", notes))
    rounds = f"{len(years.rounds)} rounds"
    figures.append(Figure("one round of maintenance, median", 1000 * median(years.rounds), "ms", rounds))
    if most == POINTS[-1]:
        _PICTURE.write_text(_drawn(points))
    return figures


@dataclass(frozen=True, slots=True)
class _Copy:
    """A store as it was after some transactions."""

    transactions: int
    objects: dict[str, StoredObject]
    boot_ms: int

    def process(self) -> _Process:
        """Return a new process on a copy of the store."""
        machine = ManualEnvironment(seed=self.transactions)
        machine.advance_ms(self.boot_ms)
        objects = MemoryObjects(StoreTime(machine))
        objects.restore(self.objects)
        return _Process(objects, machine)


class _Process:
    """Someone who uses a warehouse: what is measured."""

    def __init__(self, objects: MemoryObjects, machine: ManualEnvironment) -> None:
        self.store = SteppingStore(MemoryStore(objects), [])
        self._machine = machine
        self.open()

    def open(self) -> None:
        self.warehouse = open_on(self.store, self._machine)
        for topic in TOPICS:
            self.warehouse.topic_log(topic).catch_up()
        self.warehouse.offsets.refresh()

    def warm_up(self) -> None:
        self.random = random.Random(1)
        self.producer = self.warehouse.producer("etl")
        self.producer.init_transactions()
        for _ in range(_NEWEST):
            self.transact()
        self.look_up()

    def transact(self) -> None:
        self.producer.begin_transaction()
        _send(self.producer, self.random, 0, _PARTITION.partition)
        self.producer.commit_transaction()

    def look_up(self) -> int:
        with self.warehouse.consumer() as consumer:
            consumer.assign([_PARTITION])
            return consumer.last_stable_offset(_PARTITION)

    def scan_compacted(self) -> None:
        self.warehouse.read_arrow("accounts").read_all()

    def scan_newest(self) -> None:
        # Every other offset is a marker's.
        offsets: dict[int, int | str] = {_PARTITION.partition: self.look_up() - 2 * _NEWEST, 1: "latest"}
        assert self.warehouse.read_arrow("ledger", starting_offsets=offsets).read_all().num_rows == _NEWEST

    def scan_ledger(self) -> None:
        self.warehouse.read_arrow("ledger").read_all()


# It is divided by the number of transactions: the topic grows with them.
_PER_TRANSACTION = "scan of all, per transaction"
_TIMES = {"one transaction": 9}
_OPERATIONS: dict[str, Callable[[_Process], object]] = {
    "cold open": _Process.open,
    "last stable offset": _Process.look_up,
    "one transaction": _Process.transact,
    "scan of a compacted topic": _Process.scan_compacted,
    "scan of the newest records": _Process.scan_newest,
    _PER_TRANSACTION: _Process.scan_ledger,
}


def _measured(copies: list[_Copy]) -> list[Point]:
    seconds: dict[tuple[int, str], list[float]] = defaultdict(list)
    requests: dict[tuple[int, str], int] = {}
    for _ in range(_RUNS):
        for copy in copies:
            process = copy.process()
            process.warm_up()
            for name, operation in _OPERATIONS.items():
                took, asked = zip(*(_timed(process, operation) for _ in range(_TIMES.get(name, 1))), strict=True)
                share = copy.transactions if name == _PER_TRANSACTION else 1
                # Of a transaction, most: every hundredth commit of a log writes a checkpoint, too.
                seconds[copy.transactions, name].append(median(took) / share)
                requests[copy.transactions, name] = round(median(asked))
    return [
        Point(
            copy.transactions,
            {name: median(seconds[copy.transactions, name]) for name in _OPERATIONS},
            {name: requests[copy.transactions, name] for name in _OPERATIONS},
            *_layers(copy.objects),
            _live_bytes(copy.process().warehouse),
        )
        for copy in copies
    ]


def _timed(process: _Process, operation: Callable[[_Process], object]) -> tuple[float, int]:
    before, start = len(process.store.steps), time.perf_counter()
    operation(process)
    return time.perf_counter() - start, len(process.store.steps) - before


def _live_bytes(warehouse: Warehouse) -> int:
    return sum(add.size for topic in TOPICS for add in warehouse.topic_log(topic).public.refresh().files)


def _layers(objects: dict[str, StoredObject]) -> tuple[dict[str, int], dict[str, int]]:
    count, size = Counter[str](), Counter[str]()
    for path, found in objects.items():
        layer = next(name for name, pattern in _LAYERS if pattern.match(path))
        count[layer] += 1
        size[layer] += len(found.data)
    return {name: count[name] for name, _ in _LAYERS}, {name: size[name] for name, _ in _LAYERS}


def _send(producer: Producer, chance: random.Random, number: int, partition: int | None = None) -> None:
    for topic in TOPICS:
        row = {"account": number % _ACCOUNTS, "note": chance.randbytes(600)}
        producer.send(topic, row=row, partition=partition)


class _Years:
    """A warehouse that is used and maintained."""

    def __init__(self) -> None:
        self._machine = ManualEnvironment()
        self._objects = MemoryObjects(StoreTime(self._machine))
        store = MemoryStore(self._objects)
        self._warehouse = create_on(store, self._machine, exist_ok=False, settings=WarehouseSettings())
        for name, config in TOPICS.items():
            self._warehouse.admin().create_topic(name, partitions=2, schema=_SCHEMA, key=["account"], config=config)
        self._random = random.Random(8)
        self._done = 0
        self.rounds: list[float] = []

    def after(self, transactions: int) -> _Copy:
        """Go on until there were so many transactions, let all retentions pass, and copy the store."""
        while self._done < transactions:
            self._day()
        # What the first round removes is deleted in the second, and in the third the logs have forgotten it.
        for _ in range(3):
            self._machine.advance_ms(33 * _DAY_MS)
            self._transact()
            self._maintain()
        return _Copy(transactions, self._objects.snapshot(), self._machine.instant().boot_ms)

    def _transact(self) -> None:
        with self._warehouse.producer("monthly") as producer:
            producer.init_transactions()
            producer.begin_transaction()
            _send(producer, self._random, self._done)
            producer.commit_transaction()

    def _day(self) -> None:
        producer = self._warehouse.producer("etl")
        producer.init_transactions()
        for _ in range(_BURST):
            self._done += 1
            producer.begin_transaction(batch_id=self._done)
            _send(producer, self._random, self._done)
            if self._done % 10 == 0:
                producer.abort_transaction()
                producer.begin_transaction(batch_id=self._done)
                _send(producer, self._random, self._done)
            producer.commit_transaction()
            self._machine.advance_ms(1000)
        self._machine.advance_ms(_DAY_MS)
        self._maintain()

    def _maintain(self) -> None:
        start = time.perf_counter()
        reports = compact(self._warehouse)
        assert not any(report.failures for report in reports)
        vacuum(self._warehouse, execute=True)
        self._warehouse.coordinator().run_once()
        self.rounds.append(time.perf_counter() - start)


def _drawn(points: list[Point]) -> str:
    numbers = [point.transactions for point in points]
    costs = [
        Curve(name, [point.seconds[name] / points[0].seconds[name] for point in points]) for name in points[0].seconds
    ]
    sizes = Curve("size ÷ live data", [point.size_ratio for point in points])
    objects = [Curve(name, [point.objects[name] for point in points]) for name, _ in _LAYERS]
    return draw(numbers, [("cost ÷ cost after 1,000", [*costs, sizes]), ("objects by layer", objects)])
