"""``txntable report``: a page that shows the warehouse, as one file that needs nothing else.

Owns where the page is written: whole or not at all.  What it shows is :mod:`txntable.report`'s.
"""

from __future__ import annotations

import os
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
        Path, typer.Argument(metavar="FILE", help="Where the page is written; a file there is replaced.")
    ] = Path(DEFAULT_FILE),
    records: Records = DEFAULTS.records,
    entries: Entries = DEFAULTS.entries,
) -> None:
    """Write a page that shows the warehouse: what holds readers back, topics, transactions, groups, records, storage.

    One HTML file that loads nothing, for a browser, a printer or a bucket. It has keys and values of the newest
    records: with `--records 0` it has none. Changes nothing in the warehouse, and needs a reader's permissions.
    """
    page = render_page(Collector(connection.open(), ReportLimits(records=records, entries=entries)).collect()).encode()
    _write_whole(file, page)
    connection.output.facts({"file": str(file), "bytes": len(page)}, {"file": str(file), "bytes": f"{len(page):,}"})


def _write_whole(file: Path, page: bytes) -> None:
    unfinished = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        try:
            unfinished.write_bytes(page)
            unfinished.replace(file)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise InvalidRequestError(
            "the page cannot be written there; name another file", file=str(file), reason=str(error.strerror)
        ) from error


command = on_warehouse(report)
