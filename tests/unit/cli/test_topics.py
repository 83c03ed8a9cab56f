"""``txntable topics``: what it prints for people and programs, and how it refuses."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from tests.unit.cli.conftest import Call
from txntable.errors import UnknownTopicOrPartitionError
from txntable.format.topic_config import TOPIC_CONFIG
from txntable.topics.topic_creation import NOTHING_TO_DELETE
from txntable.warehouse.warehouse import Warehouse

FLIGHTS = pa.schema([pa.field("carrier", pa.string(), nullable=False), pa.field("delay", pa.int32())])


@pytest.fixture
def topic(warehouse: Warehouse) -> str:
    warehouse.admin().create_topic(
        "flights", partitions=2, schema=FLIGHTS, key=["carrier"], config={"retention.ms": 3_600_000}
    )
    return "flights"


def test_create_makes_the_topic_that_the_options_say(call: Call, warehouse: Warehouse) -> None:
    result = call(
        "topics", "create", "flights", "--partitions", "3", "--column", "carrier string not null",
        "--column", "price decimal(10, 2)", "--key", "carrier", "--config", "retention.ms=3600000",
    )  # fmt: skip

    (topic,) = warehouse.admin().describe_topics()
    assert result.exit_code == 0
    assert topic.settings.schema == pa.schema(
        [pa.field("carrier", pa.string(), nullable=False), pa.field("price", pa.decimal128(10, 2))]
    )
    assert (topic.settings.partitions, topic.settings.key) == (3, ("carrier",))
    assert topic.settings.config == {"retention.ms": "3600000"}


def test_create_makes_kafkas_columns_without_options(call: Call, warehouse: Warehouse) -> None:
    result = call("topics", "create", "orders")

    assert result.exit_code == 0
    assert warehouse.admin().describe_topics()[0].settings.schema.names == ["key", "value", "headers"]


@pytest.mark.parametrize(
    ("arguments", "code", "names"),
    [
        (("flights",), "TOPIC_ALREADY_EXISTS", "flights"),
        (("new", "--column", "a money"), "INVALID_RECORD", "column=a found=money"),
        (("new", "--column", "a"), "INVALID_RECORD", "column='a'"),
        (("new", "--column", "a DECIMAL(40,2)"), "INVALID_RECORD", "a decimal has 1 to 38 digits (precision)"),
        (("new", "--column", "a NUMERIC(4,5)"), "INVALID_RECORD", "write DECIMAL(precision, scale)"),
        (("new", "--column", "a array<VARCHAR(10)>"), "INVALID_RECORD", "write STRING column=a found="),
        (("new", "--column", "a CHAR(3)"), "INVALID_RECORD", "write STRING column=a found="),
        (("new", "--column", "u STRUCT<name: MONEY>"), "INVALID_RECORD", "found=STRUCT<name: MONEY> known="),
        (("new", "--column", "u INTERVAL DAY not null"), "INVALID_RECORD", "found=INTERVAL DAY not null known="),
        (("new", "--column", "a string", "--key", "b"), "INVALID", "b"),
        (("new", "--config", "retention.msec=1"), "INVALID_CONFIG", "retention.msec"),
        (("a/b",), "INVALID_TOPIC_EXCEPTION", "a/b"),
        (("pay.*",), "INVALID_TOPIC_EXCEPTION", "there are no patterns here"),
        (("new", "--partitions", "0"), "INVALID_PARTITIONS", "0"),
        (("new", "--column", "a int", "--config", "cleanup.policy=compact"), "INVALID_CONFIG", "no key columns"),
    ],
)
def test_create_fails_in_one_line_when_it_is_refused(
    call: Call, topic: str, arguments: tuple[str, ...], code: str, names: str
) -> None:
    result = call("topics", "create", *arguments)

    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith(f"error: {code}")
    assert names in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_list_prints_an_array_when_json_is_asked_for(call: Call, warehouse: Warehouse, topic: str) -> None:
    result = call("topics", "list", "--output", "json")

    settings = warehouse.topic_log(topic).settings()
    assert json.loads(result.stdout) == [
        {
            "topic": "flights",
            "topic_id": settings.topic_id,
            "partition_count": 2,
            "key": ["carrier"],
            "segments": 0,
            "bytes": 0,
        }
    ]
    assert result.stderr == ""


def test_list_prints_a_table_with_kafkas_headers(call: Call, topic: str) -> None:
    result = call("topics", "list")

    header, row = (line.split() for line in result.stdout.splitlines() if "opic" in line or topic in line)
    assert header == ["Topic", "TopicId", "PartitionCount", "Key", "Segments", "Bytes"]
    assert (row[0], row[3]) == (topic, "carrier")


def test_list_prints_an_empty_array_when_there_is_no_topic(call: Call) -> None:
    assert json.loads(call("topics", "list", "-o", "json").stdout) == []


def test_describe_tells_offsets_columns_and_settings(call: Call, warehouse: Warehouse, topic: str) -> None:
    with warehouse.producer() as producer:
        producer.send(topic, rows=pa.table({"carrier": ["UA", "UA"], "delay": [1, None]}, schema=FLIGHTS))
        producer.flush()

    described = json.loads(call("topics", "describe", topic, "--output", "json").stdout)

    assert sum(partition["high_watermark"] for partition in described["partitions"]) == 2
    assert described["columns"][0] == {
        "topic": topic, "column": "carrier", "type": "string", "nullable": False, "key": True
    }  # fmt: skip
    assert described["configs"] == [
        {
            "topic": topic,
            "name": "retention.ms",
            "value": "3600000",
            "source": "DYNAMIC_TOPIC_CONFIG",
            "about": TOPIC_CONFIG["retention.ms"].about,
        }
    ]


def test_describe_tells_defaults_too_when_it_is_asked_for_all(call: Call, topic: str) -> None:
    result = call("topics", "describe", topic, "--all-configs", "--output", "json")

    configs = {each["name"]: each for each in json.loads(result.stdout)["configs"]}
    assert list(configs) == sorted(TOPIC_CONFIG)
    assert (configs["cleanup.policy"]["value"], configs["cleanup.policy"]["source"]) == ("delete", "DEFAULT_CONFIG")


def test_describe_fails_when_there_is_no_such_topic(call: Call) -> None:
    result = call("topics", "describe", "nowhere")

    assert result.exit_code == 1
    assert result.stderr.startswith("error: UNKNOWN_TOPIC_OR_PARTITION")
    assert "topic=nowhere" in result.stderr


@pytest.mark.parametrize("execute", [(), ("--execute",)])
def test_delete_of_a_topic_that_is_deleted_or_was_never_there_says_that_there_is_nothing_to_delete(
    call: Call, warehouse: Warehouse, topic: str, execute: tuple[str, ...]
) -> None:
    warehouse.admin().delete_topic(topic)

    for name in (topic, "nothing-like-it"):
        result = call("topics", "delete", name, *execute)

        assert result.exit_code == 1
        assert result.stderr == f"error: {UnknownTopicOrPartitionError.code} {NOTHING_TO_DELETE} topic={name}\n"


def test_delete_keeps_the_topic_until_it_is_executed(call: Call, warehouse: Warehouse, topic: str) -> None:
    dry = call("topics", "delete", topic, "--output", "json")
    kept = warehouse.admin().list_topics()
    executed = call("topics", "delete", topic, "--execute", "--output", "json")

    assert [json.loads(result.stdout)[0]["deleted"] for result in (dry, executed)] == [False, True]
    assert [result.stderr for result in (dry, executed)] == [
        "a dry run: nothing is changed; say --execute to do it\n",
        "",
    ]
    assert kept == [topic]
    assert warehouse.admin().list_topics() == []


@pytest.mark.parametrize("execute", [False, True])
def test_alter_gives_a_topic_more_partitions_when_it_is_executed(
    call: Call, warehouse: Warehouse, topic: str, execute: bool
) -> None:
    result = call("topics", "alter", topic, "--partitions", "5", "-o", "json", *(["--execute"] if execute else []))

    assert json.loads(result.stdout) == [
        {"topic": topic, "partition_count": 2, "new_partition_count": 5, "executed": execute}
    ]
    assert result.stderr.startswith("warning: keys map to other partitions")
    described = json.loads(call("topics", "describe", topic, "-o", "json").stdout)
    assert [each["partition"] for each in described["partitions"]] == list(range(5 if execute else 2))


def test_alter_does_not_speak_of_keys_where_there_are_none(call: Call, warehouse: Warehouse) -> None:
    warehouse.admin().create_topic("plain", schema=FLIGHTS)

    assert call("topics", "alter", "plain", "--partitions", "2", "--execute").stderr == ""


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("flights", "--partitions", "2"), "INVALID_PARTITIONS"),
        (("flights", "--partitions", "1"), "INVALID_PARTITIONS"),
        (("flights", "--partitions", "100001"), "INVALID_PARTITIONS"),
        (("nowhere", "--partitions", "3"), "UNKNOWN_TOPIC_OR_PARTITION"),
    ],
)
@pytest.mark.parametrize("execute", [(), ("--execute",)])
def test_alter_fails_in_one_line_when_it_is_refused(
    call: Call, topic: str, arguments: tuple[str, ...], code: str, execute: tuple[str, ...]
) -> None:
    result = call("topics", "alter", *arguments, *execute)

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"error: {code}")
    assert len(result.stderr.splitlines()) == 1
