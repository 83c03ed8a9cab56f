"""``txntable watch``: the screen of ``status``, where topics end and how far groups are behind, again and again.

Owns how it is shown: on a terminal in its place, until ``q`` or an interruption; elsewhere one plain snapshot a tick.
What is shown is found by :mod:`txntable.admin`.
"""

from __future__ import annotations

import select
import sys
import termios
import tty
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live
from rich.text import Text

from txntable.admin.admin import Admin
from txntable.admin.lag_listing import WarehouseLags
from txntable.cli.connection import Connection, on_warehouse
from txntable.cli.output import JsonOutput, Rows, TableOutput, camel_headers, dashed_headers, instant_text, tell
from txntable.cli.status import status_document, status_lines
from txntable.errors import RetriableError
from txntable.runtime.environment import SystemEnvironment

TOPIC_HEADERS = camel_headers("topic partition log_start_offset last_stable_offset high_watermark")
GROUP_HEADERS = dashed_headers("group topic partition current_offset lag")
_COUNTS = ("log_start_offset", "last_stable_offset", "high_watermark", "current_offset", "lag")
_QUIT = "q"


@dataclass(frozen=True, slots=True)
class _Tick:
    """One look at a warehouse."""

    lines: Sequence[str]
    topics: Rows
    groups: Rows
    document: dict[str, object]


def watch(
    connection: Connection,
    topics: Annotated[list[str] | None, typer.Argument(help="Topics; default: all.", metavar="[TOPIC]...")] = None,
    interval_ms: Annotated[int, typer.Option("--interval-ms", min=100, help="Milliseconds between two looks.")] = 2_000,
    ticks: Annotated[int | None, typer.Option("--ticks", min=1, help="End after so many looks.")] = None,
) -> None:
    """Show what holds readers back, where topics end and how far groups are behind, and look again and again.

    On a terminal in its place, until `q` (exit code 0) or Ctrl-C (130); in a pipe or a file one snapshot after the
    other. Changes nothing, and needs a reader's permissions.
    """
    admin = connection.open().admin()
    clock = SystemEnvironment()

    def look() -> _Tick:
        return _look(connection.url, admin, topics, clock.instant().wall_ms)

    console = Console(highlight=False)
    numbers = count() if ticks is None else iter(range(ticks))
    with _keys() as key_within:
        if isinstance(connection.output, JsonOutput) or not console.is_terminal:
            _show_each(connection, numbers, look, lambda: key_within(interval_ms))
        else:
            _show_live(console, numbers, look, lambda: key_within(interval_ms))


def _look(url: str, admin: Admin, topics: Sequence[str] | None, now_ms: int) -> _Tick:
    found = admin.find_blocking_transactions(topics)
    lags = admin.list_lags(topics)
    searched = len({each.topic_partition.topic for each in lags.partitions})
    moment = instant_text(now_ms)
    ends, groups = _ends(lags), _groups(lags)
    document = {
        "time": moment,
        **status_document(url, found),
        "partitions": ends.documents(),
        "groups": groups.documents(),
    }
    return _Tick([moment, "", *status_lines(url, found, searched), ""], ends, groups, document)


def _ends(lags: WarehouseLags) -> Rows:
    rows = [
        (*each.topic_partition, each.log_start_offset, each.last_stable_offset, each.high_watermark)
        for each in lags.partitions
    ]
    return Rows(TOPIC_HEADERS, rows, counts=_COUNTS, empty="there are no topics")


def _groups(lags: WarehouseLags) -> Rows:
    rows = [(each.group_id, *each.topic_partition, each.offset, each.lag) for each in lags.groups]
    return Rows(GROUP_HEADERS, rows, counts=_COUNTS, empty="no group has committed offsets")


def _show_each(
    connection: Connection, numbers: Iterator[int], look: Callable[[], _Tick], wait: Callable[[], str | None]
) -> None:
    for number in numbers:
        if number and wait() == _QUIT:
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
    console: Console, numbers: Iterator[int], look: Callable[[], _Tick], wait: Callable[[], str | None]
) -> None:
    with Live(console=console, screen=True, auto_refresh=False) as live:
        for number in numbers:
            if number and wait() == _QUIT:
                return
            try:
                shown = _rendered(console, look())
            except RetriableError as error:
                shown = Text(f"nothing to show this time: {error}")
            live.update(shown, refresh=True)


def _rendered(console: Console, tick: _Tick) -> Text:
    """Return a look as a terminal of this width shows it."""
    inner = Console(width=console.width, highlight=False, force_terminal=True, color_system=console.color_system)  # type: ignore[arg-type]
    with inner.capture() as captured:
        TableOutput(inner).report({"screen": tick.lines, "topics": tick.topics, "groups": tick.groups})
        inner.print(Text("q ends", style="dim"))
    return Text.from_ansi(captured.get())


def _waiting(milliseconds: int) -> None:
    SystemEnvironment().sleep_ms(milliseconds)


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
        yield lambda milliseconds: source.read(1) if select.select([handle], [], [], milliseconds / 1_000)[0] else None
    finally:
        termios.tcsetattr(handle, termios.TCSADRAIN, before)


command = on_warehouse(watch)
