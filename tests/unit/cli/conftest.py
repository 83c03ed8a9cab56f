"""A warehouse in a folder, and a way to call the command line on it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from txntable.cli.main import application
from txntable.warehouse.warehouse import Warehouse

Call = Callable[..., Result]


def until_the_other_side_ends(terminal: int) -> bytes:
    """Return what is shown on a terminal from now on."""
    shown = b""
    while True:
        try:
            shown += os.read(terminal, 4096)
        except OSError:
            # The other side is gone.
            return shown


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse.create(str(tmp_path / "warehouse"), durability="page-cache")


@pytest.fixture
def call(warehouse: Warehouse) -> Call:
    """Call ``txntable`` on the warehouse, which the environment names."""

    def run(*arguments: str) -> Result:
        return CliRunner(env={"TXNTABLE_WAREHOUSE": warehouse.url}).invoke(application, arguments)

    return run


@pytest.fixture
def call_anywhere() -> Call:
    """Call ``txntable`` where nothing names a warehouse."""

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(application, arguments)

    return run
