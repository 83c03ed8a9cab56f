"""What one log that orders a whole warehouse carries on S3: a simulation of its slots, in virtual time.

``python -m benchmarks.log_ceiling`` writes the tables of ``infra/THROUGHPUT.md`` again, beside its own that of what
:mod:`benchmarks.large_topics` has measured; a test holds the document against them.  Processes are generators that
yield requests; a request takes effect in the middle of its time.  Owns how requests wait for each other.  What a
transaction asks for is counted elsewhere (:mod:`benchmarks.requests`), and no bandwidth, CPU or data is in it.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TypeAlias

from benchmarks.kept_results import kept
from tools.documentation.tables import with_tables

DOCUMENT = Path(__file__).parent.parent / "infra" / "THROUGHPUT.md"
FASTEST_MS, SLOWEST_MS = 30.0, 60.0
REFUSED, AGAIN_AFTER_MS = 0.002, 100.0
"""The share of requests that S3 answers with 503, and when they are made again."""
SECONDS = 30
PROCESSES = (1, 4, 16, 64)
PRODUCERS = (1, 16)
PUT_DOLLARS, GET_DOLLARS = 5.0, 0.4
"""Of a million requests."""
# A job that batches other processes' requests looks for them so often; and what one entry holds at most.
_POLL_MS, _LARGEST_ENTRY = 50.0, 1_000
_MOST_WINDOWS = 16

Request: TypeAlias = str
"""``put`` or ``get``: half of one; ``sleep:ms``; ``wait``: until it is begun again."""
Work: TypeAlias = Generator[Request, None, None]


@dataclass(frozen=True, slots=True)
class Way:
    """How a transaction uses T.

    Attributes
    ----------
    name : str
        For people.
    slots : int
        Entries of T that one transaction needs if nobody shares them.
    shares : bool
        Whether requests of one process that wait at the same time go into one entry.
    job : bool
        Whether a job writes T for all processes, which leave their requests as objects.
    """

    name: str
    slots: int
    shares: bool = False
    job: bool = False


WAYS = (
    Way("enrol, decide, complete: three slots", 3),
    Way("the decision carries the segments, COMPLETE is a slot of its own", 2),
    Way("COMPLETE with the id's next decision, one slot", 1),
    Way("as it is: that, and the producers of a process share entries", 1, shares=True),
    Way("that, and a job writes the entries of all processes", 1, shares=True, job=True),
)


@dataclass(slots=True)
class Store:
    """T as the store has it, and what was asked of it."""

    slots: int = 0
    puts: int = 0
    gets: int = 0
    lost: int = 0


@dataclass(frozen=True, slots=True)
class Ceiling:
    """What came of one way with so many writers.

    Attributes
    ----------
    rate : float
        Transactions a second, of all together.
    median_ms, p99_ms : float
        From begin to the end of the commit call.
    dollars : float
        For a million transactions, of requests to T alone.
    lost : float
        Tries that met a taken slot, for each transaction.
    """

    rate: float
    median_ms: float
    p99_ms: float
    dollars: float
    lost: float


class Machine:
    """Virtual time: who waits for which answer."""

    def __init__(self, seed: int) -> None:
        self.now_ms = 0.0
        self.random = random.Random(seed)
        self.running: Work | None = None
        self._order = itertools.count()
        self._due: list[tuple[float, int, Work]] = []

    def begin(self, work: Work, after_ms: float = 0.0) -> None:
        """Let something begin."""
        heapq.heappush(self._due, (self.now_ms + after_ms, next(self._order), work))

    def run(self, until_ms: float) -> None:
        """Let time pass."""
        while self._due and self._due[0][0] < until_ms:
            self.now_ms, _, self.running = heapq.heappop(self._due)
            request = next(self.running, None)
            if request not in {None, "wait"}:
                self.begin(self.running, self._time_of(str(request)))

    def _time_of(self, request: Request) -> float:
        if request.startswith("sleep:"):
            return float(request.removeprefix("sleep:"))
        time_ms = self.random.uniform(FASTEST_MS, SLOWEST_MS) / 2
        while self.random.random() < REFUSED / 2:
            time_ms += AGAIN_AFTER_MS
        return time_ms


@dataclass(slots=True)
class Process:
    """One process: its view of T, and the requests for T that wait in it."""

    machine: Machine
    store: Store
    way: Way
    known: int = 0
    writing: bool = False
    waiting: deque[list[bool]] = field(default_factory=deque)
    asleep: list[Work] = field(default_factory=list)

    def decide(self) -> Work:
        """Get one request into T, together with those of others that wait, where they share entries."""
        request = [False]
        self.waiting.append(request)
        while not request[0]:
            if self.writing:
                assert self.machine.running is not None
                self.asleep.append(self.machine.running)
                yield "wait"
                continue
            self.writing = True
            taken = [self.waiting.popleft() for _ in range(len(self.waiting) if self.way.shares else 1)]
            yield from self._write()
            for each in taken:
                each[0] = True
            self.writing = False
            for work in self.asleep:
                self.machine.begin(work)
            self.asleep.clear()

    def _write(self) -> Work:
        while True:
            slot = self.known
            self.store.puts += 1
            yield "put"
            is_free = self.store.slots == slot
            if is_free:
                self.store.slots += 1
                self.known = self.store.slots
            yield "put"
            if is_free:
                return
            self.store.lost += 1
            yield from self._follow()

    def _follow(self) -> Work:
        """Read the winner's entry and the next slot at once, and further ones in windows, up to the tail."""
        window = 2
        while True:
            self.store.gets += window
            yield "get"
            seen = self.store.slots
            yield "get"
            end, self.known = self.known + window, min(seen, self.known + window)
            if seen < end:
                return
            window = min(2 * window, _MOST_WINDOWS)


