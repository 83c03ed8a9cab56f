"""``txntable warehouse``: create, describe, alter and verify one, and fence everyone after a restore."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from txntable.admin.blocking_words import counted
from txntable.admin.metric_samples import samples_of_verification
from txntable.admin.restoration import Restoration
from txntable.admin.warehouse_admin import meanings
from txntable.cli.connection import Connection, Execute, changed_values, named_values, on_warehouse
from txntable.cli.metrics import Metrics, write_samples
from txntable.cli.output import Rows, camel_headers, instant_text, note_dry_run, tell
from txntable.cli.progress import progressing
from txntable.errors import WarehouseAlreadyExistsError
from txntable.format.warehouse_settings import numbers_from_text, settings_from_text
from txntable.warehouse.stored_warehouse import verify_stored
from txntable.warehouse.warehouse import Warehouse

ALTER_HEADERS = camel_headers("name value new_value executed")
DAMAGE_HEADERS = camel_headers("damage path problem remedy")
LOST_OFFSETS = (
    "the offset log has lost its newest entries, and what groups committed in them: before any consumer goes on, set"
    " the offsets of the groups (`txntable groups reset-offsets`) that `txntable warehouse verify` names before this is"
    " executed, and not afterwards"
)

application = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Create, describe, alter and verify warehouses, and fence them after a restore.",
)

Configs = Annotated[
    list[str] | None,
    typer.Option("--config", metavar="NAME=VALUE", help="A setting, as describe shows it; milliseconds. Repeat it."),
]


def create(
    connection: Connection,
    exist_ok: Annotated[
        bool, typer.Option("--exist-ok", help="A warehouse that is there already is fine, and keeps its settings.")
    ] = False,
    config: Configs = None,
) -> None:
    """Create a warehouse; the store must pass the probe of its put-if-absent."""
    settings = settings_from_text(named_values(config or (), "--config"))
    try:
        made = Warehouse.create(connection.url, connection.storage_options, exist_ok=exist_ok, settings=settings)
    except WarehouseAlreadyExistsError as error:
        if "found" in error.facts:
            raise
        raise WarehouseAlreadyExistsError(
            "a warehouse already exists here; use it as it is, or say --exist-ok", url=connection.url
        ) from error
    _describe(connection, made)


def describe(connection: Connection) -> None:
    """Describe a warehouse: where it is, its format, settings, topics and position."""
    _describe(connection, connection.open())


def _describe(connection: Connection, warehouse: Warehouse) -> None:
    identity = warehouse.identity
    facts = {
        "warehouse": warehouse.url,
        "warehouse_id": identity.warehouse_id,
        "format": identity.format,
        "created_at": instant_text(identity.created_at),
        "position": warehouse.transactions.refresh(),
        "topics": len(warehouse.admin().list_topics()),
        **asdict(warehouse.settings()),
    }
    each = {f"capabilities.{name}": value for name, value in identity.capabilities.items()}
    connection.output.facts({**facts, "capabilities": dict(identity.capabilities)}, {**facts, **each})


def alter(
    connection: Connection,
    config: Configs = None,
    delete_config: Annotated[
        list[str] | None,
        typer.Option("--delete-config", metavar="NAME", help="A setting that goes back to its default; repeat it."),
    ] = None,
    execute: Execute = False,
) -> None:
    """Change settings of a warehouse, and say what that means for what is running: a dry run until --execute."""
    changes = changed_values(config or (), delete_config or ())
    if not changes:
        raise typer.BadParameter("say --config or --delete-config", param_hint="what to alter")
    given = numbers_from_text({name: value for name, value in changes.items() if value is not None})
    wanted = {name: given.get(name) for name in changes}
    warehouse = connection.open()
    before = warehouse.settings()
    after = warehouse.admin().alter_warehouse(wanted, validate_only=not execute)
    for line in meanings(before, after):
        tell(line)
    note_dry_run(execute=execute)
    old, new = asdict(before), asdict(after)
    connection.output.rows(Rows(ALTER_HEADERS, [(name, old[name], new[name], execute) for name in wanted]))


def fence_all(
    connection: Connection,
    execute: Execute = False,
) -> None:
    """After a restore: fence all producers, forget their ids, expel all members: a dry run until --execute.

    Exit code 1: a prepared transaction is left.  End each with its token, or abort it; then run this again.
    """
    warehouse = connection.open(recovering=True)
    restoration = Restoration(warehouse.completer, warehouse.admin())
    note_dry_run(execute=execute)
    report = restoration.fence_all() if execute else restoration.plan()
    connection.output.facts({**asdict(report), "executed": execute})
    if report.lost_offsets:
        tell(LOST_OFFSETS)
    if report.prepared:
        raise typer.Exit(1)


def verify(
    connection: Connection,
    topic: Annotated[
        list[str] | None, typer.Option("--topic", metavar="TOPIC", help="Only this topic. Repeat it. Default: all.")
    ] = None,
    metrics: Metrics = None,
) -> None:
    """Read all logs and every segment, and check every rule of the format that can be checked from outside.

    Logs and their checkpoints, segments with their digests, pages and statistics, those of older versions and deleted
    topics as long as they are kept, and whether the logs agree. Writes nothing, and others may write meanwhile. Exit
    code 1 when something is damaged, or a topic may not be read: a row for each, with what to do.
    """
    with progressing("verifying") as progress:
        found = verify_stored(connection.store(), topic, progress)
    rows = [(one.kind.value, one.path, one.problem, one.remedy) for one in found.damages]
    read = (
        f"{counted(found.logs, 'log')} ({counted(found.entries, 'entry', 'entries')},"
        f" {counted(found.checkpoints, 'checkpoint')}) and {counted(found.segments, 'segment')}"
        f" ({counted(found.bytes, 'byte')})"
    )
    if metrics is None:
        connection.output.rows(Rows(DAMAGE_HEADERS, rows, empty=f"all is well: {read}"))
    else:
        write_samples(connection.url, samples_of_verification(found), metrics)
        for row in rows:
            tell(": ".join(row))
    if rows:
        tell(f"read {read}: {len(rows):,} damaged")
        raise typer.Exit(1)


application.command("create")(on_warehouse(create))
application.command("alter")(on_warehouse(alter))
application.command("describe")(on_warehouse(describe))
application.command("fence-all")(on_warehouse(fence_all))
application.command("verify")(on_warehouse(verify))
