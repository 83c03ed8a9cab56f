"""The schedules that a page shows name commands that exist, however a scheduler spells them.

Airflow and Dagster are larger than all that this project installs: `make schedulers` runs the page in them.  What
stands here in their place takes what the page gives them, and no more; the commands are the point.
"""

from __future__ import annotations

import configparser
import re
import shlex
import subprocess
import sys
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import pytest

from tests.documents.page import ROOT, blocks_of
from tests.documents.shell import fault_of

PAGE = ROOT / "docs/how-to/schedule.md"
FILES = {block.title: block.text for block in blocks_of(PAGE) if block.title not in (None, "output")}
_FIELD = r"(?:\*(?:/\d+)?|\d+)"


class Task:
    """In the place of an operator: knows its command, and what follows it."""

    known: ClassVar[list[Task]] = []

    def __init__(self, *, task_id: str, bash_command: str) -> None:
        self.name, self.command = task_id, bash_command
        self.followers: list[Task] = []
        self.known.append(self)

    def __rshift__(self, other: Task) -> Task:
        self.followers.append(other)
        return other


class Dag:
    """In the place of a DAG: takes these settings."""

    def __init__(self, dag_id: str, *, schedule: str, start_date: Any, default_args: Any, **flags: Any) -> None:
        assert set(flags) == {"catchup", "max_active_runs"}
        assert default_args["env"].keys() == {"TXNTABLE_WAREHOUSE"}

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Any:
    def put(name: str, **members: Any) -> None:
        module = ModuleType(name)
        module.__dict__.update(members)
        monkeypatch.setitem(sys.modules, name, module)

    Task.known.clear()
    return put


def cron_lines() -> list[str]:
    (block,) = [block for block in blocks_of(PAGE) if block.language == "cron"]
    return [line for line in block.text.splitlines() if line[0] in "*0123456789"]


@pytest.mark.parametrize("line", cron_lines())
def test_line_of_the_crontab_has_five_fields_and_a_command_that_exists(line: str) -> None:
    times, command = line.split(None, 5)[:5], line.split(None, 5)[5]

    assert all(re.fullmatch(_FIELD, time) for time in times)
    # A percent sign ends a command of cron, unless it is escaped.
    assert "%" not in command.replace("\\%", "")
    assert fault_of(re.sub(r"\$\([^)]*\)", "2026-11-20", command)) is None


def test_commands_of_the_dags_exist_and_vacuum_comes_last(modules: Any) -> None:
    modules("pendulum", datetime=lambda *day, tz: (*day, tz))
    modules("airflow.sdk", DAG=Dag)
    modules("airflow.providers.standard.operators.bash", BashOperator=Task)

    exec(compile(FILES["dags/lake.py"], "dags/lake.py", "exec"), {"__name__": "lake"})

    commands = {task.name: task.command.replace("{{ ds }}", "2026-11-20") for task in Task.known}
    assert commands.keys() == {"end_transactions", "compact", "vacuum", "verify", "delays"}
    assert [fault for command in commands.values() if (fault := fault_of(command))] == []
    order = {task.name: [each.name for each in task.followers] for task in Task.known}
    assert order == {"end_transactions": ["compact"], "compact": ["vacuum"], "vacuum": [], "verify": [], "delays": []}


def test_commands_of_the_assets_exist(modules: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"DailyPartitionsDefinition", "Definitions", "RetryPolicy", "ScheduleDefinition", "define_asset_job"}
    keep = {name: lambda *given, **named: (given, named) for name in (*names, "build_schedule_from_partitioned_job")}
    # Each can be written with settings and without.
    decorators = {name: lambda function=None, **_: function or (lambda given: given) for name in ("asset", "op")}
    modules("dagster", **keep, **decorators, job=lambda function: function, AssetExecutionContext=SimpleNamespace)
    run: list[str] = []
    monkeypatch.setattr(subprocess, "run", lambda command, *, check: run.append(shlex.join(command)))
    names_in_file: dict[str, Any] = {"__name__": "lake"}

    exec(compile(FILES["lake.py"], "lake.py", "exec"), names_in_file)
    names_in_file["delays"](SimpleNamespace(partition_key="2026-11-20"))
    names_in_file["upkeep"]()
    names_in_file["verification"]()

    assert len(run) == 5
    assert [fault for command in run if (fault := fault_of(command))] == []


def test_service_of_systemd_starts_a_command_that_exists_and_is_started_again() -> None:
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(FILES["txntable-coordinator.service"])

    assert set(unit) == {"DEFAULT", "Unit", "Service", "Install"}
    assert fault_of(unit["Service"]["ExecStart"]) is None
    assert unit["Service"]["Restart"] == "always"
    assert unit["Service"]["Environment"].startswith("TXNTABLE_WAREHOUSE=")


def test_page_shows_no_other_schedules() -> None:
    assert set(FILES) == {"dags/lake.py", "lake.py", "txntable-coordinator.service"}
