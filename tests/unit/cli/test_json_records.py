"""JSON lines as records: headers, timestamps, every type exactly, and what is refused with its line."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from tests.unit.cli.reading import INNER, chunks, column, header, json_lines, record, rows
from txntable.cli.column_value import BytesForm
from txntable.cli.output import json_value
from txntable.cli.record_source import Reading, RecordFormat
from txntable.errors import SchemaMismatchError


@pytest.mark.parametrize(
    "headers",
    [{"a": "1", "b": None}, [["a", "1"], ["b", None]], [{"key": "a", "value": "1"}, {"key": "b", "value": None}]],
)
def test_headers_are_read_when_json_gives_them_in_any_of_its_shapes(headers: object) -> None:
    found = rows(json_lines({"key": "k", "value": "ü", "headers": headers}), RecordFormat.JSON)

    assert found == [record(b"k", "ü".encode(), [header("a", b"1"), header("b", None)])]


def test_json_of_the_command_line_is_read_back_when_bytes_are_base64() -> None:
    printed = record(b"\xff", b"\x00", [header("a", b"\x01")])

    found = rows(json_lines(json_value(printed)), RecordFormat.JSON, bytes_form=BytesForm.BASE64)

    assert found == [printed]


def test_records_are_divided_when_they_name_partitions() -> None:
    documents = [{"value": str(number), "partition": partition} for number, partition in enumerate([2, 0, None, 2])]

    found = chunks(json_lines(*documents).encode(), Reading(RecordFormat.JSON))

    values = {chunk.partition: [row["value"] for row in chunk.rows.to_pylist()] for chunk in found}
    assert values == {2: [b"0", b"3"], 0: [b"1"], None: [b"2"]}


def test_timestamp_is_in_milliseconds_when_the_columns_are_kafkas() -> None:
    (first, second) = rows(json_lines({"timestamp": 1500}, {"value": "x"}), RecordFormat.JSON)

    assert first["_timestamp"] == datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC)
    assert second["_timestamp"] is None


def test_tombstone_is_read_when_the_value_is_null_or_left_out() -> None:
    assert rows(json_lines({"key": "a", "value": None}, {"key": "b"}), RecordFormat.JSON) == [
        record(b"a", None),
        record(b"b", None),
    ]


def test_blank_lines_and_a_byte_order_mark_are_no_records() -> None:
    assert rows(b'\xef\xbb\xbf{"value": "a"}\r\n\r\n  \n', RecordFormat.JSON) == [record(None, b"a")]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (pa.bool_(), "1"),
        (pa.int8(), "128"),
        (pa.int64(), "9223372036854775808"),
        (pa.int32(), "1.0"),
        (pa.int32(), "true"),
        (pa.int32(), '"1"'),
        (pa.float64(), "1e400"),
        (pa.float64(), f"1{'0' * 400}"),
        (pa.float64(), '"1.5"'),
        (pa.float32(), "1e39"),
        (pa.decimal128(5, 2), "1.234"),
        (pa.decimal128(5, 2), "1234"),
        (pa.decimal128(5, 2), '"NaN"'),
        (pa.decimal128(5, 2), '"much"'),
        (pa.decimal128(5, 2), "false"),
        (pa.string(), "1"),
        (pa.string(), r'"\ud800"'),
        (pa.binary(), '"no base64"'),
        (pa.date32(), '"2026-02-30"'),
        (pa.timestamp("us", tz="UTC"), '"2026-01-01T00:00:00"'),
        (pa.timestamp("us", tz="UTC"), '"2026-01-01T00:00:00.1234567Z"'),
        (pa.timestamp("us"), '"2026-01-01T00:00:00Z"'),
        (pa.timestamp("us"), "1"),
        (INNER, '{"id": null}'),
        (INNER, '{"id": 1, "more": 2}'),
        (INNER, "[1]"),
        (pa.list_(pa.int32()), '{"a": 1}'),
        (pa.list_(pa.int32()), '["a"]'),
        (pa.map_(pa.int32(), pa.int32()), '{"1": 1}'),
        (pa.map_(pa.string(), pa.int32()), '[["a"]]'),
        (pa.map_(pa.string(), pa.int32()), "[[null, 1]]"),
    ],
)
def test_value_is_refused_with_its_line_and_column_when_it_is_not_exactly_of_the_type(kind: pa.DataType, text) -> None:
    with pytest.raises(SchemaMismatchError, match=" x: ") as refusal:
        rows(f'{{"id": 1}}\n{{"x": {text}}}', RecordFormat.JSON, column(kind))

    assert refusal.value.facts["line"] == 2


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (pa.float64(), '"inf"', float("inf")),
        (pa.float64(), "3", 3.0),
        (pa.decimal128(5, 2), "1.2", Decimal("1.20")),
        (pa.decimal128(5, 2), "1e2", Decimal("100.00")),
        (pa.timestamp("us"), '"2026-01-01 00:00:00.1234560"', datetime(2026, 1, 1, 0, 0, 0, 123456)),  # noqa: DTZ001
        (pa.map_(pa.string(), pa.int32()), '{"a": 1}', [("a", 1)]),
    ],
)
def test_value_is_read_when_json_says_it_in_another_exact_way(kind: pa.DataType, text: str, value: object) -> None:
    assert rows(f'{{"x": {text}}}', RecordFormat.JSON, column(kind)) == [{"id": None, "x": value}]


@pytest.mark.parametrize(
    "line",
    [
        b'{"value": "a"',
        b'"a"',
        b'{"value": "a"} {}',
        b'{"valeu": "a"}',
        b'{"value": "a", "value": "b"}',
        b'{"headers": {"a": "1", "a": "2"}}',
        b'{"headers": [["a"]]}',
        b'{"headers": "a"}',
        b'{"headers": [[null, "a"]]}',
        b'{"value": {"a": 1}}',
        b'{"value": "\xff"}',
        b'{"timestamp": -1}',
        b'{"timestamp": "2026-11-20T08:30:00Z"}',
        b'{"partition": 3}',
        b'{"partition": true}',
        b"[" * 100_000,
    ],
)
def test_line_is_refused_with_its_number_when_it_is_no_record_of_kafkas(line: bytes) -> None:
    with pytest.raises(SchemaMismatchError) as refusal:
        rows(b'{"value": "a"}\n\n' + line + b"\n", RecordFormat.JSON)

    assert refusal.value.facts["line"] == 3
    assert len(str(refusal.value)) < 500
