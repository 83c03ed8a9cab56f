"""The page's DAGs in a real Airflow: a task that is killed again and again, and its scheduler with it, writes once."""

from __future__ import annotations

import subprocess

import pytest

from tests.schedulers.dying_pipeline import AFTER_THE_DECISION, BEFORE_THE_DECISION, IN_THE_FUNCTION
from tests.schedulers.lake import DAY, DELAYS, OTHER_DAY, Lake, program
from txntable.spark.pipelines.pipeline_config import PipelineConfig


class Airflow:
    """An Airflow with the page's DAGs and a database of its own."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._settings = {
            "AIRFLOW_HOME": str(lake.folder / "airflow"),
            "AIRFLOW__CORE__DAGS_FOLDER": str(lake.write("schedule.md", "dags/lake.py").parent),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            # Tests do not wait: the page leaves Airflow's own five minutes between two tries.
            "AIRFLOW__CORE__DEFAULT_TASK_RETRY_DELAY": "0",
        }
        migrated = self("db", "migrate")
        assert migrated.returncode == 0, migrated.stdout

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command of Airflow's."""
        return self._lake.run([program("airflow", "airflow"), *words], self._settings)


@pytest.fixture
def airflow(lake: Lake) -> Airflow:
    return Airflow(lake)


def test_day_is_written_once_when_its_task_is_killed_in_each_try_and_once_with_airflow(
    lake: Lake, airflow: Airflow
) -> None:
    lake.die_at(BEFORE_THE_DECISION, IN_THE_FUNCTION, AFTER_THE_DECISION)

    killed = airflow("dags", "test", "delays", DAY)
    written_before = lake.delays()
    again = airflow("dags", "test", "delays", DAY)

    assert killed.returncode < 0, killed.stdout
    assert written_before == []
    assert again.returncode == 0, again.stdout
    assert lake.died == [BEFORE_THE_DECISION, IN_THE_FUNCTION, AFTER_THE_DECISION], again.stdout
    assert "this batch id has committed before, nothing was done" in again.stdout
    assert lake.delays() == sorted(DELAYS.items())
    config = PipelineConfig("delays", sources=("flights",), targets=("delays",))
    producer = lake.warehouse.producer(config.transactional_id)
    assert [producer.is_committed(day) for day in (DAY, OTHER_DAY)] == [True, False]


def test_upkeep_runs_its_three_commands(airflow: Airflow) -> None:
    done = airflow("dags", "test", "lake_upkeep", DAY)

    assert done.returncode == 0, done.stdout
    for task in ("end_transactions", "compact", "vacuum"):
        assert f"end task task_id={task}" in done.stdout
