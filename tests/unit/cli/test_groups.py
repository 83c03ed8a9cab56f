"""``txntable groups``: what it tells of groups, how it resets and deletes their offsets, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.admin.group_members import joined
from tests.unit.cli.conftest import Call
from txntable.format.records import TopicPartition
from txntable.offsets.group_commit import OffsetAndMetadata
from txntable.warehouse.warehouse import Warehouse

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)


def answer(call: Call, *arguments: str, exit_code: int = 0) -> Any:
    """The JSON that a command prints."""
    result = call("groups", *arguments, "--output", "json")
    assert result.exit_code == exit_code, result.stderr
    return json.loads(result.stdout)


@pytest.fixture
def orders(warehouse: Warehouse) -> Warehouse:
    """A topic with five records in each of two partitions; a group has read two of the first."""
    warehouse.admin().create_topic("orders", partitions=2)
    with warehouse.producer() as producer:
        for number in range(5):
            for partition in (0, 1):
                producer.send("orders", b"paid", partition=partition, timestamp_ms=1_000 * number)
    warehouse.admin().alter_consumer_group_offsets("g", {A: OffsetAndMetadata(2, "note")})
    return warehouse


def committed(warehouse: Warehouse, group: str = "g") -> dict[int, int]:
    found = warehouse.admin().list_consumer_group_offsets(group)
    return {partition.partition: one.offset for partition, one in found.items() if one is not None}


# -- list and describe --------------------------------------------------------------------------


def test_list_tells_the_state_of_each_group_and_filters_by_it(call: Call, orders: Warehouse) -> None:
    joined(orders, group="h", topic="orders")

    assert answer(call, "list") == [{"group": "g", "state": "EMPTY"}, {"group": "h", "state": "STABLE"}]
    assert answer(call, "list", "--state", "stable") == [{"group": "h", "state": "STABLE"}]


def test_list_refuses_a_state_that_there_is_not(call: Call, orders: Warehouse) -> None:
    result = call("groups", "list", "--state", "sleeping")

    assert result.exit_code == 1
    assert result.stderr.startswith("error: INVALID_REQUEST")


def test_describe_prints_kafkas_columns(call: Call, orders: Warehouse) -> None:
    result = call("groups", "describe", "--group", "g")

    assert result.exit_code == 0
    headers = result.stdout.splitlines()[0].split()
    assert ",".join(headers) == "GROUP,TOPIC,PARTITION,CURRENT-OFFSET,LOG-END-OFFSET,LAG,CONSUMER-ID,HOST,CLIENT-ID"


def test_describe_shows_that_a_group_stands_beyond_the_end(call: Call, orders: Warehouse) -> None:
    orders.admin().alter_consumer_group_offsets("g", {TopicPartition("orders", 0): 7})

    row, _ = answer(call, "describe", "--group", "g")

    assert (row["current_offset"], row["log_end_offset"], row["lag"]) == (7, 5, -2)


def test_describe_counts_lag_to_where_committed_reading_ends(call: Call, orders: Warehouse) -> None:
    producer = orders.producer("open")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("orders", b"open", partition=0)
    producer.flush()

    row, other = answer(call, "describe", "--group", "g", "--offsets", "--verbose")

    assert (other["partition"], other["current_offset"], other["log_end_offset"], other["lag"]) == (1, None, 5, None)
    assert (row["current_offset"], row["log_end_offset"], row["lag"]) == (2, 5, 3)
    assert (row["consumer_id"], row["metadata"]) == (None, "note")


def test_describe_names_the_owner_of_each_partition_and_members_that_have_none(call: Call, orders: Warehouse) -> None:
    for member in ("a", "b", "c"):
        joined(orders, member, topic="orders")

    rows = answer(call, "describe", "--all-groups")

    assert [(row["partition"], row["current_offset"], row["lag"], row["client_id"]) for row in rows] == [
        (0, 2, 3, "client-a"),
        (1, None, None, "client-a"),
        (None, None, None, "client-b"),
        (None, None, None, "client-c"),
    ]


def test_describe_says_that_there_are_no_members(call: Call, orders: Warehouse) -> None:
    orders.admin().alter_consumer_group_offsets("g", {TopicPartition("orders", 0): 1})

    assert "there are no members" in call("groups", "describe", "--group", "g", "--members").stdout


def test_describe_tells_members_and_with_verbose_what_they_are_to_have(call: Call, orders: Warehouse) -> None:
    joined(orders, "a", topic="orders")
    joined(orders, "b", topic="orders")

    (first, _) = answer(call, "describe", "--group", "g", "--members")
    (_, second) = answer(call, "describe", "--group", "g", "--members", "--verbose")

    assert (first["consumer_id"], first["host"], first["partitions"]) == ("a", "here", 2)
    assert first["heartbeat_age_ms"] >= 0
    assert "target_assignment" not in first
    assert (second["current_assignment"], second["target_assignment"]) == ([], ["orders-1"])
    assert (second["current_epoch"], second["session_timeout_ms"]) == (2, 45_000)


def test_describe_tells_the_state(call: Call, orders: Warehouse) -> None:
    joined(orders, topic="orders")

    assert answer(call, "describe", "--group", "g", "--state") == [
        {"group": "g", "assignment_strategy": "range", "state": "STABLE", "group_epoch": 1, "members": 1}
    ]


def test_describe_passes_over_what_a_member_owns_of_a_deleted_topic(call: Call, orders: Warehouse) -> None:
    joined(orders, topic="orders")
    orders.admin().delete_topic("orders")

    assert answer(call, "describe", "--group", "g") == []


@pytest.mark.parametrize(
    ("arguments", "exit_code"),
    [
        (("describe",), 2),
        (("describe", "--group", "g", "--all-groups"), 2),
        (("describe", "--group", "g", "--state", "--members"), 2),
        (("describe", "--group", "nobody"), 1),
        (("delete",), 2),
        (("delete", "--group", "nobody"), 1),
        (("delete-offsets", "--group", "g"), 2),
        (("delete-offsets", "--group", "g", "--topic", "nowhere"), 1),
        (("reset-offsets", "--group", "g", "--all-topics"), 2),
        (("reset-offsets", "--group", "g", "--all-topics", "--to-latest", "--to-earliest"), 2),
        (("reset-offsets", "--group", "g", "--to-latest"), 2),
        (("reset-offsets", "--group", "g", "--to-latest", "--all-topics", "--topic", "orders"), 2),
        (("reset-offsets", "--group", "g", "--to-latest", "--all-topics", "--dry-run", "--execute"), 2),
        (("reset-offsets", "--group", "g", "--to-latest", "--topic", "orders:a"), 2),
        (("reset-offsets", "--group", "g", "--to-latest", "--topic", "orders:7"), 1),
        (("reset-offsets", "--group", "g", "--to-datetime", "yesterday", "--all-topics"), 2),
        (("reset-offsets", "--group", "g", "--by-duration", "P", "--all-topics"), 2),
        (("reset-offsets", "--group", "g", "--by-duration", "1h", "--all-topics"), 2),
        (("reset-offsets", "--group", "g", "--from-file", "nowhere.csv"), 1),
        (("reset-offsets", "--group", "g", "--shift-by", "1", "--topic", "orders"), 1),
    ],
)
def test_wrong_call_is_told_by_its_exit_code(
    call: Call, orders: Warehouse, arguments: tuple[str, ...], exit_code: int
) -> None:
    result = call("groups", *arguments)

    assert result.exit_code == exit_code, result.stderr
    assert committed(orders) == {0: 2}


# -- reset --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "remedy"),
    [
        (("--to-datetime", "yesterday"), "give a time in ISO 8601, as 2026-11-20T12:00:00.000Z"),
        (("--by-duration", "1h"), "give a duration in ISO 8601, as P1DT2H30M"),
    ],
)
def test_reset_to_what_is_no_time_says_only_what_to_give(
    call: Call, orders: Warehouse, target: tuple[str, str], remedy: str
) -> None:
    result = call("groups", "reset-offsets", "--group", "nobody", "--topic", "orders", *target)

    assert remedy in " ".join(result.stderr.split())
    assert "no such group" not in result.stderr


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (("--to-earliest",), (0, 0)),
        (("--to-latest",), (5, 5)),
        (("--to-current",), (2, 5)),
        (("--to-offset", "3"), (3, 3)),
        (("--to-datetime", "1970-01-01T00:00:02.500"), (3, 3)),
        (("--to-datetime", "1970-01-01T02:00:01+02:00"), (1, 1)),
        (("--to-datetime", "2020-01-01T00:00:00Z"), (5, 5)),
        (("--by-duration", "PT1H"), (5, 5)),
        (("--by-duration", "P100000DT1H2M3.5S"), (0, 0)),
    ],
)
def test_reset_moves_to_its_target(
    call: Call, orders: Warehouse, target: tuple[str, ...], expected: tuple[int, int]
) -> None:
    rows = answer(call, "reset-offsets", "--group", "g", "--topic", "orders", *target, "--execute")

    assert [(row["topic"], row["partition"], row["new_offset"], row["executed"]) for row in rows] == [
        ("orders", 0, expected[0], True),
        ("orders", 1, expected[1], True),
    ]
    assert committed(orders) == {0: expected[0], 1: expected[1]}


def test_reset_asks_for_one_of_dry_run_and_execute_when_both_are_said(call: Call) -> None:
    result = call("groups", "reset-offsets", "--group", "g", "--to-latest", "--all-topics", "--dry-run", "--execute")

    assert "give one of --dry-run and --execute" in result.stderr


def test_reset_is_a_dry_run_unless_told_otherwise(call: Call, orders: Warehouse) -> None:
    for options in ((), ("--dry-run",)):
        (row, _) = answer(call, "reset-offsets", "--group", "g", "--topic", "orders", "--to-latest", *options)

        assert (row["new_offset"], row["executed"]) == (5, False)
        assert committed(orders) == {0: 2}


@pytest.mark.parametrize(("by", "expected"), [("1", 3), ("-1", 1), ("100", 5), ("-100", 0)])
def test_shift_stays_in_range_and_warns_of_it(call: Call, orders: Warehouse, by: str, expected: int) -> None:
    result = call("groups", "reset-offsets", "--group", "g", "--all-topics", "--topic", "orders:0", "--shift-by", by)
    assert result.exit_code == 2

    result = call("groups", "reset-offsets", "--group", "g", "--topic", "orders:0", "--shift-by", by, "--execute")

    assert result.exit_code == 0
    assert committed(orders) == {0: expected}
    assert ("out of range" in result.stderr) == (abs(int(by)) == 100)


def test_all_topics_are_those_with_offsets_and_all_their_partitions(call: Call, orders: Warehouse) -> None:
    orders.admin().create_topic("others")

    rows = answer(call, "reset-offsets", "--group", "g", "--all-topics", "--to-earliest")

    assert [(row["topic"], row["partition"]) for row in rows] == [("orders", 0), ("orders", 1)]


def test_exported_plan_is_read_from_its_file(call: Call, orders: Warehouse, tmp_path: Path) -> None:
    exported = call("groups", "reset-offsets", "--group", "g", "--topic", "orders", "--to-offset", "4", "--export")
    assert exported.stdout == "orders,0,4\norders,1,4\n"
    file = tmp_path / "plan.csv"
    file.write_text(exported.stdout.replace("1,4", "1,400"))

    result = call("groups", "reset-offsets", "--group", "g", "--from-file", str(file), "--execute")

    assert result.exit_code == 0
    assert "wanted=400 new_offset=5" in result.stderr
    assert committed(orders) == {0: 4, 1: 5}


def test_reset_makes_a_group_that_there_is_not(call: Call, orders: Warehouse) -> None:
    answer(call, "reset-offsets", "--group", "new", "--topic", "orders:1", "--to-offset", "1", "--execute")

    assert committed(orders, "new") == {1: 1}


@pytest.mark.parametrize("options", [(), ("--execute",)])
def test_reset_of_a_group_with_members_is_refused(call: Call, orders: Warehouse, options: tuple[str, ...]) -> None:
    joined(orders, topic="orders")

    result = call("groups", "reset-offsets", "--group", "g", "--topic", "orders", "--to-latest", *options)

    assert result.exit_code == 1
    assert result.stderr.startswith("error: NON_EMPTY_GROUP")
    assert "or wait for their session timeout where they have ended" in result.stderr
    assert committed(orders) == {0: 2}


# -- delete -------------------------------------------------------------------------------------


def test_deletion_is_a_dry_run_until_execute(call: Call, orders: Warehouse) -> None:
    (row,) = answer(call, "delete", "--group", "g")
    assert row == {"group": "g", "state": "EMPTY", "offsets": 1, "executed": False, "error": None}
    assert committed(orders) == {0: 2}

    (row,) = answer(call, "delete", "--group", "g", "--execute")

    assert row["executed"]
    assert orders.admin().list_consumer_groups() == []


@pytest.mark.parametrize("options", [(), ("--execute",)])
def test_deletion_tells_which_groups_have_members_and_fails(
    call: Call, orders: Warehouse, options: tuple[str, ...]
) -> None:
    joined(orders, group="h", topic="orders")

    rows = answer(call, "delete", "--group", "h", "--group", "g", *options, exit_code=1)

    assert [(row["group"], row["error"]) for row in rows] == [("h", "NON_EMPTY_GROUP"), ("g", None)]
    assert [one.group_id for one in orders.admin().list_consumer_groups()] == (["h"] if options else ["g", "h"])


def test_deletion_of_offsets_is_a_dry_run_until_execute(call: Call, orders: Warehouse) -> None:
    rows = answer(call, "delete-offsets", "--group", "g", "--topic", "orders")
    assert [(row["partition"], row["current_offset"], row["executed"]) for row in rows] == [
        (0, 2, False),
        (1, None, False),
    ]
    assert committed(orders) == {0: 2}

    answer(call, "delete-offsets", "--group", "g", "--topic", "orders:0", "--execute")

    assert committed(orders) == {}


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (("delete",), "error: NON_EMPTY_GROUP the group"),
        (("delete-offsets", "--topic", "orders"), "error: GROUP_SUBSCRIBED_TO_TOPIC a member of the group subscribes"),
    ],
)
@pytest.mark.parametrize("options", [(), ("--execute",)])
def test_deletion_that_is_refused_says_why_once(
    call: Call, orders: Warehouse, command: tuple[str, ...], told: str, options: tuple[str, ...]
) -> None:
    joined(orders, topic="orders")

    result = call("groups", *command, "--group", "g", *options)

    assert (result.exit_code, result.stderr.count(told)) == (1, 1)


@pytest.mark.parametrize("options", [(), ("--execute",)])
def test_deletion_of_offsets_of_a_subscribed_topic_fails(
    call: Call, orders: Warehouse, options: tuple[str, ...]
) -> None:
    joined(orders, topic="orders")

    (row,) = answer(call, "delete-offsets", "--group", "g", "--topic", "orders:0", *options, exit_code=1)

    assert (row["executed"], row["error"]) == (False, "GROUP_SUBSCRIBED_TO_TOPIC")
    assert committed(orders) == {0: 2}


def test_list_takes_states_as_kafkas_tool_does(call: Call, orders: Warehouse) -> None:
    orders.admin().alter_consumer_group_offsets("g", {TopicPartition("orders", 0): 0})

    assert answer(call, "list", "--state", "Stable,Empty") == [{"group": "g", "state": "EMPTY"}]
    assert answer(call, "list", "--state", "Stable, Reconciling") == []


def test_reset_says_that_there_is_no_such_group_and_which_one_may_have_been_meant(
    call: Call, orders: Warehouse
) -> None:
    orders.admin().alter_consumer_group_offsets("reports", {TopicPartition("orders", 0): 0})

    mistyped = call("groups", "reset-offsets", "--group", "report", "--topic", "orders", "--to-earliest")
    known = call("groups", "reset-offsets", "--group", "reports", "--topic", "orders", "--to-earliest")

    assert mistyped.exit_code == 0
    assert "no such group yet; what is reset makes it group=report (did you mean reports?)" in mistyped.stderr
    assert "warning" not in known.stderr


def test_reset_of_all_topics_of_a_group_without_offsets_says_so(call: Call, orders: Warehouse) -> None:
    result = call("groups", "reset-offsets", "--group", "nobody", "--all-topics", "--to-earliest")

    assert (result.exit_code, result.stdout) == (1, "")
    assert "GROUP_ID_NOT_FOUND" in result.stderr
