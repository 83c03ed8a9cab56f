"""``txntable consume``: what it prints, where it begins, how it ends."""

from __future__ import annotations

import datetime as dt
import json
import math
import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from tests.simulation.site import TWO_COLUMNS
from tests.unit.cli.conftest import Call
from txntable.cli import consume_run
from txntable.cli.main import application
from txntable.consumer.consumer import Consumer
from txntable.warehouse.warehouse import Warehouse

EVERY_TYPE = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("text", pa.string()),
        pa.field("data", pa.binary()),
        pa.field("money", pa.decimal128(10, 2)),
        pa.field("day", pa.date32()),
        pa.field("moment", pa.timestamp("us", tz="UTC")),
        pa.field("local", pa.timestamp("us")),
        pa.field("ratio", pa.float64()),
        pa.field("flag", pa.bool_()),
        pa.field("parts", pa.list_(pa.struct([pa.field("name", pa.string()), pa.field("n", pa.int32())]))),
        pa.field("tags", pa.map_(pa.string(), pa.int64())),
    ]
)


@pytest.fixture
def topic(warehouse: Warehouse) -> str:
    warehouse.admin().create_topic("orders", partitions=2)
    return "orders"


@pytest.fixture
def filled(warehouse: Warehouse, topic: str) -> str:
    """Three records in the first partition, one in the second, and one that is not decided."""
    with warehouse.producer() as producer:
        producer.send(topic, key=b"k1", value=b"one", partition=0, timestamp_ms=11, headers=[("h", b"x"), ("i", b"")])
        producer.send(topic, value=b"\xfftwo", partition=0, timestamp_ms=12)
        producer.send(topic, key=b"k3", value=None, partition=0, timestamp_ms=13)
        producer.send(topic, value=b"other", partition=1, timestamp_ms=14)
    undecided = warehouse.producer("undecided")
    undecided.init_transactions()
    undecided.begin_transaction()
    undecided.send(topic, value=b"open", partition=1)
    undecided.flush()
    return topic


# -- lines ----------------------------------------------------------------------------------


def test_values_are_printed_as_lines_in_the_order_of_their_partition(call: Call, filled: str) -> None:
    result = call("consume", filled, "--partition", "0")

    assert result.stdout_bytes == b"one\n\xfftwo\nnull\n"
    assert (result.exit_code, result.stderr) == (0, "")


def test_parts_are_printed_as_kafkas_console_consumer_prints_them(call: Call, filled: str) -> None:
    flags = ["timestamp", "partition", "offset", "headers", "key"]

    result = call("consume", filled, "--partition", "0", *(f"--print-{flag}" for flag in flags))

    assert result.stdout_bytes.splitlines() == [
        b"CreateTime:11\tPartition:0\tOffset:0\th:x,i:\tk1\tone",
        b"CreateTime:12\tPartition:0\tOffset:1\tNO_HEADERS\tnull\t\xfftwo",
        b"CreateTime:13\tPartition:0\tOffset:2\tNO_HEADERS\tk3\tnull",
    ]


def test_separators_and_what_stands_for_null_can_be_said(call: Call, filled: str) -> None:
    result = call(
        "consume", filled, "--partition", "0", "--print-headers", "--print-key",
        "--key-separator", "|", "--headers-separator", ";", "--null-literal", "-",
    )  # fmt: skip

    assert result.stdout_bytes.splitlines() == [b"h:x;i:|k1|one", b"NO_HEADERS|-|\xfftwo", b"NO_HEADERS|k3|-"]


def test_lines_are_refused_where_a_topic_has_its_own_columns(call: Call, warehouse: Warehouse) -> None:
    warehouse.admin().create_topic("accounts", schema=TWO_COLUMNS)

    result = call("consume", "accounts", "--format", "lines")

    assert result.exit_code == 1
    assert "say json" in result.stderr


# -- JSON -----------------------------------------------------------------------------------


def records(warehouse: Warehouse, topic: str) -> list[tuple[object, ...]]:
    consumer = warehouse.consumer(auto_offset_reset="earliest")
    consumer.subscribe([topic])
    found = [each for polled in consumer.poll().values() for each in polled]
    return [(each.key, each.value, each.headers, each.timestamp_ms, str(each.row)) for each in found]


