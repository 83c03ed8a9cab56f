"""Small transactions of PyIceberg and of DuckLake, whose catalogs are SQLite: no server is needed.

Both are no dependencies of this project: ``make peers`` has them in a folder of their own.  Their catalogs sync,
as SQLite does by default; their files do not.  DuckLake keeps up to ten rows of an insert in the catalog, as it does by
default: then it writes no file at all.
"""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.contenders import Transact, Workload

_NEEDS = "`pip install {}` in the path of Python"
_SCHEMA = pa.schema([pa.field("x", pa.int64())])
_EXTENSIONS = ("sqlite_scanner", "ducklake")


def iceberg_missing() -> str | None:
    """Return what PyIceberg needs here, or ``None``: all is there."""
    return _missing("'pyiceberg[sql-sqlite]'", "pyiceberg", "sqlalchemy")


def ducklake_missing() -> str | None:
    """Return what DuckLake needs here, or ``None``: all is there."""
    modules = ("duckdb", *(f"duckdb_extension_{name}" for name in _EXTENSIONS))
    return _missing("duckdb==V duckdb-extension-ducklake==V duckdb-extension-sqlite-scanner==V", *modules)


def _missing(packages: str, *modules: str) -> str | None:
    is_there = all(importlib.util.find_spec(module) is not None for module in modules)
    return None if is_there else _NEEDS.format(packages)


@dataclass(frozen=True, slots=True)
class Iceberg:
    """Appends by PyIceberg, each one commit; a table that others write to is loaded for each."""

    folder: str

    @property
    def name(self) -> str:
        """For people."""
        return "PyIceberg append"

    def create(self, workload: Workload) -> None:
        """Create the tables."""
        Path(self.folder, workload.key).mkdir(parents=True)
        catalog = self._catalog(workload)
        catalog.create_namespace("bench")
        for topic in workload.topics:
            catalog.create_table(f"bench.{topic}", schema=_SCHEMA)

    def connect(self, workload: Workload, number: int) -> Transact:
        """Return an append."""
        catalog, name = self._catalog(workload), f"bench.{workload.topic(number)}"
        rows = pa.table({"x": pa.array([1] * workload.records, pa.int64())})
        if workload.shares:
            return lambda: catalog.load_table(name).append(rows)
        table = catalog.load_table(name)
        return lambda: table.append(rows)

    def _catalog(self, workload: Workload) -> Any:
        place = f"{self.folder}/{workload.key}"
        made = importlib.import_module("pyiceberg.catalog.sql").SqlCatalog
        return made("bench", uri=f"sqlite:///{place}/catalog.sqlite", warehouse=f"file://{place}/data")


@dataclass(frozen=True, slots=True)
class DuckLake:
    """Inserts by DuckDB, each a transaction."""

    folder: str

    @property
    def name(self) -> str:
        """For people."""
        return "DuckLake insert"

    def create(self, workload: Workload) -> None:
        """Create the tables."""
        Path(self.folder, workload.key).mkdir(parents=True)
        connection = self._connection(workload)
        for topic in workload.topics:
            connection.execute(f"CREATE TABLE lake.{topic} (x BIGINT)")
        connection.close()

    def connect(self, workload: Workload, number: int) -> Transact:
        """Return an insert."""
        connection = self._connection(workload)
        statement = f"INSERT INTO lake.{workload.topic(number)} SELECT 1 FROM range({workload.records})"
        return lambda: connection.execute(statement)

    def _connection(self, workload: Workload) -> Any:
        connection = importlib.import_module("duckdb").connect(config={"allow_unsigned_extensions": "true"})
        for name in _EXTENSIONS:
            package = Path(str(importlib.import_module(f"duckdb_extension_{name}").__file__)).parent
            connection.execute(f"LOAD '{next(package.rglob('*.duckdb_extension'))}'")
        place = f"{self.folder}/{workload.key}"
        connection.execute(f"ATTACH 'ducklake:sqlite:{place}/catalog.sqlite' AS lake (DATA_PATH '{place}/data')")
        return connection
