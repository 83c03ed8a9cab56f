"""One producer's transactions on a store whose every answer takes 30 ms: round trips, and seconds.

Beside the small ones, whose seconds are compared with their round trips, stand large ones, whose manifests exceed what
a decision carries (``LARGEST_MANIFEST_BYTES``), in turns with the same ones carried by the decision all the same.  Owns
nothing but the measurement.  Requests that are under way at the same time are one round trip; bytes cost no time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import BinaryIO
from unittest.mock import patch

import pyarrow as pa

from benchmarks.delayed_store import ANSWER_S, DelayedStore
from benchmarks.measurement import Figure, median_ratio
from tests.doubles.memory_store import MemoryObjects, MemoryStore
from txntable.format.records import TopicPartition
from txntable.format.warehouse_settings import WarehouseSettings
from txntable.partition import manifest
from txntable.producer.producer import Producer
from txntable.runtime.environment import SystemEnvironment
from txntable.storage.object_store import PutOutcome, StoredObject
from txntable.storage.remote import RemoteStore
from txntable.warehouse.warehouse import create_on, open_on

ROUNDS = 7
LARGE = (250, 500, 1_000)
_SCHEMA = pa.schema([pa.field("account", pa.int64()), pa.field("note", pa.string())])
_ROW = {"account": 1, "note": "x" * 100}
_TRANSACTION_LOG, _PARTITION_LOG, _SEGMENT = (
    "system/transaction_log/_delta_log/",
    "/_segments/_delta_log/",
    "/_segments/p",
)
# Until a series is steady: the first transactions open logs, and say COMPLETE by entries of their own.
_WARM_UP = 3


@dataclass(frozen=True, slots=True)
class Shape:
    """What a transaction writes: a record in each partition of each topic, and perhaps offsets."""

    name: str
    topics: int = 1
    partitions: int = 1
    with_offsets: bool = False


SMALL = (
    Shape("1 topic"),
    Shape("3 topics", topics=3),
    Shape("100 partitions", partitions=100),
    Shape("1 topic and offsets", with_offsets=True),
)


@dataclass(frozen=True, slots=True)
class Request:
    """One that has a time of its own."""

    is_put: bool
    path: str
    size: int
    began_s: float
    ended_s: float


class TimedStore(DelayedStore):
    """Answers each request after 30 ms, and keeps when it was under way."""

    def __init__(self, objects: MemoryObjects) -> None:
        super().__init__(objects, RemoteStore.parallel_reads)
        self.requests: list[Request] = []
        self._lock = threading.Lock()

    @contextmanager
    def _timed(self, path: str, size: int | None = None) -> Iterator[None]:
        began = time.perf_counter()
        yield
        with self._lock:
            self.requests.append(Request(size is not None, path, size or 0, began, time.perf_counter()))

    def get(self, path: str) -> StoredObject | None:
        """Return the object, or ``None`` when there is none."""
        with self._timed(path):
            return super().get(path)

    def get_many(self, paths: Sequence[str]) -> list[StoredObject | None]:
        """Return the objects in the order of `paths`, asked for at once."""
        with self._timed(paths[0]):
            return super().get_many(paths)

    def get_range(self, path: str, start: int, length: int) -> bytes | None:
        """Return a part of an object, or ``None`` when there is no object."""
        with self._timed(path):
            return super().get_range(path, start, length)

    def put(self, path: str, data: bytes) -> None:
        """Create or replace an object."""
        with self._timed(path, len(data)):
            super().put(path, data)

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """Create an object unless there is one."""
        with self._timed(path, len(data)):
            return super().put_if_absent(path, data)

    def writer(self, path: str) -> BinaryIO:
        """Return a file to stream a new object into."""
        with self._timed(path, 0):
            return super().writer(path)


@dataclass(frozen=True, slots=True)
class Timing:
    """What one transaction took.

    Attributes
    ----------
    all_s, commit_s : float
        From begin, and from the call of commit, to its return.
    round_trips : int
        From begin to the return of commit.
    to_decision : int
        Round trips between the last upload and the end of the decision's put.
    to_decision_s, after_s : float
        Seconds of these, and of what follows.
    held_s : float
        For how long data was in a partition log and not decided there.
    decision_bytes : int
        Of the entries of T.
    """

    all_s: float
    commit_s: float
    round_trips: int
    to_decision: int
    to_decision_s: float
    after_s: float
    held_s: float
    decision_bytes: int


class Site:
    """A warehouse, and a producer that makes transactions of one shape."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        objects = MemoryObjects(lambda: time.time_ns() // 1_000_000)
        environment = SystemEnvironment()
        created = create_on(MemoryStore(objects), environment, exist_ok=False, settings=WarehouseSettings())
        for topic in self._topics:
            created.admin().create_topic(topic, partitions=shape.partitions, schema=_SCHEMA)
        self._store = TimedStore(objects)
        self._producer: Producer = open_on(self._store, environment).producer("etl")
        self._producer.init_transactions()
        self._done = 0

    @property
    def _topics(self) -> list[str]:
        return [f"t{number}" for number in range(self._shape.topics)]

    def transact(self) -> Timing:
        """Make one transaction."""
        self._store.requests.clear()
        began = time.perf_counter()
        self._producer.begin_transaction()
        for topic in self._topics:
            for partition in range(self._shape.partitions):
                self._producer.send(topic, row=_ROW, partition=partition)
        if self._shape.with_offsets:
            self._done += 1
            self._producer.send_offsets_to_transaction({TopicPartition("t0", 0): self._done}, "g")
        asked = time.perf_counter()
        self._producer.commit_transaction()
        return _timing(began, asked, time.perf_counter(), list(self._store.requests))

    def close(self) -> None:
        """End the producer."""
        self._producer.close()


