"""What a DataFrame may look like: every type, any keys, any number of tasks, by every way of writing it.

Three ways write the same topics, each in few jobs; a Python producer writes the keyed ones once more, and says where
each key belongs.
"""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql.types import StructType

from tests.integration import varied_topic
from tests.integration.varied_topic import canonical
from txntable.format.layout import public_root
from txntable.format.schema import to_delta_schema
from txntable.warehouse.warehouse import Warehouse

WAYS = ("none", "hash", "format")
LONG_TEXT = 10_000
LEG = pa.struct([pa.field("name", pa.string()), pa.field("at", pa.timestamp("us", "UTC"))])
VARIED = pa.schema(
    [
        *varied_topic.SCHEMA,
        pa.field("narrow", pa.decimal128(5, 0)),
        pa.field("wide", pa.decimal128(18, 4)),
        pa.field("text", pa.string()),
        pa.field("legs", pa.list_(LEG)),
        pa.field("stops", pa.map_(pa.string(), LEG)),
        pa.field("nested", pa.struct([pa.field("inner", pa.struct([pa.field("x", pa.int32())]))])),
    ]
)
KEYS_OF_ALL_TYPES = (
    "account amount small short medium price huge paid raw day at narrow wide".split()  # noqa: SIM905  reads better
)
LOOSE = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("text", pa.string())])
SKEWED = pa.schema([pa.field("carrier", pa.string()), pa.field("id", pa.int64())])

# Ascending ids alone are next to nothing once encoded.
LARGE = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("noise", pa.int64())])

VARIED_ROWS, LOOSE_ROWS, SKEWED_ROWS = 45, 400, 3_000
# Two row groups are full, and each is larger than a segment should be.
LARGE_ROWS, SEGMENT_BYTES = 2_200_000, 1024 * 1024
ONE_KEY_IN_TEN_IS_ANOTHER = 10


def varied_row(number: int) -> dict[str, Any]:
    leg = {"name": f"leg {number}", "at": None}
    more = {
        "narrow": Decimal(number),
        "wide": Decimal(number) / 16,
        "text": chr(ord("a") + number % 26) * LONG_TEXT,
        "legs": [leg, None],
        "stops": {"first": leg, "none": None},
        "nested": {"inner": {"x": number}},
    }
    plain = varied_topic.row(number)
    return plain | (dict.fromkeys(more) if number % 3 == 0 else more)


def table(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=schema)


def varied() -> pa.Table:
    return table([varied_row(number) for number in range(VARIED_ROWS)], VARIED)


def usual() -> pa.Table:
    """Those without a value that JSON cannot say."""
    return table([varied_row(number) for number in range(VARIED_ROWS) if number % 3 != 1], VARIED)


def loose() -> pa.Table:
    return table([{"id": number, "text": f"record {number}"} for number in range(LOOSE_ROWS)], LOOSE)


def carrier(number: int) -> str | None:
    if number % ONE_KEY_IN_TEN_IS_ANOTHER:
        return "UA"
    return None if number % 3 == 0 else f"c{number % 7}"


def skewed() -> pa.Table:
    return table([{"carrier": carrier(number), "id": number} for number in range(SKEWED_ROWS)], SKEWED)


@dataclass(frozen=True)
class Written:
    """A warehouse that one way has written; its topics are found by name."""

    warehouse: Warehouse

    def rows(self, topic: str) -> list[dict[str, Any]]:
        return self.warehouse.read_arrow(topic).read_all().to_pylist()

    def path(self, topic: str) -> Path:
        return Path(self.warehouse.url) / public_root(topic)

    def adds(self, topic: str) -> list[Any]:
        return list(self.warehouse.topic_log(topic).public.refresh().files)


def create(folder: Path) -> Warehouse:
    warehouse = Warehouse.create(str(folder / "wh"), durability="page-cache")
    admin = warehouse.admin()
    admin.create_topic("varied", partitions=5, schema=VARIED, key=KEYS_OF_ALL_TYPES)
    admin.create_topic("usual", partitions=2, schema=VARIED, key=KEYS_OF_ALL_TYPES)
    admin.create_topic("loose", partitions=2, schema=LOOSE)
    admin.create_topic("large", partitions=2, schema=LARGE, config={"segment.bytes": SEGMENT_BYTES})
    admin.create_topic("skewed", partitions=3, schema=SKEWED, key=["carrier"])
    return warehouse


