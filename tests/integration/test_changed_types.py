"""Which readers read a table whose columns have changed: why structs may grow, and types are not widened.

DECISIONS 104 has what delta-spark does.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import daft
import duckdb
import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError, DeltaProtocolError

from txntable.warehouse.warehouse import Warehouse

# A reader takes a topic's url and answers its records.
READERS: dict[str, Callable[[str], pa.Table]] = {
    "deltalake": lambda url: DeltaTable(url).to_pyarrow_table(),
    "deltalake query": lambda url: pa.table(
        QueryBuilder().register("t", DeltaTable(url)).execute("SELECT n, v FROM t")
    ),
    "polars": lambda url: pl.scan_delta(url, use_pyarrow=True).collect().to_arrow(),
    "daft": lambda url: daft.read_deltalake(url).to_arrow(),
    "duckdb": lambda url: duckdb.from_arrow(DeltaTable(url).to_pyarrow_dataset()).to_arrow_table(),
}
X = pa.struct([pa.field("x", pa.int64())])
GROWN: dict[str, tuple[pa.DataType, list[str], Any, Any, Any]] = {
    "struct": (X, ["v"], {"x": 1}, {"x": 1, "y": None}, {"x": 2, "y": "b"}),
    "null struct": (X, ["v"], None, None, {"x": 2, "y": "b"}),
    "list": (pa.list_(X), ["v", "element"], [{"x": 1}, None], [{"x": 1, "y": None}, None], [{"x": 2, "y": "b"}]),
    "struct in a struct": (
        pa.struct([("s", X)]),
        ["v", "s"],
        {"s": {"x": 1}},
        {"s": {"x": 1, "y": None}},
        {"s": {"x": 2, "y": "b"}},
    ),
}


def topic_of(folder: Path, kind: pa.DataType) -> Warehouse:
    made = Warehouse.create(str(folder / "wh"), durability="page-cache")
    made.admin().create_topic("t", partitions=1, schema=pa.schema([("n", pa.int64()), ("v", kind)]))
    return made


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("case", GROWN)
def test_reader_reads_records_from_before_and_after_a_struct_got_a_column(
    tmp_path: Path, case: str, reader: str
) -> None:
    kind, inside, old, shown, new = GROWN[case]
    made = topic_of(tmp_path, kind)
    with made.producer() as producer:
        producer.send("t", row={"n": 0, "v": old})
        producer.flush()
        made.admin().add_columns("t", [pa.field("y", pa.string())], inside=inside)
        producer.send("t", row={"n": 1, "v": new})

    found = READERS[reader](f"{made.url}/topics/t").select(["n", "v"]).to_pylist()

    assert sorted(found, key=lambda row: row["n"]) == [{"n": 0, "v": shown}, {"n": 1, "v": new}]


def test_most_readers_refuse_a_table_with_deltas_type_widening(tmp_path: Path) -> None:
    """When this fails, readers have learned it: then types may perhaps be widened."""
    made = topic_of(tmp_path, pa.int32())
    with made.producer() as producer:
        producer.send("t", row={"n": 0, "v": 1})
    url = f"{made.url}/topics/t"
    for entry in Path(url, "_delta_log").glob("*.json"):
        actions = [json.loads(line) for line in entry.read_text().splitlines()]
        for action in actions:
            if "protocol" in action:
                action["protocol"] |= {"minReaderVersion": 3, "readerFeatures": ["typeWidening"]}
                action["protocol"]["writerFeatures"].append("typeWidening")
        entry.write_text("".join(json.dumps(action) + "\n" for action in actions))

    assert READERS["daft"](url).num_rows == 1
    for reader in READERS.keys() - {"daft"}:
        with pytest.raises((DeltaError, DeltaProtocolError, pl.exceptions.PolarsError), match=r"(?i)type.?widening"):
            READERS[reader](url)
