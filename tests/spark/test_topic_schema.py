"""The schema of a topic that is made for a DataFrame takes the DataFrame's rows, whatever its columns are called."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from txntable.errors import SchemaMismatchError
from txntable.spark.topic_schema import topic_schema
from txntable.warehouse.warehouse import Warehouse

_COLUMNS = (
    "id bigint NOT NULL, `Größe` string, `post-code` struct<a: array<int>, c: map<string, decimal(18,4)>>, "
    "at timestamp, local timestamp_ntz, day date"
)


def test_topic_of_a_dataframe_takes_its_rows_with_names_of_any_letters(spark: Any, tmp_path: Path) -> None:
    row = (1, "x", ([1, None], {"k": Decimal("1.5000"), "n": None}), None, None, None)
    dataframe = spark.createDataFrame([row], _COLUMNS)
    warehouse = Warehouse.create(str(tmp_path / "w"), durability="page-cache")
    warehouse.admin().create_topic("t", schema=topic_schema(dataframe))

    producer = warehouse.producer("etl")
    producer.init_transactions()
    with producer.transaction() as txn:
        txn.write("t", dataframe)

    (found,) = warehouse.read(spark, "t").select(*(f"`{name}`" for name in dataframe.columns)).collect()
    assert found == dataframe.first()


def test_schema_of_literals_and_built_arrays_is_nullable_at_every_level(spark: Any) -> None:
    dataframe = spark.sql("SELECT 1 AS one, array(1) AS some, struct(2 AS two) AS s, map('a', 1) AS m")

    schema = topic_schema(dataframe)

    assert schema == pa.schema(
        [
            ("one", pa.int32()),
            ("some", pa.list_(pa.field("element", pa.int32()))),
            ("s", pa.struct([("two", pa.int32())])),
            ("m", pa.map_(pa.field("key", pa.string(), nullable=False), pa.field("value", pa.int32()))),
        ]
    )


def test_column_that_no_topic_can_have_is_refused_with_the_nearest_type(spark: Any) -> None:
    with pytest.raises(SchemaMismatchError, match="nearest"):
        topic_schema(spark.sql("SELECT INTERVAL '1' DAY AS gap"))


def test_interval_of_months_is_refused_with_what_to_do(spark: Any) -> None:
    with pytest.raises(SchemaMismatchError, match="convert it to another one"):
        topic_schema(spark.sql("SELECT make_ym_interval(1, 2) AS gap"))


_VARIANT = """parse_json('{"a": 1}')"""


@pytest.mark.parametrize("given", ["{0}", "named_struct('a', {0})", "array({0})", "map('a', {0})"])
def test_variant_is_refused_wherever_it_stands_since_it_would_be_written_as_nulls(spark: Any, given: str) -> None:
    """Bug: Arrow shows it as a struct, to which Spark casts it as nulls."""
    dataframe = spark.sql(f"SELECT 1 AS id, {given.format(_VARIANT)} AS v")

    with pytest.raises(SchemaMismatchError, match="a variant to text, by to_json"):
        topic_schema(dataframe)


def test_schema_of_a_stream_is_that_of_its_columns(spark: Any, tmp_path: Path) -> None:
    """Bug: Spark refused to read a stream that no query reads."""
    columns = "id bigint, parts array<struct<a: int>>"
    stream = spark.readStream.schema(columns).json(str(tmp_path))

    assert stream.isStreaming
    assert topic_schema(stream) == topic_schema(spark.createDataFrame([], columns))
