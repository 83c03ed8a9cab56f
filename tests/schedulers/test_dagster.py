"""The page's asset and job in a real Dagster: a step killed again and again, and its run with it, writes once."""

from __future__ import annotations

import subprocess

import pytest

from tests.schedulers.dying_pipeline import AFTER_THE_DECISION, BEFORE_THE_DECISION, IN_THE_FUNCTION
from tests.schedulers.lake import DAY, DELAYS, Lake, program


class Dagster:
    """A Dagster with the page's definitions and a home of its own."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        home = lake.folder / "dagster"
        home.mkdir()
        # Nothing is told to its makers.
        (home / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
        self._file = str(lake.write("schedule.md", "lake.py"))
        self._settings = {"DAGSTER_HOME": str(home), "TXNTABLE_WAREHOUSE": str(lake.folder / "lake")}

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command of Dagster's."""
        return self._lake.run([program("dagster", "dagster"), *words, "-f", self._file], self._settings)


@pytest.fixture
def dagster(lake: Lake) -> Dagster:
    return Dagster(lake)


def test_day_is_written_once_when_its_step_is_killed_in_each_try_and_once_with_the_run(
    lake: Lake, dagster: Dagster
) -> None:
    lake.die_at(BEFORE_THE_DECISION, IN_THE_FUNCTION, AFTER_THE_DECISION)

    killed = dagster("asset", "materialize", "--select", "delays", "--partition", DAY)
    written_before = lake.delays()
    again = dagster("asset", "materialize", "--select", "delays", "--partition", DAY)

    assert killed.returncode < 0, killed.stdout
    assert written_before == []
    assert again.returncode == 0, again.stdout
    assert lake.died == [BEFORE_THE_DECISION, IN_THE_FUNCTION, AFTER_THE_DECISION], again.stdout
    assert again.stdout.count("STEP_RESTARTED") == 2
    assert "this batch id has committed before, nothing was done" in again.stdout
    assert lake.delays() == sorted(DELAYS.items())


def test_upkeep_runs(dagster: Dagster) -> None:
    done = dagster("job", "execute", "-j", "upkeep")

    assert done.returncode == 0, done.stdout
    assert "RUN_SUCCESS" in done.stdout
