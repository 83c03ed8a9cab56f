"""`format("txntable")` beside plain Parquet of the same files, and a source that only hands over pyarrow's batches.

That one is the floor: what Spark's interface for data sources in Python costs whoever reads through it.  Lineitem,
three columns, everything and a thirtieth of the rows; Spark's scan through Delta is measured beside them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from benchmarks.light_reads import written
from benchmarks.lineitem import lineitem
from benchmarks.measurement import Figure, alternate_costs, paired_ratio, rounds
from benchmarks.spark_session import session
from txntable.format.layout import public_root
from txntable.warehouse.warehouse import Warehouse

ROUNDS = rounds(9)
_TOPIC = "lineitem"
_COLUMNS = ["l_orderkey", "l_extendedprice", "l_linenumber"]
_CASES: dict[str, tuple[str, str] | None] = {
    "everything": None,
    "a thirtieth of the rows": ("l_linenumber = 7", '[["l_linenumber", "=", 7]]'),
}
"""What is asked of Spark, and by the option ``filters``."""


class BareSource(DataSource):
    """A data source of files, a task for each, that checks nothing."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "bare"

    def schema(self) -> StructType:
        """Return the columns that were named."""
        return StructType.fromJson(json.loads(self.options["schema"]))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return what reads the files."""
        return BareReader(json.loads(self.options["files"]), schema.names)


class BareReader(DataSourceReader):
    """Reads with pyarrow, and nothing else."""

    def __init__(self, files: list[str], names: list[str]) -> None:
        self._files, self._names = files, names

    def partitions(self) -> list[InputPartition]:
        """Return a task for each file."""
        return [InputPartition(file) for file in self._files]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield a file's batches."""
        yield from ds.dataset([partition.value], format="parquet").to_batches(columns=self._names)


def measure(folder: Path) -> list[Figure]:
    """Return the ratios of wall and of CPU seconds."""
    warehouse = written(folder / "wh", lineitem(folder))
    spark = session()
    try:
        spark.dataSource.register(BareSource)
        return [figure for name, case in _CASES.items() for figure in _compared(spark, warehouse, name, case)]
    finally:
        spark.stop()


def _compared(spark: Any, warehouse: Warehouse, name: str, case: tuple[str, str] | None) -> Iterator[Figure]:
    root = f"{warehouse.url}/{public_root(_TOPIC)}"
    files = [f"{root}/{path}" for path in sorted(warehouse.topic_log(_TOPIC).public.refresh().files.paths())]
    all_columns = spark.read.parquet(files[0]).schema
    schema = StructType([all_columns[column] for column in _COLUMNS])
    where, filters = case or (None, None)
    given = {"warehouse": warehouse.url, "topic": _TOPIC, "columns": ",".join(_COLUMNS)}
    ours = spark.read.format("txntable").options(**given, **({} if filters is None else {"filters": filters}))
    bare = spark.read.format("bare").option("schema", schema.json()).option("files", json.dumps(files))
    frames: list[Callable[[], Any]] = [
        ours.load,
        bare.load,
        lambda: warehouse.read(spark, _TOPIC).select(*_COLUMNS),
        lambda: spark.read.schema(schema).parquet(*files),
    ]
    costs = alternate_costs(ROUNDS, *(partial(_run, frame, where) for frame in frames))
    for (by_format, floor, native, plain), what in zip(costs, ("wall", "CPU"), strict=True):
        yield paired_ratio(f'format("txntable") ÷ plain Parquet, {name}, {what}', by_format, plain)
        yield paired_ratio(f"a source that does nothing ÷ plain Parquet, {name}, {what}", floor, plain)
        yield paired_ratio(f'format("txntable") ÷ a source that does nothing, {name}, {what}', by_format, floor)
        yield paired_ratio(f"snapshot scan ÷ plain Parquet, {name}, {what}", native, plain)


def _run(frame: Callable[[], Any], where: str | None) -> None:
    found = frame() if where is None else frame().where(where)
    found.write.format("noop").mode("overwrite").save()
