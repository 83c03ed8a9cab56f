"""``txntable watch``: one snapshot a tick in a pipe; on a terminal in its place, until ``q`` or Ctrl-C."""

from __future__ import annotations

import io
import json
import os
import pty
import signal
import sys
from pathlib import Path

import pytest
from rich.console import Console

from tests.unit.cli.conftest import Call, until_the_other_side_ends
from txntable.cli.output import Rows
from txntable.cli.watch import Tick, rendered
from txntable.format.records import TopicPartition
from txntable.warehouse.warehouse import Warehouse

ID = "orders-to-payments-of-the-european-market"


@pytest.fixture
def orders(warehouse: Warehouse) -> Warehouse:
    """Four committed records, an open one behind them, and a group that has read one."""
    warehouse.admin().create_topic("orders", partitions=2)
    with warehouse.producer() as producer:
        for _ in range(4):
            producer.send("orders", b"paid", partition=0)
    producer = warehouse.producer(ID)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("orders", b"open", partition=0)
    producer.flush()
    warehouse.admin().alter_consumer_group_offsets("readers", {TopicPartition("orders", 0): 1})
    return warehouse


def test_each_tick_in_a_pipe_is_a_plain_snapshot_with_the_screen_ends_and_lags(call: Call, orders: Warehouse) -> None:
    result = call("watch", "--ticks", "2", "--interval-ms", "100")

    assert result.exit_code == 0
    assert result.stdout.count("1 open transaction holds readers back") == 2
    assert result.stdout.count(f"{ID} (producer") == 2
    lines = [line.split() for line in result.stdout.splitlines()]
    assert lines.count(["orders", "0", "0", "4", "5"]) == 2
    assert lines.count(["readers", "orders", "0", "1", "3"]) == 2
    assert "\x1b" not in result.stdout
    assert all(line == line.rstrip() for line in result.stdout.splitlines())


def test_each_tick_for_programs_is_a_json_value(call: Call, orders: Warehouse) -> None:
    result = call("watch", "--ticks", "1", "--output", "json", "orders")

    found = json.loads(result.stdout)
    assert [one["transactional_id"] for one in found["transactions"]] == [ID]
    assert found["partitions"][0] == {
        "topic": "orders",
        "partition": 0,
        "log_start_offset": 0,
        "last_stable_offset": 4,
        "high_watermark": 5,
    }
    assert [(one["group"], one["lag"]) for one in found["groups"]] == [("readers", 3)]


def test_warehouse_without_topics_and_groups_says_so(call: Call) -> None:
    result = call("watch", "--ticks", "1")

    assert "there are no topics\n" in result.stdout
    assert "no group has committed offsets\n" in result.stdout


def test_topic_that_is_none_is_an_error(call: Call, orders: Warehouse) -> None:
    result = call("watch", "--ticks", "1", "order")

    assert result.exit_code == 1
    assert "UNKNOWN_TOPIC_OR_PARTITION" in result.stderr


@pytest.mark.parametrize(("key", "code"), [(b"q", 0), (b"\x03", 128 + signal.SIGINT)], ids=["q", "Ctrl-C"])
def test_on_a_terminal_it_is_shown_in_its_place_until_a_key_ends_it(orders: Warehouse, key: bytes, code: int) -> None:
    command = [sys.executable, "-m", "txntable.jobs.command", "-w", orders.url, "watch", "--interval-ms", "60000"]
    child, terminal = pty.fork()
    if child == 0:
        size = {"COLUMNS": "80", "LINES": "40", "TERM": "xterm"}
        os.execve(sys.executable, command, {**os.environ, **size, "PYTHONPATH": str(Path(__file__).parents[3])})
    shown = b""
    while b"q ends" not in shown:
        shown += os.read(terminal, 4096)
    os.write(terminal, key)
    rest = until_the_other_side_ends(terminal)
    _, status = os.waitpid(child, 0)
    os.close(terminal)

    assert os.waitstatus_to_exitcode(status) == code
    assert ID.encode() in shown
    assert b"\x1b[?1049h" in shown
    assert b"\x1b[?1049l" in rest
    assert (b"interrupted" in rest) == (code != 0)


def a_tick(topics: int, groups: int) -> Tick:
    ends = Rows({"topic": "Topic", "partition": "Partition"}, [("t", number) for number in range(topics)])
    lags = Rows({"group": "GROUP", "lag": "LAG"}, [(f"g{number}", number) for number in range(groups)])
    return Tick(["now", ""], ends, lags, {})


@pytest.mark.parametrize(("topics", "groups"), [(1, 200), (200, 1), (200, 200), (0, 50)])
@pytest.mark.parametrize("height", [20, 40])
def test_what_does_not_fit_on_the_terminal_is_counted_and_who_is_furthest_behind_stays(
    height: int, topics: int, groups: int
) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=80, height=height)

    lines = [line.strip() for line in rendered(console, a_tick(topics, groups)).plain.splitlines()]

    assert len(lines) <= height
    assert lines[-1] == "q ends"
    shown = [line.split()[0] for line in lines if line.startswith(("t ", "g"))]
    left = [int(line.split()[1]) for line in lines if line.startswith("and ")]
    assert f"g{groups - 1}" in shown
    assert sum(left) + len(shown) == topics + groups


def test_what_fits_on_the_terminal_is_all_there() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=80, height=50)

    lines = [line.strip() for line in rendered(console, a_tick(5, 5)).plain.splitlines()]

    assert sum(line.startswith(("t ", "g")) for line in lines) == 10
    assert not any(line.startswith("and ") for line in lines)
