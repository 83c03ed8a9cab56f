"""``txntable produce``: what becomes visible, what it answers, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from tests.simulation.site import TWO_COLUMNS, published
from tests.unit.cli.produced import COMMIT, Produce, produce_on, state, values
from txntable.cli import produce_run, record_source
from txntable.cli.main import application
from txntable.warehouse.warehouse import Warehouse


@pytest.fixture
def topic(warehouse: Warehouse) -> str:
    warehouse.admin().create_topic("orders", partitions=2)
    return "orders"


@pytest.fixture
def accounts(warehouse: Warehouse) -> str:
    warehouse.admin().create_topic("accounts", schema=TWO_COLUMNS, key=["account"])
    return "accounts"


@pytest.fixture
def run(warehouse: Warehouse) -> Produce:
    return produce_on(warehouse)


# -- without a transaction ------------------------------------------------------------------


def test_lines_of_the_standard_input_are_appended(run: Produce, warehouse: Warehouse, topic: str) -> None:
    result = run(topic, "--partition", "1", data=b"one\r\n\xff\nlast")

    assert json.loads(result.stdout) == {
        "topic": topic,
        "status": "appended",
        "records": 3,
        "partitions": [{"partition": 1, "base_offset": 0, "last_offset": 2}],
    }
    assert (result.exit_code, result.stderr) == (0, "")
    assert values(warehouse, topic) == [b"one", b"\xff", b"last"]


def test_answer_is_facts_for_people(warehouse: Warehouse, topic: str) -> None:
    runner = CliRunner(env={"TXNTABLE_WAREHOUSE": warehouse.url})

    result = runner.invoke(application, ["produce", topic, "--partition", "0"], input="a\n")

    assert [line.split()[:2] for line in result.stdout.splitlines()[:3]] == [
        ["topic", "orders"],
        ["status", "appended"],
        ["records", "1"],
    ]


def test_keys_headers_and_tombstones_are_read_from_lines(run: Produce, warehouse: Warehouse, topic: str) -> None:
    result = run(
        topic, "--parse-headers", "--headers-delimiter", "|", "--headers-separator", ";",
        "--headers-key-separator", "=", "--parse-key", "--key-separator", ",", "--null-marker", "-",
        data="a=1;b=2|k,v\n-|k,-\n",
    )  # fmt: skip

    first, second = ({name: row[name] for name in ("key", "value", "headers")} for row in published(warehouse, topic))
    assert result.exit_code == 0
    assert first == {
        "key": b"k",
        "value": b"v",
        "headers": [{"key": "a", "value": b"1"}, {"key": "b", "value": b"2"}],
    }
    assert second == {"key": b"k", "value": None, "headers": None}


def test_record_that_names_a_partition_goes_there_and_others_where_the_option_says(
    run: Produce, warehouse: Warehouse, topic: str
) -> None:
    run(topic, "--format", "json", "--partition", "1", data='{"value": "a", "partition": 0}\n{"value": "b"}\n')

    assert [(row["_partition"], row["value"]) for row in published(warehouse, topic)] == [(0, b"a"), (1, b"b")]


def stored_times(warehouse: Warehouse, topic: str) -> list[int]:
    found = []
    for add in warehouse.topic_log(topic).public.refresh().files:
        path = Path(warehouse.url) / "topics" / topic / add.path
        found += [time.value // 1000 for time in pq.read_table(path, partitioning=None)["_timestamp"].combine_chunks()]
    return sorted(found)


def test_record_has_the_inputs_timestamp_or_else_the_stores(run: Produce, warehouse: Warehouse, topic: str) -> None:
    before = warehouse.context.clock.now_ms()

    run(topic, "--format", "json", "--partition", "0", data='{"timestamp": 5}\n{"value": "b"}\n')

    given, now = stored_times(warehouse, topic)
    assert given == 5
    assert before <= now <= warehouse.context.clock.now_ms()


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_file_is_read_in_the_format_that_its_name_tells(
    run: Produce, warehouse: Warehouse, accounts: str, tmp_path: Path, suffix: str
) -> None:
    file = tmp_path / f"input.{suffix}"
    if suffix == "parquet":
        pq.write_table(pa.table({"amount": [1, None], "account": ["ann", "bob"]}), file)
    else:
        file.write_text(
            {
                "jsonl": '{"account": "ann", "amount": 1}\n{"account": "bob"}\n',
                "csv": "amount,account\n1,ann\n,bob\n",
            }[suffix]
        )

    result = run(accounts, "--file", str(file))

    assert result.exit_code == 0
    assert [(row["account"], row["amount"]) for row in published(warehouse, accounts)] == [("ann", 1), ("bob", None)]


def test_base64_and_null_value_are_taken_as_they_are_said(run: Produce, warehouse: Warehouse, topic: str) -> None:
    run(topic, "--format", "csv", "--base64", "--null-value", "NULL", "--partition", "0", data="key,value\nNULL,/w==\n")

    (found,) = published(warehouse, topic)
    assert (found["key"], found["value"]) == (None, b"\xff")


def test_records_before_a_bad_one_are_counted_when_nothing_binds_them(
    run: Produce, warehouse: Warehouse, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_source, "CHUNK_RECORDS", 2)
    monkeypatch.setattr(produce_run, "FLUSH_BYTES", 1)

    result = run(topic, "--format", "json", "--partition", "0", data='{"value": "a"}\n{"value": "b"}\n{}\noops\n')

    assert result.exit_code == 1
    assert result.stdout == ""
    assert "line=4" in result.stderr
    assert "appended_records=2" in result.stderr
    assert values(warehouse, topic) == [b"a", b"b"]


def test_offsets_span_all_chunks_of_a_partition(
    run: Produce, warehouse: Warehouse, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_source, "CHUNK_RECORDS", 2)
    monkeypatch.setattr(produce_run, "FLUSH_BYTES", 1)

    result = run(topic, "--partition", "0", data="a\nb\nc\nd\ne\n")

    assert json.loads(result.stdout)["partitions"] == [{"partition": 0, "base_offset": 0, "last_offset": 4}]
    assert values(warehouse, topic) == [b"a", b"b", b"c", b"d", b"e"]


# -- in a transaction -----------------------------------------------------------------------


def test_everything_commits_in_one_transaction(
    run: Produce, warehouse: Warehouse, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_source, "CHUNK_RECORDS", 1)
    monkeypatch.setattr(produce_run, "FLUSH_BYTES", 1)

    result = run(topic, *COMMIT, "--batch-id", "2026-11-20", "--partition", "0", data="a\nb\n")

    warehouse.transactions.refresh()
    row = warehouse.transactions.row("etl")
    assert row is not None
    assert row.decision is not None
    answer = json.loads(result.stdout)
    assert (answer["status"], answer["records"]) == ("committed", 2)
    assert (answer["transactional_id"], answer["batch_id"]) == ("etl", "2026-11-20")
    assert answer["position"] == row.decision.position
    assert row.decision.batch_id == "2026-11-20"
    assert values(warehouse, topic) == [b"a", b"b"]


@pytest.mark.parametrize("flush_bytes", [1, produce_run.FLUSH_BYTES])
def test_nothing_is_visible_when_a_record_can_not_be_read(
    run: Produce, warehouse: Warehouse, accounts: str, monkeypatch: pytest.MonkeyPatch, flush_bytes: int
) -> None:
    monkeypatch.setattr(record_source, "CHUNK_RECORDS", 1)
    monkeypatch.setattr(produce_run, "FLUSH_BYTES", flush_bytes)
    data = '{"account": "ann"}\n{"account": "bob", "amount": "much"}\n'

    result = run(accounts, "--format", "json", *COMMIT, "--batch-id", "run-1", data=data)
    again = run(accounts, "--format", "json", *COMMIT, "--batch-id", "run-1", data='{"account": "eve"}')

    assert result.exit_code == 1
    assert result.stderr.startswith("error: INVALID_RECORD")
    assert "line=2" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert again.exit_code == 0
    assert [row["account"] for row in published(warehouse, accounts)] == ["eve"]


def test_transaction_is_aborted_when_a_record_can_not_be_read(
    run: Produce, warehouse: Warehouse, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_source, "CHUNK_RECORDS", 1)
    monkeypatch.setattr(produce_run, "FLUSH_BYTES", 1)

    run(topic, "--format", "json", *COMMIT, data='{"value": "a"}\noops\n')

    assert state(warehouse) == "COMPLETE_ABORT"
    assert values(warehouse, topic) == []


def test_batch_is_not_done_twice_and_fences_nobody(run: Produce, warehouse: Warehouse, topic: str) -> None:
    run(topic, *COMMIT, "--batch-id", "run-1", data="a\n")
    producer = warehouse.producer("etl")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic, b"b")

    again = run(topic, *COMMIT, "--batch-id", "run-1", data="a\n")
    producer.commit_transaction()

    assert again.exit_code == 0
    assert json.loads(again.stdout)["status"] == "already committed: nothing to do"
    assert json.loads(again.stdout)["records"] == 0
    assert sorted(values(warehouse, topic)) == [b"a", b"b"]


def test_empty_run_is_committed_when_it_has_a_batch_id(run: Produce, topic: str) -> None:
    first = json.loads(run(topic, *COMMIT, "--batch-id", "run-1").stdout)
    again = json.loads(run(topic, *COMMIT, "--batch-id", "run-1", data="late\n").stdout)

    assert (first["status"], first["records"], first["partitions"]) == ("committed", 0, [])
    assert first["position"] is not None
    assert again["status"] == "already committed: nothing to do"


def test_empty_run_decides_nothing_when_it_has_no_batch_id(run: Produce, topic: str) -> None:
    run(topic, *COMMIT, data="earlier\n")

    result = run(topic, *COMMIT)

    assert result.exit_code == 0
    assert json.loads(result.stdout)["position"] is None


# -- bad calls ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ("--batch-id", "run-1"),
        ("--file", "no-such-file"),
        ("--format", "avro"),
        ("--format", "csv", "--parse-key"),
        ("--format", "json", "--null-marker", "-"),
        ("--partition", "-1"),
        ("--transaction-timeout-ms", "soon"),
    ],
)
def test_usage_error_exits_with_2(run: Produce, topic: str, arguments: tuple[str, ...]) -> None:
    result = run(topic, *arguments, data="a\n")

    assert (result.exit_code, result.stdout) == (2, "")


def test_batch_id_of_digits_alone_is_wrong_usage_and_nothing_is_sent(
    run: Produce, warehouse: Warehouse, topic: str
) -> None:
    result = run(topic, *COMMIT, "--batch-id", "20261120", data="a\n")

    assert (result.exit_code, result.stdout) == (2, "")
    told = " ".join(result.stderr.replace("│", " ").split())
    assert "write a name with another character, as 2026-11-20 or run-20261120" in told
    assert "int" not in told.partition("run-20261120")[2]
    assert values(warehouse, topic) == []


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("nowhere",), "UNKNOWN_TOPIC_OR_PARTITION"),
        (("nowhere", *COMMIT), "UNKNOWN_TOPIC_OR_PARTITION"),
        (("orders", "--partition", "2"), "UNKNOWN_TOPIC_OR_PARTITION"),
        (("accounts",), "INVALID_REQUEST"),
        (("accounts", *COMMIT), "INVALID_REQUEST"),
        (("orders", "--parse-key", "--key-separator", ""), "INVALID_REQUEST"),
        (("orders", *COMMIT, "--transaction-timeout-ms", "0"), "INVALID_TRANSACTION_TIMEOUT"),
    ],
)
@pytest.mark.usefixtures("topic", "accounts")
def test_refusal_is_one_line_and_takes_no_transactional_id(
    run: Produce, warehouse: Warehouse, arguments: tuple[str, ...], code: str
) -> None:
    result = run(*arguments, data="a\n")

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"error: {code}")
    assert len(result.stderr.splitlines()) == 1
    assert state(warehouse) is None
    assert values(warehouse, "orders") == []


def test_file_is_refused_when_its_name_does_not_tell_the_format(run: Produce, topic: str, tmp_path: Path) -> None:
    (tmp_path / "input.avro").write_bytes(b"x")

    result = run(topic, "--file", str(tmp_path / "input.avro"))

    assert result.exit_code == 1
    assert "say --format" in result.stderr


@pytest.mark.parametrize("option", ["--property", "--reader-property"])
@pytest.mark.usefixtures("topic")
def test_properties_of_kafkas_console_producer_are_options(run: Produce, warehouse: Warehouse, option: str) -> None:
    result = run("--topic", "orders", option, "parse.key=true", option, "key.separator=:", data="k:v\n")

    assert result.exit_code == 0
    (found,) = warehouse.read_arrow("orders").read_all().to_pylist()
    assert (found["key"], found["value"]) == (b"k", b"v")
