"""Fixtures for the tests of people who build on this project: warehouses on this machine, of a folder and of S3.

A project's ``conftest.py`` names this module: ``pytest_plugins = ["txntable.testing.pytest_plugin"]``; nobody else's
tests load it.  Each test gets a warehouse of its own; the S3 server is one for each test process, on a port of its own,
so tests may run at once.  What a test wrote is gone when it ends.  Must not import moto unless a fixture on S3 is asked
for.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from txntable.errors import MissingDependencyError
from txntable.warehouse.warehouse import Warehouse

if TYPE_CHECKING:
    from txntable.testing.moto_server import LockedMotoServer

_numbers = itertools.count()


@pytest.fixture
def txntable_warehouse(tmp_path: Path) -> Warehouse:
    """Return a new, empty warehouse in a folder of this test; its ``url`` is the folder's path."""
    # Not synced: no test outlives a power cut.
    return Warehouse.create(str(tmp_path / "warehouse"), durability="page-cache")


@pytest.fixture(scope="session")
def txntable_s3() -> Iterator[LockedMotoServer]:
    """Yield an S3 server on this machine, whose ``storage_options`` lead any client to it.

    Raises
    ------
    MissingDependencyError
        moto is not installed: install ``txntable[testing]``.
    """
    with _moto_server().LockedMotoServer("txntable") as server:
        yield server


@pytest.fixture
def txntable_s3_warehouse(txntable_s3: LockedMotoServer) -> Iterator[Warehouse]:
    """Yield a new, empty warehouse on :func:`txntable_s3`; its ``url`` begins with ``s3://``."""
    url = f"{txntable_s3.url}/warehouse-{next(_numbers)}"
    warehouse = Warehouse.create(url, storage_options=txntable_s3.storage_options)
    yield warehouse
    warehouse.store.delete_unordered([meta.path for meta in warehouse.store.list("")])


def _moto_server() -> Any:
    try:
        return importlib.import_module("txntable.testing.moto_server")
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            "the s3 server of tests needs moto; install txntable[testing]", missing=error.name
        ) from error