class Job:
    """Writes the requests of all processes into T, which leave them as objects."""

    def __init__(self, machine: Machine, store: Store) -> None:
        self._machine, self._store = machine, store
        self._left: list[list[bool]] = []

    def decide(self) -> Work:
        """Leave a request; ask until it is answered by an entry."""
        self._store.puts += 1
        yield "put"
        request = [False]
        self._left.append(request)
        yield "put"
        while True:
            self._store.gets += 1
            yield "get"
            is_answered = request[0]
            yield "get"
            if is_answered:
                return
            yield f"sleep:{_POLL_MS / 2}"

    def work(self) -> Work:
        """List, read all that is new at once, write one entry; for ever."""
        while True:
            # A LIST costs as much as a PUT.
            self._store.puts += 1
            yield "get"
            found, self._left = self._left[:_LARGEST_ENTRY], self._left[_LARGEST_ENTRY:]
            yield "get"
            if not found:
                yield f"sleep:{_POLL_MS}"
                continue
            self._store.gets += len(found)
            yield "get"
            yield "get"
            self._store.puts += 1
            yield "put"
            self._store.slots += 1
            for request in found:
                request[0] = True
            yield "put"


def ceiling(way: Way, processes: int, producers: int, seed: int = 1) -> Ceiling:
    """Let producers commit one transaction after the other for a while, each to a topic of its own.

    Parameters
    ----------
    way : Way
        How they use T.
    processes, producers : int
        How many processes, and producers in each.
    seed : int
        Of the latencies.
    """
    machine, store = Machine(seed), Store()
    latencies: list[float] = []
    job = Job(machine, store) if way.job else None
    if job is not None:
        machine.begin(job.work())
    for _ in range(processes):
        process = Process(machine, store, way)
        for _ in range(producers):
            machine.begin(_producing(process, job, latencies), machine.random.uniform(0, 500))
    machine.run(SECONDS * 1000.0)
    done, ordered = len(latencies), sorted(latencies)
    dollars = (store.puts * PUT_DOLLARS + store.gets * GET_DOLLARS) / done
    return Ceiling(done / SECONDS, median(ordered), ordered[int(0.99 * (done - 1))], dollars, store.lost / done)


def _producing(process: Process, job: Job | None, latencies: list[float]) -> Work:
    while True:
        began = process.machine.now_ms
        for _ in range(process.way.slots - 2):
            # Enrolled before, and appended after, the upload.
            yield from process.decide()
            yield from ("put", "put")
        # The upload, the reading of S and the marker's file, side by side.
        yield from ("put", "put")
        yield from process.decide() if job is None else job.decide()
        # S, then P.
        yield from ("put", "put", "put", "put")
        if process.way.slots > 1:
            yield from process.decide()
        latencies.append(process.machine.now_ms - began)


# -- the document ---------------------------------------------------------------------------


def rates_table() -> str:
    """Return transactions a second of every way, by processes and producers."""
    sizes = [(processes, producers) for producers in PRODUCERS for processes in PROCESSES]
    lines = _header(["Transactions a second", *(_size(*size) for size in sizes)])
    for way in WAYS:
        lines.append(_row([way.name, *(f"{ceiling(way, *size).rate:.1f}" for size in sizes)]))
    return "\n".join(lines)


def details_table() -> str:
    """Return latencies, lost tries and the price of requests to T."""
    heads = [
        "Way, of 16 processes",
        "producers of each",
        "median ms",
        "99th percentile ms",
        "lost tries",
        "$ a million",
    ]
    lines = _header(heads)
    for way in WAYS:
        for producers in PRODUCERS:
            found = ceiling(way, 16, producers)
            numbers = [f"{found.median_ms:.0f}", f"{found.p99_ms:.0f}", f"{found.lost:.2f}", f"{found.dollars:.2f}"]
            lines.append(_row([way.name, str(producers), *numbers]))
    return "\n".join(lines)


def large_topics_table() -> str:
    """Return what was measured of large topics: the kept result of ``benchmarks.large_topics``."""
    found = kept("large_topics").figures.values()
    return "\n".join(
        [
            *_header(["At 30 ms a request", "seconds", "of these"]),
            *(_row([f.name, f"{f.value:.2f}", f.notes]) for f in found),
        ]
    )


def _size(processes: int, producers: int) -> str:
    return f"{processes} × {producers}"


def _header(cells: Sequence[str]) -> list[str]:
    return [_row(cells), f"|---|{'---:|' * (len(cells) - 1)}"]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


TABLES = {"rates": rates_table, "details": details_table, "large topics": large_topics_table}


def main() -> None:
    """Write the tables into the document as they are computed now, the last from its kept result."""
    tables = {name: f"{make()}\n" for name, make in TABLES.items()}
    DOCUMENT.write_text(with_tables(DOCUMENT.read_text(), tables))


if __name__ == "__main__":
    main()