def frame_of(spark: Any, rows: pa.Table) -> Any:
    # Said, not inferred: a time without a zone is taken for one with a zone otherwise.
    return spark.createDataFrame(rows, StructType.fromJson(json.loads(to_delta_schema(rows.schema))))


def frames(spark: Any) -> list[tuple[str, Any]]:
    """More partitions than tasks, more tasks than partitions, tasks without rows, and nothing at all."""
    skewed_frame = frame_of(spark, skewed())
    return [
        ("varied", frame_of(spark, varied()).repartition(2)),
        ("usual", frame_of(spark, usual())),
        ("loose", frame_of(spark, loose()).repartition(3)),
        ("skewed", skewed_frame.where("id < 1500").repartition(4, "carrier")),
        ("skewed", skewed_frame.where("id >= 1500").select("id", "carrier")),
        ("skewed", skewed_frame.where("id < 0")),
        ("large", spark.range(0, LARGE_ROWS, 1, 1).selectExpr("id", "xxhash64(id) AS noise")),
    ]


def write_in_one_transaction(spark: Any, warehouse: Warehouse, mode: str) -> None:
    producer = warehouse.producer("etl")
    producer.init_transactions()
    with producer.transaction() as transaction:
        for topic, frame in frames(spark):
            transaction.write(topic, frame, distribution_mode=mode)
            transaction.flush()


def write_by_format(spark: Any, warehouse: Warehouse) -> None:
    for topic, frame in frames(spark):
        frame.write.format("txntable").options(
            warehouse=warehouse.url, topic=topic, transactionalId=f"etl {topic}", durability="page-cache"
        ).mode("append").save()


@pytest.fixture(scope="module")
def written(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Written]:
    made = {way: create(tmp_path_factory.mktemp(way)) for way in (*WAYS, "python")}
    for mode in ("none", "hash"):
        write_in_one_transaction(spark, made[mode], mode)
    write_by_format(spark, made["format"])
    with made["python"].producer() as producer:
        for topic, rows in (("varied", varied()), ("skewed", skewed())):
            producer.send(topic, rows=rows)
    return {way: Written(warehouse) for way, warehouse in made.items()}


def plain(rows: list[dict[str, Any]], identity: str, names: list[str]) -> list[dict[str, Any]]:
    """Rows in the order of their identity, values as they compare."""
    return canonical(
        [{"_partition": 0, "_offset": row[identity]} | {name: row[name] for name in names} for row in rows]
    )


IDENTITY = {"varied": "amount", "loose": "id", "skewed": "id"}
EXPECTED = {"varied": varied, "loose": loose, "skewed": skewed}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("topic", EXPECTED)
def test_every_record_is_there_once_and_unchanged(written: dict[str, Written], way: str, topic: str) -> None:
    expected = EXPECTED[topic]()

    found = written[way].rows(topic)

    names, identity = expected.schema.names, IDENTITY[topic]
    assert plain(found, identity, names) == plain(expected.to_pylist(), identity, names)


@pytest.mark.parametrize("way", WAYS)
def test_independent_readers_see_the_same_records(spark: Any, written: dict[str, Written], way: str) -> None:
    here, names = written[way], VARIED.names

    by_deltalake = DeltaTable(str(here.path("varied"))).to_pyarrow_table().to_pylist()
    by_delta_spark = spark.read.format("delta").load(str(here.path("varied"))).toArrow().to_pylist()

    expected = plain(varied().to_pylist(), "amount", names)
    assert plain(by_deltalake, "amount", names) == expected
    assert plain(by_delta_spark, "amount", names) == expected


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("topic", ["varied", "skewed"])
def test_each_key_is_where_the_python_producer_puts_it(written: dict[str, Written], way: str, topic: str) -> None:
    identity = IDENTITY[topic]

    def places(rows: list[dict[str, Any]]) -> dict[int, int]:
        keyed = (row for row in rows if topic == "varied" or row["carrier"] is not None)
        return {row[identity]: row["_partition"] for row in keyed}

    found = places(written[way].rows(topic))

    assert found == places(written["python"].rows(topic))
    assert len(set(found.values())) > 1, "the keys do not all go to one partition"


