"""Jobs are files that a scheduler starts, as modules and by their path."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = ("catalog", "compact", "coordinator", "pipeline", "vacuum", "verify")


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("start", [["-m", "txntable.jobs.{}"], ["jobs/{}.py"]], ids=["module", "file"])
def test_job_tells_its_options_however_it_is_started(name: str, start: list[str]) -> None:
    """By its path, Python looks into the folder of the program first."""
    arguments = [part.format(name) for part in start]

    run = subprocess.run([sys.executable, *arguments, "--help"], cwd=ROOT, capture_output=True, text=True, check=False)

    assert run.returncode == 0, run.stderr
    assert "--warehouse" in run.stdout
