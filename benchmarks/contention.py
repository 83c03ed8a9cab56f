"""Transactions per second of 1 to 32 processes at once, beside as many processes that append with ``deltalake``.

Each process has its own transactional id; a transaction is one record in one partition, from begin to commit,
published.  All write to the same partition of one topic, or each to a topic of its own; the transaction log is one.
The peer's processes append one row to one table.  Local folders, ``durability="page-cache"``: deltalake does not sync.

``python -m benchmarks.contention --seconds 60 --processes 1 8 32 --folder …`` measures for longer and without the peer:
whether the rate falls as the logs grow is the second half of the time ÷ the first.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial
from multiprocessing.synchronize import Barrier
from pathlib import Path
from statistics import median, quantiles

import deltalake
import pyarrow as pa

from benchmarks.measurement import Figure, ratio
from txntable.warehouse.warehouse import Warehouse

SECONDS = 4.0
PROCESSES = (1, 2, 4, 8, 16, 32)
# Before the time begins: what a process loads and learns once is no part of a transaction.
_FIRST_CALLS = 5
_ROW = pa.table({"x": pa.array([1], pa.int64())})
# Of the process: where all wait for each other.  A barrier can only be inherited.
_starts: list[Barrier] = []


class Contenders(Enum):
    """What the processes do."""

    SHARED_TOPIC = "transactions, one partition of one topic"
    OWN_TOPICS = "transactions, a topic each"
    DELTALAKE = "deltalake appends, one table"


@dataclass(frozen=True, slots=True)
class Tally:
    """What one process did.

    Attributes
    ----------
    latencies_s : tuple of float
        Seconds of each call that succeeded.
    failures : int
        Calls that failed.
    longest_wait_s : float
        Most seconds between two successes.
    spent_s, cpu_s : float
        Seconds, and processor seconds of the process.
    early : int
        Calls that succeeded in the first half of the time.
    """

    latencies_s: tuple[float, ...]
    failures: int
    longest_wait_s: float
    spent_s: float
    cpu_s: float
    early: int


def measure(folder: Path) -> list[Figure]:
    """Return rates of all kinds by number of processes, and their ratios to deltalake's."""
    figures = []
    for processes in PROCESSES:
        rates = {}
        for contenders in Contenders:
            figure = _measure(contenders, folder, processes, SECONDS)
            rates[contenders] = figure.value
            figures.append(figure)
        for contenders in (Contenders.SHARED_TOPIC, Contenders.OWN_TOPICS):
            name = f"{contenders.value} ÷ {Contenders.DELTALAKE.value}, {processes} processes"
            figures.append(ratio(name, rates[contenders], rates[Contenders.DELTALAKE]))
    return figures


def _measure(contenders: Contenders, folder: Path, processes: int, seconds: float) -> Figure:
    tallies = _run(contenders, folder / f"{contenders.name}-{processes}", processes, seconds)
    rate = sum(len(tally.latencies_s) for tally in tallies) / seconds
    return Figure(f"{contenders.value}, {processes} processes", rate, "1/s", _notes(tallies))


def _notes(tallies: list[Tally]) -> str:
    done = [len(tally.latencies_s) for tally in tallies]
    latencies = sorted(1000 * latency for tally in tallies for latency in tally.latencies_s)
    early = sum(tally.early for tally in tallies)
    return (
        f"{sum(tally.failures for tally in tallies)} failed; slowest ÷ median {min(done) / max(1, median(done)):.2f}; "
        f"longest wait {max(tally.longest_wait_s for tally in tallies):.2f} s; "
        f"median {median(latencies):.1f} ms, p95 {quantiles(latencies, n=20)[-1]:.1f} ms; "
        f"CPU {1000 * sum(tally.cpu_s for tally in tallies) / max(1, sum(done)):.2f} ms each, "
        f"{sum(tally.cpu_s for tally in tallies) / max(tally.spent_s for tally in tallies):.2f} processors; "
        f"second half ÷ first {(sum(done) - early) / max(1, early):.2f}"
    )


def _run(contenders: Contenders, folder: Path, processes: int, seconds: float) -> list[Tally]:
    _create(contenders, str(folder), processes)
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(processes)
    with context.Pool(processes, initializer=_start_at, initargs=(start,)) as pool:
        work = [(contenders, str(folder), number, seconds) for number in range(processes)]
        return pool.starmap(_work, work, chunksize=1)


def _start_at(barrier: Barrier) -> None:
    _starts.append(barrier)


def _create(contenders: Contenders, folder: str, processes: int) -> None:
    if contenders is Contenders.DELTALAKE:
        deltalake.write_deltalake(folder, _ROW)
        return
    admin = Warehouse.create(folder, durability="page-cache").admin()
    for number in range(processes):
        admin.create_topic(_topic(contenders, number), schema=_ROW.schema, exist_ok=True)


def _topic(contenders: Contenders, number: int) -> str:
    return "shared" if contenders is Contenders.SHARED_TOPIC else f"own-{number}"


def _transact(contenders: Contenders, folder: str, number: int) -> Callable[[], object]:
    producer = Warehouse.open(folder, durability="page-cache").producer(f"contender-{number}")
    producer.init_transactions()
    topic = _topic(contenders, number)

    def transact() -> None:
        producer.begin_transaction()
        producer.send(topic, row={"x": number})
        producer.commit_transaction()

    return transact


def _work(contenders: Contenders, folder: str, number: int, seconds: float) -> Tally:
    call: Callable[[], object]
    if contenders is Contenders.DELTALAKE:
        # With the table at hand: by its path it would be opened anew for each append.
        call = partial(deltalake.write_deltalake, deltalake.DeltaTable(folder), _ROW, mode="append")
    else:
        call = _transact(contenders, folder, number)
        for _ in range(_FIRST_CALLS):
            call()
    _starts[-1].wait()
    latencies, failures, longest, early = [], 0, 0.0, 0
    before = began = time.monotonic()
    cpu_s, half, end = time.process_time(), began + seconds / 2, began + seconds
    while (asked := time.monotonic()) < end:
        try:
            call()
        except Exception:  # noqa: BLE001  whatever it raises is a failure that the caller would have to handle
            failures += 1
            continue
        now = time.monotonic()
        latencies.append(now - asked)
        early += now < half
        longest, before = max(longest, now - before), now
    return Tally(tuple(latencies), failures, longest, before - began, time.process_time() - cpu_s, early)


def main() -> None:
    """Measure transactions alone, of so many processes and for so long."""
    parser = argparse.ArgumentParser(prog="benchmarks.contention", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--processes", type=int, nargs="+", default=list(PROCESSES))
    parser.add_argument("--folder", type=Path, help="where the warehouses are made; by default that of temporary files")
    arguments = parser.parse_args()
    for processes in arguments.processes:
        for contenders in (Contenders.SHARED_TOPIC, Contenders.OWN_TOPICS):
            with tempfile.TemporaryDirectory(prefix="txntable-bench-", dir=arguments.folder) as folder:
                figure = _measure(contenders, Path(folder), processes, arguments.seconds)
            print(f"{figure.name}: {figure.value:.1f} {figure.unit}; {figure.notes}", flush=True)


if __name__ == "__main__":
    main()
