"""CSV as records: nulls and quotes, names, types, and what is refused with its row."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import BinaryIO

import pyarrow as pa
import pytest

from tests.unit.cli.reading import NULLABLE, chunks, column, header, record, rows, topic
from txntable.cli import csv_source
from txntable.cli.column_value import BytesForm
from txntable.cli.record_source import Reading, RecordFormat
from txntable.errors import SchemaMismatchError
from txntable.format.delta_types import TIMESTAMP, TIMESTAMP_NTZ
from txntable.format.topic import TopicSettings


def test_csv_tells_empty_text_and_null_apart_by_quotes() -> None:
    assert rows('id,note\n1,\n2,""\n', RecordFormat.CSV, topic(NULLABLE)) == [
        {"id": 1, "note": None},
        {"id": 2, "note": ""},
    ]


def test_csv_takes_another_text_for_null_when_it_is_said() -> None:
    data = 'id,note\n1,NULL\n2,"NULL"\n3,\n'

    assert [row["note"] for row in rows(data, RecordFormat.CSV, topic(NULLABLE), null_value="NULL")] == [
        None,
        "NULL",
        "",
    ]


@pytest.mark.parametrize("data", [b"\xef\xbb\xbfnote,id\r\nx,1\r\n", b'\n"note","id"\nx,1', b"note,id\n\nx,1\n\n"])
def test_csv_is_read_by_name_whatever_its_line_ends_marks_and_blank_lines(data: bytes) -> None:
    (found,) = rows(data, RecordFormat.CSV, topic(NULLABLE))

    assert found == {"id": 1, "note": "x"}


def test_csv_holds_all_of_a_kafka_record() -> None:
    data = 'key,value,headers,timestamp,partition\nk,\xfc,"{""a"": ""1""}",5,2\n,,,,\n'.encode("latin-1")

    keyed, empty = chunks(data, Reading(RecordFormat.CSV))

    at = datetime(1970, 1, 1, 0, 0, 0, 5000, tzinfo=UTC)
    assert keyed.rows.to_pylist() == [record(b"k", b"\xfc", [header("a", b"1")]) | {"_timestamp": at}]
    assert (keyed.partition, empty.partition) == (2, None)
    assert empty.rows.to_pylist() == [record(None, None) | {"_timestamp": None}]


def test_csv_of_keys_is_base64_when_that_is_said() -> None:
    data = b"value\n" + base64.b64encode(b"\xff\n") + b"\n"

    assert rows(data, RecordFormat.CSV, bytes_form=BytesForm.BASE64) == [record(None, b"\xff\n")]


@pytest.mark.parametrize(
    ("data", "facts"),
    [
        ("id,note\n1,x\noops,x\n", {"row": "3", "column": "id"}),
        ("id,note\n1,x\n,x\n", {"row": 3, "column": "id"}),
        ("id,note\n1,x\n2,x,y\n", {"row": "3"}),
        ("id,note,more\n", {"unknown": "more"}),
        ("id,note,note\n", {"twice": "note"}),
        ("note\n", {"missing": "id"}),
        ('id,note\n1,x\n2,"never closed\n', {}),
        ("id,note\n9223372036854775808,x\n", {"row": "2", "column": "id"}),
        (b"id,note\n1,\xff\n", {"row": "2", "column": "note"}),
        (b"id,n\xffote\n1,x\n", {}),
    ],
)
def test_csv_is_refused_with_row_and_column_when_it_does_not_fit(data: bytes | str, facts: dict) -> None:
    with pytest.raises(SchemaMismatchError) as refusal:
        rows(data, RecordFormat.CSV, topic(NULLABLE))

    assert {name: refusal.value.facts.get(name) for name in facts} == facts


@pytest.mark.parametrize(
    ("settings", "data"),
    [
        (column(pa.binary()), "x\nNDI=\nnone!\n"),
        (column(pa.list_(pa.int32())), "x\n[1]\n[a]\n"),
        (column(pa.decimal128(5, 2)), "x\n1.20\n1.234\n"),
        (column(pa.timestamp("us", tz="UTC")), "x\n2026-01-01T00:00:00Z\n2026-01-01T00:00:00\n"),
        (column(pa.int8()), "x\n1\n300\n"),
        (topic(), "partition\n1\n3\n"),
        (topic(), "timestamp\n1\nx\n"),
        (topic(), 'headers\n{}\n"[[1, 2]]"\n'),
    ],
)
def test_cell_is_refused_with_its_row_when_it_is_not_of_the_type(settings: TopicSettings, data: str) -> None:
    with pytest.raises(SchemaMismatchError) as refusal:
        rows(data, RecordFormat.CSV, settings)

    assert int(str(refusal.value.facts["row"])) == 3
    assert refusal.value.facts["column"] == data.splitlines()[0]


@pytest.mark.parametrize(
    ("kind", "cell", "reason"),
    [
        (
            TIMESTAMP,
            "2026-01-01 00:00:00",
            "a time with its offset as in 2026-11-20T08:30:00.000001Z, found '2026-01-01 ",
        ),
        (TIMESTAMP, "noon", "a time with its offset as in 2026-11-20T08:30:00.000001Z, found 'noon'"),
        (
            TIMESTAMP_NTZ,
            "2026-01-01T00:00:00Z",
            "a time without an offset as in 2026-11-20T08:30:00.000001, found '2026",
        ),
        (pa.date32(), "20.11.2026", "a date as in 2026-11-20, found '20.11.2026'"),
        (pa.decimal128(5, 2), "123456", r"a decimal that fits decimal128\(5, 2\), found '123456'"),
        (pa.decimal128(5, 2), "1.234", r"a decimal that fits decimal128\(5, 2\) topic="),
        (pa.decimal128(5, 2), "much", r"a decimal that fits decimal128\(5, 2\), found 'much'"),
    ],
)
def test_cell_is_refused_in_the_words_for_json_when_it_is_no_time_and_no_decimal(
    kind: pa.DataType, cell: str, reason: str
) -> None:
    with pytest.raises(SchemaMismatchError, match=f"a cell does not fit its column: expected {reason}") as refusal:
        rows(f"x\n{cell}\n", RecordFormat.CSV, column(kind))

    assert (refusal.value.facts["row"], refusal.value.facts["column"]) == (2, "x")
    assert "assume_timezone" not in str(refusal.value)


def test_csv_is_refused_when_a_part_of_the_record_is_there_twice() -> None:
    with pytest.raises(SchemaMismatchError, match="twice=partition"):
        rows("value,partition,partition\na,0,1\n", RecordFormat.CSV)


def test_line_breaks_in_cells_are_kept_wherever_blocks_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_source, "BLOCK_BYTES", 64)

    found = rows("id,note\n" + '1,"a\n\nb"\n' * 100, RecordFormat.CSV, topic(NULLABLE))

    assert found == [{"id": 1, "note": "a\n\nb"}] * 100


def test_row_of_a_refusal_counts_on_from_block_to_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_source, "BLOCK_BYTES", 64)
    data = "x\n" + "[1]\n" * 100 + "[a]\n"

    with pytest.raises(SchemaMismatchError, match="row=102"):
        rows(data, RecordFormat.CSV, column(pa.list_(pa.int32())))


def test_row_is_refused_when_it_is_longer_than_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_source, "BLOCK_BYTES", 64)

    with pytest.raises(SchemaMismatchError, match="longer than a block"):
        rows(f"id,note\n1,{'x' * 200}\n", RecordFormat.CSV, topic(NULLABLE))


def test_nothing_of_arrow_is_in_the_input_any_more_when_a_row_was_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[csv_source._Input] = []

    class Noted(csv_source._Input):
        def __init__(self, stream: BinaryIO) -> None:
            super().__init__(stream)
            made.append(self)

    monkeypatch.setattr(csv_source, "_Input", Noted)
    data = "id,note\n" + "1,x\n" * 10 + "no number,x\n" + "1,x\n" * 1_000_000

    with pytest.raises(SchemaMismatchError):
        rows(data, RecordFormat.CSV, topic(NULLABLE))

    (source,) = made
    assert not source._in_use.locked()
    assert source.readinto(bytearray(10)) == 0
