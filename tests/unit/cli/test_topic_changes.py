"""``txntable topics alter`` with settings, and ``topics delete-records``."""

from __future__ import annotations

import json

import pytest

from tests.unit.cli.conftest import Call
from txntable.format.records import TopicPartition
from txntable.warehouse.warehouse import Warehouse

TOPIC = "orders"


@pytest.fixture
def topic(warehouse: Warehouse) -> str:
    warehouse.admin().create_topic(TOPIC, partitions=2, config={"retention.ms": 3_600_000})
    with warehouse.producer() as producer:
        for number in range(5):
            producer.send(TOPIC, str(number).encode(), partition=0)
    return TOPIC


@pytest.fixture
def compacted(warehouse: Warehouse, topic: str) -> str:
    """A second topic, which is only compacted."""
    return warehouse.admin().create_topic("latest-only", config={"cleanup.policy": "compact"}).name


@pytest.mark.parametrize("execute", [False, True])
def test_alter_changes_settings_when_it_is_executed(
    call: Call, warehouse: Warehouse, topic: str, execute: bool
) -> None:
    result = call(
        "topics", "alter", topic, "--config", "segment.bytes=2097152", "--config", "cleanup.policy=compact,delete",
        "--delete-config", "retention.ms", "-o", "json", *(["--execute"] if execute else []),
    )  # fmt: skip

    rows = [(row["name"], row["value"], row["new_value"], row["executed"]) for row in json.loads(result.stdout)]
    assert rows == [
        ("cleanup.policy", "delete", "compact,delete", execute),
        ("retention.ms", "3600000", "-1", execute),
        ("segment.bytes", "134217728", "2097152", execute),
    ]
    described = json.loads(call("topics", "describe", topic, "-o", "json").stdout)["configs"]
    assert {each["name"]: each["value"] for each in described} == (
        {"cleanup.policy": "compact,delete", "segment.bytes": "2097152"} if execute else {"retention.ms": "3600000"}
    )


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (("--config", "retention.ms=1"), "transaction_max_timeout_ms"),
        (("--config", "retention.msec=1"), "did you mean retention.ms?"),
        (("--delete-config", "retention.msec"), "did you mean retention.ms?"),
    ],
)
@pytest.mark.parametrize("execute", [(), ("--execute",)])
def test_alter_fails_in_one_line_when_a_setting_is_refused(
    call: Call, topic: str, arguments: tuple[str, ...], names: str, execute: tuple[str, ...]
) -> None:
    result = call("topics", "alter", topic, *arguments, *execute)

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: INVALID_CONFIG")
    assert names in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--partitions", "3", "--config", "retention.ms=3600000"),
        ("--config", "retention.ms"),
        ("--config", "retention.ms=3600000", "--delete-config", "retention.ms"),
    ],
)
def test_alter_is_a_usage_error_when_it_says_nothing_or_too_much(
    call: Call, topic: str, arguments: tuple[str, ...]
) -> None:
    assert call("topics", "alter", topic, *arguments).exit_code == 2


@pytest.mark.parametrize(("execute", "latest"), [(False, "latest"), (True, "latest"), (True, "-1")])
def test_delete_records_raises_the_low_watermark_when_it_is_executed(
    call: Call, warehouse: Warehouse, topic: str, execute: bool, latest: str
) -> None:
    result = call(
        "topics", "delete-records", topic, "--offset", "0=3", "--offset", f"1={latest}", "-o", "json",
        *(["--execute"] if execute else []),
    )  # fmt: skip

    rows = [(row["partition"], row["low_watermark"], row["new_low_watermark"]) for row in json.loads(result.stdout)]
    assert rows == [(0, 0, 3), (1, 0, 0)]
    low = TopicPartition(topic, 0)
    (found,) = warehouse.admin().list_offsets({low: "earliest"}).values()
    assert found is not None
    assert found.offset == (3 if execute else 0)
    assert len(warehouse.read_arrow(topic).read_all()) == (2 if execute else 5)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((TOPIC, "--offset", "0=6"), "OFFSET_OUT_OF_RANGE"),
        ((TOPIC, "--offset", "2=1"), "UNKNOWN_TOPIC_OR_PARTITION"),
        (("nowhere", "--offset", "0=1"), "UNKNOWN_TOPIC_OR_PARTITION"),
        (("latest-only", "--offset", "0=0"), "POLICY_VIOLATION"),
    ],
)
@pytest.mark.parametrize("execute", [(), ("--execute",)])
def test_delete_records_fails_in_one_line_when_it_is_refused(
    call: Call, compacted: str, arguments: tuple[str, ...], code: str, execute: tuple[str, ...]
) -> None:
    result = call("topics", "delete-records", *arguments, *execute)

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"error: {code}")
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("offset", ["0", "0=", "0=-2", "a=1", "0=1.5", "0=earliest", "0=" + "9" * 5_000])
def test_delete_records_is_a_usage_error_when_an_offset_is_none(call: Call, topic: str, offset: str) -> None:
    result = call("topics", "delete-records", topic, "--offset", offset)

    assert result.exit_code == 2
    assert "give PARTITION=OFFSET" in result.stderr
