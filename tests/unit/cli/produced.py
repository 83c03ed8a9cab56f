"""What tests of ``txntable produce`` share: a way to call it, and short words for what it leaves."""

from __future__ import annotations

from collections.abc import Callable

from typer.testing import CliRunner, Result

from tests.simulation.site import published
from txntable.cli.main import application
from txntable.warehouse.warehouse import Warehouse

Produce = Callable[..., Result]
COMMIT = ("--transactional-id", "etl")


def produce_on(warehouse: Warehouse) -> Produce:
    """Return what calls ``txntable produce`` with the words given, and `data` on its standard input."""

    def run(*arguments: str, data: bytes | str = b"") -> Result:
        runner = CliRunner(env={"TXNTABLE_WAREHOUSE": warehouse.url})
        return runner.invoke(application, ["produce", *arguments, "--output", "json"], input=data)

    return run


def values(warehouse: Warehouse, topic: str) -> list[bytes]:
    return [row["value"] for row in published(warehouse, topic)]


def state(warehouse: Warehouse, transactional_id: str = "etl") -> str | None:
    warehouse.transactions.refresh()
    row = warehouse.transactions.row(transactional_id)
    return None if row is None else row.state.value
