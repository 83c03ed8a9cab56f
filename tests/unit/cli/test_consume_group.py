"""``txntable consume --group``: what it commits is what it has printed, however it ends."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from tests.simulation.site import Site
from tests.unit.cli.conftest import Call
from tests.unit.cli.group_consuming import (
    TOPIC,
    committed,
    consume,
    consume_interrupted,
    interrupt_after,
    members,
    polled,
    send,
)
from txntable.cli import consume_run
from txntable.cli.main import application
from txntable.consumer.consumer import Consumer
from txntable.format.records import TopicPartition
from txntable.groups.group_client import GroupClient
from txntable.warehouse.warehouse import Warehouse


@pytest.fixture(autouse=True)
def topic(warehouse: Warehouse) -> None:
    warehouse.admin().create_topic(TOPIC)


# -- going on -------------------------------------------------------------------------------


def test_run_goes_on_where_the_group_has_committed_and_leaves_it_without_members(
    call: Call, warehouse: Warehouse
) -> None:
    send(warehouse, "one", "two")
    assert consume(call) == ["one", "two"]
    assert (committed(warehouse), members(warehouse)) == ({0: 2}, 0)
    send(warehouse, "three")

    assert consume(call) == ["three"]
    assert consume(call) == []
    assert committed(warehouse) == {0: 3}


def test_from_beginning_counts_where_the_group_has_committed_nothing(call: Call, warehouse: Warehouse) -> None:
    send(warehouse, "one")
    follow = ("--follow", "--timeout-ms", "0")

    assert consume(call, *follow, "--from-beginning") == ["one"]
    send(warehouse, "two")

    assert consume(call, *follow, "--from-beginning") == ["two"]


def test_following_group_that_has_committed_nothing_begins_at_the_end(call: Call, warehouse: Warehouse) -> None:
    send(warehouse, "one")

    assert consume(call, "--follow", "--timeout-ms", "0") == []


def test_max_messages_commits_no_more_than_it_printed(call: Call, warehouse: Warehouse) -> None:
    send(warehouse, "one", "two", "three")

    assert consume(call, "--max-messages", "2") == ["one", "two"]
    assert committed(warehouse) == {0: 2}
    assert consume(call) == ["three"]


def test_end_of_a_transaction_is_passed_so_that_there_is_no_lag(call: Call, warehouse: Warehouse) -> None:
    producer = warehouse.producer("etl")
    producer.init_transactions()
    with producer.transaction():
        producer.send(TOPIC, value=b"one")

    assert consume(call) == ["one"]
    assert committed(warehouse) == {0: 2}


def test_reading_without_a_group_commits_nothing(call: Call, warehouse: Warehouse) -> None:
    send(warehouse, "one")

    call("consume", TOPIC)

    assert warehouse.admin().list_consumer_groups() == []


def test_partitions_that_a_topic_gets_while_it_is_followed_are_printed_from_their_beginning(
    call: Call, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    poll, is_first = Consumer.poll, iter((True,))

    def growing(self: Consumer, timeout_ms: float, max_records: int) -> object:
        if next(is_first, False):
            assert poll(self, max_records=max_records) == {}
            warehouse.admin().create_partitions({TOPIC: 2})
            send(warehouse, "new", partition=1)
        return poll(self, timeout_ms=timeout_ms, max_records=max_records)

    monkeypatch.setattr(Consumer, "poll", growing)

    assert consume(call, "--follow", "--max-messages", "1") == ["new"]


# -- other members --------------------------------------------------------------------------


@pytest.fixture
def other(warehouse: Warehouse) -> Iterator[Consumer]:
    """A member that has every partition."""
    with warehouse.consumer(group_id="g", auto_offset_reset="earliest", background_heartbeat=False) as consumer:
        consumer.subscribe([TOPIC])
        consumer.poll()
        yield consumer


def test_run_that_gets_no_partition_says_so_and_ends(call: Call, other: Consumer) -> None:
    result = call("consume", TOPIC, "--group", "g")

    assert (result.stdout, result.exit_code) == ("", 0)
    assert result.stderr.startswith("warning: other members of the group have all partitions")
    assert "--follow" in result.stderr


def test_partition_that_goes_to_another_member_is_committed_before(warehouse: Warehouse) -> None:
    send(warehouse, "one")
    consumer = warehouse.consumer(group_id="g", auto_offset_reset="earliest", enable_auto_commit=False)
    with consumer:
        run = consume_run.ConsumeRun(consumer, warehouse.context.environment)
        consumer.subscribe([TOPIC], listener=run)
        run._print(polled(consumer, run), lambda record: b"line")
        assert committed(warehouse) == {0: 0}

        consumer.unsubscribe()

    assert committed(warehouse) == {0: 1}


def test_partition_that_was_lost_is_not_committed(warehouse: Warehouse) -> None:
    send(warehouse, "one")
    consumer = warehouse.consumer(group_id="g", auto_offset_reset="earliest", enable_auto_commit=False)
    with consumer:
        run = consume_run.ConsumeRun(consumer, warehouse.context.environment)
        consumer.subscribe([TOPIC], listener=run)
        run._print(polled(consumer, run), lambda record: b"line")

        run.on_partitions_lost([TopicPartition(TOPIC, 0)])
        run._flush()

    assert committed(warehouse) == {0: 0}


def expel_before(monkeypatch: pytest.MonkeyPatch, warehouse: Warehouse, call_of_poll: int) -> None:
    """An admin takes the run out of its group before one of its polls."""
    poll, made = Consumer.poll, count(1)

    def expelled(self: Consumer, timeout_ms: float, max_records: int) -> object:
        if next(made) == call_of_poll:
            GroupClient(warehouse.offsets, warehouse.completer).leave(self.group_metadata())
        return poll(self, timeout_ms=timeout_ms, max_records=max_records)

    monkeypatch.setattr(Consumer, "poll", expelled)


def test_member_that_is_one_no_more_says_so_and_prints_again_what_is_not_committed(
    call: Call, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(warehouse, "one", "two", "three")
    monkeypatch.setattr(consume_run, "_POLL_RECORDS", 1)
    monkeypatch.setattr(consume_run, "COMMIT_INTERVAL_MS", 0)
    expel_before(monkeypatch, warehouse, 3)

    result = call("consume", TOPIC, "--group", "g", "--follow", "--from-beginning", "--max-messages", "4")

    assert result.exit_code == 0
    assert result.stdout.splitlines() == ["one", "two", "two", "three"]
    assert result.stderr.startswith("warning: what was printed is not committed")
    assert committed(warehouse) == {0: 3}


def test_last_commit_that_is_refused_is_an_error(
    call: Call, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(warehouse, "one", "two")
    monkeypatch.setattr(consume_run, "_POLL_RECORDS", 1)
    expel_before(monkeypatch, warehouse, 3)

    result = call("consume", TOPIC, "--group", "g")

    assert (result.stdout.splitlines(), result.exit_code) == (["one", "two"], 1)
    assert result.stderr.startswith("error: ")


# -- ends -----------------------------------------------------------------------------------


@pytest.mark.parametrize("inside", [False, True])
def test_interruption_commits_what_was_printed_and_no_more(
    call: Call, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, inside: bool
) -> None:
    send(warehouse, "one", "two", "three")
    monkeypatch.setattr(consume_run, "_POLL_RECORDS", 2)
    with monkeypatch.context() as during:
        interrupt_after(during, 2, inside=inside)
        assert consume_interrupted(call, "--follow", "--from-beginning") == ["one", "two"]

    assert (committed(warehouse), members(warehouse)) == ({0: 2}, 0)
    assert consume(call) == ["three"]


def test_interruption_between_two_lines_commits_the_lines_before(
    call: Call, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(warehouse, "one", "two", "three")

    class Interrupted(list[object]):
        def __iter__(self) -> Iterator[object]:
            yield from self[:2]
            raise KeyboardInterrupt

    poll = Consumer.poll
    with monkeypatch.context() as during:
        during.setattr(
            Consumer, "poll", lambda *self, **named: {p: Interrupted(r) for p, r in poll(*self, **named).items()}
        )
        assert consume_interrupted(call) == ["one", "two"]

    assert committed(warehouse) == {0: 2}


@pytest.mark.parametrize("interval_ms", [0, 2**40])
def test_followed_records_are_committed_now_and_then(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, interval_ms: int
) -> None:
    send(warehouse, "one", "two")
    monkeypatch.setattr(consume_run, "_POLL_RECORDS", 1)
    monkeypatch.setattr(consume_run, "COMMIT_INTERVAL_MS", interval_ms)
    poll, seen = Consumer.poll, []

    def noting(self: Consumer, timeout_ms: float, max_records: int) -> object:
        seen.append(committed(warehouse))
        return poll(self, timeout_ms=timeout_ms, max_records=max_records)

    monkeypatch.setattr(Consumer, "poll", noting)
    runner = CliRunner(env={"TXNTABLE_WAREHOUSE": warehouse.url})

    runner.invoke(application, ["consume", TOPIC, "--group", "g"])

    assert seen[:3] == [{}, {0: 0}, {0: 1 if interval_ms == 0 else 0}]
    assert committed(warehouse) == {0: 2}


def test_closed_pipe_commits_nothing_that_nobody_has_read(warehouse: Warehouse) -> None:
    send(warehouse, *(["x" * 100_000] * 4))
    code = "from txntable.cli.main import main; main()"
    arguments = ["--warehouse", warehouse.url, "consume", TOPIC, "--group", "g"]

    process = subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.read(10) == b"x" * 10
    process.stdout.close()

    assert (process.stderr.read(), process.wait()) == (b"", 0)
    process.stderr.close()
    assert (committed(warehouse), members(warehouse)) == ({0: 0}, 0)


def test_lines_that_the_output_did_not_take_are_not_committed(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Closed(io.BytesIO):
        def flush(self) -> None:
            raise BrokenPipeError

    send(warehouse, "one")
    consumer = warehouse.consumer(group_id="g", auto_offset_reset="earliest", enable_auto_commit=False)
    with consumer:
        run = consume_run.ConsumeRun(consumer, warehouse.context.environment)
        consumer.subscribe([TOPIC], listener=run)
        found = polled(consumer, run)
        with monkeypatch.context() as during:
            during.setattr(sys, "stdout", SimpleNamespace(buffer=Closed(), isatty=lambda: False))
            with pytest.raises(BrokenPipeError):
                run._print(found, lambda record: b"line")

    assert committed(warehouse) == {0: 0}


@pytest.mark.parametrize(("group", "waits_ms"), [(None, [9_000, 9_000]), ("g", [5_000, 4_000, 5_000, 4_000])])
def test_silence_counts_from_the_last_record_and_a_group_looks_up_often_enough_to_commit(
    monkeypatch: pytest.MonkeyPatch, group: str | None, waits_ms: list[float]
) -> None:
    site = Site()
    warehouse = site.create()
    warehouse.admin().create_topic(TOPIC)
    send(warehouse, "one")
    poll, waits = Consumer.poll, []

    def noting(self: Consumer, timeout_ms: float, max_records: int) -> object:
        waits.append(timeout_ms)
        found = poll(self, max_records=max_records)
        site.advance_ms(3_000 if found else int(timeout_ms))
        return found

    monkeypatch.setattr(Consumer, "poll", noting)
    settings = {"group_id": group, "auto_offset_reset": "earliest", "background_heartbeat": False}
    with warehouse.consumer(**settings, enable_auto_commit=False, prefetch=False) as consumer:  # type: ignore[arg-type]
        run = consume_run.ConsumeRun(consumer, warehouse.context.environment)
        consumer.subscribe([TOPIC], listener=run)

        assert run.run(lambda record: b"line", consume_run.RunEnd(None, 9_000)) == 1

    assert waits == waits_ms


def test_help_tells_of_the_group(call: Call) -> None:
    shown = call("consume", "--help").stdout

    assert "--group" in shown
    assert "commit what was printed" in " ".join(shown.replace("│", " ").split())
