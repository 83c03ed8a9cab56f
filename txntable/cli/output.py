"""What commands print: one value, shown as a table for people or as JSON for programs.

Owns the rule that standard output carries the answer and nothing else; notes go to standard error, and only where a
person is looking (how far long work is tells :mod:`txntable.cli.progress`).  And that names and values of others never
steer a terminal: all that is printed for people goes through :func:`txntable.format.control_characters.escaped` here.
Must not know of warehouses.
"""

from __future__ import annotations

import base64
import errno
import json
import logging
import math
import os
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time
from enum import StrEnum
from typing import IO, NoReturn

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from txntable.format.control_characters import escaped, escaped_in_json

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""What only a write can fail of."""
# Where no terminal says how wide it is: nobody wants a folded path in a file.
_UNBOUNDED = 100_000
# Kafka's headers are one word each to whoever wraps lines: LastStableOffset, LOG-END-OFFSET.
_BETWEEN_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z]-)(?=[A-Z])")


class OutputFormat(StrEnum):
    """How an answer is printed."""

    TABLE = "table"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Rows:
    """A table to be printed.

    Attributes
    ----------
    headers : Mapping[str, str]
        Name of a column in JSON -> its header for people, in order.
    rows : sequence of sequence
        Values in the order of the headers.
    title : str
        For people; empty: none.
    counts : collection of str
        Names of columns that count something: people read these in thousands; ids, offsets and times never.
    instants : collection of str
        Names of columns that are times of the store (ms since 1970): people read them as ISO 8601.
    empty : str
        What people read in place of a table without rows; empty: its headers.
    for_programs : collection of str
        Names of columns that only JSON has: with them a table for people would be wider than a terminal.
    names : collection of str
        Names of columns that list names: people read them parted by commas.
    elsewhere : Mapping[str, str]
        Name of a column -> what shows it, too: a table that is too wide for a terminal is shown without these.
    """

    headers: Mapping[str, str]
    rows: Sequence[Sequence[object]]
    title: str = ""
    counts: Collection[str] = ()
    instants: Collection[str] = ()
    empty: str = ""
    for_programs: Collection[str] = ()
    names: Collection[str] = ()
    elsewhere: Mapping[str, str] = field(default_factory=dict)

    def documents(self) -> list[dict[str, object]]:
        """Return the rows as JSON objects."""
        return [{name: json_value(value) for name, value in zip(self.headers, row, strict=True)} for row in self.rows]


def camel_headers(names: str) -> dict[str, str]:
    """Return columns and their headers, as most of Kafka's tools have them, by the columns' names, parted by spaces."""
    return {name: "".join(part.capitalize() for part in name.split("_")) for name in names.split()}


def dashed_headers(names: str) -> dict[str, str]:
    """Return columns and their headers as Kafka's ``kafka-consumer-groups`` has them."""
    return {name: name.replace("_", "-").upper() for name in names.split()}


class PipeConsole(Console):
    """A console whose reader may go away: the rest of the answer goes nowhere, and the command goes on to its end."""

    def on_broken_pipe(self) -> None:
        """Write nothing more: rich would end the command here, with exit code 1."""
        self.quiet = True
        _lead_nowhere(self.file)


class Output(ABC):
    """Prints answers; :func:`output_for` makes one.

    Parameters
    ----------
    console : rich.console.Console
        What is printed on.
    """

    def __init__(self, console: Console) -> None:
        self._console = console

    @property
    def is_closed(self) -> bool:
        """Whether nobody reads any more what is printed."""
        return self._console.quiet

    @abstractmethod
    def rows(self, rows: Rows) -> None:
        """Print a table; in JSON an array of objects."""

    @abstractmethod
    def facts(self, facts: Mapping[str, object], for_people: Mapping[str, object] | None = None) -> None:
        """Print facts of one thing, one a line, as they are `for_people` if that is given; in JSON an object."""

    @abstractmethod
    def report(self, sections: Mapping[str, Rows | Sequence[str]]) -> None:
        """Print tables and paragraphs, one below the other; in JSON an object of arrays."""

    @abstractmethod
    def screen(self, lines: Sequence[str], document: object) -> None:
        """Print lines that are written for people; in JSON the value that they tell of."""