@pytest.mark.parametrize("base64", [False, True])
def test_json_of_kafkas_columns_is_what_produce_reads(
    call: Call, warehouse: Warehouse, topic: str, tmp_path: Path, base64: bool
) -> None:
    warehouse.admin().create_topic("copy")
    with warehouse.producer() as producer:
        producer.send(topic, key=b"k", value="Zürich\n".encode(), partition=0, timestamp_ms=7, headers=[("h", b"1")])
        producer.send(topic, value=b"\xff" if base64 else b"", partition=0, timestamp_ms=8, headers=[("h", b"")] * 2)
        producer.send(topic, key=b"gone", value=None, partition=0, timestamp_ms=9)
    flags = ["--base64"] if base64 else []

    printed = call("consume", topic, "--partition", "0", "--format", "json", *flags)
    file = tmp_path / "records.jsonl"
    file.write_bytes(printed.stdout_bytes)
    produced = call("produce", "copy", "--file", str(file), *flags)

    assert (printed.exit_code, produced.exit_code) == (0, 0), produced.stderr
    assert records(warehouse, "copy") == records(warehouse, topic)


def test_json_of_own_columns_is_what_produce_reads(call: Call, warehouse: Warehouse, tmp_path: Path) -> None:
    for name in ("typed", "copy"):
        warehouse.admin().create_topic(name, schema=EVERY_TYPE)
    full = {
        "id": 1,
        "text": "ä",
        "data": b"\x00\xff",
        "money": Decimal("-12.30"),
        "day": dt.date(2026, 11, 20),
        "moment": dt.datetime(2026, 11, 20, 8, 30, 0, 1, tzinfo=dt.UTC),
        "local": dt.datetime(2026, 11, 20, 8, 30),  # noqa: DTZ001  a column without a zone
        "ratio": math.inf,
        "flag": False,
        "parts": [{"name": "a", "n": 1}, {"name": None, "n": 2}],
        "tags": [("a", 1)],
    }
    with warehouse.producer() as producer:
        producer.send("typed", row=full, timestamp_ms=5)
        producer.send("typed", row=dict.fromkeys(EVERY_TYPE.names) | {"id": 2}, timestamp_ms=6)

    printed = call("consume", "typed", "--output", "json")
    file = tmp_path / "records.jsonl"
    file.write_bytes(printed.stdout_bytes)
    produced = call("produce", "copy", "--file", str(file))

    assert (printed.exit_code, produced.exit_code) == (0, 0), produced.stderr
    assert len(records(warehouse, "typed")) == 2
    assert records(warehouse, "copy") == records(warehouse, "typed")


def test_json_has_a_records_place_when_it_is_asked_for(call: Call, filled: str, warehouse: Warehouse) -> None:
    warehouse.admin().create_topic("accounts", schema=TWO_COLUMNS)
    with warehouse.producer() as producer:
        producer.send("accounts", row={"account": "ann", "amount": 1}, timestamp_ms=0)

    flags = ["--format", "json", "--print-partition", "--print-offset"]
    kafkas = json.loads(call("consume", filled, "--partition", "1", *flags).stdout)
    own = json.loads(call("consume", "accounts", *flags).stdout)

    assert kafkas == {"timestamp": 14, "partition": 1, "offset": 0, "commit": 0, "key": None, "value": "other"}
    assert own == {
        "account": "ann", "amount": 1, "_timestamp": "1970-01-01T00:00:00.000+00:00",
        "_partition": 0, "_offset": 0, "_commit": 0,
    }  # fmt: skip


def test_bytes_that_are_no_text_are_refused_in_json_with_the_remedy(call: Call, filled: str) -> None:
    result = call("consume", filled, "--partition", "0", "--format", "json")

    assert result.exit_code == 1
    assert "say --base64 topic=orders partition=0 offset=1" in result.stderr


# -- where it begins and ends ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "printed"),
    [
        ((), ["one", "two", "three", "four"]),
        (("--from-beginning",), ["one", "two", "three", "four"]),
        (("--offset", "earliest"), ["one", "two", "three", "four"]),
        (("--offset", "latest"), []),
        (("--partition", "0", "--offset", "2"), ["three", "four"]),
        (("--partition", "0", "--offset", "4"), []),
        (("--max-messages", "2"), ["one", "two"]),
        (("--follow", "--timeout-ms", "0"), []),
        (("--follow", "--timeout-ms", "0", "--from-beginning"), ["one", "two", "three", "four"]),
        (("--follow", "--max-messages", "3", "--from-beginning"), ["one", "two", "three"]),
    ],
)
def test_options_say_where_it_begins_and_ends(
    call: Call, warehouse: Warehouse, options: tuple[str, ...], printed: list[str]
) -> None:
    warehouse.admin().create_topic("numbers")
    with warehouse.producer() as producer:
        for number in ("one", "two", "three", "four"):
            producer.send("numbers", value=number.encode())

    result = call("consume", "numbers", *options)

    assert (result.stdout.splitlines(), result.exit_code) == (printed, 0)


