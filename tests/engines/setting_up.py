"""What `make engines` needs beside the project's environment, in build/engines: ``python -m tests.engines.setting_up``.

An environment with the engines' packages, and Trino's server.  What cannot be had is said, and its tests are skipped.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "engines"
PYTHON = BUILD / "venv" / "bin" / "python"
# The newest that Maven Central has.
TRINO_VERSION = "476"
_REQUIREMENTS = Path(__file__).with_name("requirements.txt")


def main() -> None:
    """Make what is not there yet."""
    BUILD.mkdir(parents=True, exist_ok=True)
    _packages()
    _trino()


def _packages() -> None:
    done, wanted = BUILD / "venv" / ".installed", _REQUIREMENTS.read_text(encoding="utf-8")
    if done.exists() and done.read_text(encoding="utf-8") == wanted:
        return
    _say("installing the engines that are Python packages into build/engines/venv")
    venv.create(BUILD / "venv", with_pip=True)
    quietly = ["--quiet", "--disable-pip-version-check"]
    subprocess.run([PYTHON, "-m", "pip", "install", *quietly, "--requirement", _REQUIREMENTS], check=True)
    done.write_text(wanted, encoding="utf-8")


def _trino() -> None:
    home = BUILD / "trino"
    if home.exists():
        return
    if shutil.which("mvn") is None:
        _say("no Trino: its server comes from Maven Central, for which Maven (mvn) is needed")
        return
    _say(f"fetching Trino {TRINO_VERSION} (820 MB)")
    artifact = f"io.trino:trino-server:{TRINO_VERSION}:tar.gz"
    options = [f"-Dartifact={artifact}", f"-DoutputDirectory={BUILD}", "-Dmdep.useBaseVersion=true"]
    subprocess.run(["mvn", "--quiet", "--batch-mode", "dependency:copy", *options], cwd=BUILD, check=True)
    packed, unpacked = BUILD / f"trino-server-{TRINO_VERSION}.tar.gz", BUILD / f"trino-server-{TRINO_VERSION}"
    with tarfile.open(packed) as archive:
        archive.extractall(BUILD, filter="tar")
    for plugin in (unpacked / "plugin").iterdir():
        if plugin.name != "delta-lake":
            shutil.rmtree(plugin)
    packed.unlink()
    unpacked.rename(home)


def _say(what: str) -> None:
    sys.stderr.write(f"{what}\n")


if __name__ == "__main__":
    main()