class TableOutput(Output):
    """For people: aligned tables, in which no value is ever broken.

    Parameters
    ----------
    console : Console, optional
        Default: the standard output of this moment.
    """

    def __init__(self, console: Console | None = None) -> None:
        super().__init__(console or PipeConsole(highlight=False, soft_wrap=False))

    def rows(self, rows: Rows) -> None:
        """Print a table.

        Where it is too wide, headers break between their words; then what is the same in every row is said once above
        it; then it is without what is shown elsewhere; then each row is a block of lines.
        """
        if rows.empty and not rows.rows:
            self._title(rows)
            self._line(Text(escaped(rows.empty)))
            return
        rows = _for_people(rows)
        headers = [escaped(header) for header in rows.headers.values()]
        if not self._console.is_terminal:
            self._write_plain(_table(rows, headers, for_terminal=False))
            return
        if self._fits(rows, headers) or self._fits_folded(rows):
            return
        kept = [index for index, name in enumerate(rows.headers) if name not in rows.elsewhere]
        if rows.elsewhere and self._fits_folded(_only(rows, kept)):
            for name, where in rows.elsewhere.items():
                note(f"{rows.headers[name]} is left out, for want of room: {where} shows it")
            return
        self._blocks(rows, headers)

    def _fits_folded(self, rows: Rows) -> bool:
        """Print a table whose headers are broken, if need be below what is the same in all its rows, if it fits so."""
        alike, others = _parted(rows)
        return self._fits(rows, _folded(rows)) or (bool(others.rows) and self._fits(others, _folded(others), alike))

    def _fits(self, rows: Rows, headers: Sequence[str], above: Mapping[str, str] | None = None) -> bool:
        """Print a table, below what is the same in all its rows; return False where it is too wide for that."""
        table = _table(rows, headers, for_terminal=True)
        if self._measured(table) > self._console.width:
            return False
        if above:
            self._title(rows)
            self._pairs(list(above), list(above.values()))
            table.title = None
        self._console.print(table)
        return True

    def _title(self, rows: Rows) -> None:
        if rows.title:
            self._line(Text(escaped(rows.title), style="bold"))

    def _measured(self, table: Table) -> int:
        return self._console.measure(table, options=self._console.options.update(width=_UNBOUNDED)).maximum

    def _write_plain(self, table: Table) -> None:
        """Print a table for a file or a pipe: of its natural width, and no line is filled up with blanks."""
        lines = self._console.render_lines(table, self._console.options.update(width=self._measured(table)), pad=False)
        for line in lines:
            self._line(Text("".join(segment.text for segment in line).rstrip()))

    def _blocks(self, rows: Rows, headers: Sequence[str]) -> None:
        self._title(rows)
        for row in rows.rows:
            self._pairs(headers, _cells(rows, row))
            self._line(Text())

    def facts(self, facts: Mapping[str, object], for_people: Mapping[str, object] | None = None) -> None:
        """Print facts, one a line."""
        said = facts if for_people is None else for_people
        self._pairs([escaped(name) for name in said], [shown(value) for value in said.values()])

    def _pairs(self, names: Sequence[str], values: Sequence[str]) -> None:
        width = max(map(cell_len, names), default=0)
        for name, value in zip(names, values, strict=True):
            filled = name + " " * (width - cell_len(name))
            self._line(Text.assemble((filled, "bold"), "  ", value))

    def report(self, sections: Mapping[str, Rows | Sequence[str]]) -> None:
        """Print each section."""
        for section in sections.values():
            if isinstance(section, Rows):
                self.rows(section)
            else:
                self._lines(section)

    def screen(self, lines: Sequence[str], document: object) -> None:
        """Print the lines."""
        self._lines(lines)

    def _lines(self, lines: Sequence[str]) -> None:
        for line in lines:
            self._line(Text(escaped(line)))

    def _line(self, line: Text) -> None:
        # Wrapping is the terminal's: what is printed here is there to be copied.
        self._console.print(line, soft_wrap=True)


def _table(rows: Rows, headers: Sequence[str], *, for_terminal: bool) -> Table:
    title = Text(escaped(rows.title)) if rows.title else None
    lines = box.SIMPLE_HEAD if for_terminal else None
    padding = (0, 1) if for_terminal else (0, 3, 0, 0)
    table = Table(box=lines, title=title, title_justify="left", title_style="bold", pad_edge=False, padding=padding)
    for index, header in enumerate(headers):
        numbers = bool(rows.rows) and all(isinstance(row[index], int | float | None) for row in rows.rows)
        table.add_column(Text(header), justify="right" if numbers else "left", overflow="fold")
    for row in rows.rows:
        table.add_row(*map(Text, _cells(rows, row)))
    return table


def _folded(rows: Rows) -> list[str]:
    return [_BETWEEN_WORDS.sub("\n", escaped(header)) for header in rows.headers.values()]


def _for_people(rows: Rows) -> Rows:
    return _only(rows, [index for index, name in enumerate(rows.headers) if name not in rows.for_programs])


def _only(rows: Rows, kept: Sequence[int]) -> Rows:
    """Return the rows with some of their columns."""
    names = list(rows.headers)
    left = {names[index]: rows.headers[names[index]] for index in kept}
    return replace(rows, headers=left, rows=[[row[index] for index in kept] for row in rows.rows])


