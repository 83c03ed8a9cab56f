"""``jobs/pipeline.py`` killed in a transaction: the copy is the original, and the sums are those of a batch."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.spark.pipeline_function import totals_of
from txntable.format.records import TopicPartition
from txntable.runtime.environment import SystemEnvironment
from txntable.spark.pipelines.latest_rows import latest_rows
from txntable.warehouse.warehouse import Warehouse

ROOT = Path(__file__).parents[2]
TRIPS = pa.schema([pa.field("carrier", pa.string(), nullable=False), pa.field("miles", pa.int64())])
RECORDS, PARTITIONS = 20_000, 2
PATIENCE_MS = 180_000
# Each costs a start of Spark; more of them by hand.
KILLS = int(os.environ.get("TXNTABLE_PIPELINE_KILLS", "1"))
SETTINGS = """
group = "totals"
sources = ["trips"]
targets = ["copies"]
state = "totals"
function = "pipeline_function:copy_and_add_up"
max_offsets_per_partition = 2000
interval_ms = 200
"""


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    warehouse = Warehouse.create(str(tmp_path / "warehouse"), durability="page-cache")
    for topic in ("trips", "copies", "totals"):
        warehouse.admin().create_topic(topic, partitions=PARTITIONS, schema=TRIPS, key=["carrier"])
    with warehouse.producer() as producer:
        for number in range(RECORDS):
            producer.send("trips", row={"carrier": f"C{number % 40}", "miles": number})
    return warehouse


def started(warehouse: Warehouse, folder: Path) -> subprocess.Popen[str]:
    """Start the job as a scheduler does."""
    settings = folder / "totals.toml"
    settings.write_text(SETTINGS)
    (folder / "pipeline_function.py").write_text((ROOT / "tests" / "spark" / "pipeline_function.py").read_text())
    command = [sys.executable, "-m", "txntable.jobs.pipeline", "--warehouse", warehouse.url, "--config", str(settings)]
    return subprocess.Popen(command, cwd=ROOT, text=True, stderr=subprocess.PIPE)


def looks(warehouse: Warehouse, job: subprocess.Popen[str]) -> Iterator[None]:
    """Look again and again, while the job lives."""
    environment = SystemEnvironment()
    began = environment.instant()
    while environment.since_ms(began) < PATIENCE_MS:
        assert job.poll() is None, job.stderr and job.stderr.read()
        yield
        environment.sleep_ms(5)
    raise AssertionError("the job does not go on")


def kill_in_a_transaction(warehouse: Warehouse, folder: Path) -> None:
    """Start the job and kill it once a transaction of it has offsets and is not decided; again where it was faster."""
    while True:
        job = started(warehouse, folder)
        for _ in looks(warehouse, job):
            if ongoing(warehouse):
                job.kill()
                break
        job.communicate()
        assert job.returncode == -signal.SIGKILL
        if ongoing(warehouse):
            return


def ongoing(warehouse: Warehouse) -> bool:
    """Whether a transaction is under way that nobody has decided."""
    transactions = warehouse.transactions
    return any(row.state.is_open for row in transactions.look(lambda: list(transactions.log.fold.under_way.values())))


def stop_at_the_end(warehouse: Warehouse, job: subprocess.Popen[str]) -> str:
    """Stop the job when everything is copied, and return what it said."""
    with warehouse.consumer(group_id="totals") as consumer:
        partitions = [TopicPartition("trips", number) for number in range(PARTITIONS)]
        for _ in looks(warehouse, job):
            committed = consumer.committed(partitions)
            if {each: one and one.offset for each, one in committed.items()} == consumer.end_offsets(partitions):
                break
    job.terminate()
    _, said = job.communicate()
    assert job.returncode == 128 + signal.SIGTERM, said
    return said


@pytest.mark.nightly
def test_copy_and_sums_are_right_when_the_job_is_killed_in_a_transaction(
    warehouse: Warehouse, spark: SparkSession, tmp_path: Path
) -> None:
    for _ in range(KILLS):
        kill_in_a_transaction(warehouse, tmp_path)
    said = stop_at_the_end(warehouse, started(warehouse, tmp_path))

    def rows(topic: str) -> list[tuple[object, ...]]:
        table = warehouse.read_arrow(topic).read_all()
        records = zip(
            table["_partition"].to_pylist(), table["_offset"].to_pylist(), table["miles"].to_pylist(), strict=True
        )
        return [(partition, miles) for partition, _, miles in sorted(records)]

    assert "committed offsets=" in said
    assert rows("copies") == rows("trips")
    totals = latest_rows(warehouse.read(spark, "totals"), warehouse.topic_log("totals").settings())
    assert sorted(totals.collect()) == sorted(totals_of(warehouse.read(spark, "trips")).collect())
    assert "A" in "".join(str(row.past) for row in warehouse.transactions.rows()), "something was killed"
