"""Records from files: every type in each format, Parquet, and input that is long or broken."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.unit.cli.reading import INNER, NULLABLE, chunks, json_lines, rows, topic
from txntable.cli import csv_source, record_source
from txntable.cli.output import json_value
from txntable.cli.record_source import Reading, RecordFormat, format_of, read_records
from txntable.errors import InvalidRequestError, SchemaMismatchError, TxnTableError
from txntable.format.schema import check_topic_schema

EVERY_TYPE = check_topic_schema(
    pa.schema(
        [
            pa.field("required", pa.string(), nullable=False),
            pa.field("flag", pa.bool_()),
            pa.field("tiny", pa.int8()),
            pa.field("small", pa.int16()),
            pa.field("number", pa.int32()),
            pa.field("big", pa.int64()),
            pa.field("single", pa.float32()),
            pa.field("double", pa.float64()),
            pa.field("price", pa.decimal128(38, 4)),
            pa.field("data", pa.binary()),
            pa.field("day", pa.date32()),
            pa.field("at", pa.timestamp("us", tz="UTC")),
            pa.field("local", pa.timestamp("us")),
            pa.field("inner", INNER),
            pa.field("list", pa.list_(pa.field("element", pa.decimal128(5, 2)))),
            pa.field("map", pa.map_(pa.string(), pa.list_(pa.date32()))),
            pa.field("counts", pa.map_(pa.int32(), pa.binary())),
        ]
    )
)
FULL = {
    "required": 'a "quoted", two\nlined ü',
    "flag": False,
    "tiny": -128,
    "small": 32_767,
    "number": -(2**31),
    "big": 2**63 - 1,
    "single": 0.5,
    "double": 0.1,
    "price": Decimal("1234567890123456789012345678901234.5678"),
    "data": b"\xff\x00,",
    "day": date(1969, 12, 31),
    "at": datetime(2026, 11, 20, 8, 30, 0, 1, tzinfo=UTC),
    "local": datetime(1900, 1, 1, 23, 59, 59, 999_999),  # noqa: DTZ001 - the type has no zone
    "inner": {"id": 7, "note": None},
    "list": [Decimal("1.20"), None],
    "map": [("a", [date(2026, 1, 1)]), ("", None)],
    "counts": [(1, b"\xff")],
}
SPARSE = dict.fromkeys(EVERY_TYPE.names) | {"required": ""}


# -- every type in every format -------------------------------------------------------------


def as_json() -> bytes:
    return json_lines(json_value(FULL), json_value(SPARSE)).encode()


def as_csv() -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_MINIMAL)
    writer.writerow(EVERY_TYPE.names)
    cells = [json_value(FULL[name]) for name in EVERY_TYPE.names]
    writer.writerow([json.dumps(cell) if isinstance(cell, list | dict | bool) else cell for cell in cells])
    text.write('""' + "," * (len(EVERY_TYPE) - 1) + "\n")
    return text.getvalue().encode()


def as_parquet() -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist([FULL, SPARSE], EVERY_TYPE), sink)
    return sink.getvalue()


@pytest.mark.parametrize(
    ("record_format", "data"),
    [(RecordFormat.JSON, as_json), (RecordFormat.CSV, as_csv), (RecordFormat.PARQUET, as_parquet)],
)
def test_every_type_is_read_as_it_was_written(record_format: RecordFormat, data) -> None:
    (chunk,) = chunks(data(), Reading(record_format), topic(EVERY_TYPE))

    assert chunk.rows.select(EVERY_TYPE.names).to_pylist() == [FULL, SPARSE]
    assert chunk.rows.num_columns == len(EVERY_TYPE)


def parquet(table: pa.Table, row_group_size: int | None = None) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=row_group_size)
    return sink.getvalue()


@pytest.mark.parametrize(
    ("record_format", "data"),
    [
        (RecordFormat.JSON, b'{"id": 1}'),
        (RecordFormat.CSV, b"id\n1\n"),
        (RecordFormat.PARQUET, parquet(pa.table({"id": [1]}))),
    ],
)
def test_nullable_column_is_null_when_it_is_left_out(record_format: RecordFormat, data: bytes) -> None:
    assert rows(data, record_format, topic(NULLABLE)) == [{"id": 1, "note": None}]


@pytest.mark.parametrize("record_format", list(RecordFormat))
def test_nothing_is_yielded_when_there_are_no_records(record_format: RecordFormat) -> None:
    data = parquet(pa.table({"key": pa.array([], pa.binary())})) if record_format is RecordFormat.PARQUET else b""

    assert chunks(data, Reading(record_format)) == []


def test_timestamps_of_records_are_taken_when_a_topic_with_its_own_schema_gets_them() -> None:
    one = '{"id": 1, "_timestamp": "2026-11-20T08:30:00+01:00"}'

    assert rows(one, RecordFormat.JSON, topic(NULLABLE)) == [
        {"id": 1, "note": None, "_timestamp": datetime(2026, 11, 20, 7, 30, tzinfo=UTC)}
    ]


# -- Parquet --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "match"),
    [
        (pa.table({"id": pa.array([1.0])}), "column=id expected=int64 found=double"),
        (pa.table({"id": [1], "more": [1]}), "unknown=more"),
        (pa.table({"note": ["x"]}), "missing=id"),
    ],
)
def test_parquet_is_refused_when_its_columns_are_not_the_topics(table: pa.Table, match: str) -> None:
    with pytest.raises(SchemaMismatchError, match=match):
        rows(parquet(table), RecordFormat.PARQUET, topic(NULLABLE))


@pytest.mark.parametrize("data", [b"", b"id,note\n1,x\n" * 10, parquet(pa.table({"id": [1]}))[:-20]])
def test_parquet_is_refused_when_it_is_none_or_cut_off(data: bytes) -> None:
    with pytest.raises(InvalidRequestError):
        rows(data, RecordFormat.PARQUET, topic(NULLABLE))


class Pipe(io.BytesIO):
    """Input that cannot seek."""

    def seekable(self) -> bool:
        return False


def test_parquet_is_refused_when_the_input_can_not_seek() -> None:
    with pytest.raises(InvalidRequestError, match="say --file"):
        read_records(Pipe(as_parquet()), topic(EVERY_TYPE), Reading(RecordFormat.PARQUET))


# -- long and broken input, and names -------------------------------------------------------


@pytest.mark.parametrize(
    ("record_format", "data"),
    [
        (RecordFormat.LINES, b"a value\n" * 100_000),
        (RecordFormat.JSON, b'{"value": "x"}\n' * 100_000),
        (RecordFormat.CSV, b"key,value\n" + b"k,v\n" * 100_000),
        (RecordFormat.PARQUET, parquet(pa.table({"value": pa.array([b"%d" % n for n in range(100_000)])}), 1_000)),
    ],
)
def test_input_is_read_a_chunk_at_a_time(
    record_format: RecordFormat, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_source, "CHUNK_RECORDS", 1_000)
    monkeypatch.setattr(csv_source, "BLOCK_BYTES", 4_000)
    taken = 0

    class Counted(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return self._taken(super().read(size))

        def readline(self, size: int | None = -1) -> bytes:
            return self._taken(super().readline(size))

        def _taken(self, found: bytes) -> bytes:
            nonlocal taken
            taken += len(found)
            return found

    found = read_records(Counted(data), topic(), Reading(record_format))
    first = next(found)
    taken_for_the_first = taken
    records = first.rows.num_rows + sum(chunk.rows.num_rows for chunk in found)

    assert 0 < taken_for_the_first < len(data) / 2
    assert first.rows.num_rows <= 1_000
    assert records == 100_000


def test_chunk_is_full_by_bytes_when_lines_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_source, "CHUNK_BYTES", 10)

    assert [chunk.rows.num_rows for chunk in chunks(b"12345\n" * 5, Reading(RecordFormat.LINES))] == [2, 2, 1]


def test_records_before_a_bad_line_are_yielded_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_source, "CHUNK_RECORDS", 1)
    found = read_records(io.BytesIO(b'{"value": "a"}\noops'), topic(), Reading(RecordFormat.JSON))

    assert next(found).rows.num_rows == 1
    with pytest.raises(SchemaMismatchError):
        next(found)


class Broken(io.BytesIO):
    """Input whose disk fails."""

    def readline(self, size: int | None = -1) -> bytes:
        raise OSError(5, "Input/output error")


def test_failure_of_the_input_is_told_as_an_error_of_ours() -> None:
    with pytest.raises(InvalidRequestError, match="input/output error"):
        next(read_records(Broken(), topic(), Reading(RecordFormat.LINES)))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a", RecordFormat.LINES),
        ("a.txt", RecordFormat.LINES),
        ("a.JSONL", RecordFormat.JSON),
        ("a.ndjson", RecordFormat.JSON),
        ("a.json", RecordFormat.JSON),
        ("a.b.csv", RecordFormat.CSV),
        ("a.parquet", RecordFormat.PARQUET),
    ],
)
def test_format_is_told_by_the_suffix(name: str, expected: RecordFormat) -> None:
    assert format_of(Path(name)) is expected


def test_format_must_be_said_when_the_suffix_is_unknown() -> None:
    with pytest.raises(InvalidRequestError, match="say --format"):
        format_of(Path("a.avro"))


def test_every_refusal_is_an_error_of_ours() -> None:
    for data in (b"\x00", b"\xff", b'"', b",", b"{", b"key\n\xff", b"key,\n1,2", b"PAR1PAR1"):
        for record_format in RecordFormat:
            try:
                chunks(data, Reading(record_format))
            except TxnTableError:
                continue
