"""``txntable snapshot``, ``offsets``, ``topics describe --as-of``: what they print, and how they refuse."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pytest

from tests.unit.cli.conftest import Call
from txntable.warehouse.warehouse import Warehouse

SCHEMA = pa.schema([pa.field("x", pa.int64())])


@pytest.fixture
def topics(warehouse: Warehouse) -> None:
    """In `a-0` a committed record of 10 ms, an aborted of 20 ms and an open one; `b` is empty."""
    admin = warehouse.admin()
    admin.create_topic("a", partitions=2, schema=SCHEMA)
    admin.create_topic("b", schema=SCHEMA)
    producer = warehouse.producer("etl")
    producer.init_transactions()
    for time_ms, end in ((10, producer.commit_transaction), (20, producer.abort_transaction), (30, producer.flush)):
        producer.begin_transaction()
        producer.send("a", row={"x": 1}, partition=0, timestamp_ms=time_ms)
        producer.flush()
        end()


def make_older(warehouse: Warehouse) -> None:
    """Let what there is be of an hour ago: a file system tells milliseconds apart only now and then."""
    for entry in Path(warehouse.url).rglob("_delta_log/*"):
        written = entry.stat().st_mtime - 3_600
        os.utime(entry, (written, written))


def printed(call: Call, *arguments: str) -> dict | list:
    result = call(*arguments, "--output", "json")
    assert (result.exit_code, result.stderr) == (0, "")
    found: dict | list = json.loads(result.stdout)
    return found


def test_snapshot_tells_positions_and_each_topic(call: Call, warehouse: Warehouse, topics: None) -> None:
    head = warehouse.transactions.refresh()

    found = printed(call, "snapshot")

    assert isinstance(found, dict)
    assert found["snapshot"] == [{"position": head, "published_position": head, "head": head}]
    assert [(one["topic"], one["last_stable_offsets"], one["high_watermarks"]) for one in found["topics"]] == [
        ("a", 4, 5),
        ("b", 0, 0),
    ]
    assert found["topics"][0]["version"] == warehouse.topic_log("a").public.refresh().version


def test_snapshot_of_the_past_tells_of_a_topic_that_was_deleted_since(
    call: Call, warehouse: Warehouse, topics: None
) -> None:
    before = warehouse.snapshot().position
    make_older(warehouse)
    warehouse.admin().delete_topic("b")

    now, then = (printed(call, "snapshot", *arguments) for arguments in ((), ("--as-of", str(before))))

    assert isinstance(now, dict)
    assert isinstance(then, dict)
    assert [[one["topic"] for one in found["topics"]] for found in (now, then)] == [["a"], ["a", "b"]]


def test_snapshot_of_the_past_tells_its_versions(call: Call, topics: None) -> None:
    now, then = (printed(call, "snapshot", *arguments) for arguments in ((), ("--as-of", "1")))

    assert isinstance(now, dict)
    assert isinstance(then, dict)
    assert then["snapshot"][0]["position"] == 1
    assert then["topics"][0]["version"] < now["topics"][0]["version"]


def test_snapshot_prints_tables_for_people(call: Call, topics: None) -> None:
    result = call("snapshot")

    assert result.exit_code == 0
    for header in ("PublishedPosition", "MergedThrough", "HighWatermarks"):
        assert header in result.stdout


@pytest.mark.parametrize(
    ("moment", "code"),
    [("99999", "OFFSET_OUT_OF_RANGE"), ("2999-01-01T00:00:00Z", "OFFSET_OUT_OF_RANGE"), ("soon", "INVALID_REQUEST")],
)
def test_snapshot_refuses_a_moment_in_one_line(call: Call, topics: None, moment: str, code: str) -> None:
    result = call("snapshot", "--as-of", moment)

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"error: {code}")
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "offsets"),
    [
        ((), {("a", 0): (5, None), ("a", 1): (0, None), ("b", 0): (0, None)}),
        (("a", "--isolation-level", "read_committed"), {("a", 0): (4, None), ("a", 1): (0, None)}),
        (("b", "--time", "earliest"), {("b", 0): (0, None)}),
        (("b", "--time", "-2"), {("b", 0): (0, None)}),
        (("a", "--time", "-1"), {("a", 0): (5, None), ("a", 1): (0, None)}),
        (("a", "--time", "-3"), {("a", 0): (4, 30), ("a", 1): (None, None)}),
        (("a", "--time", "max-timestamp"), {("a", 0): (4, 30), ("a", 1): (None, None)}),
        (("a", "--time", "15"), {("a", 0): (2, 20), ("a", 1): (None, None)}),
        (
            ("a", "--time", "15", "--isolation-level", "read_committed"),
            {("a", 0): (None, None), ("a", 1): (None, None)},
        ),
    ],
)
def test_offsets_list_tells_an_offset_of_each_partition(
    call: Call, topics: None, arguments: tuple[str, ...], offsets: dict
) -> None:
    found = printed(call, "offsets", "list", *arguments)

    assert isinstance(found, list)
    assert {(one["topic"], one["partition"]): (one["offset"], one["timestamp_ms"]) for one in found} == offsets


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("nowhere",), "UNKNOWN_TOPIC_OR_PARTITION"),
        (("a", "--time", "newest"), "INVALID_REQUEST"),
        (("a", "--time", "-4"), "INVALID_REQUEST"),
        (("a", "--isolation-level", "snapshot"), "INVALID_REQUEST"),
    ],
)
def test_offsets_list_refuses_in_one_line(call: Call, topics: None, arguments: tuple[str, ...], code: str) -> None:
    result = call("offsets", "list", *arguments)

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"error: {code}")


def test_add_column_tells_the_topic_as_it_is_then(call: Call, warehouse: Warehouse, topics: None) -> None:
    found = printed(call, "topics", "add-column", "a", "y string", "z decimal(10,2)")

    assert isinstance(found, dict)
    assert found["columns"] == ["x long", "y string", "z decimal(10,2)"]
    assert warehouse.topic_log("a").settings().schema.names == ["x", "y", "z"]


def test_add_column_says_that_the_columns_are_there_when_they_are(call: Call, topics: None) -> None:
    first, second = (call("topics", "add-column", "a", "y string") for _ in range(2))

    assert (first.stderr, second.stderr) == ("", "the columns are there already, and nothing was changed\n")
    assert first.stdout == second.stdout


def test_add_column_adds_it_inside_of_a_struct(call: Call, warehouse: Warehouse) -> None:
    kind = pa.list_(pa.struct([("x", pa.int64())]))
    warehouse.admin().create_topic("n", schema=pa.schema([("l", kind)]))

    printed(call, "topics", "add-column", "n", "y string", "--inside", "l", "--inside", "element")

    grown = warehouse.topic_log("n").settings().schema.field("l").type.value_type
    assert [field.name for field in grown.fields] == ["x", "y"]


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (("a", "y string not null"), "column=y"),
        (("a", "y string", "--inside", "x"), "inside='x'"),
        (("a", "x string"), "column=x"),
        (("a", "t timestamp_ntz"), "columns=t"),
    ],
)
def test_add_column_refuses_in_one_line(call: Call, topics: None, arguments: tuple[str, ...], names: str) -> None:
    result = call("topics", "add-column", *arguments)

    assert (result.exit_code, result.stdout) == (1, "")
    assert names in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("names", [("orders",), ()])
def test_describe_as_of_an_earlier_position_tells_what_a_deleted_topic_was_made_with(
    call: Call, warehouse: Warehouse, names: tuple[str, ...]
) -> None:
    made = warehouse.admin().create_topic("orders", partitions=3, config={"retention.ms": "3600000"})
    with warehouse.producer("p") as producer:
        producer.init_transactions()
        with producer.transaction() as txn:
            txn.send("orders", b"paid")
    position = warehouse.snapshot().position
    make_older(warehouse)
    warehouse.admin().delete_topic("orders")
    warehouse.admin().create_topic("orders")

    result = call("topics", "describe", *names, "--as-of", str(position), "--output", "json")

    described = json.loads(result.stdout)
    assert described["topics"] == [{"topic": "orders", "topic_id": made.topic_id, "partition_count": 3, "key": ["key"]}]
    assert [each["column"] for each in described["columns"]] == ["key", "value", "headers"]
    assert [(each["name"], each["value"]) for each in described["configs"]] == [("retention.ms", "3600000")]


@pytest.mark.parametrize("moment", ["x", "99"])
def test_describe_as_of_what_is_no_position_of_the_past_is_refused(call: Call, topics: None, moment: str) -> None:
    result = call("topics", "describe", "a", "--as-of", moment)

    assert (result.exit_code, result.stdout) == (1, "")
    assert "a snapshot is" in result.stderr
