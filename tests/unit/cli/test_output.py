"""What values look like for people and for programs."""

from __future__ import annotations

import io
import json
import os
import re
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from rich.console import Console

from tests.doubles.manual_environment import ManualEnvironment
from txntable.cli import progress
from txntable.cli.column import column_from_text, column_text
from txntable.cli.output import (
    JsonOutput,
    OutputFormat,
    Rows,
    TableOutput,
    json_value,
    output_for,
    shown,
)
from txntable.cli.progress import counting, waiting
from txntable.errors import SchemaMismatchError

LONG = "a" * 150


@pytest.mark.parametrize(
    ("value", "person", "program"),
    [
        (None, "-", None),
        (True, "yes", True),
        (336_776, "336776", 336_776),
        (1.5, "1.5", 1.5),
        (float("nan"), "nan", "nan"),
        (b"\xff42", "\\xff42", "/zQy"),
        (Decimal("1.20"), "1.20", "1.20"),
        (date(2013, 1, 1), "2013-01-01", "2013-01-01"),
        (datetime(2013, 1, 1, tzinfo=UTC), "2013-01-01 00:00:00+00:00", "2013-01-01T00:00:00+00:00"),
        ({"a": [b"42", None]}, '{"a": ["NDI=", null]}', {"a": ["NDI=", None]}),
    ],
)
def test_value_is_shown_to_people_and_to_programs(value: object, person: str, program: object) -> None:
    assert shown(value) == person
    assert json_value(value) == program


def test_rows_are_one_json_value_however_long_the_lines_are(capsys: pytest.CaptureFixture[str]) -> None:
    JsonOutput().rows(Rows({"path": "Path"}, [(LONG * 3 + "[bold] :smile:",)]))

    assert json.loads(capsys.readouterr().out) == [{"path": LONG * 3 + "[bold] :smile:"}]


def test_table_does_not_fold_a_long_value_in_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    TableOutput().rows(Rows({"path": "Path"}, [(LONG,)]))

    assert LONG in capsys.readouterr().out


def on_terminal(rows: Rows, width: int = 80) -> list[str]:
    """The lines that a table is on a terminal."""
    console = Console(file=io.StringIO(), force_terminal=True, no_color=True, width=width)
    TableOutput(console).rows(rows)
    assert isinstance(console.file, io.StringIO)
    return [re.sub(r"\x1b\[[\d;]*m", "", line) for line in console.file.getvalue().splitlines()]


def test_headers_break_between_their_words_when_the_table_is_too_wide() -> None:
    headers = {"a": "LastStableOffset", "path": "Path"}
    narrow = on_terminal(Rows(headers, [(1, "a" * 50)]))
    too_wide = on_terminal(Rows(headers, [(1, "a" * 65)]))

    assert any("LastStableOffset   Path" in line for line in narrow)
    assert [line.split()[0] for line in too_wide if line.strip()][:3] == ["Last", "Stable", "Offset"]
    assert any("a" * 65 in line for line in too_wide)


def test_row_is_a_block_of_lines_when_no_table_fits_and_no_value_is_broken() -> None:
    other = "b" * 150
    rows = Rows({"a": "LastStableOffset", "path": "Path"}, [(1_000, LONG), (2, other)], counts=("a",), title="Topics")

    lines = on_terminal(rows)

    first = ["LastStableOffset  1,000", f"Path              {LONG}", ""]
    assert lines == ["Topics", *first, "LastStableOffset  2", f"Path              {other}", ""]


def test_what_is_the_same_in_every_row_is_said_once_above_a_table_that_is_too_wide() -> None:
    headers = {"group": "GROUP", "partition": "PARTITION", "offset": "LOG-END-OFFSET", "owner": "CONSUMER-ID"}
    rows = Rows(headers, [("g", number, 10 + number, LONG) for number in range(40)], title="Groups")

    lines = on_terminal(rows)

    assert lines[:3] == ["Groups", "GROUP        g", f"CONSUMER-ID  {LONG}"]
    assert [line.split() for line in lines if line.strip()][-40:] == [[str(n), str(10 + n)] for n in range(40)]
    assert "".join(lines).count(LONG) == 1


def test_column_that_is_shown_elsewhere_is_left_out_before_a_row_becomes_a_block() -> None:
    headers = {"group": "GROUP", "partition": "PARTITION", "owner": "CONSUMER-ID"}
    rows = Rows(headers, [("g", number, f"{LONG}{number}") for number in range(3)], elsewhere={"owner": "--members"})

    lines = on_terminal(rows)

    assert [line.split() for line in lines if line.strip()][-3:] == [["g", str(n)] for n in range(3)]
    assert LONG not in "".join(lines)
    assert LONG in "".join(on_terminal(rows, width=400))


def test_row_is_a_block_with_what_is_shown_elsewhere_when_nothing_else_fits() -> None:
    rows = Rows({"a": "A", "b": "B"}, [(LONG, 1), (LONG + "x", 2)], elsewhere={"b": "--members"})

    assert on_terminal(rows) == [f"A  {LONG}", "B  1", "", f"A  {LONG}x", "B  2", ""]


def test_headers_of_dashes_break_at_a_dash_when_the_table_is_too_wide() -> None:
    lines = on_terminal(Rows({"a": "CURRENT-OFFSET", "b": "B"}, [(1, "x" * 66), (2, "y" * 66)]))

    assert [line.split()[0] for line in lines if line.strip()][:2] == ["CURRENT-", "OFFSET"]


