"""``txntable check``: what nobody does for a warehouse any more; for an alarm.

Owns the exit code 3: something is late.  0 is that nothing is, 1 that something cannot be read, 2 usage.
"""

from __future__ import annotations

from dataclasses import asdict, astuple
from typing import Annotated

import typer

from txntable.admin.metric_samples import samples_of_findings
from txntable.admin.upkeep import Duty, UpkeepLimits, limits_from_text
from txntable.cli.connection import Connection, named_values, on_warehouse
from txntable.cli.metrics import Metrics, write_metrics
from txntable.cli.output import Rows, camel_headers, tell

LATE = 3
"""The exit code when something is late."""
HEADERS = camel_headers("finding where found limit unit note remedy")
NOTHING_LATE = "nothing is late; whether stored data is intact, `txntable warehouse verify` says"
"""What people read when there is no finding: what was looked at, and what was not."""
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
    metrics: Metrics = None,
) -> None:
    """Look for work that nobody does any more: decided or timed-out transactions, tables behind, debts of the jobs.

    Changes nothing, and lists no segments: made to be run often. Exit code 3 when something is late, a row for each; 1
    when something cannot be read. What is open and not late yet is shown by `txntable status`. Data is not looked at:
    `txntable warehouse verify` reads it.
    """
    limits = limits_from_text(named_values(limit or (), "--limit", "NAME=NUMBER"))
    warehouse = connection.open()
    findings = warehouse.admin().check_upkeep(limits)
    rows = [(one.duty.value, *astuple(one)[1:], one.remedy) for one in findings]
    if metrics is None:
        connection.output.rows(Rows(HEADERS, rows, counts=("found", "limit"), empty=NOTHING_LATE))
    else:
        write_metrics(warehouse, samples_of_findings(findings), metrics)
        for one in findings:
            tell(": ".join(filter(None, (one.duty.value, one.where, one.note, one.remedy))))
    if any(one.duty is Duty.READ for one in findings):
        raise typer.Exit(1)
    if findings:
        raise typer.Exit(LATE)


command = on_warehouse(check)
