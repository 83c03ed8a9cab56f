"""``txntable transactions``: what it tells of transactional ids, and how it ends transactions."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from tests.simulation.site import Site
from tests.unit.admin.administering import lose_id, replace_row, row_of
from tests.unit.cli.conftest import Call
from txntable.admin.blocking_words import state_waits_for
from txntable.cli import transactions
from txntable.cli.connection import Connection
from txntable.coordinator.transaction_state import TransactionState
from txntable.format.records import TopicPartition
from txntable.producer.producer import Producer
from txntable.warehouse.warehouse import Warehouse


def answer(call: Call, *arguments: str) -> Any:
    """The JSON that a command prints."""
    result = call("transactions", *arguments, "--output", "json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def open_transaction(warehouse: Warehouse) -> Producer:
    """A producer with an open transaction: one record in orders-0."""
    warehouse.admin().create_topic("orders")
    producer = warehouse.producer(transactional_id="etl", transaction_timeout_ms=50_000)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("orders", b"paid")
    producer.flush()
    return producer


@pytest.fixture
def producer(warehouse: Warehouse) -> Producer:
    return open_transaction(warehouse)


# -- list ---------------------------------------------------------------------------------------


def test_list_tells_state_and_last_decision_of_each_id(call: Call, warehouse: Warehouse) -> None:
    warehouse.admin().create_topic("orders")
    producer = warehouse.producer(transactional_id="etl")
    producer.init_transactions()
    with producer.transaction(batch_id="2026-11-20"):
        producer.send("orders", b"paid", key=b"42")

    (row,) = answer(call, "list")

    assert (row["transactional_id"], row["transaction_state"]) == ("etl", "COMPLETE_COMMIT")
    assert (row["last_outcome"], row["last_batch_id"]) == ("COMMIT", "2026-11-20")
    assert row["producer_id"] == producer.producer_id
    assert row["producer_epoch"] == producer.producer_epoch
    assert (row["transaction_duration_ms"], row["held_back_records"]) == (None, None), "nothing is under way"


def test_list_and_describe_tell_for_how_long_and_what_is_held_back(
    call: Call, warehouse: Warehouse, producer: Producer
) -> None:
    with warehouse.producer() as other:
        other.send("orders", b"waits")
    warehouse.admin().alter_consumer_group_offsets("reports", {TopicPartition("orders", 0): 0})

    (row,) = answer(call, "list")
    described = answer(call, "describe", "etl")

    assert row["transaction_duration_ms"] >= 0
    assert (row["transaction_timeout_ms"], row["held_back_records"]) == (50_000, 1)
    assert (described["held_back_records"], described["held_back_groups"]) == (1, ["reports"])


def test_list_and_describe_still_tell_of_a_transaction_whose_topic_is_deleted(
    call: Call, warehouse: Warehouse, producer: Producer
) -> None:
    warehouse.admin().delete_topic("orders")

    assert [row["held_back_records"] for row in answer(call, "list")] == [None]
    assert answer(call, "describe", "etl")["held_back_partitions"] == []


@pytest.mark.usefixtures("producer")
def test_list_prints_kafkas_headers_before_ours(call: Call) -> None:
    result = call("transactions", "list")

    assert result.exit_code == 0
    assert result.stdout.split()[:4] == ["TransactionalId", "ProducerId", "TransactionState", "DurationMs"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("transactions", "list"), "no transactional id fits"),
        (("transactions", "find-hanging"), "nothing hangs"),
        (("transactions", "describe-producers", "orders", "--partition", "0"), "the partition remembers no producer"),
        (("groups", "list"), "there is no group"),
        (("offsets", "list"), "there are no topics"),
        (("topics", "list"), "there are no topics"),
    ],
)
def test_answer_without_rows_says_so(call: Call, arguments: tuple[str, ...], said: str) -> None:
    if "orders" in arguments:
        call("topics", "create", "orders")

    assert call(*arguments).stdout == said + "\n"
    assert json.loads(call(*arguments, "--output", "json").stdout) == []


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        ((), ["etl", "idle"]),
        (("--state", "Ongoing"), ["etl"]),
        (("--state", "EMPTY", "--state", "ONGOING"), ["etl", "idle"]),
        (("--producer-id", "1"), ["idle"]),
        (("--producer-id", "0", "--producer-id", "1"), ["etl", "idle"]),
        (("--duration-filter", "3600000"), []),
        (("--transactional-id-pattern", "i.*"), ["idle"]),
        (("--transactional-id-pattern", "i"), []),
    ],
)
def test_list_filters_by_every_option(
    call: Call, warehouse: Warehouse, producer: Producer, options: tuple[str, ...], ids: list[str]
) -> None:
    warehouse.producer(transactional_id="idle").init_transactions()

    assert [row["transactional_id"] for row in answer(call, "list", *options)] == ids


def test_list_shows_what_is_prepared_first(call: Call, warehouse: Warehouse, producer: Producer) -> None:
    seen = row_of(warehouse)
    prepared = seen.prepare_token("secret", None, seen.position + 1)
    replace_row(warehouse, replace(prepared, transactional_id="z", producer_id=77))

    assert [row["transactional_id"] for row in answer(call, "list")] == ["z", "etl"]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--state", "OPEN"), "INVALID_REQUEST"),
        (("--transactional-id-pattern", "a("), "INVALID_REGULAR_EXPRESSION"),
        (("--producer-id", "-3"), "INVALID_REQUEST"),
    ],
)
def test_list_fails_in_one_line_when_a_filter_is_refused(call: Call, options: tuple[str, ...], code: str) -> None:
    result = call("transactions", "list", *options)

    assert result.exit_code == 1
    assert result.stderr.startswith(f"error: {code}")
    assert len(result.stderr.splitlines()) == 1


# -- describe -----------------------------------------------------------------------------------


def test_describe_names_the_partitions_of_an_open_transaction(call: Call, producer: Producer) -> None:
    described = answer(call, "describe", "etl")

    assert described["transaction_state"] == "ONGOING"
    assert described["transaction_timeout_ms"] == 50_000
    assert described["topic_partitions"] == ["orders-0"]
    assert described["current_transaction_start_time_ms"] > 0
    assert described["transaction_duration_ms"] >= 0
    assert re.fullmatch(r"its producer, or its timeout in \d+s", described["waits_for"])
    assert (described["held_back_partitions"], described["held_back_records"]) == (["orders-0"], 0)
    assert (described["token"], described["last_outcome"], described["coordinator_epoch"]) == (None, None, 0)


def test_describe_says_as_status_does_when_the_timeout_has_passed(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site()
    open_transaction(site.create())
    site.advance_ms(51_000)
    monkeypatch.setattr(Connection, "open", lambda connection: site.open())

    described = answer(call, "describe", "etl")
    (blocking,) = json.loads(call("status", "--output", "json").stdout)["transactions"]

    assert described["waits_for"] == blocking["waits_for"]
    assert "its timeout has passed" in described["waits_for"]


def test_describe_tells_people_since_when_and_for_how_long_a_transaction_is_open(
    call: Call, producer: Producer
) -> None:
    facts = dict(line.split(None, 1) for line in call("transactions", "describe", "etl").stdout.splitlines())

    assert re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00 \(\d+\w+\)", facts["current_transaction_start_time"]
    )
    assert not {"current_transaction_start_time_ms", "transaction_duration_ms"} & facts.keys()


def test_describe_shows_the_token_of_what_is_prepared(call: Call, warehouse: Warehouse, producer: Producer) -> None:
    seen = row_of(warehouse)
    replace_row(warehouse, seen.prepare_token("secret", None, seen.position + 1))

    described = answer(call, "describe", "etl")

    assert (described["token"], described["waits_for"]) == ("secret", "the holder of its token")


def test_describe_says_what_every_state_under_way_waits_for() -> None:
    under_way = {state for state in TransactionState if state.is_open or state.is_decided}

    assert all(state_waits_for(state, None) for state in under_way)


def test_describe_fails_when_there_is_no_such_id(call: Call) -> None:
    result = call("transactions", "describe", "nobody")

    assert result.exit_code == 1
    assert result.stderr.startswith("error: TRANSACTIONAL_ID_NOT_FOUND")
    assert "transactional_id=nobody" in result.stderr


def test_describe_producers_prints_kafkas_columns(call: Call, producer: Producer) -> None:
    where = ("--topic", "orders", "--partition", "0")

    (row,) = answer(call, "describe-producers", *where)

    assert list(row) == list(transactions.PRODUCER_HEADERS)
    assert (row["producer_id"], row["producer_epoch"], row["last_sequence"]) == (producer.producer_id, 0, 0)
    assert (row["current_transaction_start_offset"], row["latest_coordinator_epoch"]) == (0, None)
    assert list(transactions.PRODUCER_HEADERS.values()) == [
        "ProducerId",
        "ProducerEpoch",
        "LatestCoordinatorEpoch",
        "LastSequence",
        "LastTimestamp",
        "CurrentTransactionStartOffset",
    ]


def test_describe_producers_fails_when_there_is_no_such_partition(call: Call, producer: Producer) -> None:
    result = call("transactions", "describe-producers", "--topic", "orders", "--partition", "9")

    assert result.exit_code == 1
    assert result.stderr.startswith("error: UNKNOWN_TOPIC_OR_PARTITION")


# -- find-hanging -------------------------------------------------------------------------------


def test_find_hanging_prints_kafkas_columns_and_whose_it_was(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site()
    warehouse = site.create()
    open_transaction(warehouse)
    lose_id(warehouse)
    monkeypatch.setattr(Connection, "open", lambda connection: site.open())
    site.advance_ms(3 * 60_000)

    young = answer(call, "find-hanging")
    (row,) = answer(call, "find-hanging", "--topic", "orders", "--max-transaction-timeout", "2")

    assert young == []
    assert row["duration_min"] == 3
    assert (row["topic"], row["partition"], row["producer_id"], row["producer_epoch"]) == ("orders", 0, 0, 0)
    assert (row["start_offset"], row["transactional_id"], row["status"]) == (0, None, "PAST")
    assert list(transactions.HANGING_HEADERS.values())[:8] == [
        "Topic",
        "Partition",
        "ProducerId",
        "ProducerEpoch",
        "CoordinatorEpoch",
        "StartOffset",
        "LastTimestamp",
        "Duration(min)",
    ]


# -- abort and fence ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "target",
    [
        ("etl",),
        ("--topic", "orders", "--partition", "0", "--start-offset", "0"),
        ("--topic", "orders", "--partition", "0", "--producer-id", "0", "--producer-epoch", "0"),
    ],
)
def test_abort_only_says_what_it_would_do_until_it_is_to_execute(
    call: Call, warehouse: Warehouse, producer: Producer, target: tuple[str, ...]
) -> None:
    position = warehouse.transactions.refresh()

    (planned,) = answer(call, "abort", *target)
    untouched = warehouse.transactions.refresh()
    (done,) = answer(call, "abort", *target, "--execute")

    assert untouched == position
    assert planned == {
        "transactional_id": "etl",
        "producer_id": 0,
        "producer_epoch": 0,
        "action": "abort",
        "executed": False,
    }
    assert done == {**planned, "executed": True}
    assert row_of(warehouse).state.value == "COMPLETE_ABORT"


def test_abort_ends_a_hanging_transaction_by_its_marker(call: Call, warehouse: Warehouse, producer: Producer) -> None:
    lose_id(warehouse)
    target = ("--topic", "orders", "--partition", "0", "--start-offset", "0")

    (done,) = answer(call, "abort", *target, "--execute")

    assert (done["transactional_id"], done["action"]) == (None, "write the missing marker")
    (partition,) = warehouse.admin().describe_topics(["orders"])[0].partitions
    assert partition.last_stable_offset == partition.high_watermark == 2


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("nobody",), "TRANSACTIONAL_ID_NOT_FOUND"),
        (("--topic", "nowhere", "--partition", "0", "--start-offset", "0"), "UNKNOWN_TOPIC_OR_PARTITION"),
        (("--topic", "orders", "--partition", "0", "--start-offset", "7"), "INVALID_TXN_STATE"),
    ],
)
def test_abort_fails_in_one_line_when_nothing_is_open(
    call: Call, producer: Producer, arguments: tuple[str, ...], code: str
) -> None:
    result = call("transactions", "abort", *arguments)

    assert result.exit_code == 1
    assert result.stderr.startswith(f"error: {code}")
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("abort",),
        ("abort", "etl", "--topic", "orders"),
        ("abort", "--topic", "orders", "--partition", "0"),
        ("abort", "--topic", "orders", "--partition", "0", "--producer-id", "1"),
        ("abort", "--topic", "orders", "--partition", "-1", "--start-offset", "0"),
        ("fence",),
        ("find-hanging", "--partition", "0"),
        ("find-hanging", "--max-transaction-timeout", "-1"),
        ("list", "--duration-filter", "-1"),
        ("describe",),
        ("describe-producers", "--topic", "orders"),
    ],
)
def test_usage_error_exits_with_2(call: Call, arguments: tuple[str, ...]) -> None:
    result = call("transactions", *arguments)

    assert (result.exit_code, result.stdout) == (2, "")


def test_fence_only_says_what_it_would_do_until_it_is_to_execute(
    call: Call, warehouse: Warehouse, producer: Producer
) -> None:
    planned = answer(call, "fence", "etl", "new")
    untouched = [row.transactional_id for row in warehouse.admin().list_transactions()]
    done = answer(call, "fence", "etl", "new", "--execute")

    assert untouched == ["etl"]
    assert [(row["producer_epoch"], row["action"], row["executed"]) for row in planned] == [
        (0, "abort, and raise the epoch", False),
        (None, "create the id", False),
    ]
    assert [(row["producer_epoch"], row["executed"]) for row in done] == [(2, True), (0, True)]
    assert row_of(warehouse).timeout_ms == 50_000


def test_fence_refuses_what_is_prepared_and_abort_warns_before(
    call: Call, warehouse: Warehouse, producer: Producer
) -> None:
    seen = row_of(warehouse)
    replace_row(warehouse, seen.prepare_token("secret", None, seen.position + 1))

    (planned,), (warned,) = answer(call, "fence", "etl"), answer(call, "abort", "etl")
    refused = call("transactions", "fence", "etl", "--execute")

    assert planned["action"].startswith("refuse")
    assert warned["action"] == "abort what is prepared: only where its database rolled back"
    assert refused.exit_code == 1
    assert refused.stderr.startswith("error: INVALID_TXN_STATE")


@pytest.mark.parametrize("arguments", [("list",), ("describe", "etl"), ("abort", "etl"), ("fence", "etl")])
def test_table_is_printed_for_people(call: Call, producer: Producer, arguments: tuple[str, ...]) -> None:
    result = call("transactions", *arguments)

    assert result.exit_code == 0
    assert "etl" in result.stdout
