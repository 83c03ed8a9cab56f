"""The runbook as its reader follows it: its sections, their commands, and a shell that runs them as they stand.

Owns that nothing is written down twice: a drill takes command lines from the page, and says only which places and
moments stand for those of the page.  ``aws`` is a double (``tests.doubles.aws_cli``); a deployment makes the bucket and
nothing more, because moto keeps to no policy of a bucket (``tests/integration/test_deploy.py`` is about deployments).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tests.documents.page import ROOT
from tests.documents.shell import lines_of

RUNBOOK = ROOT / "infra" / "RUNBOOK.md"
_SECTION = re.compile(r"^## (?P<title>.+)\n(?P<text>(?:(?!^## ).*\n?)*)", re.MULTILINE)
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PROGRAM = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_DRILLS = re.compile(r"tests/[\w/]+\.py(?:::\w+)?")
_DEPLOYS = '*"txntable.infra.deploy"*) exec {python} -P -m tests.drills.deployed "$@" ;;'


@dataclass(frozen=True, slots=True)
class Section:
    """One section of the runbook.

    Attributes
    ----------
    title : str
        Its heading.
    text : str
        All of it.
    """

    title: str
    text: str

    @property
    def blocks(self) -> list[list[str]]:
        """The commands of each of its blocks."""
        return [lines_of(block) for block in _BLOCK.findall(self.text)]

    @property
    def programs(self) -> list[str]:
        """Each of its blocks of Python."""
        return _PROGRAM.findall(self.text)

    @property
    def drills(self) -> list[str]:
        """The tests that it names."""
        return _DRILLS.findall(self.text)


@cache
def sections() -> Mapping[str, Section]:
    """Return the sections by their titles."""
    return {found["title"]: Section(found["title"], found["text"]) for found in _SECTION.finditer(RUNBOOK.read_text())}


@dataclass(frozen=True)
class Shell:
    """Runs commands of the runbook.

    Attributes
    ----------
    folder : Path
        Where the reader stands.
    environment : mapping of str to str
        Endpoint and keys.
    meant : dict of str to str
        What stands in the page, and what it is here.
    """

    folder: Path
    environment: Mapping[str, str]
    meant: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        programs = self.folder / "bin"
        programs.mkdir(exist_ok=True)
        deploys = _DEPLOYS.format(python=sys.executable)
        for name, body in {
            "txntable": f'exec {sys.executable} -P -m txntable.jobs.command "$@"',
            "aws": f'exec {sys.executable} -P -m tests.doubles.aws_cli "$@"',
            "python": f'case "$*" in\n{deploys}\n*) exec {sys.executable} -P "$@" ;;\nesac',
        }.items():
            (programs / name).write_text(f"#!/bin/sh\n{body}\n")
            (programs / name).chmod(0o755)

    def run(self, line: str, *, code: int = 0) -> str:
        """Run a command as it stands in the page, with what is meant in its place, and return what it prints."""
        for shown, meant in self.meant.items():
            line = line.replace(shown, meant)
        kept = {name: os.environ[name] for name in ("HOME", "LANG", "PYTHONPATH") if name in os.environ}
        path = f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        place = {"TXNTABLE_WAREHOUSE": "s3://my-lake/warehouse", "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            ["bash", "-ec", line],
            cwd=self.folder,
            env={**kept, **place, **self.environment, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, f"{line}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def follow(self, title: str, block: int = 0, *, but: str | None = None) -> dict[str, str]:
        """Run all commands of a block of a section, but those with some words; return what each has printed."""
        lines = sections()[title].blocks[block]
        return {line: self.run(line) for line in lines if but is None or but not in line}
