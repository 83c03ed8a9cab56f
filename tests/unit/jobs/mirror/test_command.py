"""What the command does around a mirror: which settings it takes, when it stops, what it says is missing."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner

import txntable
from tests.doubles.manual_environment import ManualEnvironment
from txntable.jobs.mirror.command import application, repeat
from txntable.jobs.mirror.positions import MirrorRun

SERVERS = ["--bootstrap-servers", "127.0.0.1:1"]
HOUR_MS = 60 * 60 * 1000


class Mirrored:
    """A source to which something is added at each turn, as long as there is something."""

    def __init__(self, *batches: int) -> None:
        self._batches = list(batches)
        self.goals: list[Mapping[int, int] | None] = []
        self.kept = 0

    def ends(self) -> Mapping[int, int]:
        return {0: sum(self._batches)}

    def run(self, goal: Mapping[int, int] | None = None) -> MirrorRun:
        self.goals.append(goal)
        size = self._batches.pop(0) if self._batches else 0
        return MirrorRun({0: (0, size)} if size else {})

    def keep(self) -> None:
        self.kept += 1

    def seek(self, asked: Mapping[int, int]) -> Mapping[int, int]:
        return asked

    def close(self) -> None:
        pass


def test_mirror_once_goes_as_far_as_the_source_was_and_commits_its_positions() -> None:
    mirror = Mirrored(5, 3)

    repeat(mirror, ManualEnvironment(), None, lambda: False)

    assert mirror.goals == [{0: 8}] * 3
    assert mirror.kept == 1


def test_mirror_without_end_has_no_goal_and_commits_its_positions_every_hour() -> None:
    mirror, environment = Mirrored(5), ManualEnvironment()
    began = environment.instant()

    repeat(mirror, environment, HOUR_MS // 4, lambda: environment.since_ms(began) > 2 * HOUR_MS)

    assert set(mirror.goals) == {None}
    assert mirror.kept == 3


def test_mirror_stops_between_transactions() -> None:
    mirror = Mirrored(5, 3)

    repeat(mirror, ManualEnvironment(), None, lambda: len(mirror.goals) == 1)

    assert len(mirror.goals) == 1
    assert mirror.kept == 0


@pytest.fixture
def folder(tmp_path: Path) -> str:
    warehouse = txntable.Warehouse.create(str(tmp_path / "warehouse"))
    warehouse.admin().create_topic("orders")
    return str(tmp_path / "warehouse")


def test_library_that_is_missing_is_told_with_the_remedy(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)

    answer = CliRunner().invoke(application, ["to-kafka", "orders", *SERVERS, "--warehouse", folder])

    assert answer.exit_code == 1
    assert "MISSING_DEPENDENCY" in answer.output
    assert "pip install confluent-kafka" in answer.output


def test_spark_that_is_missing_is_told_with_the_remedy(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "txntable.spark.session", raising=False)
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)

    answer = CliRunner().invoke(application, ["from-kafka", "orders", *SERVERS, "--warehouse", folder])

    assert answer.exit_code == 1
    assert "pip install 'txntable[spark]'" in answer.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--at", "0"], "PARTITION=OFFSET"),
        (["--at", "0=end"], "two numbers"),
        (["--at", "-1=0"], "two numbers"),
        (["--command-config", "no-such-file"], "cannot be read"),
        (["--command-config", __file__], "--command-config"),
    ],
)
@pytest.mark.parametrize("direction", ["from-kafka", "to-kafka"])
def test_option_that_cannot_be_is_wrong_usage(direction: str, arguments: list[str], said: str, folder: str) -> None:
    answer = CliRunner().invoke(application, [direction, "orders", *SERVERS, "--warehouse", folder, *arguments])

    assert answer.exit_code == 2
    assert said in answer.output
