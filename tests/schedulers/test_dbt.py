"""The page's dbt project in a real dbt: over a pinned position, and back into a topic once, whatever is killed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.documents.page import blocks_of
from tests.schedulers.dying_pipeline import BEFORE_THE_DECISION
from tests.schedulers.lake import DAY, HOW_TO, OTHER_DAY, Lake, program

PAGE = HOW_TO / "dbt.md"
FLIGHTS = pa.schema([pa.field("day", pa.string()), pa.field("carrier", pa.string()), pa.field("delay", pa.int64())])
DELAYS = FLIGHTS.set(2, pa.field("delay", pa.float64()))
# Each Python of the run, Spark's workers too, imports it as it starts: it is a worker that commits.
ARMED = "import dying_pipeline\n\ndying_pipeline.arm()\n"


class Dbt:
    """The page's project, and a lake of days."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        for block in blocks_of(PAGE):
            if block.title is not None:
                lake.write(PAGE.name, block.title)
        (lake.folder / "sitecustomize.py").write_text(ARMED)
        admin = lake.warehouse.admin()
        for topic, schema in {"flights": FLIGHTS, "delays": DELAYS}.items():
            admin.delete_topic(topic)
            admin.create_topic(topic, partitions=2, schema=schema)
        self.fly(DAY, 1, 3)

    def fly(self, day: str, *delays: int) -> int:
        """Produce flights of a day; return the position from which on they are seen."""
        with self._lake.warehouse.producer("flights") as producer:
            producer.init_transactions()
            with producer.transaction() as transaction:
                for delay in delays:
                    transaction.send("flights", row={"day": day, "carrier": "UA", "delay": delay})
        return self._lake.warehouse.snapshot().position

    def run(self, position: int, day: str) -> subprocess.CompletedProcess[str]:
        """Run all models; the report of the last line is dbt's own."""
        python = program("dbt", "python")
        settings = {
            "TXNTABLE_WAREHOUSE": str(self._lake.folder / "lake"),
            "PYSPARK_PYTHON": str(python),
            "PYTHONPATH": f"{self._lake.folder}:{Path(__file__).parents[2]}",
            "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
        }
        variables = json.dumps({"position": position, "day": day})
        words = ["run", "--profiles-dir", ".", "--vars", variables]
        return self._lake.run([program("dbt", "dbt"), *words], settings)

    def delays(self) -> list[tuple[str, float]]:
        """What is in the topic that a model writes."""
        table = self._lake.warehouse.read_arrow("delays").read_all()
        return sorted(zip(table["day"].to_pylist(), table["delay"].to_pylist(), strict=True))

    def flights_by_carrier(self) -> list[dict[str, object]]:
        """What is in dbt's own table, read from its files."""
        folder = self._lake.folder / "spark-warehouse/lake.db/flights_by_carrier"
        return [row for path in folder.rglob("*.parquet") for row in pq.read_table(path).to_pylist()]


@pytest.fixture
def dbt(lake: Lake) -> Dbt:
    return Dbt(lake)


def test_day_goes_back_into_a_topic_once_when_dbt_is_killed_and_run_again(lake: Lake, dbt: Dbt) -> None:
    position = lake.warehouse.snapshot().position
    dbt.fly(DAY, 100)
    lake.die_at(BEFORE_THE_DECISION)

    killed = dbt.run(position, DAY)
    written_before = dbt.delays()
    again = dbt.run(position, DAY)
    written = dbt.delays()
    once_more = dbt.run(position, DAY)

    assert killed.returncode < 0, killed.stdout
    assert lake.died == [BEFORE_THE_DECISION]
    assert written_before == []
    assert again.returncode == 0, again.stdout
    # The flight after the position is not in it.
    assert written == [(DAY, 2.0)]
    assert once_more.returncode == 0, once_more.stdout
    assert dbt.delays() == written


def test_model_over_a_position_is_what_it_was_and_the_next_day_is_added(lake: Lake, dbt: Dbt) -> None:
    position = lake.warehouse.snapshot().position
    next_position = dbt.fly(OTHER_DAY, 5)

    assert dbt.run(position, DAY).returncode == 0
    first = dbt.flights_by_carrier()
    assert dbt.run(next_position, OTHER_DAY).returncode == 0

    assert first == [{"carrier": "UA", "flights": 2, "delay": 2.0}]
    assert dbt.flights_by_carrier() == [{"carrier": "UA", "flights": 3, "delay": 3.0}]
    assert dbt.delays() == [(DAY, 2.0), (OTHER_DAY, 5.0)]
