"""``txntable ui``: the page of `txntable report`, live, for this machine alone.

Owns how it is started and ended.  Who is answered is :mod:`txntable.report.live_server`'s.
"""

from __future__ import annotations

import threading
from typing import Annotated

import typer

from txntable.cli.connection import Connection, on_warehouse
from txntable.cli.interruption import stopped_by_signals
from txntable.cli.output import flush_output
from txntable.cli.report import DEFAULTS, Entries, Records
from txntable.errors import InvalidRequestError
from txntable.report.collector import Collector
from txntable.report.live_page import LivePage
from txntable.report.live_server import LOOPBACK, LiveServer
from txntable.report.page import content_policy
from txntable.report.warehouse_report import ReportLimits

DEFAULT_PORT = 8384
DEFAULT_REFRESH_S = 5
CHECK_EVERY_MS = 60_000
"""For how long findings are shown: looking for them takes a LIST of each log's folder."""
LARGEST_PORT = 65_535


def ui(
    connection: Connection,
    port: Annotated[
        int,
        typer.Option("--port", metavar="PORT", min=0, max=LARGEST_PORT, help=f"On {LOOPBACK}; 0: any that is free."),
    ] = DEFAULT_PORT,
    refresh: Annotated[
        int,
        typer.Option("--refresh", metavar="SECONDS", min=1, max=3600, help="Seconds after which the page looks again."),
    ] = DEFAULT_REFRESH_S,
    records: Records = DEFAULTS.records,
    entries: Entries = DEFAULTS.entries,
) -> None:
    """Show the page of `txntable report` in a browser of this machine, live, until it is interrupted.

    Prints the address, which has a part that other users of the machine cannot guess. Changes nothing in the warehouse.
    Who looks costs a reading of the logs every few seconds; who does not, nothing.
    """
    warehouse, limits = connection.open(), ReportLimits(records=records, entries=entries)
    environment = warehouse.context.environment
    page = LivePage(Collector(warehouse, limits, CHECK_EVERY_MS).collect, environment, refresh)
    # What cannot be read is told here, before anybody looks.
    page.current()
    try:
        server = LiveServer(page.answer, port, environment.new_id(), content_policy(live=True))
    except OSError as error:
        raise InvalidRequestError(
            "the port cannot be taken; say another one with --port", port=port, reason=str(error.strerror)
        ) from error
    with server, stopped_by_signals() as stop:
        thread = threading.Thread(target=server.serve_forever, name="txntable-ui", daemon=True)
        thread.start()
        connection.output.facts({"url": server.url})
        flush_output()
        stop.wait()
        server.shutdown()
        thread.join()


command = on_warehouse(ui)
