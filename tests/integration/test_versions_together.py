"""The version of a fixed commit and today's share one warehouse: each does everything after, and beside, the other.

Each has a wheel of its own, built from its sources, and processes that find no other code.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from tests.golden.warehouses import copy_of
from tests.golden.warehouses import expected as golden
from txntable.infra.package import PROJECT

FIRST = "5e06eb4006e8f05e9fb7d39e57f87ce0a2ae12a1"
"""The oldest commit whose clients share a warehouse with today's: format 1 as 0.1.0 has it."""
PROGRAM = Path(__file__).parent / "version_steps.py"

pytestmark = pytest.mark.nightly


@dataclass(frozen=True)
class Version:
    """The code of one commit, unpacked."""

    site: Path

    def start(self, step: str, warehouse: Path, name: str = "") -> subprocess.Popen[str]:
        kept = {key: value for key, value in os.environ.items() if key in {"PATH", "HOME"}}
        command = [sys.executable, "-P", str(PROGRAM), step, str(warehouse), name]
        environment = {**kept, "PYTHONPATH": str(self.site)}
        pipe = subprocess.PIPE
        place, pipe = self.site, subprocess.PIPE
        return subprocess.Popen(command, cwd=place, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True)

    def answer(self, line: str) -> object:
        """What a process says, which must be one of this version."""
        told = json.loads(line)
        assert Path(told["code"]).is_relative_to(self.site)
        return told["answer"]

    def run(self, step: str, warehouse: Path, name: str = "") -> object:
        process = self.start(step, warehouse, name)
        output, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
        return self.answer(output)


def unpacked(sources: Path, into: Path) -> Version:
    """Build a wheel and unpack it."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(into / "dist")]
    subprocess.run(command, cwd=sources, check=True, capture_output=True)
    (wheel,) = (into / "dist").glob("*.whl")
    zipfile.ZipFile(wheel).extractall(into / "site")
    return Version(into / "site")


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Version:
    folder = tmp_path_factory.mktemp("first")
    command = ["git", "-C", str(PROJECT), "archive", FIRST]
    try:
        packed = subprocess.run(command, check=True, capture_output=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip(f"no git history with commit {FIRST[:10]}: an archive of the sources, or a shallow clone")
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder / "sources", filter="data")
    return unpacked(folder / "sources", folder)


@pytest.fixture(scope="module")
def today(tmp_path_factory: pytest.TempPathFactory) -> Version:
    return unpacked(PROJECT, tmp_path_factory.mktemp("today"))


@pytest.fixture(params=["the older one begins", "the newer one begins"])
def pair(request: pytest.FixtureRequest, first: Version, today: Version) -> tuple[Version, Version]:
    return (first, today) if request.param == "the older one begins" else (today, first)


def test_versions_write_fence_consume_and_maintain_one_warehouse(pair: tuple[Version, Version], tmp_path: Path) -> None:
    one, other = pair
    # It is old enough to be compacted.
    place = copy_of("layers", tmp_path / "w")
    expected = [row["account"] for rows in golden("layers")["rows"].values() for row in rows]
    for version, name in ((one, "a"), (other, "b"), (one, "b"), (other, "a")):
        version.run("write", place, name)
        expected += [name] * 7
    consumed = one.run("consume", place)
    assert consumed == sorted(expected)

    held = one.start("hold", place, "held")
    assert held.stdout is not None
    assert one.answer(held.stdout.readline()) == "holding"
    other.run("abandon", place, "left")
    other.run("write", place, "held")
    output, _ = held.communicate("\n", timeout=120)
    assert one.answer(output) == "ProducerFencedError"
    one.run("write", place, "left")
    assert other.run("consume", place) == ["held"] * 7 + ["left"] * 7
    expected += ["held"] * 7 + ["left"] * 7

    for version, topic in ((one, "debit"), (other, "credit")):
        merged, failures = cast("tuple[int, list[str]]", version.run("maintain", place, topic))
        assert merged > 0
        assert failures == []
        version.run("write", place, "after")
        expected += ["after"] * 7
    assert one.run("consume", place) == ["after"] * 14

    for version in pair:
        assert version.run("read", place) == sorted(expected)
        assert version.run("verify", place) == []
