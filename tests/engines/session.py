"""What a test asks an engine through: its client's process, and Delta Kernel, which knows no SQL."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyspark

from tests.engines.servers import MissingPartError, thriftserver, trino
from tests.engines.setting_up import PYTHON, ROOT

SERVERS = {"trino": trino, "thriftserver": thriftserver}
ENGINES = ["duckdb", "clickhouse", "datafusion", *SERVERS]

Rows = list[dict[str, Any]]


class RefusedError(Exception):
    """The engine's own words."""


class Session:
    """Statements to one engine, and their rows, spelled as in `tests.engines.values`."""

    def __init__(self, engine: str, process: subprocess.Popen[str]) -> None:
        self.engine = engine
        self._process = process

    def rows(self, statement: str) -> Rows:
        """Run a statement."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(statement) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the client of {self.engine} has ended; its error is above"
        answer = json.loads(line)
        if "error" in answer:
            raise RefusedError(f"{answer['error']} statement={statement}")
        rows: Rows = answer["rows"]
        return rows


@contextmanager
def opened(engine: str, tables: Mapping[str, str], folder: Path) -> Iterator[Session]:
    """Start an engine with tables by name, in `folder`, below which the tables are, too."""
    if not PYTHON.exists():
        raise MissingPartError("the engines are not installed: `make engines` does it")
    with ExitStack() as stack:
        server = stack.enter_context(SERVERS[engine](folder / engine)) if engine in SERVERS else {}
        process = stack.enter_context(
            subprocess.Popen(
                [PYTHON, "-m", "tests.engines.client", engine, json.dumps({"tables": tables, "server": server})],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
        yield Session(engine, process)


def read_by_kernel(url: str) -> Rows:
    """All rows of a table, by Delta Kernel's jars, which Spark has fetched with Delta."""
    jars = sorted(Path.home().glob(".ivy2*/jars/io.delta_delta-*.jar"))
    java = shutil.which("java")
    if java is None or not any("delta-kernel-defaults" in jar.name for jar in jars):
        raise MissingPartError("Delta Kernel needs a JDK, and the jars that a Spark session with Delta fetches")
    path = os.pathsep.join([*map(str, jars), f"{Path(pyspark.__file__).parent / 'jars'}/*"])
    program = Path(__file__).with_name("ReadTable.java")
    run = subprocess.run(
        [java, "-Xmx512m", "-cp", path, program, url], capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert run.returncode == 0, run.stderr[-2000:]
    return [json.loads(line) for line in run.stdout.splitlines()]
