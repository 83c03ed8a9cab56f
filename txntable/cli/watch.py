"""``txntable watch``: the screen of ``status``, where topics end and how far groups are behind, again and again.

Owns how it is shown: on a terminal in its place, until ``q`` or an interruption; elsewhere one plain snapshot a tick.
What is shown is found by :mod:`txntable.admin`.
"""

from __future__ import annotations

import os
import select
import sys
import termios
import tty
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from typing import Annotated, TextIO, cast

import typer
from rich.console import Console
from rich.live import Live
from rich.text import Text

from txntable.admin.lag_listing import WarehouseLags
from txntable.admin.readable_part import ReadablePart
from txntable.admin.upkeep import Finding
from txntable.cli.connection import Connection, on_warehouse
from txntable.cli.interruption import undone_at_once
from txntable.cli.output import JsonOutput, Rows, TableOutput, camel_headers, dashed_headers, instant_text, tell
from txntable.cli.status import status_document, status_lines
from txntable.cli.unreadable import readable_part
from txntable.errors import RetriableError
from txntable.runtime.environment import SystemEnvironment

TOPIC_HEADERS = camel_headers("topic partition log_start_offset last_stable_offset high_watermark")
GROUP_HEADERS = dashed_headers("group topic partition current_offset lag")
_COUNTS = ("lag",)
_QUIT = "q"
_SCREEN_BACK = b"\x1b[?1049l\x1b[?25h"


@dataclass(frozen=True, slots=True)
class Tick:
    """One look at a warehouse.

    Attributes
    ----------
    lines : sequence of str
        The time, and what holds readers back.
    topics, groups : Rows
        Where topics end, and how far groups are behind.
    document : dict
        All of it, for programs.
    unreadable : sequence of Finding
        What could not be read.
    """

    lines: Sequence[str]
    topics: Rows
    groups: Rows
    document: dict[str, object]
    unreadable: Sequence[Finding] = ()


def watch(
    connection: Connection,
    topics: Annotated[list[str] | None, typer.Argument(help="Topics; default: all.", metavar="TOPIC")] = None,
    interval_ms: Annotated[
        int, typer.Option("--interval-ms", metavar="MS", min=100, help="Milliseconds between two looks.")
    ] = 2_000,
    ticks: Annotated[
        int | None, typer.Option("--ticks", metavar="NUMBER", min=1, help="End after so many looks.")
    ] = None,
) -> None:
    """Show what holds readers back, where topics end and how far groups are behind, and look again and again.

    On a terminal in its place, until `q` (exit code 0; 1 when the last look found a topic that cannot be read) or
    Ctrl-C (130); in a pipe or a file one snapshot after the other. Changes nothing, and needs a reader's permissions.
    """
    warehouse = connection.open()
    clock = SystemEnvironment()
    unreadable: Sequence[Finding] = ()

    def look() -> Tick:
        nonlocal unreadable
        tick = _look(connection.url, readable_part(warehouse, topics), clock.instant().wall_ms)
        unreadable = tick.unreadable
        return tick

    console = Console(highlight=False)
    numbers = count() if ticks is None else iter(range(ticks))
    with _keys() as key_within:
        if isinstance(connection.output, JsonOutput) or not console.is_terminal:
            _show_each(connection, numbers, look, lambda: key_within(interval_ms))
        else:
            _show_live(console, numbers, look, lambda: key_within(interval_ms))
    if unreadable:
        raise typer.Exit(1)


def _look(url: str, part: ReadablePart, now_ms: int) -> Tick:
    found = part.blocking()
    lags = part.lags()
    moment = instant_text(now_ms)
    ends, groups = _ends(lags), _groups(lags)
    document = {
        "time": moment,
        **status_document(url, found, part.unreadable),
        "partitions": ends.documents(),
        "groups": groups.documents(),
    }
    lines = [moment, "", *status_lines(url, found, part.searched, part.unreadable), ""]
    return Tick(lines, ends, groups, document, part.unreadable)


def _ends(lags: WarehouseLags) -> Rows:
    rows = [
        (*each.topic_partition, each.log_start_offset, each.last_stable_offset, each.high_watermark)
        for each in lags.partitions
    ]
    return Rows(TOPIC_HEADERS, rows, empty="there are no topics")


