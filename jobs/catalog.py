"""``txntable catalog``: topics as tables of a catalog, for people, schedulers and spark-submit.

    python -m txntable.jobs.catalog --warehouse s3://bucket/warehouse --glue --database lake
    spark-submit jobs/catalog.py --warehouse s3://bucket/warehouse --hive --database lake

Exit code 0: the catalog has what the warehouse has; 1: a name was refused, or a table failed: the others are done, and
the next run goes on; 2: wrong usage; 130 or 143: ended by SIGINT or SIGTERM.  Spark is loaded for Hive only.
"""

from __future__ import annotations

import importlib
import os
from contextlib import ExitStack
from enum import Enum
from typing import Annotated

import typer

from txntable.catalog.catalog import Catalog
from txntable.catalog.glue_catalog import GlueCatalog, s3_root
from txntable.catalog.synchronisation import Outcome, SyncOptions, synchronise
from txntable.catalog.table import TRANSACTIONS, check_prefix
from txntable.catalog.unity_catalog import UnityCatalog
from txntable.catalog.unity_server import UnityServer
from txntable.cli.connection import Connection, on_warehouse
from txntable.cli.output import Rows, camel_headers, tell
from txntable.cli.plain_help import run_alone
from txntable.cli.progress import progressing
from txntable.errors import InvalidRequestError, MissingDependencyError
from txntable.storage.glue_tables import GlueTables
from txntable.warehouse.warehouse import Warehouse

HEADERS = camel_headers("table topic action executed reason")
TOKEN_VARIABLE = "TXNTABLE_UNITY_TOKEN"

application = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Register topics as tables of a catalog of SQL engines."
)


class Kind(Enum):
    """Which catalog."""

    GLUE = "--glue"
    HIVE = "--hive"
    UNITY = "--unity"


def sync(  # noqa: PLR0913  the options of the command
    connection: Connection,
    glue: Annotated[bool, typer.Option("--glue", help="AWS Glue's Data Catalog: Athena, EMR, Trino.")] = False,
    hive: Annotated[bool, typer.Option("--hive", help="A Hive metastore, through Spark.")] = False,
    unity: Annotated[bool, typer.Option("--unity", help="A server of Unity Catalog.")] = False,
    database: Annotated[
        str | None, typer.Option("--database", metavar="NAME", help="That has the tables; of Unity: CATALOG.SCHEMA.")
    ] = None,
    prefix: Annotated[str, typer.Option("--prefix", metavar="TEXT", help="Of the tables' names.")] = "",
    transactions: Annotated[
        bool,
        typer.Option("--transactions", help=f"Register the transaction log, too, as {TRANSACTIONS}, for snapshots."),
    ] = False,
    endpoint: Annotated[
        str | None,
        typer.Option(
            "--endpoint", metavar="URL", help="Of Glue (else AWS's own), the metastore (thrift://), or Unity's server."
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and exit.")] = False,
) -> None:
    """Bring a catalog to what the warehouse has: create, update and drop the tables of its topics.

    A table that this warehouse did not register is never touched: its topic is refused. Only the catalog is changed, no
    file of a topic is. Runs may overlap, and a second one changes nothing. The token for Unity's server is
    TXNTABLE_UNITY_TOKEN.
    """
    kinds = [kind for kind, said in zip(Kind, (glue, hive, unity), strict=True) if said]
    if len(kinds) != 1:
        raise typer.BadParameter("say one of them", param_hint=" / ".join(kind.value for kind in Kind))
    if not database:
        raise typer.BadParameter("say which one", param_hint="--database")
    options = SyncOptions(check_prefix(prefix), transactions=transactions, execute=not dry_run)
    warehouse = connection.open()
    with ExitStack() as sessions, progressing("catalog sync") as progress:
        catalog = _opened(kinds[0], warehouse, database, endpoint, sessions)
        outcomes = synchronise(warehouse, catalog, options, progress)
    _answer(connection, outcomes, dry_run=dry_run)


def _opened(kind: Kind, warehouse: Warehouse, database: str, endpoint: str | None, sessions: ExitStack) -> Catalog:
    environment = warehouse.context.environment
    if kind is Kind.GLUE:
        s3_root(warehouse.url)
        return GlueCatalog(GlueTables(warehouse.store.spec, database, endpoint, environment))
    if kind is Kind.UNITY:
        catalog, dot, schema = database.partition(".")
        if not dot or not endpoint:
            raise InvalidRequestError("unity wants --endpoint URL and --database CATALOG.SCHEMA", database=database)
        return UnityCatalog(UnityServer(endpoint, (catalog, schema), os.environ.get(TOKEN_VARIABLE), environment))
    try:
        # Imported where it is wanted: the others do without Spark.
        started: Catalog = importlib.import_module("txntable.jobs.hive_catalog").start_hive(
            sessions, warehouse.store.spec, database, endpoint
        )
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            "spark is not installed; pip install 'txntable[spark]'", missing=error.name
        ) from error
    return started


def _answer(connection: Connection, outcomes: list[Outcome], *, dry_run: bool) -> None:
    rows = [
        (one.change.table, one.change.topic, one.change.action.value, one.executed, one.change.reason)
        for one in outcomes
    ]
    connection.output.rows(Rows(HEADERS, rows, empty="there are no topics, and no tables of them"))
    if dry_run:
        tell("a dry run: nothing was changed")
    for one in outcomes:
        if one.failure is not None:
            tell(f"error: table={one.change.table} {one.failure.code} {one.failure}")
    if not all(one.is_good for one in outcomes):
        raise typer.Exit(1)


command = on_warehouse(sync)
application.command("sync")(command)


@application.callback()
def _nouns() -> None:
    """Keep the verb, of which there is one."""


def main() -> None:
    """Synchronise as the arguments of the process say, and exit."""
    run_alone(command)


if __name__ == "__main__":
    main()
