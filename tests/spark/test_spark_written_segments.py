"""Spark's own Parquet writer as the writer of segments: the same segments as the tasks in Python, and no others."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from tests.spark.test_write_shapes import VARIED, frame_of, varied_row
from txntable.format.key import key_bytes, partition_of
from txntable.format.layout import public_root, segments_root
from txntable.format.schema import from_delta_schema
from txntable.log.actions import Add
from txntable.spark.writing import spark_file_settings
from txntable.spark.writing.writer_choice import SWITCH, Wish
from txntable.warehouse.warehouse import Warehouse

NUMBERS = pa.schema([pa.field("number", pa.int64(), nullable=False), pa.field("text", pa.string())])
ROWS = 1_000
FRAME = f"SELECT id AS number, concat('text ', id) AS text FROM range(0, {ROWS}, 1, 4)"
LONG = [
    "a" * 33,
    "\U0010ffff" * 40 + "x",
    "é" * 31 + "zz",
    "y" * 10_000,
    "",
]


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Warehouse]:
    """In which nothing is damaged, whatever a test has written."""
    warehouse = Warehouse.create(str(tmp_path / "wh"))
    yield warehouse
    assert warehouse.verify().damages == ()


def write(warehouse: Warehouse, topic: str, frame: Any, mode: str = "none") -> str | None:
    producer = warehouse.producer(f"to {topic}")
    producer.init_transactions()
    with producer.transaction() as transaction:
        return transaction.write(topic, frame, distribution_mode=mode).segments_by


def adds(warehouse: Warehouse, topic: str) -> list[Add]:
    files = warehouse.topic_log(topic).segments.refresh().files
    return [add for add in files if add.partition_values["_control"] is None]


def tag(add: Add) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(add.tag or "{}")
    return found


def files_below(warehouse: Warehouse, topic: str) -> set[str]:
    root = Path(warehouse.url) / segments_root(topic)
    return {str(file.relative_to(root)) for file in root.rglob("p*/**/*") if file.is_file()}


def said(add: Add) -> dict[str, Any]:
    """What a row says of its segment, whoever made the file."""
    whose = ("digest", "uploaded_at", "first_timestamp", "max_timestamp")
    facts = {name: value for name, value in tag(add).items() if name not in whose}
    values = {name: add.partition_values[name] for name in ("_partition", "_base_offset", "_last_offset")}
    return {**values, **facts}


def bounds(add: Add) -> dict[str, Any]:
    """The statistics without those of the time of the upload."""
    stats: dict[str, Any] = json.loads(add.stats or "{}")
    for side in ("minValues", "maxValues", "txntable"):
        stats.get(side, {}).pop("_timestamp", None)
    return stats


# -- what is written ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["all", "usual", "nulls"])
def test_rows_and_bounds_are_those_of_the_tasks_in_python(kind: str, always: Any, warehouse: Warehouse) -> None:
    chosen = {"all": range(45), "usual": [n for n in range(45) if n % 3 == 2], "nulls": range(0, 45, 3)}[kind]
    rows = [varied_row(number) for number in chosen]
    frame = frame_of(always, pa.Table.from_pylist(rows, schema=VARIED)).coalesce(1)
    for topic in ("spark", "python"):
        warehouse.admin().create_topic(topic, partitions=3, schema=VARIED)

    by_spark = write(warehouse, "spark", frame)
    always.conf.set(SWITCH, Wish.NEVER.value)
    by_python = write(warehouse, "python", frame)

    assert (by_spark, by_python) == ("spark", f"python: {SWITCH} is never")
    (ours,), (theirs,) = adds(warehouse, "spark"), adds(warehouse, "python")
    assert (said(ours), bounds(ours)) == (said(theirs), bounds(theirs))
    found = [warehouse.read_arrow(topic, columns=VARIED.names).read_all() for topic in ("spark", "python")]
    assert [repr(row) for row in found[0].to_pylist()] == [repr(row) for row in found[1].to_pylist()]
    assert found[0].num_rows == len(rows)


@pytest.mark.parametrize("texts", [LONG, LONG[:2], LONG[2:4], [*LONG, None]])
def test_bounds_of_texts_are_cut_as_in_python(texts: list[Any], always: Any, warehouse: Warehouse) -> None:
    schema = pa.schema([pa.field("text", pa.string())])
    frame = frame_of(always, pa.table({"text": texts}, schema=schema)).coalesce(1)
    for topic in ("spark", "python"):
        warehouse.admin().create_topic(topic, schema=schema)

    write(warehouse, "spark", frame)
    always.conf.set(SWITCH, Wish.NEVER.value)
    write(warehouse, "python", frame)

    (ours,), (theirs,) = adds(warehouse, "spark"), adds(warehouse, "python")
    assert bounds(ours) == bounds(theirs)


@pytest.mark.parametrize("nans", [[0], [2], [0, 1, 2, 3], []])
def test_a_number_has_no_bound_where_it_has_a_nan_in_any_row_group(
    nans: list[int], always: Any, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = pa.schema([pa.field("number", pa.int64()), pa.field("ratio", pa.float64())])
    monkeypatch.setattr(spark_file_settings, "ROW_GROUP_MEMORY", 250 * spark_file_settings.guessed_width(schema))
    cases = " ".join(f"WHEN id DIV 250 = {group} AND id % 7 = 3 THEN double('NaN')" for group in nans)
    ratio = f"CASE {cases} ELSE id / 2D END" if nans else "id / 2D"
    warehouse.admin().create_topic("ratios", schema=schema)

    write(warehouse, "ratios", always.sql(f"SELECT id AS number, {ratio} AS ratio FROM range(0, {ROWS}, 1, 1)"))

    (add,) = adds(warehouse, "ratios")
    groups = pq.read_metadata(Path(warehouse.url) / segments_root("ratios") / add.path).num_row_groups
    stats = json.loads(add.stats or "{}")
    assert groups == 4
    assert ("minValues" in stats, "maxValues" in stats) == (not nans, not nans)


def test_a_file_is_a_segment_to_the_letter(always: Any, warehouse: Warehouse) -> None:
    warehouse.admin().create_topic("numbers", partitions=2, schema=VARIED, config={"compression.type": "lz4"})
    frame = frame_of(always, pa.Table.from_pylist([varied_row(number) for number in range(45)], schema=VARIED))

    write(warehouse, "numbers", frame.repartition(2))

    for add in adds(warehouse, "numbers"):
        file = pq.ParquetFile(
            Path(warehouse.url) / segments_root("numbers") / add.path, page_checksum_verification=True
        )
        rows = file.read().to_pylist()
        columns = [file.metadata.row_group(0).column(index) for index in range(file.metadata.num_columns)]
        assert file.schema_arrow.names == [*VARIED.names, "_offset_delta", "_timestamp"]
        assert [row["_offset_delta"] for row in rows] == list(range(len(rows)))
        assert {column.compression for column in columns} == {"LZ4"}
        for column in columns:
            repeated = ".list." in column.path_in_schema or ".key_value." in column.path_in_schema
            assert not repeated or not {"RLE_DICTIONARY", "PLAIN_DICTIONARY"} & set(column.encodings)
    assert files_below(warehouse, "numbers") == {add.path for add in adds(warehouse, "numbers")}


def test_a_damaged_page_is_found_by_its_checksum(always: Any, warehouse: Warehouse) -> None:
    warehouse.admin().create_topic("numbers", schema=NUMBERS)
    write(warehouse, "numbers", always.sql(FRAME).coalesce(1))
    (add,) = adds(warehouse, "numbers")
    place = Path(warehouse.url) / segments_root("numbers") / add.path
    data = bytearray(place.read_bytes())
    data[pq.read_metadata(place).row_group(0).column(0).data_page_offset + 60] ^= 1

    with pytest.raises(OSError, match=r"(?i)crc"):
        pq.ParquetFile(pa.BufferReader(bytes(data)), page_checksum_verification=True).read()


def test_records_of_a_task_go_to_partitions_in_turn_and_files_end_where_the_user_says(
    always: Any, warehouse: Warehouse
) -> None:
    warehouse.admin().create_topic("numbers", partitions=3, schema=NUMBERS)
    always.conf.set("spark.sql.files.maxRecordsPerFile", "100")
    try:
        write(warehouse, "numbers", always.sql(FRAME))
    finally:
        always.conf.unset("spark.sql.files.maxRecordsPerFile")

    found = adds(warehouse, "numbers")
    assert sorted(tag(add)["records"] for add in found) == [50] * 4 + [100] * 8
    assert {add.partition_values["_partition"] for add in found} == {"0", "1", "2"}
    rows = warehouse.read_arrow("numbers", columns=["number", "_partition", "_offset"]).read_all().to_pylist()
    assert sorted(row["number"] for row in rows) == list(range(ROWS))


def test_a_task_ends_its_files_at_about_segment_bytes(always: Any, warehouse: Warehouse) -> None:
    warehouse.admin().create_topic("numbers", schema=NUMBERS, config={"segment.bytes": 1024 * 1024})
    frame = always.range(0, 600_000, 1, 1).selectExpr("id AS number", "uuid() AS text")

    write(warehouse, "numbers", frame)

    sizes = [add.size for add in adds(warehouse, "numbers")]
    assert len(sizes) > 3
    assert max(sizes) < 8 * 1024 * 1024


def test_times_of_the_rows_are_kept_the_first_and_the_highest(always: Any, warehouse: Warehouse) -> None:
    warehouse.admin().create_topic("numbers", schema=NUMBERS)
    frame = always.sql(FRAME).coalesce(1).withColumn("_timestamp", always_time("abs(500 - number)"))

    write(warehouse, "numbers", frame)

    (add,) = adds(warehouse, "numbers")
    assert (tag(add)["first_timestamp"], tag(add)["max_timestamp"]) == (500, 500)
    assert json.loads(add.stats or "{}")["minValues"]["_timestamp"] == "1970-01-01T00:00:00.000Z"


def always_time(text: str) -> Any:
    from pyspark.sql import functions  # noqa: PLC0415  only where a session runs

    return functions.expr(f"timestamp_millis({text})")


def test_a_topic_with_the_time_of_the_upload_does_not_keep_those_of_the_rows(always: Any, warehouse: Warehouse) -> None:
    warehouse.admin().create_topic("numbers", schema=NUMBERS, config={"message.timestamp.type": "LogAppendTime"})

    write(warehouse, "numbers", always.sql(FRAME).withColumn("_timestamp", always_time("number")))

    assert {tag(add)["first_timestamp"] for add in adds(warehouse, "numbers")} == {
        tag(add)["uploaded_at"] for add in adds(warehouse, "numbers")
    }


def test_order_within_tasks_is_the_order_of_offsets(always: Any, warehouse: Warehouse) -> None:
    warehouse.admin().create_topic("numbers", schema=NUMBERS)

    write(warehouse, "numbers", always.sql(FRAME).coalesce(1).sortWithinPartitions("text"))

    texts = warehouse.read_arrow("numbers", columns=["text"]).read_all()["text"].to_pylist()
    assert texts == sorted(texts)


def test_columns_left_out_are_null_and_narrower_ones_are_widened(always: Any, warehouse: Warehouse) -> None:
    schema = pa.schema(
        [
            *NUMBERS,
            pa.field("fare", pa.decimal128(9, 2)),
            pa.field("local", pa.timestamp("us")),
            pa.field("stops", pa.list_(pa.struct([("name", pa.string())]))),
        ]
    )
    warehouse.admin().create_topic("wide", schema=schema)

    narrow = "CAST(id AS TINYINT) AS number, CAST(id AS DECIMAL(3, 1)) AS fare, DATE'2013-01-01' AS local"

    by = write(warehouse, "wide", always.sql(f"SELECT {narrow} FROM range(9)"))

    assert by == "spark"
    rows = warehouse.read_arrow("wide", columns=schema.names).read_all().to_pylist()
    assert sorted((row["number"], str(row["fare"])) for row in rows) == [(n, f"{n}.00") for n in range(9)]
    assert {row["local"].isoformat() for row in rows} == {"2013-01-01T00:00:00"}
    assert {(row["text"], row["stops"]) for row in rows} == {(None, None)}


@pytest.mark.parametrize("frame", [FRAME + " WHERE id < 0", "SELECT 1L AS number, 'x' AS text"])
def test_empty_and_tiny_dataframes(frame: str, always: Any, warehouse: Warehouse) -> None:
    warehouse.admin().create_topic("numbers", schema=NUMBERS)
    count = always.sql(frame).count()

    assert write(warehouse, "numbers", always.sql(frame)) == "spark"

    assert sum(tag(add)["records"] for add in adds(warehouse, "numbers")) == count
    assert warehouse.read_arrow("numbers").read_all().num_rows == count


def test_other_engines_read_the_public_table(always: Any, warehouse: Warehouse) -> None:
    warehouse.admin().create_topic("numbers", partitions=2, schema=NUMBERS)
    write(warehouse, "numbers", always.sql(FRAME))

    by_deltalake = DeltaTable(f"{warehouse.url}/{public_root('numbers')}").to_pyarrow_table(columns=["number"])
    by_spark = warehouse.read(always, "numbers")

    assert sorted(by_deltalake["number"].to_pylist()) == list(range(ROWS))
    assert by_spark.where("number = 3").count() == 1
    assert by_spark.select("_partition", "_offset").distinct().count() == ROWS


# -- jobs that fail, and are cancelled ------------------------------------------------------


@pytest.mark.parametrize("at", [0, 999])
def test_nothing_is_registered_of_a_job_that_fails_and_what_it_left_is_known_to_vacuum(
    at: int, always: Any, warehouse: Warehouse, caplog: pytest.LogCaptureFixture
) -> None:
    warehouse.admin().create_topic("numbers", schema=NUMBERS)
    failing = always.sql(FRAME).selectExpr("number", f"IF(number = {at}, raise_error('no'), text) AS text")

    with pytest.raises((PySparkException, Py4JJavaError), match="USER_RAISED_EXCEPTION"):
        write(warehouse, "numbers", failing)

    assert [record for record in caplog.records if "Python Proxy" in record.message] == []
    assert adds(warehouse, "numbers") == []
    assert write(warehouse, "numbers", always.sql(FRAME)) == "spark"
    assert warehouse.read_arrow("numbers").read_all().num_rows == ROWS


def test_many_writes_of_one_session_at_once(always: Any, warehouse: Warehouse) -> None:
    topics = [f"numbers-{number}" for number in range(4)]
    for topic in topics:
        warehouse.admin().create_topic(topic, schema=NUMBERS)

    with ThreadPoolExecutor(len(topics)) as pool:
        told = list(pool.map(lambda topic: write(warehouse, topic, always.sql(FRAME)), topics))

    assert told == ["spark"] * len(topics)
    assert [warehouse.read_arrow(topic).read_all().num_rows for topic in topics] == [ROWS] * len(topics)


# -- keyed topics ---------------------------------------------------------------------------


@pytest.mark.parametrize("aqe", ["true", "false"])
@pytest.mark.parametrize("key", [["number"], ["text"], ["text", "number"]])
def test_each_record_lands_once_in_the_partition_of_its_key(
    key: list[str], aqe: str, always: Any, warehouse: Warehouse
) -> None:
    warehouse.admin().create_topic("numbers", partitions=5, schema=NUMBERS, key=key)
    frame = always.sql(FRAME).selectExpr("number", "nullif(text, 'text 7') AS text")
    always.conf.set("spark.sql.adaptive.enabled", aqe)
    try:
        by = write(warehouse, "numbers", frame, "hash")
    finally:
        always.conf.unset("spark.sql.adaptive.enabled")

    assert by == "spark"
    rows = warehouse.read_arrow("numbers", columns=["number", "text", "_partition"]).read_all().to_pylist()
    types = [NUMBERS.field(name).type for name in key]
    for row in rows:
        data = key_bytes([row[name] for name in key], types)
        assert data is None or row["_partition"] == partition_of(data, 5)
    assert sorted(row["number"] for row in rows) == list(range(ROWS))
    assert {tag(add).get("partition_count") for add in adds(warehouse, "numbers")} == {5}
    assert len(adds(warehouse, "numbers")) == 5


@pytest.mark.parametrize("kind", ["int", "bigint", "date", "timestamp", "smallint", "decimal(9,2)", "boolean"])
def test_records_without_a_key_are_spread_and_all_others_lie_where_their_keys_do(
    kind: str, always: Any, warehouse: Warehouse
) -> None:
    numeric = {"date": "date_from_unix_date(id)", "timestamp": "timestamp_seconds(id)", "boolean": "id % 3 = 0"}
    cast = numeric.get(kind, f"CAST(id AS {kind})")
    frame = always.range(0, 200, 1, 4).selectExpr("id AS number", f"IF(id % 2 = 0, NULL, {cast}) AS k")
    schema = from_delta_schema(frame.schema.json())
    warehouse.admin().create_topic("numbers", partitions=5, schema=schema, key=["k"])

    by = write(warehouse, "numbers", frame, "hash")

    rows = warehouse.read_arrow("numbers", columns=["number", "k", "_partition"]).read_all().to_pylist()
    keys = {row["number"]: key_bytes([row["k"]], [schema.field("k").type]) for row in rows}
    where = {row["number"]: row["_partition"] for row in rows}
    assert by == "spark"
    assert len(where) == len(rows) == 200
    expected = {number: partition_of(key, 5) for number, key in keys.items() if key is not None}
    assert {number: where[number] for number in expected} == expected
    unkeyed = {where[number] for number, key in keys.items() if key is None}
    assert (len(keys) - len(expected), len(unkeyed)) == (100, 4), "by the task that they come from"


def test_numbers_that_are_not_finite_are_not_mistaken(always: Any, warehouse: Warehouse) -> None:
    schema = pa.schema([pa.field("ratio", pa.float32())])
    warehouse.admin().create_topic("ratios", schema=schema)

    write(warehouse, "ratios", frame_of(always, pa.table({"ratio": [1.5, math.inf, None]}, schema=schema)).coalesce(1))

    (add,) = adds(warehouse, "ratios")
    assert json.loads(add.stats or "{}").get("maxValues") is None
    assert json.loads(add.stats or "{}")["minValues"]["ratio"] == 1.5
