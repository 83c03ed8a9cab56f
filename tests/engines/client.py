"""A session with one engine, in a process and an environment of its own: a statement a line in, rows as JSON out.

``python -m tests.engines.client ENGINE CONFIGURATION``.  The engines' packages are in `build/engines` only, hence
looked up by name.  It knows the columns whose type an engine does not tell, and nothing of what must be seen.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.engines.values import encode

# Runs a statement, and returns its rows by column name.
Run = Callable[[str], list[dict[str, Any]]]

BYTES, MAPS, ZONED = {"raw"}, {"counts"}, {"at", "_timestamp"}
NESTED = {"address", "counts", "numbers", "lines"}


def _rows(arrow: Any) -> list[dict[str, Any]]:
    """The rows of a table of Arrow, in whose texts may be bytes that are no text."""
    pa = import_module("pyarrow")
    for at, name in enumerate(arrow.schema.names):
        if name in BYTES:
            arrow = arrow.set_column(at, name, arrow[name].cast(pa.binary()))
    rows: list[dict[str, Any]] = arrow.to_pylist()
    return [{n: dict(v) if n in MAPS and v is not None else v for n, v in row.items()} for row in rows]


def duckdb(tables: Mapping[str, str], _: Mapping[str, str]) -> Run:
    """DuckDB with its delta extension, as a package has it: a folder is a table in each statement anew."""
    package = Path(str(import_module("duckdb_extension_delta").__file__)).parent
    connection = import_module("duckdb").connect(config={"allow_unsigned_extensions": "true"})
    connection.execute(f"LOAD '{next(package.rglob('*.duckdb_extension'))}'")
    connection.execute("SET TimeZone = 'UTC'")
    for name, url in tables.items():
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM delta_scan('{url}')")
    return lambda statement: _rows(connection.execute(statement).to_arrow_table())


def clickhouse(tables: Mapping[str, str], _: Mapping[str, str]) -> Run:
    """ClickHouse in this process, which may read what is below its working folder."""
    connection = import_module("chdb").connect(":memory:")
    for name, url in tables.items():
        connection.query(f"CREATE VIEW {name} AS SELECT * FROM deltaLakeLocal('{url}')")
    return lambda statement: _rows(connection.query(statement, "ArrowTable"))


def datafusion(tables: Mapping[str, str], _: Mapping[str, str]) -> Run:
    """DataFusion's own package over a table of deltalake, opened for each statement: it has one version."""
    context, table = import_module("datafusion").SessionContext, import_module("deltalake").DeltaTable

    def run(statement: str) -> list[dict[str, Any]]:
        session = context()
        for name, url in tables.items():
            if name in statement:
                session.register_table(name, table(url))
        return _rows(session.sql(statement).to_arrow_table())

    return run


def trino(tables: Mapping[str, str], server: Mapping[str, str]) -> Run:
    """Trino over HTTP: each topic is registered once."""
    cursor = (
        import_module("trino.dbapi")
        .connect(host="127.0.0.1", port=int(server["port"]), user="tests", catalog="lake", schema="shop")
        .cursor()
    )

    def run(statement: str) -> list[dict[str, Any]]:
        cursor.execute(statement)
        found = cursor.fetchall()
        names = [column[0] for column in cursor.description or []]
        return [dict(zip(names, map(_plain, row), strict=True)) for row in found]

    run("CREATE SCHEMA IF NOT EXISTS lake.shop")
    for name, url in tables.items():
        run(f"CALL lake.system.register_table('shop', '{name}', 'local://{url}')")
    return run


def _plain(value: Any) -> Any:
    """A row of Trino is a tuple with names."""
    if isinstance(value, tuple):
        names: Sequence[str] = value._names  # type: ignore[attr-defined]
        return {name: _plain(each) for name, each in zip(names, value, strict=True)}
    return [_plain(each) for each in value] if isinstance(value, list) else value


def thriftserver(tables: Mapping[str, str], server: Mapping[str, str]) -> Run:
    """Spark's Thrift server by Hive's protocol: nested values are JSON, and times have no zone."""
    utc = import_module("datetime").UTC
    cursor = import_module("pyhive.hive").connect("127.0.0.1", port=int(server["port"]), auth="NOSASL").cursor()

    def value(name: str, found: Any) -> Any:
        if found is not None and name in NESTED:
            return json.loads(found)
        return found.replace(tzinfo=utc) if found is not None and name in ZONED else found

    def run(statement: str) -> list[dict[str, Any]]:
        cursor.execute(statement)
        if cursor.description is None:
            return []
        names = [column[0] for column in cursor.description]
        return [{n: value(n, v) for n, v in zip(names, row, strict=True)} for row in cursor.fetchall()]

    for name, url in tables.items():
        run(f"CREATE TABLE {name} USING delta LOCATION '{url}'")
    return run


ENGINES = {each.__name__: each for each in (duckdb, clickhouse, datafusion, trino, thriftserver)}


def main(name: str, configuration: str) -> None:
    """Answer each line with one line, an error among them."""
    known = json.loads(configuration)
    run = ENGINES[name](known["tables"], known["server"])
    for line in sys.stdin:
        try:
            answer: dict[str, Any] = {"rows": [encode(row) for row in run(json.loads(line))]}
        except Exception as error:  # noqa: BLE001  each engine has errors of its own
            answer = {"error": f"{type(error).__name__}: {error}"}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
