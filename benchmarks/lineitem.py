"""TPC-H's lineitem, made once in a benchmark's folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from txntable.format.schema import all_nullable

SCALE = os.environ.get("BENCH_SCALE", "1")


def lineitem(folder: Path) -> Path:
    """Return a Parquet file of lineitem (scale 1: 6 million rows)."""
    made = folder / "tpch"
    if not made.exists():
        beside = str(Path(sys.executable).parent)
        tool = shutil.which("tpchgen-cli", path=os.pathsep.join([beside, os.environ.get("PATH", "")]))
        if tool is None:
            # It has no part in what is measured: the one of another environment will do.
            raise FileNotFoundError("tpchgen-cli is not on the PATH; put an environment's bin there that has it")
        command = [tool, "parquet", "-s", SCALE, "--tables=lineitem", f"--output-dir={made}"]
        subprocess.run(command, check=True, capture_output=True)
    return next(made.rglob("lineitem*.parquet"))


def columns(path: Path) -> Any:
    """Return lineitem's columns as a topic's schema; the generator's views are plain strings there."""
    return all_nullable(pq.read_schema(path))
