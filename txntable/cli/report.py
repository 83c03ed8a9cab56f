"""``txntable report``: a page that shows the warehouse, as one file that needs nothing else.

Owns where the page is written: whole or not at all.  What it shows is :mod:`txntable.report`'s.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from txntable.cli.connection import Connection, on_warehouse
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
    """Write the page, behind links that stand there; a file keeps its permissions, and into what is none it goes."""
    try:
        target = file.resolve()
        if str(file) == _STANDARD_OUTPUT:
            sys.stdout.buffer.write(page)
        elif target.exists() and not target.is_file():
            # A pipe or a device: another file in its place would not be what its reader reads.
            with target.open("wb") as opened:
                opened.write(page)
        else:
            _write_whole(target, page)
    except OSError as error:
        raise InvalidRequestError(
            "the page cannot be written there; name another file", file=str(file), reason=str(error.strerror)
        ) from error


def _write_whole(target: Path, page: bytes) -> None:
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        unfinished.touch()
        if target.exists():
            shutil.copymode(target, unfinished)
        unfinished.write_bytes(page)
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


command = on_warehouse(report)
