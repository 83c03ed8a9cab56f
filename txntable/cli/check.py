"""``txntable check``: what nobody does for a warehouse any more; for an alarm.

Owns the exit codes: 0, nothing is late; 1, something is, or the warehouse cannot be read; 2, usage.
"""

from __future__ import annotations

from dataclasses import asdict, astuple
from typing import Annotated

import typer

from txntable.admin.upkeep import UpkeepLimits, limits_from_text
from txntable.cli.connection import Connection, named_values, on_warehouse
from txntable.cli.output import Rows, camel_headers, note

HEADERS = camel_headers("finding where found limit unit note remedy")
_LIMITS = ", ".join(f"{name}={value}" for name, value in asdict(UpkeepLimits()).items())


def check(
    connection: Connection,
    limit: Annotated[
        list[str] | None,
        typer.Option(
            "--limit",
            metavar="NAME=NUMBER",
            help=f"When something is late; ages in ms. Repeat it. Defaults: {_LIMITS}.",
        ),
    ] = None,
) -> None:
    """Look for work that nobody does any more: decided or timed-out transactions, tables behind, debts of the jobs.

    Writes nothing, and lists no segments: made to be run often. Exit code 1 when something is late, a line for each.
    """
    limits = limits_from_text(named_values(limit or (), "--limit", "NAME=NUMBER"))
    findings = connection.open().admin().check_upkeep(limits)
    connection.output.rows(Rows(HEADERS, [(one.duty.value, *astuple(one)[1:], one.remedy) for one in findings]))
    if findings:
        raise typer.Exit(1)
    note("nothing is late")


command = on_warehouse(check)
