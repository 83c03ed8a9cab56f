"""A transactional Spark write beside ``df.write.parquet`` of the same TPC-H lineitem, decision included.

Unkeyed into one topic, and keyed into 8 partitions beside ``df.repartition(8, key).write.parquet``; appends to standing
tables of Delta, and of Iceberg where it has a jar for this Spark, stand beside them.  Rounds alternate; the ratio is
the median of pairs.  At scale 1 two more stand beside: segments that tasks in Python made, and the floor, which is
Spark's own write of the rows with two columns more, as every segment has them.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.lineitem import SCALE, columns, lineitem
from benchmarks.measurement import Figure, alternate_costs, paired_ratio, rounds
from benchmarks.spark_session import has_iceberg, iceberg_settings, session
from txntable.spark.writing.writer_choice import SWITCH, Wish
from txntable.warehouse.warehouse import Warehouse

ROUNDS = rounds(9)
KEY = "l_orderkey"
_PEERS = "peers"
_ROWS = (
    "wh/topics/*/_segments/p*/*.parquet",
    "wh/topics/*/_segments/parts/*/*.parquet",
    "delta/*.parquet",
    "iceberg/bench/lineitem/data/*.parquet",
)
_names = itertools.count()

_AT_SCALE_1 = ("floor", "unkeyed, Python", "hash, Python")
# Each figure: its name, ours, the peer.
_RATIOS = (
    ("unkeyed transactional write ÷ df.write.parquet", "unkeyed", "parquet"),
    ("the floor: df.write.parquet of two columns more ÷ df.write.parquet", "floor", "parquet"),
    ("unkeyed transactional write ÷ the floor", "unkeyed", "floor"),
    ("the same by tasks in Python ÷ df.write.parquet", "unkeyed, Python", "parquet"),
    ("unkeyed transactional write ÷ Delta append", "unkeyed", "delta"),
    ("unkeyed transactional write ÷ Iceberg append", "unkeyed", "iceberg"),
    ("Delta append ÷ df.write.parquet", "delta", "parquet"),
    ("Iceberg append ÷ df.write.parquet", "iceberg", "parquet"),
    ("keyed transactional write ÷ df.repartition(8, key).write.parquet", "keyed", "repartitioned"),
    ("the same with distribution_mode=hash", "hash", "repartitioned"),
    ("the same by tasks in Python, distribution_mode=hash", "hash, Python", "repartitioned"),
)


def measure(folder: Path) -> list[Figure]:
    """Return the ratios of wall time and of CPU time."""
    source = lineitem(folder)
    spark = session(iceberg_settings(folder))
    try:
        frame = spark.read.parquet(str(source))
        warehouse = Warehouse.create(str(folder / "wh"), durability="page-cache")
        schema = columns(source)
        warehouse.admin().create_topic("unkeyed", partitions=8, schema=schema)
        warehouse.admin().create_topic("keyed", partitions=8, schema=schema, key=[KEY])
        variants = {**_ours(warehouse, frame), **_peers(frame, folder)}
        if SCALE != "1":
            variants = {name: variant for name, variant in variants.items() if name not in _AT_SCALE_1}
        wall, cpu = alternate_costs(ROUNDS, *variants.values(), clean=lambda: _clean(folder))
        return [
            *_figures(dict(zip(variants, wall, strict=True)), "wall"),
            *_figures(dict(zip(variants, cpu, strict=True)), "cpu"),
            *_sizes(warehouse, frame, folder, sum(name.startswith("unkeyed") for name in variants)),
        ]
    finally:
        spark.stop()


def _ours(warehouse: Warehouse, frame: Any) -> dict[str, Callable[[], None]]:
    producer = warehouse.producer("bench")
    producer.init_transactions()

    def transactional(topic: str, mode: str = "none", wish: Wish = Wish.AUTO) -> None:
        frame.sparkSession.conf.set(SWITCH, wish.value)
        with producer.transaction() as transaction:
            transaction.write(topic, frame, distribution_mode=mode)

    return {
        "unkeyed": lambda: transactional("unkeyed"),
        "unkeyed, Python": lambda: transactional("unkeyed", wish=Wish.NEVER),
        "keyed": lambda: transactional("keyed"),
        "hash": lambda: transactional("keyed", "hash"),
        "hash, Python": lambda: transactional("keyed", "hash", Wish.NEVER),
    }


def _peers(frame: Any, folder: Path) -> dict[str, Callable[[], None]]:
    """Return what peers do: appends go to tables that stand, as our topics do."""
    wide = frame.selectExpr("*", "monotonically_increasing_id() AS number", "current_timestamp() AS time")
    table = str(folder / "delta")
    frame.limit(0).write.format("delta").save(table)
    peers = {
        "parquet": lambda: _parquet(frame, folder),
        "floor": lambda: _parquet(wide, folder),
        "delta": lambda: frame.write.format("delta").mode("append").save(table),
        "repartitioned": lambda: _parquet(frame.repartition(8, KEY), folder),
    }
    if not has_iceberg():
        return peers
    name = "iceberg.bench.lineitem"
    properties = frame.limit(0).writeTo(name).tableProperty("write.parquet.compression-codec", "zstd")
    properties.create()
    return {**peers, "iceberg": lambda: frame.writeTo(name).append()}


def _figures(seconds: dict[str, list[float]], kind: str) -> list[Figure]:
    return [
        paired_ratio(f"{name}, {kind}", seconds[ours], seconds[peer])
        for name, ours, peer in _RATIOS
        if {ours, peer} <= set(seconds)
    ]


def _parquet(frame: Any, folder: Path) -> None:
    frame.write.parquet(str(folder / _PEERS / f"parquet-{next(_names)}"))


def _clean(folder: Path) -> None:
    """Take away what was written; an append opens none of the rows that stand, and ten of scale 5 fill a disk."""
    shutil.rmtree(folder / _PEERS, ignore_errors=True)
    for rows in _ROWS:
        for file in folder.glob(rows):
            file.unlink()


def _sizes(warehouse: Warehouse, frame: Any, folder: Path, writers: int) -> list[Figure]:
    described = {topic.settings.name: topic for topic in warehouse.admin().describe_topics()}
    ours = sum(partition.bytes for partition in described["unkeyed"].partitions) / (writers * (ROUNDS + 1))
    path = folder / "size"
    frame.write.parquet(str(path))
    theirs = sum(file.stat().st_size for file in path.glob("*.parquet"))
    return [
        Figure("bytes of our segments, of all writers ÷ bytes of Spark's files", ours / theirs, "×", f"scale {SCALE}")
    ]
