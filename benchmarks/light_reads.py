"""`read_arrow` beside pyarrow's read of the very same files, and deltalake's of the same table: reads without Spark.

Lineitem is in one partition in the order of its keys, as a pipeline would append it.  pyarrow is given the list of
live files and no position, deltalake opens the table for each read, as we pin a snapshot for each.  Everything is
read into one table.  Medians of alternating rounds, of wall and of CPU seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from benchmarks.lineitem import columns, lineitem
from benchmarks.measurement import Figure, alternate_costs, paired_ratio, rounds
from txntable.format.layout import public_root
from txntable.warehouse.warehouse import Warehouse

ROUNDS = rounds(15)
_TOPIC, _ROWS = "lineitem", 1_000_000
_ONE, _THREE = ("l_extendedprice",), ("l_orderkey", "l_extendedprice", "l_shipdate")


@dataclass(frozen=True, slots=True)
class Case:
    """What is read.

    Attributes
    ----------
    name : str
        For people.
    columns : tuple of str, optional
        Default: all of the topic's.
    filters : list of tuple, optional
        As pyarrow writes them.
    times : int
        How often in a round: the kernel counts CPU in hundredths of a second.
    """

    name: str
    columns: tuple[str, ...] | None
    filters: list[tuple[str, str, Any]] | None = None
    times: int = 5


CASES = (
    Case("everything", None, times=1),
    Case("one column", _ONE),
    Case("three columns", _THREE),
    Case("three columns, a thirtieth of the rows by a filter", _THREE, [("l_linenumber", "==", 7)]),
    Case("one range of keys", None, [("l_orderkey", ">=", 1_000_000), ("l_orderkey", "<", 1_010_000)]),
)


def measure(folder: Path) -> list[Figure]:
    """Return the ratios of both peers."""
    warehouse = written(folder / "wh", lineitem(folder))
    return [figure for case in CASES for figure in _compared(warehouse, case)]


def written(folder: Path, source: Path) -> Warehouse:
    """Return a warehouse with lineitem, a transaction for each million rows."""
    warehouse, schema = Warehouse.create(str(folder), durability="page-cache"), columns(source)
    warehouse.admin().create_topic(_TOPIC, partitions=1, schema=schema)
    with warehouse.producer("fill") as producer:
        producer.init_transactions()
        for batch in pq.ParquetFile(source).iter_batches(_ROWS):
            with producer.transaction():
                producer.send(_TOPIC, rows=pa.table(batch).cast(schema), partition=0)
    return warehouse


def _compared(warehouse: Warehouse, case: Case) -> Iterator[Figure]:
    root = f"{warehouse.url}/{public_root(_TOPIC)}"
    files = [f"{root}/{path}" for path in sorted(warehouse.topic_log(_TOPIC).public.refresh().files.paths())]
    named = case.columns or tuple(warehouse.topic_reader(_TOPIC).settings().schema.names)
    reads: dict[str, Callable[[], pa.Table]] = {
        "read_arrow": partial(_ours, warehouse, named, case),
        "pyarrow.dataset": partial(_pyarrow, files, named, case),
        "deltalake": partial(_deltalake, root, named, case),
    }
    # Whoever reads fewer rows is no peer.
    (rows,) = {read().num_rows for read in reads.values()}
    costs = alternate_costs(ROUNDS, *(partial(_repeat, read, rows, case.times) for read in reads.values()))
    for seconds, what in zip(costs, ("wall", "CPU"), strict=True):
        ours, *peers = seconds
        for name, theirs in zip(list(reads)[1:], peers, strict=True):
            yield paired_ratio(f"read_arrow ÷ {name}, {case.name}, {what}", ours, theirs)


def _repeat(read: Callable[[], pa.Table], rows: int, times: int) -> None:
    for _ in range(times):
        assert read().num_rows == rows


def _ours(warehouse: Warehouse, named: tuple[str, ...], case: Case) -> pa.Table:
    return warehouse.read_arrow(_TOPIC, columns=named, filters=case.filters).read_all()


def _pyarrow(files: list[str], named: tuple[str, ...], case: Case) -> pa.Table:
    wanted = None if case.filters is None else pq.filters_to_expression(case.filters)
    return ds.dataset(files, format="parquet").to_table(columns=list(named), filter=wanted)


def _deltalake(root: str, named: tuple[str, ...], case: Case) -> pa.Table:
    return deltalake.DeltaTable(root).to_pyarrow_table(columns=list(named), filters=case.filters)
