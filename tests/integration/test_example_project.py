"""What ``txntable init`` makes runs as its README says, and as its schedule does."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from txntable.cli.main import application

ROOT = Path(__file__).parents[2]


def init(*words: str) -> Result:
    return CliRunner().invoke(application, ["init", *words])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A new project, with the words of its README in the PATH."""
    folder = tmp_path / "shop"
    assert init(str(folder)).exit_code == 0
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, what in (("txntable", f"{sys.executable} -m txntable.jobs.command"), ("python", sys.executable)):
        (programs / name).write_text(f'#!/bin/sh\nexec {what} "$@"\n')
        (programs / name).chmod(0o755)
    return folder


def surroundings(project: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PATH": f"{project.parent / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "TXNTABLE_WAREHOUSE": str(project / "warehouse"),
    }


def run(command: str, project: Path, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=project,
        env=environment or surroundings(project),
        capture_output=True,
        text=True,
        check=False,
    )


def commands_of_the_readme(project: Path) -> list[str]:
    """What the README tells to type, but what installs, waits for a key, and changes this machine."""
    (block,) = re.findall(r"```sh\n(.*?)```", (project / "README.md").read_text(), re.DOTALL)
    commands = [re.sub(r"\s{2,}#.*", "", line) for line in block.splitlines()]
    left_out = ("pip install", "export", "txntable watch", "crontab")
    return [command for command in commands if not command.startswith(left_out)]


def test_project_runs_as_its_readme_says(project: Path) -> None:
    told = {}
    for command in commands_of_the_readme(project):
        ran = run(command, project)
        assert ran.returncode == 0, (command, ran.stdout, ran.stderr)
        told[command] = ran.stdout

    assert told["python pipeline.py"] == "paid 3 orders\n"
    assert run("python pipeline.py", project).stdout == "paid 0 orders\n"
    (payments,) = [out for command, out in told.items() if command.startswith("txntable consume")]
    assert payments.count('"amount"') == 3
    assert "2 passed" in told["python -m pytest"]


def test_schedule_runs_in_the_surroundings_of_cron(project: Path) -> None:
    assert run("python pipeline.py --create", project).returncode == 0
    lines = [line for line in (project / "crontab").read_text().splitlines() if line and not line.startswith("#")]
    named = dict(line.split("=", 1) for line in lines if "=" in line.split(" ")[0])
    jobs = [line.split(" ", 5)[5] for line in lines if "=" not in line.split(" ")[0]]
    cron = {**named, "PATH": f"{project.parent / 'bin'}:{named['PATH']}", "PYTHONPATH": str(ROOT), "HOME": "/"}

    assert named["PATH"].startswith(str(Path(sys.executable).parent))
    assert len(jobs) == 6
    assert any("txntable warehouse verify" in job for job in jobs)
    for job in jobs:
        ran = run(job, Path("/"), cron)
        # What is printed is mailed: nobody reads mails that say that all is well.
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", ""), job
    shutil.rmtree(project / "warehouse" / "system")
    failed = {job: run(job, Path("/"), cron).stdout for job in jobs}
    assert [job for job, said in failed.items() if not said.strip()] == []


@pytest.mark.parametrize("name", ["my shop", "it's", "100%", "a$b", "ä"])
def test_schedule_finds_its_folder_whatever_its_name(tmp_path: Path, name: str) -> None:
    assert init(str(tmp_path / name)).exit_code == 0
    (line,) = [each for each in (tmp_path / name / "crontab").read_text().splitlines() if "pipeline.py" in each]
    # As cron reads it: what is not escaped would end the command.
    command = line.split(" ", 5)[5]
    assert "%" not in command.replace("\\%", "")

    found = run(command.replace("\\%", "%").replace("python pipeline.py", "pwd && false"), tmp_path, dict(os.environ))

    assert found.stdout.strip() == str((tmp_path / name).resolve())


def test_project_is_formatted_and_without_a_fault_of_style(project: Path) -> None:
    for words in (["format", "--check"], ["check", "--select", "E,F,I,B,UP,SIM"]):
        command = [sys.executable, "-m", "ruff", *words, "--isolated", "--line-length", "120", str(project)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stdout


def test_folder_that_is_not_empty_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")

    result = init(str(tmp_path))

    assert result.exit_code == 1
    assert "INVALID_REQUEST the folder is not empty" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")

    result = init(str(tmp_path / "mine"))

    assert result.exit_code == 1
    assert "INVALID_REQUEST the folder cannot be written to" in result.stderr


def test_files_that_were_made_are_told(tmp_path: Path) -> None:
    result = init(str(tmp_path / "new"))

    assert {Path(line).name for line in result.stdout.split()} == {path.name for path in (tmp_path / "new").iterdir()}