def _parted(rows: Rows) -> tuple[dict[str, str], Rows]:
    """Return what is the same in all of several rows, by its header, and the rows without it."""
    columns = list(zip(*(_cells(rows, row) for row in rows.rows), strict=True))
    alike = {index for index, cells in enumerate(columns) if len(cells) > 1 and len(set(cells)) == 1}
    kept = [index for index in range(len(columns)) if index not in alike]
    names = list(rows.headers)
    said = {escaped(rows.headers[names[index]]): columns[index][0] for index in sorted(alike)}
    if not alike or not kept:
        return {}, replace(rows, rows=())
    return said, _only(rows, kept)


def _cells(rows: Rows, row: Sequence[object]) -> list[str]:
    cells = zip(rows.headers, row, strict=True)
    return [_cell(rows, name, value) for name, value in cells]


def _cell(rows: Rows, name: str, value: object) -> str:
    if name in rows.instants and isinstance(value, int):
        return instant_text(value)
    if name in rows.names and isinstance(value, list):
        return shown(",".join(value) or None)
    return _counted(value) if name in rows.counts else shown(value)


def _counted(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else shown(value)


class JsonOutput(Output):
    """For programs: one JSON value."""

    def __init__(self) -> None:
        # It folds no lines: a program reads this.
        super().__init__(PipeConsole(highlight=False, markup=False, emoji=False, no_color=True, soft_wrap=True))

    def _print(self, document: object) -> None:
        self._console.out(escaped_in_json(json.dumps(document, indent=2, ensure_ascii=False)), highlight=False)

    def rows(self, rows: Rows) -> None:
        """Print an array of objects."""
        self._print(rows.documents())

    def facts(self, facts: Mapping[str, object], for_people: Mapping[str, object] | None = None) -> None:
        """Print an object."""
        self._print({name: json_value(value) for name, value in facts.items()})

    def report(self, sections: Mapping[str, Rows | Sequence[str]]) -> None:
        """Print an object with an array for each section."""
        self._print(
            {
                name: section.documents() if isinstance(section, Rows) else list(section)
                for name, section in sections.items()
            }
        )

    def screen(self, lines: Sequence[str], document: object) -> None:
        """Print the value."""
        self._print(json_value(document))


def output_for(output_format: OutputFormat) -> Output:
    """Return what prints in `output_format`, to the standard output of this moment."""
    return JsonOutput() if output_format is OutputFormat.JSON else TableOutput()


def error_console() -> Console:
    """Return the console of standard error, for progress and notes."""
    return PipeConsole(stderr=True, highlight=False)


def tell(line: str) -> None:
    """Print one line on standard error."""
    error_console().print(Text(escaped(line)), soft_wrap=True)


def write_out(text: str) -> None:
    """Write an answer that has a form of its own to standard output; who closed the pipe has what he wanted."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        drop_output()


def flush_output() -> None:
    """Write out what is left of the answer; who closed the pipe has what he wanted, a full disk is an error.

    Raises
    ------
    SystemExit
        It could not be written: exit code 1.
    """
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        drop_output()
    except OSError as error:
        refuse_output(error)


def refuse_output(error: OSError) -> NoReturn:
    """Say that the answer could not be written out.

    Raises
    ------
    SystemExit
        Exit code 1.
    """
    drop_output()
    tell(f"error: the answer could not be written out; write it to another place reason={error.strerror}")
    raise SystemExit(1) from error


def drop_output() -> None:
    """Let what Python would still write at its exit go nowhere."""
    _lead_nowhere(sys.stdout)


def _lead_nowhere(file: IO[str]) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), file.fileno())


class _Escaping(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return escaped(super().format(record), keep="\n")


def escape_logs() -> None:
    """Let warnings that libraries log, ours too, steer no terminal either: those that nobody has a handler for."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_Escaping())


def note(text: str) -> None:
    """Tell the person before the terminal; say nothing where there is none."""
    console = error_console()
    if console.is_terminal:
        console.print(Text(escaped(text), style="dim"))


def note_dry_run(*, execute: bool) -> None:
    """Tell, also where there is no terminal, that nothing was done, where nothing was."""
    if not execute:
        tell("a dry run: nothing is changed; say --execute to do it")


def instant_text(milliseconds: int) -> str:
    """Return a date of the store (ms since 1970) as ISO 8601 in UTC."""
    return datetime.fromtimestamp(milliseconds / 1000, tz=UTC).isoformat(timespec="milliseconds")


def shown(value: object) -> str:
    """Return a value as people read it, in one line that only shows."""
    return escaped(_shown(value))


def _shown(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode("utf-8", errors="backslashreplace")
    if isinstance(value, list | tuple | dict):
        return json.dumps(json_value(value), ensure_ascii=False)
    return str(value)


def json_value(value: object) -> object:
    """Return a value that JSON has: dates as ISO 8601, bytes as base64, decimals, NaN and infinities as text."""
    if isinstance(value, Mapping):
        return {str(key): json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(bytes(value)).decode("ascii")
    is_json = (
        value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value))
    )
    return value if is_json else str(value)
