"""What counts something is written in thousands for people wherever it is shown; JSON has numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Call
from txntable.format.records import TopicPartition
from txntable.warehouse.warehouse import Warehouse

RECORDS = 1_234


@pytest.fixture
def orders(warehouse: Warehouse) -> Warehouse:
    warehouse.admin().create_topic("orders")
    with warehouse.producer() as producer:
        for number in range(RECORDS):
            producer.send("orders", value=b"%d" % number)
    warehouse.admin().alter_consumer_group_offsets("g", {TopicPartition("orders", 0): 0})
    return warehouse


def test_bytes_of_a_topic_are_written_the_same_by_list_describe_and_delete(call: Call, orders: Warehouse) -> None:
    (topic,) = json.loads(call("topics", "list", "--output", "json").stdout)
    size = topic["bytes"]
    assert size > 1_000

    shown = [call("topics", *words).stdout for words in (["list"], ["describe"], ["delete", "orders"])]
    told = json.loads(call("topics", "delete", "orders", "--output", "json").stdout)

    assert all(f"{size:,}" in text for text in shown)
    assert not any(str(size) in text for text in shown)
    assert told[0]["bytes"] == size


def test_lag_is_written_the_same_by_groups_and_watch_and_offsets_as_they_are(call: Call, orders: Warehouse) -> None:
    described, watched = call("groups", "describe", "g").stdout, call("watch", "--ticks", "1").stdout

    for text in (described, watched):
        (line,) = (each for each in text.splitlines() if each.startswith("g "))
        assert "1,234" in line
    assert " 1234 " in described
    assert any(line.startswith("orders") and line.endswith(" 1234") for line in watched.splitlines())


def test_bytes_of_a_page_are_written_in_thousands(call: Call, orders: Warehouse, tmp_path: Path) -> None:
    page = tmp_path / "page.html"

    result = call("report", str(page))

    assert result.stdout.splitlines()[1].split() == ["bytes", f"{page.stat().st_size:,}"]
    assert json.loads(call("report", str(page), "--output", "json").stdout)["bytes"] == page.stat().st_size
