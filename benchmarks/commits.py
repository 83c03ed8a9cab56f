"""Commits per second of the log beside ``deltalake`` appends, by 1 and 8 processes.

Both write one small entry a commit to a fresh table on a local folder.  deltalake does not sync, so
the fair peer is ``durability="page-cache"``; full durability is measured beside it.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import deltalake
import pyarrow as pa

from benchmarks.measurement import Figure
from txntable.log.actions import Commit, Metadata, Txn, guard_protocol
from txntable.log.delta_log import DeltaLog
from txntable.log.log_view import LogContext
from txntable.log.outcome import Committed
from txntable.log.table_state import TableState
from txntable.runtime.environment import SystemEnvironment
from txntable.storage.object_store import StoreSpec
from txntable.storage.open import open_store
from txntable.storage.store_clock import StoreClock

SECONDS = 4.0
_ROW = pa.table({"x": pa.array([1], pa.int64())})
_SCHEMA = '{"type":"struct","fields":[{"name":"x","type":"long","nullable":true,"metadata":{}}]}'


@dataclass(frozen=True, slots=True)
class Tally:
    """What one process did."""

    successes: int
    failures: int
    longest_wait_s: float


class _Nothing:
    def restore(self, table: TableState) -> None:
        """Keep nothing."""

    def apply(self, commit: Commit, table: TableState) -> None:
        """Keep nothing."""

    def overlay(self) -> _Nothing:
        return self


def _open(folder: str, durability: str) -> DeltaLog[_Nothing]:
    store = open_store(StoreSpec(folder, {}, durability))
    environment = SystemEnvironment()
    return DeltaLog(LogContext(store, environment, StoreClock(store, environment)), "table", _Nothing())


def _create_ours(folder: str, durability: str) -> None:
    metadata = Metadata("id", "table", _SCHEMA, (), {"delta.enableInCommitTimestamps": "true"}, 0)
    _open(folder, durability).commit("CREATE", lambda table: [guard_protocol(), metadata])


def _commit_ours(folder: str, durability: str) -> Callable[[], bool]:
    log = _open(folder, durability)
    log.refresh()

    def commit() -> bool:
        outcome = log.commit("COUNT", lambda table: [Txn("counter", table.number("counter") + 1)])
        return isinstance(outcome, Committed)

    return commit


def _commit_theirs(folder: str, durability: str) -> Callable[[], bool]:
    # With the table at hand: by its path it would be opened anew for each append.
    table = deltalake.DeltaTable(folder)

    def commit() -> bool:
        try:
            deltalake.write_deltalake(table, _ROW, mode="append")
        except Exception:  # noqa: BLE001  whatever it raises is a failed append, and is counted
            return False
        return True

    return commit


_KINDS = {"ours": _commit_ours, "deltalake": _commit_theirs}


def _work(kind: str, folder: str, durability: str, start: float) -> Tally:
    commit = _KINDS[kind](folder, durability)
    time.sleep(max(0.0, start - time.time()))
    successes = failures = 0
    longest, before, end = 0.0, time.monotonic(), time.monotonic() + SECONDS
    while before < end:
        if commit():
            successes += 1
        else:
            failures += 1
        now = time.monotonic()
        longest, before = max(longest, now - before), now
    return Tally(successes, failures, longest)


def _run(kind: str, folder: Path, durability: str, processes: int) -> list[Tally]:
    folder.mkdir(parents=True)
    if kind == "ours":
        _create_ours(str(folder), durability)
    else:
        deltalake.write_deltalake(str(folder), _ROW)
    context = multiprocessing.get_context("spawn")
    start = time.time() + 3.0 + 0.5 * processes
    with context.Pool(processes) as pool:
        return pool.starmap(_work, [(kind, str(folder), durability, start)] * processes)


def measure(folder: Path) -> list[Figure]:
    """Return commits per second: rates, no ratios, since the peer's commit writes a file of records as well."""
    figures = []
    for processes in (1, 8):
        rates = {}
        for name, kind, durability in (
            ("deltalake append", "deltalake", "page-cache"),
            ("our commit, page cache", "ours", "page-cache"),
            ("our commit, synced", "ours", "full"),
        ):
            tallies = _run(kind, folder / f"{kind}-{durability}-{processes}", durability, processes)
            done = [tally.successes for tally in tallies]
            rates[name] = sum(done) / SECONDS
            failed = sum(tally.failures for tally in tallies)
            slowest, longest = min(done) / max(1, median(done)), max(tally.longest_wait_s for tally in tallies)
            notes = f"{failed} failed; slowest ÷ median {slowest:.2f}; longest wait {longest:.2f} s"
            figures.append(Figure(f"{name}, {processes} processes", rates[name], "commits/s", notes))
    return figures
