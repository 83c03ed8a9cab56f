"""CSV for a topic: the header names the columns, the topic types them.

Owns how a cell stands for a value: plain types as Arrow's strict conversions read them; bytes in
base64, nested types, timestamps in ms and partitions as JSON in a cell.  Must not know of topics'
logs.
"""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv

from txntable.cli.column_value import BytesForm, parse_json
from txntable.cli.record_columns import PARTITION, TIMESTAMP_MS, RecordColumns
from txntable.errors import SchemaMismatchError
from txntable.runtime.background_thread import lend_to_arrow

BLOCK_BYTES = 8 * 1024 * 1024
"""What is read at once, and the longest row that there can be."""
# How long a thread of Arrow's is waited for that reads ahead, s: it may wait for somebody who types.
_PATIENCE_S = 0.5
_CELL = re.compile("'(.*)'", re.DOTALL)
_PLACE = re.compile(r"(In CSV column #(?P<column>\d+): )?(CSV parse error: )?(Row #(?P<row>\d+): )?", re.IGNORECASE)


class _Input(io.RawIOBase):
    """The input from its header on; counts quotes, since Arrow takes one never closed for a long last cell."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.header = b"\n"
        while self.header and not self.header.strip():
            self.header = stream.readline(BLOCK_BYTES)
        self._ahead = self.header
        self.quotes = 0
        self._ended = False
        self._in_use = threading.Lock()

    def readable(self) -> bool:
        return True

    def end(self) -> bool:
        """Give Arrow no more; return whether its thread has come back from the input, which may be a person's."""
        self._ended = True
        came_back = self._in_use.acquire(timeout=_PATIENCE_S)
        if came_back:
            self._in_use.release()
        return came_back

    def readinto(self, buffer: Any) -> int:
        with self._in_use:
            return 0 if self._ended else self._read(buffer)

    def _read(self, buffer: Any) -> int:
        data = self._ahead[: len(buffer)] or self._stream.read(len(buffer))
        self._ahead = self._ahead[len(buffer) :]
        buffer[: len(data)] = data
        self.quotes += data.count(b'"')
        return len(data)


def csv_tables(stream: BinaryIO, columns: RecordColumns, null_value: str) -> Iterator[pa.Table]:
    """Yield the rows of CSV as tables of the topic's columns.

    Parameters
    ----------
    stream : binary file
        UTF-8, with or without a byte order mark; the first row names the columns.
    columns : RecordColumns
        What the input can have.
    null_value : str
        What an unquoted cell says where it is null; quoted it is text.

    Raises
    ------
    SchemaMismatchError
        Columns or a value do not fit, or a row cannot be read; with the ``row``, the header being row 1.
    """
    source = _Input(stream)
    if not source.header:
        return
    names: list[str] = []
    try:
        names = pv.open_csv(io.BytesIO(source.header)).schema.names
        absent = columns.absent(names)
        row = 2
        with _read_to_its_end(source, _open(source, columns, null_value)) as batches:
            for batch in batches:
                yield columns.completed(_decoded(batch, columns, row), absent)
                row += batch.num_rows
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        raise _refusal(error, names, columns) from error
    if source.quotes % 2:
        raise SchemaMismatchError(
            "a quote is never closed; close it, and double a quote inside of a quoted cell", topic=columns.topic.name
        )


@contextmanager
def _read_to_its_end(source: _Input, batches: Any) -> Iterator[Any]:
    """Leave no thread of Arrow's in the input: one that comes back while the interpreter ends would end the process.

    See :mod:`txntable.runtime.background_thread`.  What it has read ahead is dropped.
    """
    lend_to_arrow("csv")
    try:
        yield batches
    finally:
        if source.end():
            with suppress(pa.ArrowInvalid, UnicodeDecodeError):
                for _ in batches:
                    pass


def _open(source: _Input, columns: RecordColumns, null_value: str) -> Any:
    types = {column.name: pa.string() if _is_json(column, columns) else column.type for column in columns.schema}
    return pv.open_csv(
        source,
        # One thread: only then errors tell the row.
        read_options=pv.ReadOptions(block_size=BLOCK_BYTES, use_threads=False),
        parse_options=pv.ParseOptions(newlines_in_values=True),
        convert_options=pv.ConvertOptions(
            column_types=types,
            null_values=[null_value],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _is_json(column: pa.Field, columns: RecordColumns) -> bool:
    """Return whether a cell of this column is read as JSON is."""
    if pa.types.is_binary(column.type):
        return columns.bytes_form is BytesForm.BASE64
    return pa.types.is_nested(column.type) or (columns.are_kafkas and column.name in (TIMESTAMP_MS, PARTITION))


def _decoded(batch: pa.RecordBatch, columns: RecordColumns, first_row: int) -> pa.Table:
    table = pa.Table.from_batches([batch])
    for index, name in enumerate(table.column_names):
        column = columns.schema.field(name)
        if not column.nullable and table.column(name).null_count:
            at = pc.index(pc.is_null(table.column(name)), True).as_py()
            raise _cell_refusal(columns, "null, where a value is required", first_row + at, name)
        if _is_json(column, columns):
            values = _values(table.column(name), column, columns, first_row)
            table = table.set_column(index, column, pa.array(values, column.type))
    return table


def _values(cells: pa.ChunkedArray, column: pa.Field, columns: RecordColumns, first_row: int) -> list[Any]:
    read = columns.readers[column.name]
    values = []
    for row, cell in enumerate(cells.to_pylist(), first_row):
        try:
            found = cell if cell is None or pa.types.is_binary(column.type) else parse_json(cell)
            values.append(read(found))
        except ValueError as error:
            raise _cell_refusal(columns, str(error), row, column.name) from error
    return values


def _cell_refusal(columns: RecordColumns, reason: str, row: int, column: str) -> SchemaMismatchError:
    return SchemaMismatchError(
        f"a cell does not fit its column: {reason}", topic=columns.topic.name, row=row, column=column
    )


def _refusal(error: Exception, names: list[str], columns: RecordColumns) -> SchemaMismatchError:
    text = str(error)
    place = _PLACE.match(text)
    row = column = None
    if place is not None:
        text = text[place.end() :]
        row = place["row"]
        column = place["column"]
    if column is not None:
        column = names[int(column)]
        if row is not None and (reason := _reason(text, column, columns)):
            return _cell_refusal(columns, reason, int(row), column)
    if "straddling" in text:
        text = "a row is longer than a block, or a quote is never closed"
    return SchemaMismatchError(
        f"the input cannot be read as CSV: {text}", topic=columns.topic.name, row=row, column=column
    )


def _reason(text: str, column: str, columns: RecordColumns) -> str | None:
    """Return why Arrow refused a cell in the words that JSON's readers have; ``None``: Arrow's are as good."""
    kind = columns.schema.field(column).type
    if not (pa.types.is_temporal(kind) or pa.types.is_decimal(kind)):
        return None
    if cell := _CELL.search(text):
        try:
            columns.readers[column](cell[1])
        except ValueError as error:
            return str(error)
    return f"expected a decimal that fits {kind}" if pa.types.is_decimal(kind) else None
