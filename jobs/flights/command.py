"""``txntable demo``: a year of real flights through real transactions, in under three minutes.

Parses, builds the session, runs the story, prints the report.  Exit code 1 when a check fails.
Everything stays below one folder: by default ``.demo/warehouse`` below the current one.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from txntable.cli.connection import Connection, on_warehouse
from txntable.cli.output import error_console
from txntable.errors import DamagedDataError
from txntable.jobs.flights.demo import Trip, run_demo
from txntable.jobs.flights.source import find_source
from txntable.jobs.flights.story import Story
from txntable.jobs.session import spark_session
from txntable.spark.session import require_java
from txntable.warehouse.warehouse import Warehouse

DEFAULT_WAREHOUSE = ".demo/warehouse"


def demo(
    connection: Connection,
    months: Annotated[
        int, typer.Option("--months", metavar="NUMBER", min=1, max=12, help="Only the first months of the year.")
    ] = 12,
) -> None:
    """Bring 336,776 flights through transactions: with a failure, a zombie, a kill and re-runs, and check the result.

    Running it again on the same warehouse writes nothing: every month has committed under its batch id.
    """
    source = find_source()
    # What can be missing or in the way is found before anything is made or started.
    require_java()
    warehouse = Warehouse.create(connection.url, connection.storage_options, exist_ok=True)
    story = Story(error_console())
    with (
        spark_session("txntable demo", warehouse.store.spec) as spark,
        TemporaryDirectory(prefix="txntable-demo-") as folder,
        story.shown(),
    ):
        trip = Trip(source, Path(folder), range(1, months + 1), connection.url)
        report = run_demo(warehouse, spark, trip, story)
    connection.output.report(report)
    if not story.ends_well:
        failed = [check.about for check in story.checks if not check.holds]
        raise DamagedDataError("a check of the demo failed; its table shows both sides", failed="; ".join(failed))


command = on_warehouse(demo, default_url=DEFAULT_WAREHOUSE)
