"""Packs what the jobs run from: the wheel, an archive of it with its libraries, and the programs.

    python -m txntable.infra.package --into dist
    aws s3 cp --recursive dist s3://my-lake/artifacts/

The archive holds installed packages, and no interpreter: it is unpacked beside the driver and each executor and put on
their ``PYTHONPATH``.  Libraries are taken as wheels for the runtime's interpreter and machine, so that it can be made
anywhere; Spark and Delta are the runtime's own and left out.  A wheel or zip given to ``--py-files`` would not do:
Python loads no compiled module out of one, and four of the libraries have some.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
ENVIRONMENT_ARCHIVE = "txntable-environment.tar.gz"
PROGRAMS = (
    "jobs/coordinator.py",
    "jobs/compact.py",
    "jobs/vacuum.py",
    "jobs/verify.py",
    "jobs/pipeline.py",
    "jobs/catalog.py",
)
"""Both as the schedules of ``warehouse.yaml`` name them; a test compares."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """The interpreter that the archive is for.

    Attributes
    ----------
    python : str
        Its version, as ``3.11``.
    platforms : tuple of str
        Wheels of which platforms it takes.
    """

    python: str = "3.11"
    platforms: tuple[str, ...] = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")


def build_wheel(into: Path) -> Path:
    """Build the project's wheel; return its path.

    Parameters
    ----------
    into : Path
        The folder; made if it is not there.

    Raises
    ------
    subprocess.CalledProcessError
        It could not be built; pip has said why.
    """
    into.mkdir(parents=True, exist_ok=True)
    for old in into.glob("txntable-*.whl"):
        old.unlink()
    _pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(into), str(PROJECT))
    (wheel,) = into.glob("txntable-*.whl")
    return wheel


def build_environment(wheel: Path, into: Path, runtime: Runtime, pip_options: Sequence[str] = ()) -> Path:
    """Build the archive of the wheel and its libraries; return its path.

    Parameters
    ----------
    wheel : Path
        The project's.
    into : Path
        The folder.
    runtime : Runtime
        What it is for.
    pip_options : sequence of str
        Further options of ``pip install``, as ``--constraint requirements.txt``.

    Raises
    ------
    subprocess.CalledProcessError
        A library has no wheel for the runtime; pip has said which.
    """
    archive = into / ENVIRONMENT_ARCHIVE
    with tempfile.TemporaryDirectory() as folder:
        target = ["--target", folder, "--no-warn-conflicts", "--only-binary", ":all:", "--implementation", "cp"]
        target += ["--python-version", runtime.python, *(f"--platform={each}" for each in runtime.platforms)]
        _pip("install", *target, *pip_options, str(wheel))
        with tarfile.open(archive, "w:gz") as packed:
            for path in sorted(Path(folder).iterdir()):
                packed.add(path, path.name)
    return archive


def copy_programs(into: Path) -> list[Path]:
    """Copy the jobs' programs, where the schedules look for them; return their paths."""
    programs = [into / program for program in PROGRAMS]
    for program in programs:
        program.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROJECT / program.relative_to(into), program)
    return programs


def _pip(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments], check=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Pack as the arguments say; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m txntable.infra.package", description=__doc__.splitlines()[0])
    parser.add_argument("--into", type=Path, default=Path("dist"))
    parser.add_argument("--python", default=Runtime().python, help="version of the runtime's interpreter")
    parser.add_argument("--platform", action="append", help="whose wheels the runtime takes; may be repeated")
    parser.add_argument("--wheel-only", action="store_true", help="no archive: the runtime installs the wheel itself")
    given = parser.parse_args(arguments)
    if not (PROJECT / "pyproject.toml").is_file():
        parser.error("packages are made from a checkout of the project; run this there")
    made = [build_wheel(given.into), *copy_programs(given.into)]
    if not given.wheel_only:
        runtime = Runtime(given.python, tuple(given.platform or Runtime().platforms))
        made.append(build_environment(made[0], given.into, runtime))
    print("\n".join(str(path) for path in made))
    return 0


if __name__ == "__main__":
    sys.exit(main())
