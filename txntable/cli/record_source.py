"""Records from a file or a stream, as tables of a topic's columns, a chunk at a time.

Owns the formats lines, JSON lines, CSV and Parquet.  Invariants: a value is brought to its
column's type by name and exactly, or refused with the line or row where it stands; no more than a
chunk is held in memory, however long the input is.  Must not know of producers or terminals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count
from pathlib import PurePath
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from txntable.cli.column_value import BytesForm, parse_json, read_fields, shown
from txntable.cli.csv_source import csv_tables
from txntable.cli.line_format import LineFormat
from txntable.cli.record_columns import PARTITION, RecordColumns, columns_of
from txntable.errors import InvalidRequestError, SchemaMismatchError
from txntable.format.conform import check_columns
from txntable.format.topic import TopicSettings
from txntable.runtime.background_thread import lend_to_arrow

CHUNK_RECORDS = 10_000
CHUNK_BYTES = 8 * 1024 * 1024
LONGEST_LINE = 64 * 1024 * 1024
_PARQUET_BUFFER = 1024 * 1024


class RecordFormat(StrEnum):
    """What the input is."""

    LINES = "lines"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


_FORMATS = {
    "": RecordFormat.LINES,
    ".txt": RecordFormat.LINES,
    ".json": RecordFormat.JSON,
    ".jsonl": RecordFormat.JSON,
    ".ndjson": RecordFormat.JSON,
    ".csv": RecordFormat.CSV,
    ".parquet": RecordFormat.PARQUET,
}


def format_of(path: PurePath) -> RecordFormat:
    """Return the format that a file's name tells.

    Raises
    ------
    InvalidRequestError
        Its suffix is unknown: say the format.
    """
    found = _FORMATS.get(path.suffix.lower())
    if found is None:
        raise InvalidRequestError(
            "the file's name does not tell its format; say --format", file=path.name, known=",".join(RecordFormat)
        )
    return found


@dataclass(frozen=True, slots=True)
class Reading:
    """How the input is read.

    Attributes
    ----------
    format : RecordFormat
        What it is.
    bytes_form : BytesForm or None
        How binary columns stand in JSON and CSV; ``None``: Kafka's columns as text, others as base64.
    line_format : LineFormat
        How lines are divided.
    null_value : str
        What an unquoted cell of CSV says where it is null.
    """

    format: RecordFormat
    bytes_form: BytesForm | None = None
    line_format: LineFormat = field(default_factory=LineFormat)
    null_value: str = ""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some records, one after the other in the input.

    Attributes
    ----------
    rows : pyarrow.Table
        The topic's columns, and ``_timestamp`` where the input has timestamps (null: it does not say).
    partition : int or None
        That the input names for all of them.
    """

    rows: pa.Table
    partition: int | None


def read_records(stream: BinaryIO, settings: TopicSettings, reading: Reading) -> Iterator[Chunk]:
    """Return the records of an input, in its order within each partition; read when they are asked for.

    Parameters
    ----------
    stream : binary file
        Parquet needs one that can seek.
    settings : TopicSettings
        The topic that the records are for.
    reading : Reading
        How it is read.

    Returns
    -------
    iterator of Chunk
        At least one record each; about :data:`CHUNK_RECORDS` or :data:`CHUNK_BYTES` at most.

    Raises
    ------
    SchemaMismatchError
        A record cannot be read or does not fit the topic; the message has its ``line`` or ``row``
        (of CSV: the header is row 1).  Nothing after it was looked at.
    InvalidRequestError
        The input cannot be read at all, or in this format.
    """
    columns = columns_of(settings, reading.bytes_form)
    if reading.format is RecordFormat.LINES:
        if not columns.are_kafkas:
            raise InvalidRequestError(
                "lines are for topics with Kafka's columns, this one has its own schema; say --format json, csv or "
                "parquet",
                topic=settings.name,
                columns=",".join(settings.schema.names),
            )
        tables = _line_tables(stream, reading.line_format.record, columns)
    elif reading.format is RecordFormat.JSON:
        tables = _line_tables(stream, lambda line: _json_record(line, columns), columns)
    elif reading.format is RecordFormat.CSV:
        tables = csv_tables(stream, columns, reading.null_value)
    else:
        if not stream.seekable():
            raise InvalidRequestError("parquet is read from a file, not from a pipe; say --file", topic=settings.name)
        tables = _parquet_tables(stream, columns)
    return _chunks(tables, settings)


def _chunks(tables: Iterator[pa.Table], settings: TopicSettings) -> Iterator[Chunk]:
    try:
        for table in tables:
            if table.num_rows:
                yield from _by_partition(table)
    except OSError as error:
        raise InvalidRequestError(f"the input cannot be read: {str(error).lower()}", topic=settings.name) from error


def _by_partition(table: pa.Table) -> Iterator[Chunk]:
    if PARTITION not in table.column_names:
        yield Chunk(table, None)
        return
    chosen, rows = table.column(PARTITION), table.drop_columns([PARTITION])
    for partition in pc.unique(chosen).to_pylist():
        mask = pc.is_null(chosen) if partition is None else pc.fill_null(pc.equal(chosen, partition), False)
        yield Chunk(rows.filter(mask), partition)


# -- lines and JSON lines -------------------------------------------------------------------


def _line_tables(
    stream: BinaryIO, read: Callable[[bytes], dict[str, Any] | None], columns: RecordColumns
) -> Iterator[pa.Table]:
    rows: list[dict[str, Any]] = []
    size = 0
    for number, line in _lines(stream):
        try:
            row = read(line)
        except ValueError as error:
            raise SchemaMismatchError(
                f"a record cannot be read: {error}", topic=columns.topic.name, line=number, found=shown(line)
            ) from error
        if row is None:
            continue
        rows.append(row)
        size += len(line)
        if len(rows) >= CHUNK_RECORDS or size >= CHUNK_BYTES:
            yield columns.table(rows)
            rows, size = [], 0
    if rows:
        yield columns.table(rows)


def _lines(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    for number in count(1):
        line = stream.readline(LONGEST_LINE + 1)
        if not line:
            return
        if len(line) > LONGEST_LINE:
            raise InvalidRequestError("a line is too long; is the input lines?", line=number, most_bytes=LONGEST_LINE)
        yield number, line.removesuffix(b"\n").removesuffix(b"\r")


def _json_record(line: bytes, columns: RecordColumns) -> dict[str, Any] | None:
    text = line.decode("utf-8-sig")
    return read_fields(columns.readers, parse_json(text)) if text.strip() else None


# -- Parquet --------------------------------------------------------------------------------


def _parquet_tables(stream: BinaryIO, columns: RecordColumns) -> Iterator[pa.Table]:
    try:
        lend_to_arrow("parquet")
        # Buffering ahead would hold all row groups, and no buffer a whole row group's columns.
        parquet = pq.ParquetFile(stream, pre_buffer=False, buffer_size=_PARQUET_BUFFER)
        absent = columns.absent(parquet.schema_arrow.names)
        check_columns(parquet.schema_arrow, columns.topic)
        for batch in parquet.iter_batches(CHUNK_RECORDS):
            yield columns.completed(pa.Table.from_batches([batch]), absent)
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        raise InvalidRequestError(
            f"the input cannot be read as Parquet: {str(error).lower()}", topic=columns.topic.name
        ) from error
