"""Who is measured side by side, and the processes in which each makes its transactions.

A contender is told of a workload, creates what it writes to, and is then asked in each process for a call that makes
one transaction.  Its processes live as long as its workload and work in turns, so that contenders can alternate while
what each has written grows.  Owns the two that need no server: txntable and deltalake.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Protocol

import deltalake
import pyarrow as pa

from txntable.warehouse.warehouse import Warehouse

_SCHEMA = pa.schema([pa.field("x", pa.int64())])
_PATIENCE_S = 120.0

Transact = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Workload:
    """What all contenders do.

    Attributes
    ----------
    name : str
        For people.
    key : str
        Of letters and digits: what is created for it is named after it.
    records : int
        Of a transaction; each is in a partition of its own.
    partitions : int
        Of a topic.
    processes : int
        How many work at once.
    shares : bool
        Whether they write to the same topic.
    """

    name: str
    key: str
    records: int
    partitions: int
    processes: int = 1
    shares: bool = False

    @property
    def topics(self) -> list[str]:
        """The names of all topics."""
        return list(dict.fromkeys(self.topic(number) for number in range(self.processes)))

    def topic(self, number: int) -> str:
        """Return the topic of a process."""
        return f"{self.key}x{0 if self.shares else number}"


class Contender(Protocol):
    """What can be measured; processes receive a copy."""

    @property
    def name(self) -> str:
        """For people."""

    def create(self, workload: Workload) -> None:
        """Create what the processes write to."""

    def connect(self, workload: Workload, number: int) -> Transact:
        """Return a call that makes one transaction; asked in the process of that number."""


@dataclass(frozen=True, slots=True)
class TxnTable:
    """Our transactions, on a local folder.

    Attributes
    ----------
    folder : str
        Where warehouses are created.
    durability : str
        ``"page-cache"``, or ``"full"``: everything is synced.
    """

    folder: str
    durability: str

    @property
    def name(self) -> str:
        """For people."""
        return "txntable" if self.durability == "page-cache" else "txntable, synced"

    def create(self, workload: Workload) -> None:
        """Create a warehouse, and its topics."""
        admin = Warehouse.create(self._url(workload), durability=self.durability).admin()
        for topic in workload.topics:
            admin.create_topic(topic, partitions=workload.partitions, schema=_SCHEMA)

    def connect(self, workload: Workload, number: int) -> Transact:
        """Return a transaction, from begin to published."""
        producer = Warehouse.open(self._url(workload), durability=self.durability).producer(f"contender-{number}")
        producer.init_transactions()
        topic = workload.topic(number)

        def transact() -> None:
            producer.begin_transaction()
            for partition in range(workload.records):
                producer.send(topic, row={"x": 1}, partition=partition)
            producer.commit_transaction()

        return transact

    def _url(self, workload: Workload) -> str:
        return f"{self.folder}/{self.durability}-{workload.key}"


@dataclass(frozen=True, slots=True)
class Deltalake:
    """Appends, each one commit of as many rows, whatever partitions they would be of.

    A table that others write to is opened for each append, or most of them would fail; else it stays open.
    """

    folder: str

    @property
    def name(self) -> str:
        """For people."""
        return "deltalake append"

    def create(self, workload: Workload) -> None:
        """Create the tables."""
        for topic in workload.topics:
            deltalake.DeltaTable.create(f"{self.folder}/{topic}", deltalake.Schema.from_arrow(_SCHEMA))

    def connect(self, workload: Workload, number: int) -> Transact:
        """Return an append."""
        url = f"{self.folder}/{workload.topic(number)}"
        table = url if workload.shares else deltalake.DeltaTable(url)
        rows = pa.table({"x": pa.array([1] * workload.records, pa.int64())})
        return lambda: deltalake.write_deltalake(table, rows, mode="append")


@dataclass(frozen=True, slots=True)
class Turn:
    """What all processes of a contender did in a turn.

    Attributes
    ----------
    rate : float
        Transactions a second.
    latencies_s : tuple of float
        Of each that succeeded.
    failures : int
        Calls that raised.
    """

    rate: float
    latencies_s: tuple[float, ...]
    failures: int


class Team:
    """The processes of one contender in one workload."""

    def __init__(self, lines: Sequence[Connection]) -> None:
        self._lines = lines

    def work(self, seconds: float) -> Turn:
        """Let all processes make transactions for so long."""
        for line in self._lines:
            line.send(seconds)
        latencies: list[float] = []
        rate, failures = 0.0, 0
        for line in self._lines:
            if not line.poll(seconds + _PATIENCE_S):
                raise TimeoutError("a process of the benchmark does not answer")
            found, failed, took_s = line.recv()
            latencies += found
            failures += failed
            rate += len(found) / took_s
        if not latencies:
            raise RuntimeError(f"no transaction succeeded, and {failures} failed")
        return Turn(rate, tuple(latencies), failures)


@contextmanager
def team(contender: Contender, workload: Workload) -> Iterator[Team]:
    """Have a contender's processes at hand, each with what it needs to begin at once."""
    context = multiprocessing.get_context("spawn")
    lines, processes = [], []
    for number in range(workload.processes):
        ours, theirs = context.Pipe()
        process = context.Process(target=_work, args=(contender, workload, number, theirs))
        process.start()
        theirs.close()
        lines.append(ours)
        processes.append(process)
    try:
        yield Team(lines)
    finally:
        for line in lines:
            line.close()
        for process in processes:
            process.join(_PATIENCE_S)


def _work(contender: Contender, workload: Workload, number: int, line: Connection) -> None:
    transact = contender.connect(workload, number)
    while True:
        try:
            seconds = line.recv()
        except EOFError:
            return
        line.send(_turn(transact, seconds))


def _turn(transact: Transact, seconds: float) -> tuple[list[float], int, float]:
    """Return seconds of each transaction, how many failed, and how long it took in all."""
    latencies: list[float] = []
    failures = 0
    before = began = time.perf_counter()
    while before - began < seconds:
        try:
            transact()
        except Exception:  # noqa: BLE001  whatever it raises is a failure that the caller would have to handle
            failures += 1
            before = time.perf_counter()
            continue
        now = time.perf_counter()
        latencies.append(now - before)
        before = now
    return latencies, failures, before - began
