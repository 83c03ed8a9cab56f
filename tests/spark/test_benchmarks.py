"""Benchmarks that need Spark still run: nothing else runs them, and figures are wanted when there is no time left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Those that take a minute at so small a scale.
NAMES = ("format_reads", "light_reads", "many_topics", "pipeline", "streaming", "time_travel", "vacuum", "write")


@pytest.mark.nightly
@pytest.mark.parametrize("name", NAMES)
def test_benchmark_of_spark_measures_something_at_a_small_scale(name: str, tmp_path: Path) -> None:
    told = tmp_path / "figures.json"
    command = [sys.executable, "-m", "benchmarks", name, "--json", str(told)]

    subprocess.run(
        command, check=True, cwd=ROOT, env={**os.environ, "BENCH_SCALE": "0.01", "BENCH_ROUNDS": "1"}, timeout=600
    )

    figures = json.loads(told.read_text())[name]
    assert figures
    assert all(figure["value"] > 0 for figure in figures if figure["unit"] == "×")
