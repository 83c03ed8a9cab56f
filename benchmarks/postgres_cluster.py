"""A PostgreSQL cluster of its own for a benchmark: a folder, a process on loopback, and two-phase commits.

Needs PostgreSQL's server programs and the package psycopg; neither is a dependency of this project, so they are looked
for when a benchmark runs.  All is PostgreSQL's default, ``fsync`` and ``synchronous_commit`` too, but
``max_prepared_transactions``.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.contenders import Transact, Workload
from benchmarks.server_process import ended, free_port, wait_until

_NEEDS = "`apt-get install postgresql` (or its programs initdb and postgres in PATH); `pip install 'psycopg[binary]'`"
_MOST_PREPARED = 64
# Debian has them out of PATH; the package makes a user for them, which the superuser has to become.
_DEBIAN, _USER = Path("/usr/lib/postgresql"), "postgres"


def missing() -> str | None:
    """Return what a cluster needs here, or ``None``: all is there."""
    has_client = importlib.util.find_spec("psycopg") is not None
    return None if has_client and _program("initdb") and _program("postgres") else _NEEDS


def _program(name: str) -> str | None:
    found = shutil.which(name)
    return found or next(map(str, sorted(_DEBIAN.glob(f"*/bin/{name}"), reverse=True)), None)


@dataclass(frozen=True, slots=True)
class PostgresCluster:
    """A cluster that runs.

    Attributes
    ----------
    port : int
        Of loopback.
    """

    port: int

    @property
    def name(self) -> str:
        """For people."""
        return "PostgreSQL, two-phase"

    def connection(self) -> Any:
        """Return a connection; raises the client's OperationalError."""
        psycopg = importlib.import_module("psycopg")
        return psycopg.connect(host="127.0.0.1", port=self.port, user=_USER, dbname="postgres")

    def create(self, workload: Workload) -> None:
        """Create the tables, partitioned as topics are."""
        with self.connection() as connection:
            for topic in workload.topics:
                connection.execute(f"CREATE TABLE {topic} (part int, x bigint) PARTITION BY LIST (part)")
                for part in range(workload.partitions):
                    connection.execute(f"CREATE TABLE {topic}_{part} PARTITION OF {topic} FOR VALUES IN ({part})")

    def connect(self, workload: Workload, number: int) -> Transact:
        """Return a transaction: one INSERT of all rows, PREPARE TRANSACTION, COMMIT PREPARED."""
        connection = self.connection()
        topic, key = workload.topic(number), f"{workload.key}-{number}"
        insert = f"INSERT INTO {topic} SELECT part, 1 FROM generate_series(0, {workload.records - 1}) part"

        def transact() -> None:
            connection.tpc_begin(key)
            connection.execute(insert)
            connection.tpc_prepare()
            connection.tpc_commit()

        return transact


@contextmanager
def postgres_cluster() -> Iterator[PostgresCluster]:
    """Start a cluster on loopback, with its files in a new temporary folder, and end it."""
    with tempfile.TemporaryDirectory(prefix="txntable-bench-postgres-") as folder:
        user = _USER if os.geteuid() == 0 else None
        if user is not None:
            shutil.chown(folder, user, user)
        data, cluster = f"{folder}/data", PostgresCluster(free_port())
        initdb = [str(_program("initdb")), "-D", data, "-U", _USER, "-A", "trust", "-E", "UTF8", "--locale=C"]
        subprocess.run(initdb, check=True, capture_output=True, user=user, group=user, cwd=folder)
        settings = {
            "port": cluster.port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": folder,
            "max_prepared_transactions": _MOST_PREPARED,
        }
        command = [str(_program("postgres")), "-D", data, *(f"--{name}={value}" for name, value in settings.items())]
        log = Path(folder) / "output"
        with log.open("wb") as output:
            server = subprocess.Popen(command, stdout=output, stderr=output, user=user, group=user, cwd=folder)
            # A fast shutdown: who is connected is not waited for.
            with ended(server, lambda: server.send_signal(signal.SIGINT)):
                wait_until(lambda: _answers(cluster), server, log)
                yield cluster


def _answers(cluster: PostgresCluster) -> bool:
    psycopg = importlib.import_module("psycopg")
    try:
        cluster.connection().close()
    except psycopg.OperationalError:
        return False
    return True