def test_only_row_is_a_block_when_it_does_not_fit() -> None:
    assert on_terminal(Rows({"a": "A", "b": "B"}, [(1, LONG)])) == ["A  1", f"B  {LONG}", ""]


def test_table_in_a_pipe_is_not_filled_up_with_blanks(capsys: pytest.CaptureFixture[str]) -> None:
    rows = Rows({"topic": "Topic", "key": "Key"}, [("orders", LONG), ("late", "-")])

    TableOutput().rows(rows)

    assert capsys.readouterr().out.splitlines() == ["Topic    Key", f"orders   {LONG}", "late     -"]


def test_column_for_programs_is_in_json_only(capsys: pytest.CaptureFixture[str]) -> None:
    rows = Rows({"topic": "Topic", "epoch": "Epoch"}, [("orders", 7)], for_programs=("epoch",))

    TableOutput().rows(rows)
    JsonOutput().rows(rows)

    assert capsys.readouterr().out.partition("[")[0].split() == ["Topic", "orders"]
    assert rows.documents() == [{"topic": "orders", "epoch": 7}]


def test_table_without_rows_says_so_where_there_are_words_for_it(capsys: pytest.CaptureFixture[str]) -> None:
    TableOutput().rows(Rows({"a": "A"}, [], empty="all is well"))
    JsonOutput().rows(Rows({"a": "A"}, [], empty="all is well"))

    assert capsys.readouterr().out == "all is well\n[]\n"


def test_report_in_json_has_an_array_for_each_section(capsys: pytest.CaptureFixture[str]) -> None:
    output_for(OutputFormat.JSON).report({"rows": Rows({"n": "N"}, [(1,)]), "closing": ["try this"]})

    assert json.loads(capsys.readouterr().out) == {"rows": [{"n": 1}], "closing": ["try this"]}


def list_of(kind: pa.DataType) -> pa.DataType:
    return pa.list_(pa.field("element", kind))


NESTED = pa.struct(
    [
        pa.field("a", pa.int32()),
        pa.field("b", pa.struct([pa.field("c", list_of(pa.map_(pa.date32(), pa.float64())))])),
    ]
)


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("carrier string not null", pa.field("carrier", pa.string(), nullable=False)),
        ("n INT", pa.field("n", pa.int32())),
        ("n bigint  NOT NULL", pa.field("n", pa.int64(), nullable=False)),
        ("price decimal(10, 2)", pa.field("price", pa.decimal128(10, 2))),
        ("at timestamp_ntz", pa.field("at", pa.timestamp("us"))),
        ("tags array<string> NOT NULL", pa.field("tags", list_of(pa.string()), nullable=False)),
        ("d decimal", pa.field("d", pa.decimal128(10, 0))),
        ("d NUMERIC(10, 2) not null", pa.field("d", pa.decimal128(10, 2), nullable=False)),
        ("d array<dec(7)>", pa.field("d", list_of(pa.decimal128(7, 0)))),
        ("m map<string, decimal(9, 2)>", pa.field("m", pa.map_(pa.string(), pa.decimal128(9, 2)))),
        ("s struct<a:int,b:struct<c:array<map<date,double>>>>", pa.field("s", NESTED)),
        ("s STRUCT<a: INT, b: STRUCT<c ARRAY<MAP<DATE, DOUBLE>>>>", pa.field("s", NESTED)),
        ("s struct<a:bigint not null>", pa.field("s", pa.struct([pa.field("a", pa.int64(), nullable=False)]))),
    ],
)
def test_column_is_read_from_text_and_written_back(text: str, column: pa.Field) -> None:
    assert column_from_text(text) == column
    assert column_from_text(column_text(column)) == column


@pytest.mark.parametrize(
    "text",
    [
        "",
        "carrier",
        "a string null",
        "a decimal()",
        "a decimal(10,)",
        "a decimal(2,5)",
        "a decimal(0,0)",
        "a numerical",
        "a string not null x",
        "a not null",
        "a: int",
        f"a {'array<' * 500}int{'>' * 500}",
        "a array",
        "a array<int",
        "a array<int>>",
        "a array<int,int>",
        "a map<int>",
        "a map<int,int,int>",
        "a struct",
        "a struct<>",
        "a struct<b>",
        "a struct<b:int,>",
        "a struct<b::int>",
        "a struct<<:int>",
        "a struct<b:int c:int>",
        "a struct<b:interval year>",
        "a string)",
        "a string(",
        "a array<(int>",
    ],
)
def test_column_is_refused_when_its_text_is_not_one(text: str) -> None:
    with pytest.raises(SchemaMismatchError):
        column_from_text(text)


def test_records_are_counted_at_once_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=80)
    monkeypatch.setattr(progress, "error_console", lambda: console)

    with counting("orders") as count:
        count(336_776)

    assert isinstance(console.file, io.StringIO)
    assert "336,776 records to orders" in console.file.getvalue()


def test_records_are_counted_now_and_then_in_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    environment = ManualEnvironment()
    with counting("orders", environment) as count:
        count(1)
        environment.advance_ms(progress.FIRST_MS)
        count(336_776)
        count(336_777)

    assert capsys.readouterr().err == "336,776 records to orders\n"


def test_who_waits_for_what_tells_nothing_is_told_how_long(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    monkeypatch.setattr(progress, "_STANDARD_ERROR", writing)
    monkeypatch.setattr(progress, "FIRST_MS", 1)

    with waiting("starting Spark"):
        told = os.read(reading, 20)

    os.close(writing)
    rest = os.read(reading, 20)
    os.close(reading)
    assert (told, rest) == (b"starting Spark: 0 s\n", b""), "once, and the next time is far off"
