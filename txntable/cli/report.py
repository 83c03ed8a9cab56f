"""``txntable report``: a page that shows the warehouse, as one file that needs nothing else.

Owns where the page is written: whole or not at all.  What it shows is :mod:`txntable.report`'s.
"""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from txntable.cli.connection import Connection, on_warehouse
from txntable.cli.output import drop_output
from txntable.errors import InvalidRequestError
from txntable.report.collector import Collector
from txntable.report.page import render_page
from txntable.report.warehouse_report import LARGEST_LIMIT, ReportLimits

DEFAULT_FILE = "txntable-report.html"
DEFAULTS = ReportLimits()
_STANDARD_OUTPUT = "-"

Records = Annotated[
    int,
    typer.Option(
        "--records",
        metavar="NUMBER",
        min=0,
        max=LARGEST_LIMIT,
        help="Newest records of each topic; 0: the page has no record's content.",
    ),
]
Entries = Annotated[
    int,
    typer.Option(
        "--entries",
        metavar="NUMBER",
        min=0,
        max=LARGEST_LIMIT,
        help="Newest entries of the transaction log that transactions are drawn from; a GET each.",
    ),
]


def report(
    connection: Connection,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Where the page is written; a file there is replaced, and keeps its permissions. -: standard output.",
        ),
    ] = Path(DEFAULT_FILE),
    records: Records = DEFAULTS.records,
    entries: Entries = DEFAULTS.entries,
) -> None:
    """Write a page that shows the warehouse: what holds readers back, topics, transactions, groups, records, storage.

    One HTML file that loads nothing, for a browser, a printer or a bucket. It has keys and values of the newest
    records: with `--records 0` it has none. Changes nothing in the warehouse, and needs a reader's permissions.
    """
    page = render_page(Collector(connection.open(), ReportLimits(records=records, entries=entries)).collect()).encode()
    _write(file, page)
    if str(file) != _STANDARD_OUTPUT:
        connection.output.facts({"file": str(file), "bytes": len(page)}, {"file": str(file), "bytes": f"{len(page):,}"})


def _write(file: Path, page: bytes) -> None:
    """Write the page: into a pipe or a device that stands there, or else as a file, behind links that lead to it."""
    try:
        if str(file) == _STANDARD_OUTPUT:
            sys.stdout.buffer.write(page)
            sys.stdout.buffer.flush()
        elif file.exists() and not file.is_file():
            with file.open("wb") as opened:
                opened.write(page)
        else:
            # A link that leads nowhere, or to itself, is no error of this: Path.resolve would raise.
            _write_whole(Path(os.path.realpath(file)), page)
    except BrokenPipeError:
        # Who closed the pipe has what he wanted.
        if str(file) == _STANDARD_OUTPUT:
            drop_output()
    except OSError as error:
        if str(file) == _STANDARD_OUTPUT:
            # What is left in the buffer would fail once more at the end.
            drop_output()
        raise InvalidRequestError(
            "the page cannot be written there; name another file", file=str(file), reason=str(error.strerror)
        ) from error


def _write_whole(target: Path, page: bytes) -> None:
    """Put a file in a file's place that nobody else could read meanwhile, with the permissions of that."""
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    kept = target.stat() if target.exists() else None
    try:
        unfinished.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with open(os.open(unfinished, flags, 0o666 if kept is None else 0o600), "wb") as opened:
            opened.write(page)
            if kept is not None:
                # Who may not give files away leaves it his own.
                with suppress(PermissionError):
                    os.fchown(opened.fileno(), kept.st_uid, kept.st_gid)
                os.fchmod(opened.fileno(), stat.S_IMODE(kept.st_mode))
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


command = on_warehouse(report)
