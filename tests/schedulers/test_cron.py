"""The page's crontab, run as cron runs it: by `/bin/sh`, and with no environment but its own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.documents.page import ROOT, blocks_of
from tests.schedulers.dying_pipeline import AFTER_THE_DECISION, IN_THE_FUNCTION
from tests.schedulers.lake import DELAYS, HOW_TO, Lake

(CRONTAB,) = [block.text for block in blocks_of(HOW_TO / "schedule.md") if block.language == "cron"]
_ASSIGNMENT = re.compile(r"(\w+)=(.*)")


class Cron:
    """Runs lines of the crontab when it is asked to."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        text = CRONTAB.replace("/data/venv", sys.prefix).replace("/data/", f"{lake.folder}/")
        lines = [line for line in text.splitlines() if line and not line.startswith("#")]
        said = [match for line in lines if (match := _ASSIGNMENT.fullmatch(line))]
        self._environment = {match[1]: match[2] for match in said} | {"PYTHONPATH": str(ROOT), "HOME": str(Path.home())}
        self._told = lake.folder / "told"
        programs = lake.folder / "programs"
        programs.mkdir()
        (programs / "logger").write_text(f'#!/bin/sh\necho "$@" >> {self._told}\n')
        (programs / "logger").chmod(0o755)
        self._environment["PATH"] = f"{programs}:{self._environment['PATH']}"
        self.commands = [line.split(None, 5)[5] for line in lines if not _ASSIGNMENT.fullmatch(line)]

    def run(self, command: str) -> list[str]:
        """Run a command as cron does; return what it tells syslog."""
        # An escaped percent sign is one; cron has taken the backslash away before the shell sees it.
        shell = ["/bin/sh", "-c", command.replace("\\%", "%")]
        self._told.unlink(missing_ok=True)
        subprocess.run(shell, cwd=self._lake.folder, env=self._environment, check=True)
        return self._told.read_text().splitlines() if self._told.exists() else []


@pytest.fixture
def cron(lake: Lake) -> Cron:
    return Cron(lake)


def test_nightly_line_writes_once_when_it_is_killed_and_runs_again(lake: Lake, cron: Cron) -> None:
    (nightly,) = [command for command in cron.commands if "pipeline" in command]
    lake.die_at(IN_THE_FUNCTION, AFTER_THE_DECISION)

    told = [cron.run(nightly) for _ in range(3)]

    assert lake.died == [IN_THE_FUNCTION, AFTER_THE_DECISION]
    assert [bool(re.fullmatch(r"-p user\.err delays: [1-9]\d*", "".join(each))) for each in told] == [True, True, False]
    assert told[2] == []
    assert lake.delays() == sorted(DELAYS.items())


def test_other_lines_find_their_programs_and_end_well(cron: Cron) -> None:
    others = {command: cron.run(command) for command in cron.commands if "pipeline" not in command}

    assert len(others) == 5
    assert {command: told for command, told in others.items() if told} == {}


def test_line_that_fails_tells_syslog_its_exit_code(lake: Lake, cron: Cron) -> None:
    (check,) = [command for command in cron.commands if command.startswith("txntable check")]
    (lake.folder / "lake" / "_warehouse.json").unlink()

    assert cron.run(check) == ["-p user.err txntable check: 1"]
