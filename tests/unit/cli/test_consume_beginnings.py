"""``txntable consume --group``: partitions of which nothing was printed keep their place, however it ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

from tests.unit.cli.conftest import Call
from tests.unit.cli.group_consuming import (
    TOPIC,
    committed,
    consume,
    consume_interrupted,
    interrupt_after,
    members,
    send,
)
from txntable.cli import consume_run
from txntable.format.records import TopicPartition
from txntable.warehouse.warehouse import Warehouse


@pytest.fixture(autouse=True)
def topic(warehouse: Warehouse) -> None:
    warehouse.admin().create_topic(TOPIC)


@pytest.fixture
def spread(warehouse: Warehouse) -> Warehouse:
    """Three partitions: records in the first and the last."""
    warehouse.admin().create_partitions({TOPIC: 3})
    send(warehouse, "a1", "a2", partition=0)
    send(warehouse, "c1", "c2", partition=2)
    return warehouse


FROM_THE_BEGINNING = ("--follow", "--from-beginning")


@pytest.mark.parametrize("polls", [0, 1, 2, 3])
@pytest.mark.parametrize("inside", [False, True])
def test_interruption_of_any_poll_leaves_a_group_that_goes_on_in_every_partition_where_printing_ended(
    call: Call, spread: Warehouse, monkeypatch: pytest.MonkeyPatch, polls: int, inside: bool
) -> None:
    monkeypatch.setattr(consume_run, "_POLL_RECORDS", 1)
    with monkeypatch.context() as during:
        interrupt_after(during, polls, inside=inside)
        printed = consume_interrupted(call, *FROM_THE_BEGINNING)

    joined = polls > 0 or inside
    assert committed(spread) == ({p: sum(line[0] == "abc"[p] for line in printed) for p in range(3)} if joined else {})
    # Without the option: what is not committed would be lost.
    later = consume(call, *(["--follow", "--timeout-ms", "0"] if joined else []))
    assert sorted(printed + later) == ["a1", "a2", "c1", "c2"]


def test_bound_on_the_records_commits_the_beginning_of_partitions_that_it_never_came_to(
    call: Call, spread: Warehouse
) -> None:
    assert consume(call, *FROM_THE_BEGINNING, "--max-messages", "1") == ["a1"]

    assert committed(spread) == {0: 1, 1: 0, 2: 0}


def test_beginnings_are_committed_before_anything_is_printed_so_that_a_kill_loses_nothing(
    call: Call, spread: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    written = consume_run.ConsumeRun._print

    def noting(run: consume_run.ConsumeRun, found: object, line: object) -> None:
        if found:
            seen.append(committed(spread))
        written(run, found, line)  # type: ignore[arg-type]

    monkeypatch.setattr(consume_run.ConsumeRun, "_print", noting)

    consume(call)

    assert seen[0] == {0: 0, 1: 0, 2: 0}


def test_description_shows_what_is_assigned_or_not_committed_as_such(call: Call, spread: Warehouse) -> None:
    spread.admin().alter_consumer_group_offsets("g", {TopicPartition(TOPIC, 0): 1})

    rows = json.loads(call("groups", "describe", "--group", "g", "--output", "json").stdout)

    assert [(row["partition"], row["current_offset"], row["log_end_offset"], row["lag"]) for row in rows] == [
        (0, 1, 2, 1),
        (1, None, 0, None),
        (2, None, 2, None),
    ]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("lines", [1, 400])
def test_process_that_a_signal_ends_leaves_nothing_to_be_missed_and_nothing_committed_that_nobody_saw(
    spread: Warehouse, number: signal.Signals, lines: int
) -> None:
    send(spread, *(f"b{each}" for each in range(1_200)), partition=1)
    code = "from txntable.jobs.command import main; main()"
    arguments = ["--warehouse", spread.url, "consume", TOPIC, "--group", "g", *FROM_THE_BEGINNING]

    process = subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    printed = [process.stdout.readline() for _ in range(lines)]
    process.send_signal(number)
    printed += process.stdout.readlines()
    told = process.stderr.read().decode()

    assert (process.wait(), told) == (128 + number, f"{'interrupted' if number == signal.SIGINT else 'terminated'}\n")
    process.stdout.close()
    process.stderr.close()
    found = committed(spread)
    assert found.keys() == {0, 1, 2}
    assert members(spread) == 0
    assert all(found[p] <= sum(line.startswith(b"abc"[p : p + 1]) for line in printed) for p in range(3))
