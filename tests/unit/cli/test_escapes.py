"""What others named or wrote never steers the terminal that shows it; JSON stays JSON, and a pipe gets bytes."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
from types import SimpleNamespace

import pytest

from tests.unit.cli.conftest import Call
from txntable.cli import consume_run
from txntable.cli.group_reset import _guarded, _unguarded
from txntable.cli.output import JsonOutput, Rows, TableOutput, escape_logs, note, tell
from txntable.cli.progress import counting
from txntable.cli.record_line import for_terminal
from txntable.format.control_characters import CONTROL, escaped, escaped_in_json
from txntable.warehouse.warehouse import Warehouse

HOSTILE = "a\x1b[2J\x00\x07\x7f\x9b1m\u202e\u2066\u2028\u2029\r\nb\ttail"
SHOWN = r"a\x1b[2J\x00\x07\x7f\x9b1m\u202e\u2066\u2028\u2029\r\nb\ttail"


def test_text_is_shown_in_one_line_without_control_characters() -> None:
    assert escaped(HOSTILE) == SHOWN
    assert escaped("Zürich 🙂 नमस्ते \\n") == "Zürich 🙂 नमस्ते \\n"
    assert escaped("\ud800") == r"\ud800"


@pytest.mark.parametrize("text", [HOSTILE, "\ud800", "plain", 'quo"te\\'])
def test_json_is_escaped_and_means_the_same(text: str) -> None:
    document = escaped_in_json(json.dumps({text: [text]}, ensure_ascii=False, indent=2))

    assert json.loads(document) == {text: [text]}
    assert set(CONTROL.findall(document)) <= {"\n"}


def test_tables_facts_and_reports_show_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    rows = Rows({"x": HOSTILE}, [[HOSTILE], [HOSTILE.encode()], [{HOSTILE: HOSTILE}]], title=HOSTILE)
    for output in (TableOutput(), JsonOutput()):
        output.rows(rows)
        output.facts({HOSTILE: HOSTILE})
        output.report({"lines": [HOSTILE], "rows": rows})
    printed = capsys.readouterr().out

    assert set(CONTROL.findall(printed)) == {"\n"}
    assert printed.count(SHOWN) >= 5


def test_errors_notes_and_logged_warnings_show_control_characters(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rich.console.Console.is_terminal", True)
    tell(HOSTILE)
    note(HOSTILE)
    with counting(HOSTILE):
        pass
    handler = logging.StreamHandler()
    monkeypatch.setattr(logging, "lastResort", handler)
    escape_logs()
    handler.handle(logging.LogRecord("x", logging.WARNING, "x", 1, "%s", (HOSTILE,), None))
    told = capsys.readouterr().err

    assert told.count(SHOWN) >= 3
    # What is left is rich's own: styles, the spinner's cursor, line ends.
    assert not set(CONTROL.findall(told)) - {"\x1b", "\n", "\r"}
    assert "\x1b[2J" not in told


def test_error_of_a_command_is_one_line_whatever_it_names(call: Call) -> None:
    result = call("groups", "describe", "--group", HOSTILE)

    assert result.exit_code == 1
    assert set(CONTROL.findall(result.stderr)) == {"\n"}
    assert len(result.stderr.splitlines()) == 1


def test_record_is_shown_on_a_terminal_and_raw_in_a_pipe(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse.admin().create_topic("raw")
    with warehouse.producer() as producer:
        producer.send("raw", value=HOSTILE.encode() + b"\xff")
    printed = []
    for is_terminal in (False, True):
        stream = io.BytesIO()
        fake = SimpleNamespace(buffer=stream, isatty=lambda shown=is_terminal: shown)
        with warehouse.consumer(auto_offset_reset="earliest") as consumer, monkeypatch.context() as during:
            consumer.subscribe(["raw"])
            during.setattr(sys, "stdout", fake)
            run = consume_run.ConsumeRun(consumer, warehouse.context.environment)
            run.run(lambda record: record.value or b"", consume_run.RunEnd(None, None))
        printed.append(stream.getvalue())

    assert printed[0] == HOSTILE.encode() + b"\xff\n"
    assert printed[1].decode() == SHOWN.replace(r"\t", "\t") + "\\xff\n"


def test_tab_between_the_parts_of_a_line_stays() -> None:
    assert for_terminal(b"key\tvalue\x1b") == b"key\tvalue\\x1b"


@pytest.mark.parametrize("cell", ["=1+1", "+x", "-orders", "@sum", "\tx", "\rx", "orders", "'orders", "'-orders"])
def test_cell_of_an_exported_csv_is_no_formula_and_is_read_back(cell: str) -> None:
    guarded = _guarded(cell)

    assert guarded[0] not in "=+-@\t\r"
    assert _unguarded(guarded) == cell


def test_offsets_of_a_topic_with_an_odd_name_are_exported_and_reset_from_the_file(
    call: Call, warehouse: Warehouse, tmp_path: object
) -> None:
    warehouse.admin().create_topic("-orders")
    target = ("groups", "reset-offsets", "--group", "g")

    exported = call(*target, "--topic", "-orders", "--to-earliest", "--export").stdout
    path = f"{tmp_path}/offsets.csv"
    with open(path, "w", encoding="utf-8") as file:
        file.write(exported)
    result = call(*target, "--from-file", path, "--execute", "--output", "json")

    assert exported == "'-orders,0,0\n"
    assert json.loads(result.stdout)[0]["topic"] == "-orders"


def test_real_process_prints_an_odd_group_without_its_escapes(warehouse: Warehouse) -> None:
    warehouse.admin().create_topic("raw")
    with warehouse.consumer(group_id="g\x1b[31m", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["raw"])
        consumer.poll()
    arguments = ["--warehouse", warehouse.url, "groups", "list"]

    result = subprocess.run(
        [sys.executable, "-m", "txntable.jobs.command", *arguments], capture_output=True, check=True
    )

    assert b"\x1b" not in result.stdout + result.stderr
    assert rb"g\x1b[31m" in result.stdout
