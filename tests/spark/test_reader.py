"""DataFrames of a topic at every isolation level: by a list, by Delta's own reader and by ``format("txntable")``."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tests.simulation.site import TWO_COLUMNS, published
from txntable.errors import InvalidRequestError, OffsetOutOfRangeError, UnknownTopicOrPartitionError
from txntable.spark.scan import listed_segments
from txntable.spark.scan.reader import spark_url
from txntable.warehouse.warehouse import Warehouse

COLUMNS = ["account", "amount", "_partition", "_offset", "_timestamp", "_commit"]
OPEN_FROM = {0: 16, 1: 16}
"""Where the open transaction of the fixture begins, by partition."""
HIGH_WATERMARK = {0: 20, 1: 19, 2: 0}
Place = tuple[int, int]
Read = Callable[..., Any]


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """Four transactions of three records a partition, the second aborted; then an open one, and a plain record."""
    made = Warehouse.create(str(tmp_path_factory.mktemp("reader") / "wh"), durability="page-cache")
    made.admin().create_topic("t", partitions=3, schema=TWO_COLUMNS)
    producer = made.producer("etl", transaction_timeout_ms=900_000)
    producer.init_transactions()
    for number in range(5):
        producer.begin_transaction()
        for partition in (0, 1):
            for _ in range(3):
                producer.send("t", row={"account": f"a{number}", "amount": number}, partition=partition)
        producer.flush()
        if number < 4:
            (producer.abort_transaction if number == 1 else producer.commit_transaction)()
    with made.producer() as plain:
        plain.send("t", row={"account": "plain", "amount": None}, partition=0)
    return made


@pytest.fixture
def by_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """No table is small enough for a list of its segments: Delta reads its log."""
    monkeypatch.setattr(listed_segments, "MOST_SEGMENTS", -1)


@pytest.fixture(params=["listed", "delta", "txntable"])
def read(request: Any, spark: Any, warehouse: Warehouse) -> Read:
    """All ways to a DataFrame, called alike."""
    if request.param == "delta":
        request.getfixturevalue("by_log")

    def by_format(level: str = "snapshot", **options: Any) -> Any:
        reader = spark.read.format("txntable").option("warehouse", warehouse.url).option("topic", "t")
        for name, value in options.items():
            word = {"starting_offsets": "startingOffsets", "ending_offsets": "endingOffsets", "as_of": "asOf"}[name]
            reader = reader.option(word, json.dumps(value) if isinstance(value, dict) else value)
        return reader.option("isolationLevel", level).load()

    def by_scan(level: str = "snapshot", **options: Any) -> Any:
        return warehouse.read(spark, "t", isolation_level=level, **options)

    return by_format if request.param == "txntable" else by_scan


def places(frame: Any) -> set[Place]:
    rows = [(row["_partition"], row["_offset"]) for row in frame.select("_partition", "_offset").collect()]
    assert len(rows) == len(set(rows)), "a record came twice"
    return set(rows)


def appended() -> set[Place]:
    """Each transaction has three records and a marker in a partition; the open one has no marker yet."""
    each = {(partition, 4 * number + record) for number in range(5) for partition in (0, 1) for record in range(3)}
    return each | {(0, 19)}


def committed() -> set[Place]:
    return {
        (p, o) for p, o in appended() if o // 4 != 1 and (p, o) not in {(q, 16 + r) for q in (0, 1) for r in range(3)}
    }


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        ("snapshot", committed()),
        ("read_committed", {(p, o) for p, o in committed() if o < OPEN_FROM[p]}),
        ("read_uncommitted", appended()),
    ],
)
def test_each_level_shows_its_records(read: Read, level: str, expected: set[Place]) -> None:
    found = read(level)

    assert found.columns == COLUMNS
    assert places(found) == expected


def test_levels_differ_where_something_is_open_or_aborted() -> None:
    assert committed() < appended()
    assert any(offset >= OPEN_FROM[partition] for partition, offset in committed())


def test_records_have_the_decision_that_made_them_visible(read: Read, warehouse: Warehouse) -> None:
    found = {row["_offset"]: (row["account"], row["_commit"]) for row in read().where("_partition = 0").collect()}

    commits = {
        int(add.partition_values["_base_offset"] or ""): int(add.partition_values["_commit"] or "")
        for add in warehouse.topic_log("t").public.refresh().files
        if add.partition_values["_partition"] == "0"
    }
    decided = {"a0": commits[0], "a2": commits[8], "a3": commits[12], "plain": 0}
    assert dict(found.values()) == decided
    assert sorted(commits) == [0, 8, 12, 19]


def test_uncommitted_records_have_no_decision(read: Read) -> None:
    assert {row["_commit"] for row in read("read_uncommitted").collect()} == {None}


def test_snapshot_of_an_earlier_position_leaves_out_what_was_decided_later(read: Read, warehouse: Warehouse) -> None:
    first = min(row["_commit"] for row in read().collect() if row["_commit"])

    assert {offset for _, offset in places(read(as_of=first).where("_commit > 0"))} == {0, 1, 2}


RANGES: dict[str, tuple[dict, set[Place]]] = {
    "whole files": (
        {"starting_offsets": {0: 8}, "ending_offsets": {1: 0}},
        {(0, o) for o in (8, 9, 10, 12, 13, 14, 19)},
    ),
    "inside of files": (
        {"starting_offsets": {0: 9, 1: 2}, "ending_offsets": {0: 13, 1: 9}},
        {(0, 9), (0, 10), (0, 12), (1, 2), (1, 8)},
    ),
    "both bounds in one file": ({"starting_offsets": {0: 9, 1: "latest"}, "ending_offsets": {0: 10}}, {(0, 9)}),
    "in a gap": ({"starting_offsets": {0: 3, 1: 5}, "ending_offsets": {0: 7, 1: 8}}, set()),
    "nothing of one partition": (
        {"starting_offsets": "earliest", "ending_offsets": {0: "earliest"}},
        {(p, o) for p, o in committed() if p == 1},
    ),
    "from the end": ({"starting_offsets": "latest"}, set()),
    "to the beginning": ({"ending_offsets": "earliest"}, set()),
    "words for all": ({"starting_offsets": "earliest", "ending_offsets": "latest"}, committed()),
}


@pytest.mark.parametrize("name", RANGES)
def test_bounds_leave_exactly_the_offsets_between_them(read: Read, name: str) -> None:
    options, expected = RANGES[name]

    assert places(read(**options)) == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"starting_offsets": {0: 21}}, OffsetOutOfRangeError),
        ({"starting_offsets": {3: 0}}, UnknownTopicOrPartitionError),
        ({"ending_offsets": {3: "latest"}}, UnknownTopicOrPartitionError),
        ({"ending_offsets": {0: "last"}}, InvalidRequestError),
        ({"level": "read_committed", "starting_offsets": {0: OPEN_FROM[0] + 1}}, OffsetOutOfRangeError),
        ({"level": "read_committed", "as_of": 3}, InvalidRequestError),
        ({"level": "serializable"}, InvalidRequestError),
        ({"as_of": 1_000}, OffsetOutOfRangeError),
    ],
)
def test_read_is_refused_when_it_asks_for_what_can_not_be_read(read: Read, options: dict, expected: type) -> None:
    with pytest.raises(Exception) as refused:  # noqa: PT011  Spark wraps what is raised beside the driver
        read(**options)

    assert isinstance(refused.value, expected) or f"{expected.__name__}: " in str(refused.value)


FILES: dict[str, tuple[dict, str, int]] = {
    "everything": ({}, "true", 7),
    "a partition": ({}, "_partition = 0", 4),
    "what was decided": ({}, "_commit = 0", 1),
    "a column's statistics": ({}, "amount = 2", 2),
    "a time": ({}, "_timestamp > TIMESTAMP '2100-01-01'", 0),
    "whole files by offset": ({"starting_offsets": {0: 8}, "ending_offsets": {1: 4}}, "true", 4),
    "a bound inside of a file": ({"starting_offsets": {0: 13}, "ending_offsets": {1: 2}}, "true", 3),
    "below the last stable offset": ({"isolation_level": "read_committed"}, "true", 6),
    "appended data": ({"isolation_level": "read_uncommitted"}, "true", 11),
    # Sums of two columns are in no statistics: a predicate on the offset of a record finds the records only.
    "an offset": ({}, "_offset = 0", 7),
}


@pytest.mark.usefixtures("by_log")
@pytest.mark.parametrize("name", FILES)
def test_files_are_left_out_by_bounds_and_predicates(spark: Any, warehouse: Warehouse, name: str) -> None:
    options, predicate, files = FILES[name]

    found = warehouse.read(spark, "t", **options).where(predicate)

    assert len(found.inputFiles()) == files


# Statistics of columns leave out row groups there, when a file is open.
LISTED = FILES | {"a column's statistics": ({}, "amount = 2", 7), "a time": (*FILES["a time"][:2], 7)}


@pytest.mark.parametrize("name", LISTED)
def test_listed_files_are_left_out_by_bounds_and_partitions(spark: Any, warehouse: Warehouse, name: str) -> None:
    options, predicate, files = LISTED[name]

    found = warehouse.read(spark, "t", **options).where(predicate)

    assert opened_files(found) == files
    assert places(found) <= appended()


def opened_files(frame: Any) -> int:
    """Return how many files Spark chose to open."""
    (scan,) = list_of(frame._jdf.queryExecution().sparkPlan().collectLeaves())
    return scan.selectedPartitions().totalNumberOfFiles()


def list_of(sequence: Any) -> list[Any]:
    return [sequence.apply(index) for index in range(sequence.size())]


def test_few_segments_are_read_by_one_job(spark: Any, warehouse: Warehouse, request: Any) -> None:
    found = warehouse.read(spark, "t").where("amount = 2")
    spark.sparkContext.setJobGroup(request.node.name, "a test")
    try:
        rows = found.collect()
        jobs = spark.sparkContext.statusTracker().getJobIdsForGroup(request.node.name)
    finally:
        spark.sparkContext.setJobGroup("", "")

    assert (len(rows), len(jobs)) == (6, 1)


def test_read_stays_as_it_was_when_more_is_committed(spark: Any, read: Read, warehouse: Warehouse) -> None:
    frames = {level: read(level) for level in ("snapshot", "read_committed", "read_uncommitted")}
    before = {level: places(frame) for level, frame in frames.items()}

    with warehouse.producer() as plain:
        plain.send("t", row={"account": "later", "amount": 7}, partition=2)

    assert {level: places(frame) for level, frame in frames.items()} == before
    assert any(partition == 2 for partition, _ in places(read()))


def test_stream_has_each_committed_record_once(spark: Any, warehouse: Warehouse, tmp_path: Any) -> None:
    frame = warehouse.read_stream(spark, "t")
    query = frame.writeStream.format("memory").queryName("streamed").option("checkpointLocation", str(tmp_path))

    query.trigger(availableNow=True).start().awaitTermination()

    assert frame.columns == COLUMNS
    assert sorted(places(spark.table("streamed"))) == sorted(
        (row["_partition"], row["_offset"]) for row in published(warehouse, "t")
    )


EVERY_TYPE: dict[str, tuple[pa.DataType, object]] = {
    "flag": (pa.bool_(), True),
    "tiny": (pa.int8(), 1),
    "small": (pa.int16(), 2),
    "number": (pa.int32(), 3),
    "ratio": (pa.float32(), 0.5),
    "measure": (pa.float64(), 0.25),
    "raw": (pa.binary(), b"b"),
    "day": (pa.date32(), dt.date(2013, 1, 1)),
    "at": (pa.timestamp("us", tz="UTC"), dt.datetime(2013, 1, 1, tzinfo=dt.UTC)),
    "local": (pa.timestamp("us"), dt.datetime(2013, 1, 1)),  # noqa: DTZ001  it has no zone
    "price": (pa.decimal128(9, 2), Decimal("1.50")),
    "stops": (pa.list_(pa.struct([pa.field("name", pa.string())])), [{"name": "JFK"}]),
    "extra": (pa.map_(pa.string(), pa.int64()), {"a": 1}),
}


def test_every_type_is_read_alike_by_all_ways(
    spark: Any, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = pa.schema([pa.field(name, kind) for name, (kind, _) in EVERY_TYPE.items()])
    warehouse.admin().create_topic("typed", schema=schema)
    with warehouse.producer() as plain:
        plain.send("typed", row={name: value for name, (_, value) in EVERY_TYPE.items()})
        plain.send("typed", row={})

    listed = warehouse.read(spark, "typed")
    monkeypatch.setattr(listed_segments, "MOST_SEGMENTS", -1)
    by_delta = warehouse.read(spark, "typed")
    by_format = spark.read.format("txntable").options(warehouse=warehouse.url, topic="typed").load()

    assert by_format.schema == by_delta.schema == listed.schema
    rows = by_delta.orderBy("_offset").collect()
    assert by_format.orderBy("_offset").collect() == rows == listed.orderBy("_offset").collect()
    assert by_format.count() == 2


def test_predicates_on_places_are_answered_by_our_own_planner(spark: Any, warehouse: Warehouse) -> None:
    options = {"warehouse": warehouse.url, "topic": "t"}

    found = spark.read.format("txntable").options(**options).load().where("_partition = 0 AND _offset > 9")

    assert places(found) == {(0, 10), (0, 12), (0, 13), (0, 14), (0, 19)}


@pytest.mark.parametrize(
    ("url", "expected"),
    [("s3://bucket/wh", "s3a://bucket/wh"), ("s3a://bucket/wh", "s3a://bucket/wh"), ("/data/wh", "/data/wh")],
)
def test_a_stores_url_is_told_to_spark_in_its_own_words(url: str, expected: str) -> None:
    assert spark_url(url) == expected
