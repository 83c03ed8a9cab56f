"""Reading a topic as it was in the middle of 2,000 transactions, beside Delta, deltalake and Iceberg.

All read the same files: the readers of Delta the topic's own public table by a version, Iceberg a table to which the
files were appended one by one, as Spark appends them, by a snapshot.  Each opens what it reads anew, as a program does
that asks once; *warm* is a session of Spark that has read it before.  A read of the present stands beside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa

from benchmarks.lineitem import SCALE
from benchmarks.measurement import Figure, alternate, paired_ratio, rounds
from benchmarks.spark_session import has_iceberg, iceberg_settings, session
from txntable.format.layout import public_root
from txntable.producer.producer import Producer
from txntable.warehouse.warehouse import Warehouse

ROUNDS = rounds(9)
TOPIC = "history"
TRANSACTIONS = max(20, round(2_000 * float(SCALE)))
ROWS = 100
"""Of a transaction."""
_SCHEMA = pa.schema([pa.field("x", pa.int64())])
_TABLE = "iceberg.bench.history"


@dataclass(frozen=True, slots=True)
class _Past:
    """One state, as each reader names it.

    Attributes
    ----------
    url : str
        Of the warehouse.
    position : int
        Of the transaction log.
    version : int
        Of the public table.
    rows : int
        That there were.
    """

    url: str
    position: int
    version: int
    rows: int

    @property
    def table(self) -> str:
        return f"{self.url}/{public_root(TOPIC)}"


def measure(folder: Path) -> list[Figure]:
    """Return the ratios of wall time."""
    past = _written(folder / "wh")
    spark = session(iceberg_settings(folder))
    try:
        return [*_light(past), *_by_spark(spark, past)]
    finally:
        spark.stop()


def _written(folder: Path) -> _Past:
    """Write all transactions, and return the state in their middle."""
    warehouse = Warehouse.create(str(folder), durability="page-cache")
    warehouse.admin().create_topic(TOPIC, partitions=1, schema=_SCHEMA)
    half, topic = TRANSACTIONS // 2, warehouse.topic_log(TOPIC)
    with warehouse.producer("fill") as producer:
        producer.init_transactions()
        _transact(producer, range(half))
        topic.project()
        position, version = warehouse.snapshot().position, topic.public.refresh().next_version - 1
        _transact(producer, range(half, TRANSACTIONS))
    return _Past(warehouse.url, position, version, half * ROWS)


def _transact(producer: Producer, numbers: range) -> None:
    for number in numbers:
        with producer.transaction():
            producer.send(TOPIC, rows=pa.table({"x": range(number * ROWS, (number + 1) * ROWS)}, _SCHEMA))


def _light(past: _Past) -> Iterator[Figure]:
    def ours(as_of: int | None) -> int:
        return Warehouse.open(past.url).read_arrow(TOPIC, as_of=as_of).read_all().num_rows

    def theirs() -> int:
        return deltalake.DeltaTable(past.table, version=past.version).to_pyarrow_table().num_rows

    then, now, peer = alternate(
        ROUNDS,
        partial(_counted, partial(ours, past.position), past.rows),
        partial(_counted, partial(ours, None), TRANSACTIONS * ROWS),
        partial(_counted, theirs, past.rows),
    )
    yield paired_ratio("read_arrow of the past ÷ deltalake's, wall", then, peer)
    yield paired_ratio("read_arrow of the past, half of the rows ÷ of the present, wall", then, now)


def _by_spark(spark: Any, past: _Past) -> Iterator[Figure]:
    warehouse = Warehouse.open(past.url)
    iceberg = _iceberg(spark, past)
    reads: dict[str, Callable[[], Any]] = {
        "ours": lambda: warehouse.read(spark, TOPIC, as_of=past.position),
        "Delta's": lambda: spark.read.format("delta").option("versionAsOf", past.version).load(past.table),
    }
    if iceberg is not None:
        reads["Iceberg's"] = lambda: spark.read.option("versionAsOf", iceberg).table(_TABLE)
    costs = alternate(ROUNDS, *(partial(_counted, partial(_sum, read), past.rows) for read in reads.values()))
    for name, theirs in zip(list(reads)[1:], costs[1:], strict=True):
        yield paired_ratio(f"read by Spark of the past ÷ {name}, warm, wall", costs[0], theirs)


def _sum(read: Callable[[], Any]) -> int:
    (row,) = read().selectExpr("count(x)", "sum(x)").collect()
    return int(row[0])


def _counted(read: Callable[[], int], rows: int) -> None:
    assert read() == rows


def _iceberg(spark: Any, past: _Past) -> int | None:
    """Append the files to a table of Iceberg one by one, in their order; return the snapshot in the middle."""
    if not has_iceberg():
        return None
    spark.sql(f"CREATE TABLE {_TABLE} (x BIGINT) USING iceberg")
    jvm = spark.sparkContext._jvm  # noqa: SLF001  no public way to append a file that is there
    table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, _TABLE)  # noqa: SLF001
    names = '[{"field-id": 1, "names": ["x"]}]'
    table.updateProperties().set("schema.name-mapping.default", names).commit()
    files = spark.read.format("delta").load(past.table).selectExpr("_metadata.file_path AS path", "x")
    named = files.groupBy("path").agg({"x": "min"}).orderBy("min(x)").collect()
    assert len(named) == TRANSACTIONS
    snapshots = []
    for row in named:
        path = row["path"].removeprefix("file:")
        built = jvm.org.apache.iceberg.DataFiles.builder(table.spec()).withPath(path)
        built = built.withFileSizeInBytes(Path(path).stat().st_size).withRecordCount(ROWS).withFormat("PARQUET")
        table.newAppend().appendFile(built.build()).commit()
        snapshots.append(int(table.currentSnapshot().snapshotId()))
    return snapshots[TRANSACTIONS // 2 - 1]
