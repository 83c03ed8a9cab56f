"""``txntable status``: what holds readers back, who waits, and the command that ends it."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from tests.simulation.site import Site
from tests.unit.admin.administering import lose_id, replace_row, row_of
from tests.unit.cli.conftest import Call
from txntable.admin.blocking_words import duration_text
from txntable.cli.connection import Connection
from txntable.cli.status import ending_command
from txntable.coordinator.open_epoch_status import OpenEpochStatus
from txntable.coordinator.transaction_state import TransactionState
from txntable.format.records import TopicPartition
from txntable.producer.producer import Producer
from txntable.warehouse.warehouse import Warehouse

ID = "orders-to-payments-of-the-european-market-" + "0" * 40


def transactions(call: Call, *topics: str) -> Any:
    """What the command says to programs."""
    result = call("status", *topics, "--output", "json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)["transactions"]


def open_transaction(warehouse: Warehouse, transactional_id: str = ID) -> Producer:
    """One record in orders-0 that is not decided."""
    producer = warehouse.producer(transactional_id=transactional_id, transaction_timeout_ms=50_000)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("orders", b"open", partition=0)
    producer.flush()
    return producer


def send(warehouse: Warehouse, partition: int, records: int) -> None:
    """Append committed records."""
    with warehouse.producer() as producer:
        for _ in range(records):
            producer.send("orders", b"paid", partition=partition)


@pytest.fixture
def orders(warehouse: Warehouse) -> Warehouse:
    warehouse.admin().create_topic("orders", partitions=2)
    return warehouse


def test_status_says_that_all_is_well_when_nothing_is_held_back(call: Call, orders: Warehouse) -> None:
    send(orders, 0, 3)

    result = call("status")

    assert (result.exit_code, result.stdout) == (0, "all is well: no transaction holds readers back in 1 topic\n")
    assert transactions(call) == []


def test_status_names_what_is_open_what_waits_and_which_groups_stand_there(call: Call, orders: Warehouse) -> None:
    admin = orders.admin()
    send(orders, 0, 4)
    open_transaction(orders)
    send(orders, 0, 3)
    send(orders, 1, 5)
    admin.alter_consumer_group_offsets("has read all", {TopicPartition("orders", 0): 4})
    admin.alter_consumer_group_offsets("is behind", {TopicPartition("orders", 0): 3})
    admin.alter_consumer_group_offsets("reads another", {TopicPartition("orders", 1): 5})

    (found,) = transactions(call)

    assert (found["transactional_id"], found["transaction_state"], found["status"]) == (ID, "ONGOING", "OPEN")
    assert found["transaction_timeout_ms"] == 50_000
    assert found["partitions"] == [
        {"topic": "orders", "partition": 0, "start_offset": 4, "committed_records": 3, "groups": ["has read all"]}
    ]
    assert found["command"] == f"txntable transactions abort {ID} --execute"


def test_status_counts_what_waits_behind_two_transactions_once_and_shows_both(call: Call, orders: Warehouse) -> None:
    open_transaction(orders, "first")
    send(orders, 0, 2)
    open_transaction(orders, "second")
    send(orders, 0, 3)

    shown = call("status").stdout

    assert "2 open transactions hold readers back\nin 1 partition, where 5 committed records and 0 groups" in shown
    assert [one["partitions"][0]["committed_records"] for one in transactions(call)] == [5, 3]


def test_status_never_breaks_an_id_that_is_wider_than_the_screen(call: Call, orders: Warehouse) -> None:
    open_transaction(orders)

    lines = call("status").stdout.splitlines()

    assert any(line.startswith(ID) for line in lines)
    assert f"    txntable transactions abort {ID} --execute" in lines
    assert not [line for line in lines if line != line.rstrip()]


def test_the_command_that_status_names_ends_the_transaction(call: Call, orders: Warehouse) -> None:
    open_transaction(orders)
    (found,) = transactions(call)

    ended = call(*shlex.split(found["command"])[1:])

    assert ended.exit_code == 0, ended.stderr
    assert transactions(call) == []


@pytest.mark.parametrize("transactional_id", ["-o", "two words", "$(rm)", "it's"])
def test_the_command_that_status_names_is_safe_in_a_shell(call: Call, orders: Warehouse, transactional_id: str) -> None:
    open_transaction(orders, transactional_id)
    (found,) = transactions(call)

    assert call(*shlex.split(found["command"])[1:]).exit_code == 0
    assert transactions(call) == []


def test_a_hanging_transaction_is_ended_by_its_place(call: Call, orders: Warehouse) -> None:
    open_transaction(orders)
    lose_id(orders, ID)

    (found,) = transactions(call)

    assert (found["transactional_id"], found["status"], found["transaction_timeout_ms"]) == (None, "PAST", None)
    assert found["command"].endswith("abort --topic orders --partition 0 --start-offset 0 --execute")
    assert "to end it once that finds nothing else:" in call("status").stdout
    assert call(*shlex.split(found["command"])[1:]).exit_code == 0
    assert transactions(call) == []


def test_a_prepared_transaction_waits_for_the_holder_of_its_token(call: Call, orders: Warehouse) -> None:
    open_transaction(orders)
    seen = row_of(orders, ID)
    replace_row(orders, seen.prepare_token("secret", None, seen.position + 1))

    (found,) = transactions(call)

    assert (found["transaction_state"], found["waits_for"]) == ("PREPARED", "the holder of its token")
    assert found["transaction_timeout_ms"] is None, "nothing ends it by itself"
    assert "secret" not in json.dumps(found)


def test_a_transaction_beyond_its_timeout_is_left_to_the_job(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site()
    warehouse = site.create()
    warehouse.admin().create_topic("orders")
    open_transaction(warehouse)
    monkeypatch.setattr(Connection, "open", lambda connection: site.open())
    (young,) = transactions(call)
    site.advance_ms(51_000)

    (late,) = transactions(call)

    assert young["waits_for"] == "its producer, or its timeout in 50s"
    assert late["transaction_duration_ms"] >= 51_000
    assert "its timeout has passed" in late["waits_for"]
    assert late["command"].endswith("transactions run --once")


def test_no_command_is_named_where_only_a_restore_helps(orders: Warehouse) -> None:
    open_transaction(orders)
    (found,) = orders.admin().find_blocking_transactions()
    lost = type(found)(None, 9, 9, OpenEpochStatus.AHEAD, None, 0, 0, None, found.partitions)

    assert ending_command(orders.url, lost) is None


def test_a_warehouse_that_the_environment_does_not_name_is_in_the_command(orders: Warehouse) -> None:
    open_transaction(orders)
    (found,) = orders.admin().find_blocking_transactions()

    assert found.state is TransactionState.ONGOING
    assert shlex.split(ending_command(orders.url, found) or "")[:3] == ["txntable", "--warehouse", orders.url]


def test_status_shows_only_the_topics_that_were_asked_for(call: Call, orders: Warehouse) -> None:
    orders.admin().create_topic("late")
    open_transaction(orders)

    assert transactions(call, "late") == []
    assert len(transactions(call, "late", "orders")) == 1


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(0, "0s"), (59_999, "59s"), (60_000, "1m00s"), (3_723_000, "1h02m"), (90_000_000, "1d01h")],
)
def test_duration_is_told_in_its_two_largest_units(milliseconds: int, text: str) -> None:
    assert duration_text(milliseconds) == text


def test_status_tells_which_group_waits_for_offsets_that_are_pending(call: Call, orders: Warehouse) -> None:
    producer = orders.producer(transactional_id="copies")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send_offsets_to_transaction({TopicPartition("orders", 1): 0}, "readers")

    result = call("status")

    assert result.stdout.splitlines()[:2] == [
        "1 open transaction holds readers back",
        "where 1 group waits for offsets",
    ]
    assert "  group readers: its offsets of orders-1 are pending, whoever begins to read there waits" in result.stdout
    assert "transactions abort copies --execute" in result.stdout
    (found,) = transactions(call)
    assert found["partitions"] == []
    assert found["pending_offsets"] == [{"group": "readers", "topic": "orders", "partition": 1}]