def test_following_goes_on_as_long_as_records_come(
    call: Call, warehouse: Warehouse, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consume_run, "_POLL_RECORDS", 1)
    with warehouse.producer() as producer:
        for number in ("one", "two", "three"):
            producer.send(topic, value=number.encode(), partition=0)

    result = call("consume", topic, "--follow", "--timeout-ms", "0", "--from-beginning")

    assert result.stdout.splitlines() == ["one", "two", "three"]


@pytest.mark.parametrize(("level", "printed"), [("read_committed", ["other"]), ("read_uncommitted", ["other", "open"])])
def test_isolation_level_says_what_is_printed(call: Call, filled: str, level: str, printed: list[str]) -> None:
    result = call("consume", filled, "--partition", "1", "--isolation-level", level)

    assert result.stdout.splitlines() == printed


@pytest.mark.parametrize(
    "options",
    [
        ("--offset", "5"),
        ("--offset", "-1", "--partition", "0"),
        ("--offset", "newest"),
        ("--offset", "earliest", "--from-beginning"),
        ("--group", "g", "--partition", "0"),
        ("--group", "g", "--offset", "earliest"),
        ("--isolation-level", "snapshot"),
        ("--max-messages", "0"),
    ],
)
def test_options_that_make_no_sense_are_a_usage_error(call: Call, filled: str, options: tuple[str, ...]) -> None:
    assert call("consume", filled, *options).exit_code == 2


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("nowhere",), "UNKNOWN_TOPIC_OR_PARTITION"),
        (("orders", "--partition", "2"), "UNKNOWN_TOPIC_OR_PARTITION"),
        (("orders", "--partition", "0", "--offset", "99"), "OFFSET_OUT_OF_RANGE there is no such offset; give one"),
    ],
)
def test_what_is_not_there_is_one_line_of_error(call: Call, filled: str, options: tuple[str, ...], code: str) -> None:
    result = call("consume", *options)

    assert result.exit_code == 1
    assert result.stderr.startswith(f"error: {code} ")
    assert len(result.stderr.splitlines()) == 1


def test_interruption_ends_it_cleanly_after_what_was_printed(
    warehouse: Warehouse, filled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    poll = Consumer.poll
    polls = iter((True, False))

    def interrupted(self: Consumer, timeout_ms: float, max_records: int) -> object:
        if not next(polls):
            raise KeyboardInterrupt
        return poll(self, timeout_ms=timeout_ms, max_records=max_records)

    monkeypatch.setattr(Consumer, "poll", interrupted)
    runner = CliRunner(env={"TXNTABLE_WAREHOUSE": warehouse.url})

    result = runner.invoke(application, ["consume", filled, "--partition", "1", "--from-beginning", "--follow"])

    assert (result.stdout, result.stderr, result.exit_code) == ("other\n", "interrupted\n", 130)


def test_closed_pipe_ends_it_without_a_trace(warehouse: Warehouse, topic: str) -> None:
    with warehouse.producer() as producer:
        for _ in range(4):
            producer.send(topic, value=b"x" * 100_000, partition=0)
    code = "from txntable.cli.main import main; main()"
    arguments = ["--warehouse", warehouse.url, "consume", topic]

    process = subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.read(10) == b"x" * 10
    process.stdout.close()

    assert (process.stderr.read(), process.wait()) == (b"", 0)
    process.stderr.close()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a disk that is always full")
@pytest.mark.parametrize("buffered", [0, 8_192, 1_000_000])
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["consume", "raw"], "the records could not be written out"),
        (["topics", "list"], "the answer could not be written out"),
        (["topics", "describe", "raw", "--output", "json"], "the answer could not be written out"),
        (["check", "--metrics", "prometheus"], "the answer could not be written out"),
        (["report", "-"], "name another file"),
    ],
)
def test_full_disk_is_told_in_one_line(tmp_path: Path, words: list[str], told: str, buffered: int) -> None:
    url = str(tmp_path / "warehouse")
    warehouse = Warehouse.create(url)
    warehouse.admin().create_topic("raw")
    with warehouse.producer() as producer:
        producer.send("raw", b"v")
    # How much is held back before it is written is another number in each version of Python.
    held = f"import sys; sys.stdout = open(1, 'w', buffering={buffered}, closefd=False)" if buffered else ""
    command = [sys.executable, "-c", f"{held}\nfrom txntable.cli.main import main; main()", *words, "--warehouse", url]

    with Path("/dev/full").open("wb") as full:
        environment = {**os.environ, "PYTHONUNBUFFERED": "" if buffered else "1"}
        run = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, env=environment)

    assert run.returncode == 1
    assert run.stderr.startswith("error: ")
    assert told in run.stderr
    assert run.stderr.count("\n") == 1
