"""The command of a pipeline: what it does before, and without, a JVM."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from tests.simulation.site import TWO_COLUMNS
from txntable.jobs import pipeline as job
from txntable.warehouse.warehouse import Warehouse

SETTINGS = """
group = "delays"
sources = ["in"]
[sql]
out = "SELECT account, amount FROM `in`"
"""


class JvmStarted(Exception):
    """Only where the run has work."""


def no_java() -> None:
    raise JvmStarted


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(job, "require_java", no_java)
    file = tmp_path / "delays.toml"
    file.write_text(SETTINGS)
    return file


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    warehouse = Warehouse.create(str(tmp_path / "warehouse"), durability="page-cache")
    for topic in ("in", "out"):
        warehouse.admin().create_topic(topic, schema=TWO_COLUMNS)
    return warehouse


def test_run_whose_batch_id_has_committed_starts_no_jvm_and_fences_nobody(warehouse: Warehouse, settings: Path) -> None:
    application = typer.Typer()
    application.command()(job.command)
    with warehouse.producer("delays-0") as producer:
        producer.init_transactions()
        with producer.transaction("2026-11-20") as txn:
            txn.send("out", row={"account": "a", "amount": 1})

        def run(batch_id: str) -> Any:
            options = ["--warehouse", warehouse.url, "--config", str(settings), "--once", "--batch-id", batch_id]
            return CliRunner().invoke(application, options)

        done, new = run("2026-11-20"), run("2026-11-21")

        assert (done.exit_code, done.stderr) == (0, "this batch id has committed before, nothing was done\n")
        assert isinstance(new.exception, JvmStarted)
        with producer.transaction("2026-11-21") as txn:
            txn.send("out", row={"account": "b", "amount": 1})
