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

from txntable.infra.package import ENVIRONMENT_ARCHIVE, PROJECT, Runtime, build_environment, build_wheel, copy_programs

LINKED = ("coordinator", "compaction", "jobs", "infra")
"""Folders of the project that are installed below `txntable`, where links lead to them."""
MOVED = "txntable/spark/datasource/registration/"
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
    wanted = {str(path.relative_to(PROJECT)) for path in (PROJECT / "txntable").rglob("*.py")}
    wanted |= {f"txntable/{path.relative_to(PROJECT)}" for name in LINKED for path in (PROJECT / name).rglob("*.py")}

    assert {path for path in wanted if not path.startswith(MOVED)} <= held
    assert {"pyspark_txntable.py", "txntable/infra/warehouse.yaml", "txntable/py.typed"} <= held
    page = {str(path.relative_to(PROJECT)) for path in (PROJECT / "txntable/report/templates").iterdir()}
    assert page <= held
    tops = {path.split("/")[0] for path in held}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"pyspark_txntable.py", "txntable"}


def built(project: Path, into: Path, *target: str) -> dict[str, bytes]:
    run(sys.executable, "-m", "hatchling", "build", *target, "--directory", into, cwd=project)
    return {made.name: made.read_bytes() for made in into.iterdir()}


def test_wheel_and_archive_have_the_same_bytes_when_built_elsewhere_and_later(wheel: Path, tmp_path: Path) -> None:
    first = built(PROJECT, tmp_path / "first")
    (archive,) = (name for name in first if name.endswith(".tar.gz"))
    with tarfile.open(tmp_path / "first" / archive) as sources:
        sources.extractall(tmp_path / "copy", filter="data")
    (copy,) = (tmp_path / "copy").iterdir()
    # What the build adds: it would stand there twice.
    (copy / "PKG-INFO").unlink()
    for path in copy.rglob("*"):
        os.utime(path, (1, 1))

    again = built(copy, tmp_path / "again")

    assert first[wheel.name] == wheel.read_bytes()
    assert again[wheel.name] == first[wheel.name]
    assert again[archive] == first[archive]


def test_archive_has_what_is_tracked_and_nothing_that_tools_have_left(tmp_path: Path) -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=PROJECT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("no git history: an archive of the sources")
    (archive,) = built(PROJECT, tmp_path / "made", "--target", "sdist")
    with tarfile.open(tmp_path / "made" / archive) as sources:
        held = {name.partition("/")[2] for name in sources.getnames()}

    links = tuple(f"txntable/{name}/" for name in LINKED)
    assert {path for path in held if not path.startswith(links)} - {"PKG-INFO"} <= set(listed.stdout.splitlines())


def test_installed_command_makes_a_warehouse_and_finds_the_commands_of_the_jobs(clean: Path, tmp_path: Path) -> None:
    command = clean / "bin" / "txntable"

    assert str(clean) in run(clean / "bin" / "python", "-c", "import txntable; print(txntable.__file__)", cwd=tmp_path)
    shown = run(command, "--help", cwd=tmp_path)
    run(command, "warehouse", "create", "--warehouse", "w", cwd=tmp_path)

    assert all(name in shown for name in ("produce", "compact", "pipeline", "vacuum"))
    assert (tmp_path / "w" / "_warehouse.json").exists()


def test_installed_command_and_modules_work_beside_a_users_packages_of_the_same_names(
    clean: Path, tmp_path: Path
) -> None:
    """Every Airflow repository has a package `jobs`, and some index has a project `compaction`."""
    for name in LINKED:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise RuntimeError('a package of the user')\n")
    python, beside = clean / "bin" / "python", {"PYTHONPATH": str(tmp_path)}

    run(clean / "bin" / "txntable", "warehouse", "create", "--warehouse", "w", cwd=tmp_path, **beside)
    vacuumed = run(python, "-m", "txntable.jobs.vacuum", "--warehouse", "w", cwd=tmp_path, **beside)
    compacted = run(clean / "bin" / "txntable", "compact", "--warehouse", "w", "--once", cwd=tmp_path, **beside)
    named = "import txntable.coordinator.errors as e; print(e.ProducerFencedError, e.__file__)"
    error = run(python, "-c", named, cwd=tmp_path, **beside)

    assert (tmp_path / "w" / "_warehouse.json").exists()
    assert vacuumed
    assert compacted
    assert error.startswith("<class 'txntable.ProducerFencedError'>")
    assert str(clean) in error


def test_import_of_the_package_loads_no_library(clean: Path, tmp_path: Path) -> None:
    code = "import sys, txntable.coordinator.transaction_shard; print(*sorted(sys.modules))"

    loaded = run(clean / "bin" / "python", "-c", code, cwd=tmp_path).split()

    assert not {"pyarrow", "numpy", "pandas", "obstore", "boto3", "botocore", "pyspark", "rich", "typer"} & set(loaded)


def test_import_of_the_warehouse_loads_neither_pandas_nor_boto3_nor_spark(clean: Path, tmp_path: Path) -> None:
    loaded = run(
        clean / "bin" / "python", "-c", "import sys; from txntable import Warehouse; print(*sys.modules)", cwd=tmp_path
    ).split()

    assert "pyarrow" in loaded
    assert not {"pandas", "boto3", "botocore", "pyspark", "rich", "typer"} & set(loaded)


def test_program_runs_from_the_unpacked_archive(clean: Path, wheel: Path, tmp_path: Path) -> None:
    """Without the libraries, which this environment has: to fetch them takes a network."""
    archive = build_environment(wheel, tmp_path, Runtime(), ["--no-deps", "--no-index"])
    programs = copy_programs(tmp_path)
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path / "environment", filter="data")

    python = [clean / "bin" / "python"]
    where = run(
        *python, "-c", "import txntable.jobs.pipeline as j; print(j.__file__)", cwd=tmp_path, PYTHONPATH="./environment"
    )
    coordinator = next(program for program in programs if program.name == "coordinator.py")
    shown = run(*python, coordinator, "--once", "--help", cwd=tmp_path, PYTHONPATH="./environment")

    assert archive.name == ENVIRONMENT_ARCHIVE
    assert "environment" in where
    assert "Run the coordinator" in shown
