"""Lines as records: headers, key and value divided as Kafka's console producer does."""

from __future__ import annotations

import pytest

from tests.unit.cli.reading import NULLABLE, header, record, rows, topic
from txntable.cli import record_source
from txntable.cli.line_format import LineFormat
from txntable.cli.record_source import RecordFormat
from txntable.errors import InvalidRequestError, SchemaMismatchError


def lines(data: bytes, **options) -> list:
    return rows(data, RecordFormat.LINES, line_format=LineFormat(**options))


@pytest.mark.parametrize(
    ("data", "values"),
    [
        (b"one\ntwo\n", [b"one", b"two"]),
        (b"one\r\ntwo", [b"one", b"two"]),
        (b"\n\n", [b"", b""]),
        (b"\xff\x00\xfe\n", [b"\xff\x00\xfe"]),
        (b"a\rb\tc\n", [b"a\rb\tc"]),
    ],
)
def test_each_line_is_a_value(data: bytes, values: list[bytes]) -> None:
    assert lines(data) == [record(None, value) for value in values]


@pytest.mark.parametrize(
    ("options", "line", "expected"),
    [
        ({"key_separator": b"\t"}, b"k\tv\tw", record(b"k", b"v\tw")),
        ({"key_separator": b"::"}, b"::v", record(b"", b"v")),
        ({"key_separator": b"\t", "null_marker": b"-"}, b"k\t-", record(b"k", None)),
        ({"key_separator": b"\t", "null_marker": b"-"}, b"-\tv", record(None, b"v")),
        ({"headers_delimiter": b"\t"}, b"a:1,b:\tv", record(None, b"v", [header("a", b"1"), header("b", b"")])),
        (
            {"headers_delimiter": b"\t", "key_separator": b"\t"},
            b"a:1:2\tk\tv",
            record(b"k", b"v", [header("a", b"1:2")]),
        ),
        (
            {"headers_delimiter": b"\t", "key_separator": b":"},
            b"a:1,b:2\tk:v:w",
            record(b"k", b"v:w", [header("a", b"1"), header("b", b"2")]),
        ),
        ({"headers_delimiter": b"\t", "key_separator": b","}, b"a:1\tk,v", record(b"k", b"v", [header("a", b"1")])),
        (
            {"headers_delimiter": b"|", "headers_separator": b";", "headers_key_separator": b"=", "null_marker": b"-"},
            b"a=\xff;b=-|-",
            record(None, None, [header("a", b"\xff"), header("b", None)]),
        ),
        ({"headers_delimiter": b"\t", "null_marker": b"-"}, b"-\tv", record(None, b"v")),
    ],
)
def test_line_is_divided_as_the_console_producer_does(options: dict, line: bytes, expected: dict) -> None:
    assert lines(line, **options) == [expected]


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"key_separator": b"\t"}, b"no key"),
        ({"headers_delimiter": b"\t"}, b"no headers"),
        ({"headers_delimiter": b"\t"}, b"a\tv"),
        ({"headers_delimiter": b"\t"}, b"\tv"),
        ({"headers_delimiter": b"\t"}, b"\xff:1\tv"),
        ({"headers_delimiter": b"\t", "null_marker": b"-"}, b"-:1\tv"),
    ],
)
def test_line_is_refused_with_its_number_when_a_part_is_not_there(options: dict, line: bytes) -> None:
    with pytest.raises(SchemaMismatchError) as refusal:
        lines(b"a:1\tk\tv\n" + line, **options)

    assert refusal.value.facts["line"] == 2


@pytest.mark.parametrize(
    "options",
    [
        {"key_separator": b""},
        {"key_separator": b"-", "null_marker": b"-"},
        {"headers_delimiter": b","},
        {"headers_delimiter": b"\t", "headers_key_separator": b","},
    ],
)
def test_separators_are_refused_when_they_can_not_be_told_apart(options: dict) -> None:
    with pytest.raises(InvalidRequestError, match=r"options?=--[a-z-]+(,--[a-z-]+)?$"):
        LineFormat(**options)


def test_lines_are_refused_when_the_topic_has_its_own_schema() -> None:
    with pytest.raises(InvalidRequestError, match="say --format json, csv or parquet"):
        rows(b"a", RecordFormat.LINES, topic(NULLABLE))


def test_line_is_refused_when_it_is_too_long_to_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_source, "LONGEST_LINE", 10)

    with pytest.raises(InvalidRequestError, match="line=2"):
        lines(b"short\n" + b"x" * 11)
