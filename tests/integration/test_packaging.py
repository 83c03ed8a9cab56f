"""The wheel and the archive, used where nothing of this checkout can be found."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from infra.package import ENVIRONMENT_ARCHIVE, PROJECT, Runtime, build_environment, build_wheel, copy_programs

PACKAGES = ("txntable", "coordinator", "compaction", "jobs", "infra")
MOVED = "txntable/spark/registration/"
"""What is in here is installed beside the packages."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    """Give an environment with the wheel and the libraries of this one, but without what is installed here of ours."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    site = Path(sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)}))
    # A path in a .pth file is searched; the .pth files that lie there are not read.
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib"))
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*command, "--ignore-installed", str(wheel)], check=True)
    return folder


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """Run a program that finds nothing of this checkout by its folder or environment; return what it prints."""
    kept = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME", "JAVA_HOME"}}
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, env=kept | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_wheel_holds_every_module_and_the_template(wheel: Path) -> None:
    held = set(zipfile.ZipFile(wheel).namelist())
    wanted = {str(path.relative_to(PROJECT)) for package in PACKAGES for path in (PROJECT / package).rglob("*.py")}

    assert {path for path in wanted if not path.startswith(MOVED)} <= held
    assert {"pyspark_txntable.py", "infra/warehouse.yaml", "txntable/py.typed"} <= held
    assert not {path for path in held if path.startswith(("tests/", "benchmarks/", "examples/"))}


def test_installed_command_makes_a_warehouse_and_finds_the_commands_of_the_jobs(clean: Path, tmp_path: Path) -> None:
    command = clean / "bin" / "txntable"

    assert str(clean) in run(clean / "bin" / "python", "-c", "import txntable; print(txntable.__file__)", cwd=tmp_path)
    shown = run(command, "--help", cwd=tmp_path)
    run(command, "warehouse", "create", "--warehouse", "w", cwd=tmp_path)

    assert all(name in shown for name in ("produce", "compact", "pipeline", "vacuum"))
    assert (tmp_path / "w" / "_warehouse.json").exists()


def test_program_runs_from_the_unpacked_archive(clean: Path, wheel: Path, tmp_path: Path) -> None:
    """Without the libraries, which this environment has: to fetch them takes a network."""
    archive = build_environment(wheel, tmp_path, Runtime(), ["--no-deps", "--no-index"])
    programs = copy_programs(tmp_path)
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path / "environment", filter="data")

    python = [clean / "bin" / "python"]
    where = run(*python, "-c", "import jobs.pipeline as j; print(j.__file__)", cwd=tmp_path, PYTHONPATH="./environment")
    coordinator = next(program for program in programs if program.name == "coordinator.py")
    shown = run(*python, coordinator, "--once", "--help", cwd=tmp_path, PYTHONPATH="./environment")

    assert archive.name == ENVIRONMENT_ARCHIVE
    assert "environment" in where
    assert "Run the coordinator" in shown
