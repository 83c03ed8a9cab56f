"""``txntable vacuum``: what would be deleted and why, and with ``--execute`` deleting it.

Parses, runs one function, prints.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from txntable.cli.both_ways import both_ways
from txntable.cli.connection import Connection, on_warehouse
from txntable.cli.output import Rows, camel_headers, tell
from txntable.cli.progress import progressing
from txntable.compaction.vacuum import vacuum as run_vacuum
from txntable.compaction.vacuum_report import ShowProgress, VacuumProgress, VacuumReport

HEADERS = camel_headers("topic action reason objects bytes example executed")


@both_ways("topic", "--topic")
def vacuum(
    connection: Connection,
    topic: Annotated[
        list[str] | None, typer.Option("--topic", metavar="TOPIC", help="Only this topic's folder; may be repeated.")
    ] = None,
    execute: Annotated[bool, typer.Option("--execute", help="Do it; without this: say what would be done.")] = False,
) -> None:
    """Delete files that no retained version, no open transaction and no upload under way needs.

    A dry run until --execute: it then says what would go and why, what stays and why, and changes nothing.
    """
    with _shown(execute) as progress:
        report = run_vacuum(connection.open(), execute=execute, topics=topic, progress=progress)
    connection.output.rows(rows_of(report))
    tell(told(report))
    for notice in report.notices:
        tell(f"warning: {' '.join(notice.split())}")
    for failure in report.failures:
        tell(f"error: {' '.join(failure.split())}")
    if report.failures:
        raise typer.Exit(1)


def told(report: VacuumReport) -> str:
    """Return what a vacuum comes to, in one line."""
    if not report.objects:
        return "there is nothing to delete"
    size = f"{report.objects:,} objects, {report.bytes:,} bytes"
    return f"deleted {size}" if report.executed else f"a dry run: say --execute to delete {size}"


def rows_of(report: VacuumReport) -> Rows:
    """Return a vacuum's report as a table: one row for each topic and reason."""
    rows = [
        (
            line.topic,
            "delete" if line.reason.goes else "keep",
            line.reason.value,
            line.objects,
            line.bytes,
            line.example,
            report.executed if line.reason.goes else None,
        )
        for line in report.lines
    ]
    return Rows(HEADERS, rows, counts={"objects", "bytes"})


@contextmanager
def _shown(execute: bool) -> Iterator[ShowProgress]:
    """Show how far it is."""
    with progressing("vacuum") as tell_progress:

        def show(progress: VacuumProgress) -> None:
            verb = "deleted" if execute else "to delete"
            where = progress.topic or "beside the topics"
            tell_progress(f"vacuum {where}: {progress.listed:,} objects, {progress.going:,} {verb}")

        yield show


command = on_warehouse(vacuum)