@pytest.mark.parametrize("way", WAYS)
def test_records_without_a_key_are_spread(written: dict[str, Written], way: str) -> None:
    unkeyed = Counter(row["_partition"] for row in written[way].rows("skewed") if row["carrier"] is None)
    loose_ones = Counter(row["_partition"] for row in written[way].rows("loose"))

    assert len(unkeyed) > 1
    assert len(loose_ones) == 2


def test_tasks_have_whole_partitions_when_the_rows_are_shuffled(written: dict[str, Written]) -> None:
    segments = {way: Counter(add.partition_values["_partition"] for add in written[way].adds("varied")) for way in WAYS}

    assert max(segments["hash"].values()) == 1
    assert segments["none"] == segments["format"]
    assert max(segments["none"].values()) == 2, "one for each task"


@pytest.mark.parametrize("way", WAYS)
def test_one_task_writes_several_segments_when_they_reach_their_size(written: dict[str, Written], way: str) -> None:
    adds = written[way].adds("large")

    ids = written[way].warehouse.read_arrow("large", columns=["id"]).read_all().column("id")
    # Tasks in Python end a segment with a row group; Spark's own writer counts records.
    by_python = way == "format"
    assert all(json.loads(add.stats)["numRecords"] < LARGE_ROWS for add in adds)
    assert (len(adds) == 3) if by_python else (len(adds) > 3)
    assert any(add.path.startswith("_segments/parts/") for add in adds) is not by_python
    assert {add.partition_values["_partition"] for add in adds} == {"0", "1"}
    assert ids.combine_chunks().sort().equals(pa.array(range(LARGE_ROWS)))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("topic", "columns"),
    [("varied", []), ("usual", ["amount", "price", "day", "at"]), ("skewed", ["carrier"])],
    ids=["varied", "usual", "skewed"],
)
def test_statistics_of_the_public_table_are_those_of_its_files(
    written: dict[str, Written], way: str, topic: str, columns: list[str]
) -> None:
    here = written[way]

    for add in here.adds(topic):
        found = pq.read_table(here.path(topic) / add.path)
        stats = json.loads(add.stats)
        assert stats["numRecords"] == found.num_rows
        # A column that cannot be said takes all bounds of its side with it.
        is_said = topic == "skewed" or not pc.any(pc.is_nan(found.column("ratio"))).as_py()
        assert [bound in stats for bound in ("minValues", "maxValues")] == [is_said, is_said]
        for name in columns:
            column = found.column(name)
            assert stats["nullCount"][name] == column.null_count
            if column.null_count < len(column):
                bounds = pc.min_max(column).as_py()
                least, most = (as_value(stats[bound][name], column.type) for bound in ("minValues", "maxValues"))
                # Delta has milliseconds, rounded outwards.
                coarse = dt.timedelta(milliseconds=1) if pa.types.is_timestamp(column.type) else None
                assert least == bounds["min"] or (coarse and least < bounds["min"] < least + coarse)
                assert most == bounds["max"] or (coarse and most - coarse < bounds["max"] < most)


def as_value(stat: Any, kind: pa.DataType) -> Any:
    if pa.types.is_decimal(kind):
        return Decimal(str(stat))
    if pa.types.is_date(kind):
        return pa.scalar(stat).cast(kind).as_py()
    if pa.types.is_timestamp(kind):
        return pa.scalar(stat.removesuffix("Z")).cast(pa.timestamp("us")).cast(kind).as_py()
    return stat


@pytest.mark.parametrize("way", WAYS)
def test_files_outside_of_a_filter_are_pruned_by_the_statistics(
    spark: Any, written: dict[str, Written], way: str
) -> None:
    here = written[way]
    ids = spark.read.format("delta").load(str(here.path("large"))).where("id < 17")

    assert ids.count() == 17
    assert [Path(file).name for file in ids.inputFiles()] == [
        Path(add.path).name for add in here.adds("large") if json.loads(add.stats)["minValues"]["id"] < 17
    ]
