"""Many small DataFrames into as many topics by one transaction, beside ``df.write.parquet`` one after the other.

A nightly job's shape: what counts is not the rows but what each DataFrame costs by itself.  The transaction is made by
``write_all``, and by one ``write`` after the other.  Rounds alternate; the ratio is the median of pairs.
"""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.measurement import Figure, alternate_costs, paired_ratio, rounds
from benchmarks.spark_session import session
from txntable.warehouse.warehouse import Warehouse

ROUNDS = rounds(9)
TOPICS = 20
ROWS = 10_000
SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("amount", pa.float64()), ("day", pa.date32())])
_QUERY = """
    SELECT id, concat('name-', id % 1000) AS name, rand({number}) AS amount,
           date_add(DATE'2026-01-01', CAST(id % 365 AS INT)) AS day
    FROM range(0, {rows}, 1, 1)
"""
_PEERS = "peers"
_names = itertools.count()


def measure(folder: Path) -> list[Figure]:
    """Return the ratios of wall time and of CPU time."""
    spark = session()
    try:
        warehouse = Warehouse.create(str(folder / "wh"), durability="page-cache")
        frames = {f"topic{number}": _frame(spark, folder, number) for number in range(TOPICS)}
        for topic in frames:
            warehouse.admin().create_topic(topic, partitions=2, schema=SCHEMA)
        producer = warehouse.producer("bench")
        producer.init_transactions()

        def together() -> None:
            with producer.transaction() as transaction:
                transaction.write_all(frames)

        def in_turn() -> None:
            with producer.transaction() as transaction:
                for topic, frame in frames.items():
                    transaction.write(topic, frame)

        def parquet() -> None:
            for topic, frame in frames.items():
                frame.write.parquet(str(folder / _PEERS / f"{topic}-{next(_names)}"))

        def clean() -> None:
            shutil.rmtree(folder / _PEERS, ignore_errors=True)

        wall, cpu = alternate_costs(ROUNDS, together, in_turn, parquet, clean=clean)
        return [*_figures(wall, "wall"), *_figures(cpu, "cpu")]
    finally:
        spark.stop()


def _frame(spark: Any, folder: Path, number: int) -> Any:
    """Return a DataFrame over files, as a job has them."""
    path = str(folder / "sources" / str(number))
    spark.sql(_QUERY.format(number=number, rows=ROWS)).write.parquet(path)
    return spark.read.parquet(path)


def _figures(seconds: list[list[float]], kind: str) -> list[Figure]:
    together, in_turn, parquet = seconds
    name = f"{TOPICS} DataFrames of {ROWS} rows"
    return [
        paired_ratio(f"{name}, write_all ÷ df.write.parquet of each, {kind}", together, parquet),
        paired_ratio(f"{name}, write of each ÷ df.write.parquet of each, {kind}", in_turn, parquet),
    ]
