"""What a transaction costs a process early and late in its life, with the checkpoints that it writes itself.

One producer, one record in one partition, a local folder in the page cache, and nobody who settles what it leaves: no
compaction, no coordinator job.  Processor time by thread, so other work on the machine counts little.
``TXNTABLE_LIFE=<transactions>`` ends earlier.
"""

from __future__ import annotations

import gc
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from benchmarks.measurement import Figure, ratio
from txntable.log.delta_log import DeltaLog
from txntable.warehouse.warehouse import Warehouse

POINTS = (1_000, 5_000, 10_000, 20_000)
# Around each point: every log writes a checkpoint in so many transactions, and as many of each size as of the other.
_AROUND = 800
_SCHEMA = pa.schema([pa.field("x", pa.int64())])


@dataclass(frozen=True, slots=True)
class _Point:
    """What was measured around some transaction of the process.

    Attributes
    ----------
    transaction_ms, checkpoints_ms : float
        Processor time of a transaction, and what of it went into checkpoints.
    memory_mib : float
        Resident.
    """

    transaction_ms: float
    checkpoints_ms: float
    memory_mib: float


def measure(folder: Path) -> list[Figure]:
    """Return the processor time of a transaction by its number, and the memory of the process."""
    last = int(os.environ.get("TXNTABLE_LIFE", POINTS[-1]))
    life = _Life(folder)
    points = {number: life.around(number) for number in POINTS if number <= last}
    figures = []
    for number, point in points.items():
        notes = f"of it {point.checkpoints_ms:.2f} ms for checkpoints; {point.memory_mib:.0f} MiB resident"
        figures.append(Figure(f"transaction {number:,} of a process", point.transaction_ms, "ms CPU", notes))
    first, final = points[POINTS[0]], points[max(points)]
    title = f"transaction {max(points):,} of a process ÷ its {POINTS[0]:,}th"
    figures.append(ratio(f"{title}, CPU", final.transaction_ms, first.transaction_ms))
    without = [point.transaction_ms - point.checkpoints_ms for point in (final, first)]
    figures.append(ratio(f"{title}, CPU without checkpoints", without[0], without[1]))
    grown = 1024 * (final.memory_mib - first.memory_mib) / (max(points) - POINTS[0])
    figures.append(Figure("memory that a transaction leaves behind", grown, "KiB"))
    return figures


class _Life:
    """A process and its transactions."""

    def __init__(self, folder: Path) -> None:
        warehouse = Warehouse.create(str(folder / "life"), durability="page-cache")
        warehouse.admin().create_topic("t", schema=_SCHEMA)
        self._producer = warehouse.producer("bench")
        self._producer.init_transactions()
        self._done = 0
        self._in_checkpoints = 0.0

    def around(self, number: int) -> _Point:
        """Go on until past a transaction of this number, and return what those around it cost."""
        write = DeltaLog._write_checkpoint  # noqa: SLF001

        def timed(log: DeltaLog[Any]) -> None:
            began = time.thread_time()
            write(log)
            self._in_checkpoints += time.thread_time() - began

        self._until(number - _AROUND)
        with patch.object(DeltaLog, "_write_checkpoint", timed):
            before, began = self._in_checkpoints, time.thread_time()
            self._until(number + _AROUND)
        each_ms = 1000 / (2 * _AROUND)
        spent, written = time.thread_time() - began, self._in_checkpoints - before
        gc.collect()
        return _Point(each_ms * spent, each_ms * written, _resident_mib())

    def _until(self, number: int) -> None:
        while self._done < number:
            self._producer.begin_transaction()
            self._producer.send("t", row={"x": self._done})
            self._producer.commit_transaction()
            self._done += 1


def _resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
