"""A transactional Spark write beside ``df.write.parquet`` of the same TPC-H lineitem, decision included.

Unkeyed into one topic, and keyed into 8 partitions beside ``df.repartition(8, key).write.parquet``; a Delta append by
delta-spark stands beside both.  Spark's own writer makes the segments where it can; tasks in Python stand beside it.
Rounds alternate; the ratio is the median of pairs.
"""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path
from typing import Any

from benchmarks.lineitem import SCALE, columns, lineitem, session
from benchmarks.measurement import Figure, alternate_costs, paired_ratio
from txntable.spark.writing.writer_choice import SWITCH, Wish
from txntable.warehouse.warehouse import Warehouse

ROUNDS = 5
KEY = "l_orderkey"
_PEERS = "peers"
_names = itertools.count()


def measure(folder: Path) -> list[Figure]:
    """Return the ratios of wall time and of CPU time."""
    source = lineitem(folder)
    spark = session()
    try:
        frame = spark.read.parquet(str(source))
        warehouse = Warehouse.create(str(folder / "wh"), durability="page-cache")
        schema = columns(source)
        warehouse.admin().create_topic("unkeyed", partitions=8, schema=schema)
        warehouse.admin().create_topic("keyed", partitions=8, schema=schema, key=[KEY])
        producer = warehouse.producer("bench")
        producer.init_transactions()

        def transactional(topic: str, mode: str = "none", wish: Wish = Wish.AUTO) -> None:
            spark.conf.set(SWITCH, wish.value)
            with producer.transaction() as transaction:
                transaction.write(topic, frame, distribution_mode=mode)

        wall, cpu = alternate_costs(
            ROUNDS,
            lambda: transactional("unkeyed"),
            lambda: transactional("unkeyed", wish=Wish.NEVER),
            lambda: _parquet(frame, folder),
            lambda: _delta(frame, folder),
            lambda: transactional("keyed"),
            lambda: transactional("keyed", "hash"),
            lambda: transactional("keyed", "hash", Wish.NEVER),
            lambda: _parquet(frame.repartition(8, KEY), folder),
            clean=lambda: _clean(folder),
        )
        return [*_figures(wall, "wall"), *_figures(cpu, "cpu"), *_sizes(warehouse, frame, folder)]
    finally:
        spark.stop()


def _figures(seconds: list[list[float]], kind: str) -> list[Figure]:
    unkeyed, in_python, parquet, delta, keyed, shuffled, shuffled_in_python, repartitioned = seconds
    return [
        paired_ratio(f"unkeyed transactional write ÷ df.write.parquet, {kind}", unkeyed, parquet),
        paired_ratio(f"the same by tasks in Python, {kind}", in_python, parquet),
        paired_ratio(f"unkeyed transactional write ÷ Delta append, {kind}", unkeyed, delta),
        paired_ratio(f"keyed transactional write ÷ df.repartition(8, key).write.parquet, {kind}", keyed, repartitioned),
        paired_ratio(f"the same with distribution_mode=hash, {kind}", shuffled, repartitioned),
        paired_ratio(f"the same by tasks in Python, distribution_mode=hash, {kind}", shuffled_in_python, repartitioned),
    ]


def _parquet(frame: Any, folder: Path) -> None:
    frame.write.parquet(str(folder / _PEERS / f"parquet-{next(_names)}"))


def _delta(frame: Any, folder: Path) -> None:
    frame.write.format("delta").save(str(folder / _PEERS / f"delta-{next(_names)}"))


def _clean(folder: Path) -> None:
    shutil.rmtree(folder / _PEERS, ignore_errors=True)


def _sizes(warehouse: Warehouse, frame: Any, folder: Path) -> list[Figure]:
    described = {topic.settings.name: topic for topic in warehouse.admin().describe_topics()}
    ours = sum(partition.bytes for partition in described["unkeyed"].partitions) / (2 * (ROUNDS + 1))
    path = folder / "size"
    frame.write.parquet(str(path))
    theirs = sum(file.stat().st_size for file in path.glob("*.parquet"))
    return [
        Figure("bytes of our segments, of both writers ÷ bytes of Spark's files", ours / theirs, "×", f"scale {SCALE}")
    ]