def _groups(lags: WarehouseLags) -> Rows:
    rows = [(each.group_id, *each.topic_partition, each.offset, each.lag) for each in lags.groups]
    return Rows(GROUP_HEADERS, rows, counts=_COUNTS, empty="no group has committed offsets")


def _show_each(
    connection: Connection, numbers: Iterator[int], look: Callable[[], Tick], wait: Callable[[], str | None]
) -> None:
    for number in numbers:
        if connection.output.is_closed or (number and wait() == _QUIT):
            return
        try:
            tick = look()
        except RetriableError as error:
            tell(f"nothing to show this time: {error}")
            continue
        if isinstance(connection.output, JsonOutput):
            connection.output.screen((), tick.document)
        else:
            connection.output.report(
                {"screen": tick.lines, "topics": tick.topics, "between": [""], "groups": tick.groups}
            )
            connection.output.screen([""], None)
        sys.stdout.flush()


def _show_live(
    console: Console, numbers: Iterator[int], look: Callable[[], Tick], wait: Callable[[], str | None]
) -> None:
    back = undone_at_once(lambda: os.write(console.file.fileno(), _SCREEN_BACK))
    with back, Live(console=console, screen=True, auto_refresh=False) as live:
        for number in numbers:
            if number and wait() == _QUIT:
                return
            try:
                shown = rendered(console, look())
            except RetriableError as error:
                shown = Text(f"nothing to show this time: {error}")
            live.update(shown, refresh=True)


def rendered(console: Console, tick: Tick) -> Text:
    """Return a look as a terminal of this size shows it: what does not fit is left out, and counted.

    Parameters
    ----------
    console : Console
        The terminal.
    tick : Tick
        What was seen; of groups those that are furthest behind stay.
    """
    most = max(len(tick.topics.rows), len(tick.groups.rows))
    shown = _drawn(console, tick, most)
    while (excess := shown.plain.count("\n") - console.height + 1) > 0 and most > 1:
        most = max(1, most - max(1, excess // 2))
        shown = _drawn(console, tick, most)
    return shown


def _drawn(console: Console, tick: Tick, most: int) -> Text:
    inner = Console(width=console.width, highlight=False, force_terminal=True, color_system=console.color_system)  # type: ignore[arg-type]
    with inner.capture() as captured:
        TableOutput(inner).report(
            {
                "screen": tick.lines,
                "topics": replace(tick.topics, rows=tick.topics.rows[:most]),
                "more topics": _left_out(tick.topics, most, "topics describe"),
                "groups": replace(tick.groups, rows=_furthest_behind(tick.groups, most)),
                "more groups": _left_out(tick.groups, most, "groups describe --all-groups"),
            }
        )
        inner.print(Text("q ends", style="dim"))
    return Text.from_ansi(captured.get())


def _furthest_behind(groups: Rows, most: int) -> Sequence[Sequence[object]]:
    if len(groups.rows) <= most:
        return groups.rows
    lag = list(groups.headers).index("lag")
    return sorted(groups.rows, key=lambda row: -cast(int, row[lag] or 0))[:most]


def _left_out(rows: Rows, most: int, command: str) -> list[str]:
    left = len(rows.rows) - most
    return [f"and {left:,} more partitions: `txntable {command}`"] if left > 0 else []


def _waiting(milliseconds: int) -> None:
    SystemEnvironment().sleep_ms(milliseconds)


def _key(source: TextIO, milliseconds: int) -> str | None:
    return source.read(1) if select.select([source], [], [], milliseconds / 1_000)[0] else None


@contextmanager
def _keys() -> Iterator[Callable[[int], str | None]]:
    """Give a block what waits so many ms for a key, and returns the one that was pressed; ``None``: none was.

    A terminal gives keys one by one meanwhile; where there is none, there are no keys.
    """
    source = sys.stdin
    if source is None or not source.isatty():
        yield _waiting
        return
    handle = source.fileno()
    before = termios.tcgetattr(handle)
    tty.setcbreak(handle)
    try:
        with undone_at_once(lambda: termios.tcsetattr(handle, termios.TCSANOW, before)):
            yield lambda milliseconds: _key(source, milliseconds)
    finally:
        termios.tcsetattr(handle, termios.TCSADRAIN, before)


command = on_warehouse(watch)
