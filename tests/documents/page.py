"""A page as its reader takes it: its blocks in order, in one folder, with what it has shown so far.

Owns which blocks of a page are run.  ``python`` blocks are executed in one namespace; one with a title is a file, and
is written.  Of a ``diff`` block what was there before is compiled, and what is there after it is executed.  A ``text``
block titled ``output`` is what the block above it prints; ``...`` in it stands for anything.  Commands are run where
the page is a tutorial, or one that is written to be typed.  A comment ``<!-- prepare … -->`` holds Python for what a
page takes for granted.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import os
import re
import shlex
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from txntable.cli.main import application

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHELLS = ("bash", "sh", "console")
_TYPED = ("pipelines",)
FILES = ("python", "toml", "sql", "json", "yaml", "csv", "ini")

_BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<language>\w+)(?: title=\"(?P<title>[^\"\n]+)\")?[^\n]*\n(?P<text>.*?)^(?P=indent)```$"
    r"|^<!-- prepare\n(?P<prepared>.*?)^-->$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Block:
    """One block of a page.

    Attributes
    ----------
    language : str
        What stands at its fence; ``prepare`` for what is hidden.
    title : str or None
        Of a file its name.
    text : str
        Without the indentation of the whole block.
    line : int
        The first line of the text in the page.
    """

    language: str
    title: str | None
    text: str
    line: int


def blocks_of(page: Path) -> list[Block]:
    """The blocks of a page in their order."""
    text, found = page.read_text(encoding="utf-8"), []
    for match in _BLOCK.finditer(text):
        language = match["language"] or "prepare"
        body = textwrap.dedent(match["prepared"] or match["text"] or "")
        found.append(Block(language, match["title"], body, text.count("\n", 0, match.start()) + 2))
    return found


def sides_of(diff: str) -> tuple[str, str]:
    """What a diff shows, before and after it."""
    lines = diff.splitlines()
    before, after = ([line[1:].removeprefix(" ") for line in lines if line[:1] != other] for other in "+-")
    return "\n".join(before) + "\n", "\n".join(after) + "\n"


def code_of(page: Path) -> Iterator[str]:
    """The Python that is executed when a page is read."""
    for block in blocks_of(page):
        if block.language == "diff":
            yield sides_of(block.text)[1]
        elif block.language in ("python", "prepare"):
            yield block.text


def needs_spark(page: Path) -> bool:
    """Whether a page speaks of a Spark session, or runs a command that makes one: it is read beside one."""
    commands = "".join(block.text for block in blocks_of(page) if block.language in SHELLS and _runs_commands(page))
    return "txntable pipeline" in commands or any(
        isinstance(node, ast.Name) and node.id == "spark"
        for code in code_of(page)
        for node in ast.walk(ast.parse(code))
    )


def _runs_commands(page: Path) -> bool:
    return "tutorial" in page.parts or page.stem in _TYPED


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


class Reader:
    """Reads pages: runs what they show, and looks whether it is as they say.

    Parameters
    ----------
    folder : Path
        Where the reader works; ``/data`` in a page is a folder in it.
    names : dict
        What the page takes for granted, such as ``spark``.
    """

    def __init__(self, folder: Path, names: dict[str, Any]) -> None:
        self._folder = folder
        self._names = {"__name__": "__main__", **names}
        self._printed = ""
        self._terminal = CliRunner(env={"COLUMNS": "80", "TXNTABLE_WAREHOUSE": None})

    def read(self, page: Path) -> int:
        """Read a page; return how many of its blocks were run."""
        run = 0
        with _working_in(self._folder):
            for block in blocks_of(page):
                run += self._take(page, block)
        return run

    def _take(self, page: Path, block: Block) -> bool:
        where = f"{named(page)}:{block.line}"
        text = block.text.replace("/data/", f"{self._folder}/data/")
        if block.language == "text" and block.title == "output":
            self._compare(where, block.text)
        elif block.title is not None and block.language in FILES:
            file = self._folder / block.title
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
        elif block.language in ("python", "prepare"):
            self._execute(where, text)
            return True
        elif block.language == "diff":
            before, after = sides_of(text)
            compile(before, f"{where} (before)", "exec")
            self._execute(where, after)
            return True
        elif block.language in SHELLS and _runs_commands(page):
            self._command(where, text)
            return True
        return False

    def _execute(self, where: str, code: str) -> None:
        printed = io.StringIO()
        # As many empty lines as stand above it: a traceback names the page and the line.
        padded = "\n" * (int(where.rpartition(":")[2]) - 1) + code
        with contextlib.redirect_stdout(printed):
            exec(compile(padded, where.rpartition(":")[0], "exec"), self._names)
        self._printed = printed.getvalue()

    def _command(self, where: str, text: str) -> None:
        printed = []
        for line in text.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] == ["export"]:
                name, value = words[1].split("=", 1)
                self._terminal.env = {**self._terminal.env, name: value}
            elif words[:1] == ["txntable"]:
                done = self._terminal.invoke(application, words[1:])
                assert done.exit_code == 0, f"{where}: {line}\n{done.output}"
                printed.append(done.output)
        self._printed = "".join(printed)

    def _compare(self, where: str, expected: str) -> None:
        checker, options = doctest.OutputChecker(), doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        found = self._printed.replace(f"{self._folder}/data/", "/data/")
        if not checker.check_output(expected, found, options):
            example = doctest.Example(source="", want=expected)
            pytest.fail(f"{where}: prints something else\n{checker.output_difference(example, found, options)}")


@contextlib.contextmanager
def _working_in(folder: Path) -> Iterator[None]:
    before, modules = Path.cwd(), set(sys.modules)
    (folder / "data").mkdir(exist_ok=True)
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        os.chdir(before)
        sys.path.remove(str(folder))
        for name in set(sys.modules) - modules:
            if str(getattr(sys.modules[name], "__file__", "")).startswith(str(folder)):
                del sys.modules[name]
