"""``txntable warehouse``: create one, describe one."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from txntable.cli.connection import Connection, named_values, on_warehouse
from txntable.cli.output import instant_text
from txntable.warehouse import Warehouse
from txntable.warehouse_settings import settings_from_text

application = typer.Typer(no_args_is_help=True, help="Create and describe warehouses.")


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


application.command("create")(on_warehouse(create))
application.command("describe")(on_warehouse(describe))
