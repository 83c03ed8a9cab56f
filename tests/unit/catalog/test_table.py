"""Names, locations and columns of tables, as catalogs have them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tests.unit.catalog.wanting import OWNER, wanted
from txntable.catalog.column_types import hive_column, spark_column
from txntable.catalog.metastore_text import table_in_text
from txntable.catalog.table import Marks, check_prefix, engine_root, marks_in, plain_location, table_name
from txntable.errors import InvalidRequestError
from txntable.format.delta_types import TIMESTAMP, TIMESTAMP_NTZ


@pytest.mark.parametrize(
    ("topic", "prefix", "name"),
    [
        ("flights", "", "flights"),
        ("Flights.2013-new", "", "flights_2013_new"),
        ("t", "lake_", "lake_t"),
        ("_t", "", "_t"),
    ],
)
def test_name_of_a_table_is_one_that_sql_takes_unquoted(topic: str, prefix: str, name: str) -> None:
    assert table_name(topic, prefix) == name


@pytest.mark.parametrize("prefix", ["Lake_", "a.b", "a-", " ", "ä", "a`"])
def test_prefix_that_a_catalog_would_change_or_refuse_is_refused(prefix: str) -> None:
    with pytest.raises(InvalidRequestError, match="prefix="):
        check_prefix(prefix)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("s3://b/w/topics/t", "s3a://b/w/topics/t/", True),
        ("s3n://b/w/topics/t", "s3://b/w/topics/t", True),
        ("file:///w/topics/t", "file:/w/topics/t", True),
        ("/w/topics/t", "file:///w/topics/t", True),
        ("s3://b/w/topics/t", "s3://b/w/topics/T", False),
        ("s3://b/w/topics/t", "gs://b/w/topics/t", False),
        ("s3://b/w/topics/t", None, False),
    ],
)
def test_locations_compare_by_the_place_and_not_by_the_spelling(one: str, other: str | None, same: bool) -> None:
    assert (plain_location(one) == plain_location(other)) is same


@pytest.mark.parametrize(
    ("url", "root"),
    [
        ("s3://b/w/", "s3a://b/w"),
        ("s3a://b/w", "s3a://b/w"),
        ("gs://b/w", "gs://b/w"),
        ("abfss://c@a.dfs.core.windows.net/w", "abfss://c@a.dfs.core.windows.net/w"),
        ("/w", "file:///w"),
        ("w", f"{Path.cwd().as_uri()}/w"),
    ],
)
def test_engines_of_the_jvm_are_given_urls_that_they_know(url: str, root: str) -> None:
    assert engine_root(url, s3="s3a") == root


@pytest.mark.parametrize("url", ["az://c/w", "memory://w"])
def test_url_that_no_engine_can_read_is_refused(url: str) -> None:
    with pytest.raises(InvalidRequestError, match="warehouse="):
        engine_root(url, s3="s3")


def test_marks_come_back_out_of_properties() -> None:
    marks = Marks("w", "p_", "a.b", "1")

    assert marks_in({**marks.properties(), "owner": "me"}) == marks


@pytest.mark.parametrize("missing", ["txntable.warehouse_id", "txntable.topic"])
def test_table_without_a_mark_is_not_ours(missing: str) -> None:
    properties = Marks("w", "", "t", "1").properties()
    del properties[missing]

    assert marks_in(properties) is None


TYPES = [
    (pa.bool_(), "boolean", "boolean"),
    (pa.int8(), "tinyint", "tinyint"),
    (pa.int16(), "smallint", "smallint"),
    (pa.int32(), "int", "int"),
    (pa.int64(), "bigint", "bigint"),
    (pa.float32(), "float", "float"),
    (pa.float64(), "double", "double"),
    (pa.string(), "string", "string"),
    (pa.binary(), "binary", "binary"),
    (pa.date32(), "date", "date"),
    (TIMESTAMP, "timestamp", "timestamp"),
    (TIMESTAMP_NTZ, "timestamp", "timestamp_ntz"),
    (pa.decimal128(12, 2), "decimal(12,2)", "decimal(12,2)"),
    (pa.list_(pa.field("element", TIMESTAMP_NTZ)), "array<timestamp>", "array<timestamp_ntz>"),
    (pa.map_(pa.string(), pa.int64()), "map<string,bigint>", "map<string,bigint>"),
    (
        pa.struct([pa.field("At", pa.date32()), pa.field("of", pa.list_(pa.field("element", pa.int8())))]),
        "struct<at:date,of:array<tinyint>>",
        "struct<at:date,of:array<tinyint>>",
    ),
]


@pytest.mark.parametrize(("kind", "hive", "spark"), TYPES, ids=[str(kind) for kind, _, _ in TYPES])
def test_type_has_its_name_in_hive_and_in_spark(kind: pa.DataType, hive: str, spark: str) -> None:
    column = pa.field("Name", kind)

    assert (hive_column(column), spark_column(column)) == (("name", hive), ("Name", spark))


def test_table_of_a_topic_has_its_columns_and_those_of_the_format_with_partition_columns_last() -> None:
    table = wanted("t")

    assert table.location == "s3://lake/wh/topics/t"
    assert table.columns == (
        ("account", "string"),
        ("amount", "bigint"),
        ("_offset_delta", "bigint"),
        ("_timestamp", "timestamp"),
        ("_partition", "int"),
        ("_base_offset", "bigint"),
        ("_last_offset", "bigint"),
        ("_commit", "bigint"),
    )


TOLD = """Catalog: spark_catalog
Database: default
Table: a_b
Owner: root
Type: {kind}
Provider: {provider}
Comment: Type: MANAGED
Table Properties: [location=file:/w/topics/a.b, owner=me, txntable.prefix=, txntable.topic=a.b, {last}]
Location: s3a://lake/wh/topics/a.b
Serde Library: org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe
"""
LAST = f"txntable.topic_id=1, txntable.warehouse_id={OWNER.warehouse_id}"


@pytest.mark.parametrize(
    ("kind", "provider", "is_delta"),
    [
        ("EXTERNAL", "delta", True),
        ("EXTERNAL", "DELTA", True),
        ("MANAGED", "delta", False),
        ("EXTERNAL", "hive", False),
    ],
)
def test_table_is_read_from_what_spark_tells_of_it(kind: str, provider: str, is_delta: bool) -> None:
    table = table_in_text("a_b", TOLD.format(kind=kind, provider=provider, last=LAST))

    assert table.marks == Marks(OWNER.warehouse_id, "", "a.b", "1")
    assert table.location == "s3a://lake/wh/topics/a.b"
    assert (table.is_delta, table.columns) == (is_delta, None)


def test_table_without_marks_in_what_spark_tells_is_not_ours() -> None:
    assert table_in_text("a_b", TOLD.format(kind="EXTERNAL", provider="delta", last="x=1")).marks is None
