"""``txntable warehouse``: create one, describe one, fence everyone after a restore."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from txntable.cli.connection import Connection, named_values, on_warehouse
from txntable.cli.output import instant_text, note
from txntable.client.restoration import Restoration
from txntable.warehouse import Warehouse
from txntable.warehouse_settings import settings_from_text

application = typer.Typer(no_args_is_help=True, help="Create and describe warehouses, and fence them after a restore.")


def create(
    connection: Connection,
    exist_ok: Annotated[
        bool, typer.Option("--exist-ok", help="A warehouse that is there already is fine, and keeps its settings.")
    ] = False,
    config: Annotated[
        list[str] | None,
        typer.Option(
            "--config", metavar="NAME=VALUE", help="A setting, as describe shows it; milliseconds. Repeat it."
        ),
    ] = None,
) -> None:
    """Create a warehouse, whose settings are for good; the store must pass the probe of its put-if-absent."""
    settings = settings_from_text(named_values(config or (), "--config"))
    _describe(
        connection, Warehouse.create(connection.url, connection.storage_options, exist_ok=exist_ok, settings=settings)
    )


def describe(connection: Connection) -> None:
    """Describe a warehouse: where it is, its format, settings, topics and position."""
    _describe(connection, connection.open())


def _describe(connection: Connection, warehouse: Warehouse) -> None:
    identity = warehouse.identity
    connection.output.facts(
        {
            "warehouse": warehouse.url,
            "warehouse_id": identity.warehouse_id,
            "format": identity.format,
            "created_at": instant_text(identity.created_at),
            "position": warehouse.transactions.refresh(),
            "topics": len(warehouse.admin().list_topics()),
            **asdict(warehouse.settings()),
            "capabilities": dict(identity.capabilities),
        }
    )


def fence_all(
    connection: Connection,
    execute: Annotated[bool, typer.Option("--execute", help="Do it; without this: say what would be done.")] = False,
) -> None:
    """After a restore: fence all producers, forget their ids, expel all members: a dry run until --execute.

    Exit code 1: a prepared transaction is left.  End each with its token, or abort it; then run this again.
    """
    warehouse = connection.open()
    restoration = Restoration(warehouse.completer, warehouse.admin())
    if not execute:
        note("a dry run: nothing is changed; say --execute to do it")
    report = restoration.fence_all() if execute else restoration.plan()
    connection.output.facts({**asdict(report), "executed": execute})
    if report.prepared:
        raise typer.Exit(1)


application.command("create")(on_warehouse(create))
application.command("describe")(on_warehouse(describe))
application.command("fence-all")(on_warehouse(fence_all))
