"""Vacuum beside Delta's: deleting the 10,000 small files that a merge has replaced, of which nothing needs any.

The segments were written and merged 60 days ago by the clock of a store in memory, which was then copied to a folder.
Delta's VACUUM and deltalake's get tables of the very same files, made by OPTIMIZE, and no retention to wait for.  All
look at every file of the folder.  Rounds alternate, each on a copy (hard links) that was made before.
"""

from __future__ import annotations

import itertools
import os
import shutil
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa

from benchmarks.lineitem import SCALE
from benchmarks.measurement import Figure, alternate_costs, paired_ratio, rounds
from benchmarks.spark_session import session
from tests.doubles.manual_environment import ManualEnvironment, StoreTime
from tests.doubles.memory_store import MemoryObjects, MemoryStore
from txntable.compaction.compactor import compact
from txntable.compaction.vacuum import vacuum
from txntable.format.layout import segments_root
from txntable.format.warehouse_settings import WarehouseSettings
from txntable.warehouse.warehouse import Warehouse, create_on

ROUNDS = rounds(5)
TOPIC = "small"
PARTITIONS = 100
SEGMENTS = max(2, round(100 * float(SCALE)))
"""Of each partition."""
_SCHEMA = pa.schema([pa.field("x", pa.int64())])
_DAY_MS = 24 * 3600 * 1000
_AGE_MS = 60 * _DAY_MS
_DELTA_SETTINGS = {
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    # Of 10,000 tasks, the default, each of which lists less than one file, VACUUM takes half a minute here.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "8",
}
_names = itertools.count()


def measure(folder: Path) -> list[Figure]:
    """Return the ratios of wall time and of CPU time."""
    spark = session(_DELTA_SETTINGS)
    try:
        tables = _Tables(folder, *_made(spark, folder))
        variants: dict[str, Callable[[], None]] = {
            "vacuum": partial(tables.ours),
            "Delta's VACUUM": partial(tables.delta, spark),
            "deltalake's vacuum": tables.deltalake,
        }
        wall, cpu = alternate_costs(ROUNDS, *variants.values(), clean=tables.copy)
        return [*_figures(list(variants), wall, "wall"), *_figures(list(variants), cpu, "cpu")]
    finally:
        spark.stop()


class _Tables:
    """Copies of a warehouse and of a Delta table, of which each variant uses up one."""

    def __init__(self, folder: Path, warehouse: Path, table: Path) -> None:
        self._folder, self._warehouse, self._table = folder, warehouse, table
        self.copy()

    def copy(self) -> None:
        self._place = self._folder / f"round-{next(_names)}"
        shutil.rmtree(self._folder / f"round-{int(self._place.name.split('-')[1]) - 1}", ignore_errors=True)
        for made, name in ((self._warehouse, "warehouse"), (self._table, "table")):
            shutil.copytree(made, self._place / name, copy_function=os.link)

    def ours(self) -> None:
        report = vacuum(Warehouse.open(str(self._place / "warehouse"), durability="page-cache"), execute=True)
        assert not report.failures
        self._assert_gone(self._place / "warehouse" / segments_root(TOPIC) / "p00000")

    def delta(self, spark: Any) -> None:
        spark.sql(f"VACUUM delta.`{self._place}/table` RETAIN 0 HOURS").collect()
        self._assert_gone(self._place / "table")

    def deltalake(self) -> None:
        table = deltalake.DeltaTable(str(self._place / "table"))
        table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False, full=True)
        self._assert_gone(self._place / "table")

    @staticmethod
    def _assert_gone(place: Path) -> None:
        assert len(list(place.glob("*.parquet"))) == 1


def _made(spark: Any, folder: Path) -> tuple[Path, Path]:
    """Return a warehouse and a Delta table, both merged."""
    machine = ManualEnvironment(wall_ms=int(time.time() * 1000) - _AGE_MS)
    objects = MemoryObjects(StoreTime(machine, machine.instant().wall_ms))
    warehouse = create_on(MemoryStore(objects), machine, exist_ok=False, settings=WarehouseSettings())
    _fill(warehouse)
    small = _on_disk(objects, folder / "small")
    machine.advance_ms(_DAY_MS)
    (report,) = compact(warehouse)
    assert report.merged_segments == PARTITIONS * SEGMENTS
    merged, table = _on_disk(objects, folder / "merged"), folder / "delta"
    table.mkdir()
    for number, file in enumerate(sorted((small / segments_root(TOPIC)).glob("p*/*.parquet"))):
        os.link(file, table / f"{number:05}.parquet")
    spark.sql(f"CONVERT TO DELTA parquet.`{table}`")
    spark.sql(f"OPTIMIZE delta.`{table}`").collect()
    return merged, table


def _fill(warehouse: Warehouse) -> None:
    warehouse.admin().create_topic(TOPIC, partitions=PARTITIONS, schema=_SCHEMA)
    with warehouse.producer("fill") as producer:
        producer.init_transactions()
        for number in range(SEGMENTS):
            with producer.transaction():
                for partition in range(PARTITIONS):
                    producer.send(TOPIC, row={"x": number}, partition=partition)


def _on_disk(objects: MemoryObjects, folder: Path) -> Path:
    for meta in objects.below(""):
        found = objects.get(meta.path)
        assert found is not None
        path = folder / meta.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(found.data)
        os.utime(path, (meta.last_modified_ms / 1000, meta.last_modified_ms / 1000))
    return folder


def _figures(names: list[str], seconds: list[list[float]], kind: str) -> list[Figure]:
    ours, *peers = seconds
    return [
        paired_ratio(f"{names[0]} ÷ {name}, {kind}", ours, theirs)
        for name, theirs in zip(names[1:], peers, strict=True)
    ]
