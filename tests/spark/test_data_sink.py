"""``df.write.format("txntable")`` and ``INSERT INTO`` through Spark's own processes: what works, what is refused, how.

What the writer itself decides is tested without Spark (``tests/unit/spark/test_data_sink.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

from txntable.warehouse.warehouse import Warehouse

SCHEMA = pa.schema([pa.field("account", pa.string(), nullable=False), pa.field("amount", pa.int64())])


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    made = Warehouse.create(str(tmp_path / "wh"), durability="page-cache")
    made.admin().create_topic("t", partitions=2, schema=SCHEMA, key=["account"])
    return made


@pytest.fixture
def view(spark: Any, warehouse: Warehouse) -> Any:
    """A view over the topic that can be inserted into."""
    spark.sql(f"CREATE TEMPORARY VIEW v USING txntable OPTIONS (warehouse '{warehouse.url}', topic 't')")
    yield "v"
    spark.catalog.dropTempView("v")


def frame(spark: Any) -> Any:
    return spark.sql("SELECT id AS amount, concat('a', id) AS account FROM range(0, 4, 1, 2)")


def writer(dataframe: Any, warehouse: Warehouse, **options: str) -> Any:
    where = {"warehouse": warehouse.url, "topic": "t", "durability": "page-cache"}
    return dataframe.write.format("txntable").options(**where, **options).mode("append")


def found(warehouse: Warehouse) -> list[tuple[str, int | None]]:
    rows = warehouse.read_arrow("t", columns=["account", "amount"]).read_all().to_pylist()
    return sorted((row["account"], row["amount"]) for row in rows)


def segment_files(warehouse: Warehouse) -> list[Path]:
    return list(Path(warehouse.url).glob("topics/*/_segments/p*/*.parquet"))


ALL = [("a0", 0), ("a1", 1), ("a2", 2), ("a3", 3)]


def test_dataframe_is_appended_by_name_and_once_for_each_batch(spark: Any, warehouse: Warehouse) -> None:
    for _ in range(2):
        writer(frame(spark), warehouse, transactionalId="etl", batchId="2026-11-20").save()
    files = len(segment_files(warehouse))
    before = found(warehouse)
    writer(frame(spark), warehouse).save()

    assert (before, found(warehouse)) == (ALL, sorted(ALL * 2))
    assert len(segment_files(warehouse)) == 2 * files, "the second run uploaded nothing"


def test_every_way_of_writing_goes_on_when_a_column_is_added(spark: Any, warehouse: Warehouse) -> None:
    """Each of these jobs was written before the column, and has narrower numbers than the topic."""
    warehouse.admin().add_columns("t", pa.schema([pa.field("note", pa.string())]))
    narrow = frame(spark).selectExpr("CAST(amount AS INT) AS amount", "account")
    producer = warehouse.producer("jobs")
    producer.init_transactions()

    writer(narrow, warehouse).save()
    with producer.transaction() as transaction:
        transaction.write("t", narrow)
        transaction.write("t", narrow, distribution_mode="hash")
        transaction.send("t", rows=narrow.toArrow())

    assert found(warehouse) == sorted(ALL * 4)
    assert warehouse.read_arrow("t").read_all()["note"].null_count == 16


def test_a_task_that_fails_leaves_nothing_visible(spark: Any, warehouse: Warehouse) -> None:
    failing = frame(spark).where("amount < 3 OR raise_error('the source is broken') IS NULL")

    with pytest.raises(Exception, match="the source is broken"):
        writer(failing, warehouse, transactionalId="etl", batchId="7").save()
    writer(frame(spark), warehouse, transactionalId="etl", batchId="7").save()

    assert found(warehouse) == ALL


def test_null_in_a_required_column_is_refused_with_the_columns_name(spark: Any, warehouse: Warehouse) -> None:
    with pytest.raises(
        AnalysisException, match=r"SchemaMismatchError: a column that must not be null .*column=account"
    ) as told:
        writer(frame(spark).selectExpr("amount", "nullif(account, 'a3') AS account"), warehouse).save()
    assert "Traceback" not in str(told.value)

    assert found(warehouse) == []


@pytest.mark.parametrize(
    ("refused", "said"),
    [
        (lambda df, wh: writer(df.drop("account"), wh).save(), "SchemaMismatchError: .*missing=account"),
        (lambda df, wh: writer(df, wh).mode("overwrite").save(), r"InvalidRequestError: .*mode\('append'\)"),
        (lambda df, wh: writer(df, wh).save("/elsewhere"), "InvalidRequestError: .*unknown=path"),
    ],
)
def test_write_is_refused_with_a_line_of_ours_before_a_task_runs(
    spark: Any, warehouse: Warehouse, refused: Callable[[Any, Warehouse], None], said: str
) -> None:
    untouched = frame(spark).where("raise_error('the job ran') IS NULL")

    with pytest.raises(AnalysisException, match=said) as told:
        refused(untouched, warehouse)
    assert "Traceback" not in str(told.value)

    assert segment_files(warehouse) == []


# -- SQL ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("insert", "expected"),
    [
        ("(amount, account) VALUES (1, 'ann'), (NULL, 'bob')", [("ann", 1), ("bob", None)]),
        ("(account) SELECT 'ann'", [("ann", None)]),
        ("BY NAME SELECT 1L AS amount, 'ann' AS account", [("ann", 1)]),
    ],
)
def test_insert_takes_columns_that_are_named(
    spark: Any, warehouse: Warehouse, view: str, insert: str, expected: list[tuple[str, int | None]]
) -> None:
    spark.sql(f"INSERT INTO {view} {insert}")

    assert found(warehouse) == expected


def test_dataframe_is_appended_to_a_view_by_name(spark: Any, warehouse: Warehouse, view: str) -> None:
    frame(spark).writeTo(view).append()

    assert found(warehouse) == ALL


@pytest.mark.parametrize(
    ("insert", "said"),
    [
        ("INSERT INTO v SELECT 'ann' AS account, 1L AS amount", "NOT_ENOUGH_DATA_COLUMNS"),
        ("INSERT INTO v VALUES ('ann', 1L)", "NOT_ENOUGH_DATA_COLUMNS"),
        ("INSERT INTO v VALUES ('ann', 1L, 0, 0L, NULL, 0L)", "SchemaMismatchError: .*BY NAME.*column=_partition"),
        ("INSERT INTO v (amount) VALUES (1L)", "SchemaMismatchError: .*column=account"),
        ("INSERT OVERWRITE v (account) VALUES ('ann')", "InvalidRequestError: a topic is only appended to"),
        ("CREATE TABLE x USING txntable OPTIONS (warehouse '/wh', topic 't')", "CREATE TEMPORARY VIEW"),
    ],
)
def test_insert_is_refused_where_rows_would_be_matched_by_position_or_replaced(
    spark: Any, warehouse: Warehouse, view: str, insert: str, said: str
) -> None:
    assert view == "v"

    with pytest.raises(AnalysisException, match=said):
        spark.sql(insert)

    assert found(warehouse) == []


def test_explaining_an_insert_fences_nobody(spark: Any, warehouse: Warehouse) -> None:
    producer = warehouse.producer("etl")
    producer.init_transactions()
    options = f"warehouse '{warehouse.url}', topic 't', transactionalId 'etl'"
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW v USING txntable OPTIONS ({options})")

    spark.sql("EXPLAIN INSERT INTO v BY NAME SELECT 1L AS amount, 'ann' AS account").collect()
    with producer.transaction() as transaction:
        transaction.send("t", row={"account": "bob", "amount": 2})

    assert found(warehouse) == [("bob", 2)]


def test_mistyped_topic_and_options_of_reading_are_told_through_sparks_processes(
    spark: Any, warehouse: Warehouse
) -> None:
    warehouse.admin().create_topic("orders", partitions=1)
    where = {"warehouse": warehouse.url, "topic": "order"}

    with pytest.raises(AnalysisException, match=r"did you mean orders\?"):
        spark.read.format("txntable").options(**where, isolationLevel="read_committed").load()
    with pytest.raises(AnalysisException, match=r"did you mean orders\?"):
        frame(spark).write.format("txntable").options(**where).mode("append").save()
    with pytest.raises(AnalysisException, match="options=asOf"):
        writer(frame(spark), warehouse, asOf="1").save()