def _timing(began: float, asked: float, ended: float, requests: Sequence[Request]) -> Timing:
    uploaded = max(one.ended_s for one in requests if _SEGMENT in one.path)
    decisions = [one for one in requests if one.is_put and one.path.startswith(_TRANSACTION_LOG)]
    decided = max(one.ended_s for one in decisions)
    return Timing(
        all_s=ended - began,
        commit_s=ended - asked,
        round_trips=chain(requests),
        to_decision=chain([one for one in requests if uploaded <= one.began_s and one.ended_s <= decided]),
        to_decision_s=decided - uploaded,
        after_s=ended - decided,
        held_s=max(_held(requests), default=0.0),
        decision_bytes=sum(one.size for one in decisions),
    )


def chain(requests: Sequence[Request]) -> int:
    """Return how many requests followed one another: one that began before another ended does not follow it."""
    count, ended = 0, 0.0
    for one in sorted(requests, key=lambda one: one.began_s):
        if one.began_s >= ended:
            count, ended = count + 1, one.ended_s
    return count


def _held(requests: Sequence[Request]) -> Iterator[float]:
    """Yield for each topic the seconds between the first and the last commit of its partition log."""
    commits: dict[str, list[float]] = {}
    for one in requests:
        if one.is_put and _PARTITION_LOG in one.path:
            commits.setdefault(one.path.partition(_PARTITION_LOG)[0], []).append(one.ended_s)
    yield from (max(ends) - min(ends) for ends in commits.values())


# -- measured -------------------------------------------------------------------------------


def measure(folder: Path) -> list[Figure]:
    """Return round trips and seconds of small transactions, and of large ones in both ways."""
    return [
        *(figure for shape in SMALL for figure in _small(shape)),
        *(figure for segments in LARGE for topics in (1, 3) for figure in _large(segments, topics)),
    ]


def _small(shape: Shape) -> Iterator[Figure]:
    site = Site(shape)
    timings = [site.transact() for _ in range(_WARM_UP + ROUNDS)][_WARM_UP:]
    site.close()
    seconds, trips = median(one.all_s for one in timings), int(median(one.round_trips for one in timings))
    notes = f"{trips} round trips; fastest {min(one.all_s for one in timings):.3f} s"
    yield Figure(f"{shape.name}, begin to end of commit", seconds, "s", notes)
    ratios = [one.all_s / (trips * ANSWER_S) for one in timings]
    yield median_ratio(f"{shape.name} ÷ its round trips of {1000 * ANSWER_S:.0f} ms", ratios)


def _large(segments: int, topics: int) -> Iterator[Figure]:
    """Compare what is appended before the decision with the same that the decision carries."""
    shape = Shape(f"{segments:,} segments, {topics} topic{'s' * (topics > 1)}", topics, segments // topics)
    site, appended, carried = Site(shape), [], []
    for number in range(_WARM_UP + ROUNDS):
        before = site.transact()
        with patch.object(manifest, "LARGEST_MANIFEST_BYTES", 1 << 30):
            inside = site.transact()
        if number >= _WARM_UP:
            appended.append(before)
            carried.append(inside)
    site.close()
    for name, timings in (("appended before", appended), ("carried by", carried)):
        yield Figure(
            f"{shape.name}, {name} the decision", median(one.commit_s for one in timings), "s", _notes(timings)
        )
    ratios = [one.commit_s / other.commit_s for one, other in zip(appended, carried, strict=True)]
    yield median_ratio(f"{shape.name}, appended before ÷ carried by the decision", ratios)


def _notes(timings: Sequence[Timing]) -> str:
    def middle(name: str) -> float:
        return median(getattr(one, name) for one in timings)

    return (
        f"upload to decision {middle('to_decision'):.0f} round trips, {middle('to_decision_s'):.2f} s;"
        f" after it {middle('after_s'):.2f} s; last stable offset held {middle('held_s'):.2f} s;"
        f" {middle('decision_bytes') / 1024:,.0f} KiB of T"
    )
