"""``txntable transactions run``: what it answers, and what ends it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Call
from txntable.cli import coordinator_run
from txntable.errors import StoreUnavailableError
from txntable.format.layout import commit_path, public_root
from txntable.producer.producer import Producer
from txntable.topics.topic_log import TopicLog
from txntable.upkeep.coordinator_round import CoordinatorReport
from txntable.upkeep.transaction_coordinator import TransactionCoordinator
from txntable.warehouse.warehouse import Warehouse


def lose_public_table(warehouse: Warehouse) -> None:
    """Leave the job something to do: a public table that was never projected."""
    warehouse.admin().create_topic("orders")
    warehouse.store.delete([commit_path(public_root("orders"), 0)])


def unavailable(*_: object) -> None:
    raise StoreUnavailableError("the store does not answer")


def test_once_prints_what_was_done(call: Call, warehouse: Warehouse) -> None:
    lose_public_table(warehouse)

    result = call("transactions", "run", "--once", "--output", "json")

    assert result.exit_code == 0
    report = json.loads(result.stdout)
    assert list(report) == [field.name for field in fields(CoordinatorReport)]
    assert {name: value for name, value in report.items() if value} == {"coordinator_epoch": 1, "published_topics": 1}
    assert "published_topics           0" in call("transactions", "run", "--once").stdout


def test_once_fails_when_something_was_left_undone(call: Call, warehouse: Warehouse) -> None:
    lose_public_table(warehouse)
    warehouse.store.put(commit_path(public_root("orders"), 0), b"{}")

    result = call("transactions", "run", "--once", "--output", "json")

    assert result.exit_code == 1
    assert json.loads(result.stdout)["failures"] > 0


def with_a_record_for(topic: str, warehouse: Warehouse) -> Producer:
    """A producer whose transaction is open, with a record that it has not uploaded."""
    warehouse.admin().create_topic(topic)
    producer = warehouse.producer("etl")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic, b"x")
    return producer


def lose(topic: str, warehouse: Warehouse) -> None:
    shutil.rmtree(Path(warehouse.url.removeprefix("file://")) / "topics" / topic)


def test_once_completes_without_a_topic_that_is_given_up(
    call: Call, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    producer = with_a_record_for("orders", warehouse)
    with monkeypatch.context() as patched:
        patched.setattr(TopicLog, "write_markers", unavailable)
        producer.commit_transaction()
    lose("orders", warehouse)

    lost = call("transactions", "run", "--once")
    given_up, again = (call("transactions", "run", "--once", "--give-up", "orders") for _ in range(2))

    assert (lost.exit_code, given_up.exit_code, again.exit_code) == (1, 0, 0)
    assert "the topic has lost its partition log" in caplog.text
    assert "completed                  1" in given_up.stdout
    assert "nothing is owed" not in given_up.stderr
    assert "nothing is owed to a topic orders" in again.stderr


@pytest.mark.parametrize("is_prepared", [False, True])
def test_topic_is_not_given_up_while_a_transaction_with_it_is_open(
    call: Call, warehouse: Warehouse, is_prepared: bool
) -> None:
    producer = with_a_record_for("orders", warehouse)
    producer.flush()
    if is_prepared:
        producer.prepare_transaction()
    lose("orders", warehouse)

    refused = call("transactions", "run", "--once", "--give-up", "orders")
    call("transactions", "abort", "etl", "--execute")
    given_up = call("transactions", "run", "--once", "--give-up", "orders")

    assert (refused.exit_code, given_up.exit_code) == (1, 0)
    assert "txntable transactions abort" in refused.stderr
    assert "transactional_ids=etl" in refused.stderr
    assert call("topics", "create", "orders").exit_code == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--give-up", "orders"), "give --once with it"),
        (("--once", "--give-up", "orders"), "the topic has its log, nothing of it is lost: orders"),
        (("--once", "--give-up", "a/b"), "INVALID_TOPIC"),
    ],
)
def test_topic_is_given_up_only_where_it_has_lost_its_log(
    call: Call, warehouse: Warehouse, options: tuple[str, ...], said: str
) -> None:
    warehouse.admin().create_topic("orders")

    result = call("transactions", "run", *options)

    assert result.exit_code != 0
    assert said in " ".join(result.stderr.replace("│", " ").split())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_run_ends_well_when_it_is_interrupted_and_tells_what_it_did(
    call: Call, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    lose_public_table(warehouse)
    tell = coordinator_run._tell
    before = signal.getsignal(number)

    def tell_and_interrupt(report: CoordinatorReport) -> None:
        tell(report)
        os.kill(os.getpid(), number)

    monkeypatch.setattr(coordinator_run, "_tell", tell_and_interrupt)

    result = call("transactions", "run")

    assert (result.exit_code, result.stdout) == (128 + number, "")
    assert result.stderr.splitlines()[0] == "coordinator_epoch=1 published_topics=1"
    assert result.stderr.splitlines()[1:] == ["interrupted" if number == signal.SIGINT else "terminated"]
    assert signal.getsignal(number) is before


def test_run_says_nothing_of_a_round_in_which_nothing_was_done(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    tell = coordinator_run._tell

    def tell_and_interrupt(report: CoordinatorReport) -> None:
        tell(report)
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(coordinator_run, "_tell", tell_and_interrupt)

    result = call("transactions", "run", "--interval-ms", "1")

    assert (result.exit_code, result.stdout, result.stderr) == (143, "", "terminated\n")


def test_run_fails_when_another_job_takes_the_lease_over(
    call: Call, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinator_run, "_tell", lambda report: warehouse.coordinator().claim())

    result = call("transactions", "run", "--interval-ms", "1")

    assert result.exit_code == 1
    assert result.stderr.startswith("error: TRANSACTION_COORDINATOR_FENCED another coordinator job")


def test_once_leaves_the_rest_to_a_job_that_takes_over(
    call: Call, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = TransactionCoordinator.claim

    def claimed_and_lost(coordinator: TransactionCoordinator) -> int:
        epoch = claim(coordinator)
        claim(warehouse.coordinator())
        return epoch

    monkeypatch.setattr(TransactionCoordinator, "claim", claimed_and_lost)

    result = call("transactions", "run", "--once", "--output", "json")

    assert (result.exit_code, json.loads(result.stdout)) == (0, {"taken_over": True, "coordinator_epoch": 2})
    assert result.stderr == "another coordinator job took over, and does the rest\n"


def test_interval_of_nothing_is_a_usage_error(call: Call) -> None:
    assert call("transactions", "run", "--interval-ms", "0").exit_code == 2


def test_job_of_its_own_does_the_same_without_spark(warehouse: Warehouse) -> None:
    program = """
import sys
from txntable.jobs.coordinator import main
sys.argv[0] = "coordinator"
try:
    main()
finally:
    assert "pyspark" not in sys.modules
"""

    run = subprocess.run(
        [sys.executable, "-c", program, "--warehouse", warehouse.url, "--once", "--output", "json"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert json.loads(run.stdout)["coordinator_epoch"] == 1
