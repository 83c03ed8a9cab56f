"""Peak memory of one task of a Spark write, whatever the amount: it must not grow with it.

Each figure is of a process of its own that runs a task's code over generated batches of 10,000 rows, as Spark hands
them over, minus the same process without any; amounts are bytes of Arrow.  ``BENCH_MEMORY_GIB`` is the larger amount.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.measurement import Figure
from txntable.format.topic import TopicSettings
from txntable.segments.segment import SegmentPlan
from txntable.spark.session import build_session
from txntable.spark.writing.writer import WriteTarget, upload
from txntable.storage.object_store import StoreSpec
from txntable.testing.moto_server import LockedMotoServer

BATCH_ROWS = 10_000
LARGER_GIB = float(os.environ.get("BENCH_MEMORY_GIB", "5"))
_MIB = 1024 * 1024
_TEXT_BYTES = 10_000
_DDL = "peak double"
_STATUS = Path("/proc/self/status")


@dataclass(frozen=True, slots=True)
class Load:
    """What one process writes.

    Attributes
    ----------
    columns : int
        Of each three one is text.
    partitions : int
        Of the topic.
    keyed : bool
        Whether the topic has a key.
    skewed : bool
        Whether nine of ten records have the same key.
    long_texts : bool
        Whether texts have 10,000 bytes.
    gib : float
        Bytes of Arrow.
    """

    columns: int
    partitions: int = 8
    keyed: bool = False
    skewed: bool = False
    long_texts: bool = False
    gib: float = 0.0

    def __str__(self) -> str:
        way = f"keyed into {self.partitions}" if self.keyed else "unkeyed"
        extra = [name for name, said in (("skewed", self.skewed), ("10,000-byte texts", self.long_texts)) if said]
        return ", ".join([f"{self.columns} columns", way, *extra])


LOADS = (
    *(Load(columns, *way) for columns in (3, 100) for way in ((8, False), (8, True), (100, True))),
    Load(3, 8, keyed=True, skewed=True),
    *(Load(3, *way, long_texts=True) for way in ((8, False), (100, True))),
)
REMOTE_LOADS = (Load(3), Load(3, 8, keyed=True), Load(100, 100, keyed=True))
REMOTE_GIB = 1.0


def schema(load: Load) -> pa.Schema:
    """Return the columns: the key, then in turn number, measure, text."""
    kinds = (pa.int64(), pa.float64(), pa.string())
    return pa.schema([("key", pa.int64()), *((f"c{number}", kinds[number % 3]) for number in range(1, load.columns))])


def batches(load: Load) -> Iterator[pa.RecordBatch]:
    """Yield batches of random values until the amount is reached; at least one is made."""
    random, columns, amount = np.random.default_rng(1), schema(load), 0
    while True:
        batch = pa.RecordBatch.from_arrays([_column(field, load, random) for field in columns], schema=columns)
        if amount >= load.gib * 1024 * _MIB:
            return
        amount += batch.nbytes
        yield batch


def _column(field: pa.Field, load: Load, random: np.random.Generator) -> pa.Array:
    if pa.types.is_floating(field.type):
        return pa.array(random.random(BATCH_ROWS))
    numbers = random.integers(0, 2**62, BATCH_ROWS)
    if field.name == "key":
        return pa.array(np.where(random.random(BATCH_ROWS) < 0.9, 7, numbers) if load.skewed else numbers)
    if pa.types.is_integer(field.type):
        return pa.array(numbers)
    if load.long_texts:
        data = random.integers(32, 127, BATCH_ROWS * _TEXT_BYTES, dtype=np.uint8)
        offsets = np.arange(0, (BATCH_ROWS + 1) * _TEXT_BYTES, _TEXT_BYTES, dtype=np.int32)
        return pa.StringArray.from_buffers(BATCH_ROWS, pa.py_buffer(offsets), pa.py_buffer(data))
    return pc.cast(pa.array(numbers), pa.string())


def target(load: Load, store: StoreSpec) -> WriteTarget:
    """Return where the records go: a topic of which nothing but the segments is made."""
    settings = TopicSettings("load", "a" * 32, load.partitions, schema(load), ("key",) if load.keyed else ())
    return WriteTarget(store, SegmentPlan("topics/load/_segments", settings, (1, 0), 1_357_000_000_000))


def peak_mib() -> float:
    """Return the peak of this program alone: Linux counts a parent's memory among that of what it has started."""
    if _STATUS.exists():
        line = next(line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / _MIB


def run_task(load: Load, store: StoreSpec) -> float:
    """Write a load in this process; return its peak, MiB."""
    for _ in upload(batches(load), target(load, store), number=0):
        pass
    return peak_mib()


def measure(folder: Path) -> list[Figure]:
    """Return peaks to a local folder, to S3, and of a worker of Spark."""
    figures = []
    for load in LOADS:
        figures += _peaks(load, StoreSpec(str(folder / "segments"), durability="page-cache"), LARGER_GIB)
        shutil.rmtree(folder / "segments", ignore_errors=True)
    for load in REMOTE_LOADS:
        with LockedMotoServer() as server:
            figures += _peaks(load, StoreSpec(server.url, server.storage_options), REMOTE_GIB)
    return [*figures, *_in_spark(folder)]


def _peaks(load: Load, store: StoreSpec, gib: float) -> list[Figure]:
    """Return the peak of two amounts, of which the second is five times the first."""
    empty = _in_process(load, store)
    figures = []
    for amount in (gib / 5, gib):
        held = _in_process(replace(load, gib=amount), store) - empty
        name = f"{store.url.partition('://')[0] if '://' in store.url else 'folder'}: {load}, {amount:g} GiB"
        figures.append(Figure(name, held, "MiB", f"beyond {empty:.0f} MiB of the process without any"))
        print(figures[-1], flush=True)
    return figures


def _in_process(load: Load, store: StoreSpec) -> float:
    told = json.dumps([asdict(load), {"url": store.url, "options": store.options, "durability": store.durability}])
    answer = subprocess.run(
        [sys.executable, "-m", "benchmarks.memory"], input=told, capture_output=True, text=True, check=True
    )
    return float(answer.stdout)


def _in_spark(folder: Path) -> list[Figure]:
    settings = {"spark.python.worker.reuse": "false", "spark.driver.memory": "1g"}
    spark = build_session("memory", master="local[1]", settings=settings)
    try:
        figures = []
        for load in (Load(3), Load(3, 100, keyed=True)):
            store = StoreSpec(str(folder / "spark"), durability="page-cache")
            empty, *held = (_in_worker(spark, load, store, gib) for gib in (0, LARGER_GIB / 5, LARGER_GIB))
            for gib, peak in zip((LARGER_GIB / 5, LARGER_GIB), held, strict=True):
                note = f"beyond {empty:.0f} MiB of the worker without any"
                figures.append(Figure(f"Spark's worker: {load}, {gib:g} GiB", peak - empty, "MiB", note))
            shutil.rmtree(folder / "spark", ignore_errors=True)
        return figures
    finally:
        spark.stop()


def _in_worker(spark: Any, load: Load, store: StoreSpec, gib: float) -> float:
    # Two numbers and a text of 17 characters: 37 bytes of Arrow.  Of no rows at all Spark makes no task.
    rows = max(1, int(gib * 1024 * _MIB / 37))
    frame = spark.range(0, rows, 1, 1).selectExpr(
        "hash(id) * 4294967296L + id AS key", "rand(1) AS c1", "substr(CAST(rand(2) AS STRING), 1, 17) AS c2"
    )
    peak: float = frame.mapInArrow(_reporting(target(load, store)), _DDL).collect()[0][0]
    return peak


def _reporting(wanted: WriteTarget) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in upload(rows, wanted, number=0):
            pass
        yield pa.RecordBatch.from_pydict({"peak": [peak_mib()]})

    return run


if __name__ == "__main__":
    load_, store_ = json.loads(sys.stdin.read())
    print(run_task(Load(**load_), StoreSpec(**store_)))
