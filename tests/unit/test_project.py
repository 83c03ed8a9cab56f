"""The frame of the project: rules about its files, and what the documents promise about commands."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import tomllib
from importlib.metadata import entry_points, version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
SOURCE_FOLDERS = ("coordinator", "txntable", "compaction", "jobs", "infra", "examples", "benchmarks", "tests", "tools")
# The second implementation is one file by design, from somebody who has not read how this one is written.
CLEAN_ROOM = {ROOT / "tests/conformance/clean_room.py", ROOT / "tests/conformance/check_vectors.py"}
MODULES = sorted({path for folder in SOURCE_FOLDERS for path in (ROOT / folder).rglob("*.py")} - CLEAN_ROOM)
NAMES_THAT_SAY_NOTHING = {"common", "helper", "helpers", "manager", "misc", "util", "utils"}
MOST_LINES_OF_A_MODULE = 400
MOST_LINES_OF_A_FUNCTION = 40
MOST_LINES_OF_THE_README = 150


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def lines_of_docstring(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    if ast.get_docstring(node) is None:
        return 0
    first = node.body[0]
    return (first.end_lineno or first.lineno) - first.lineno + 1


def lines_without_docstring(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1 - lines_of_docstring(function)


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_module_has_at_most_400_lines_besides_docstrings(path: Path) -> None:
    """What users hold is documented in one place, whole: that makes a module long, and no harder to read."""
    source = path.read_text()
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = sum(lines_of_docstring(each) for each in ast.walk(ast.parse(source)) if isinstance(each, documented))

    assert len(source.splitlines()) - docstrings <= MOST_LINES_OF_A_MODULE


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_module_says_what_it_owns_unless_it_is_empty(path: Path) -> None:
    source = path.read_text()

    assert not source or ast.get_docstring(ast.parse(source))


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_functions_of_a_module_have_at_most_40_lines(path: Path) -> None:
    functions = [
        node
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]

    assert [
        f"{function.name}: {lines_without_docstring(function)} lines"
        for function in functions
        if lines_without_docstring(function) > MOST_LINES_OF_A_FUNCTION
    ] == []


def test_no_file_or_folder_has_a_name_that_says_nothing() -> None:
    names = {part.removesuffix(".py") for path in MODULES for part in path.relative_to(ROOT).parts}

    assert names & NAMES_THAT_SAY_NOTHING == set()


def test_version_is_written_once_and_installed_as_written() -> None:
    written = [
        named(path) for path in MODULES if re.search(r"^__version__\s*=\s*[\"']", path.read_text(), re.MULTILINE)
    ]

    assert written == []
    assert version("txntable") == PROJECT["project"]["version"]


def test_wheel_that_the_deployment_names_has_the_version() -> None:
    named_wheels = re.findall(r"txntable-([0-9][^-]*)-py3", (ROOT / "infra/README.md").read_text())

    assert set(named_wheels) == {PROJECT["project"]["version"]}


def test_changelog_has_a_section_for_the_version() -> None:
    assert f"## [{PROJECT['project']['version']}]" in (ROOT / "CHANGELOG.md").read_text()


def test_every_dependency_is_in_the_lock() -> None:
    extras = [*PROJECT["project"]["optional-dependencies"].values(), PROJECT["dependency-groups"]["docs"]]
    requirements = [*PROJECT["project"]["dependencies"], *(name for extra in extras for name in extra)]
    declared = {re.split(r"[^A-Za-z0-9-]", requirement)[0] for requirement in requirements} - {"txntable"}

    locked = set(re.findall(r"^([a-z0-9-]+)==", (ROOT / "requirements.lock").read_text(), re.MULTILINE))

    assert declared - locked == set()


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-spark41.lock"])
def test_lock_names_no_package_index(lock: str) -> None:
    assert re.findall(r"^--.*|://", (ROOT / lock).read_text(), re.MULTILINE) == []


def test_readme_says_what_it_is_and_then_the_two_commands() -> None:
    text = (ROOT / "README.md").read_text()
    title, definition, picture, block = text.split("\n\n")[:4]

    assert title == "# txntable"
    assert definition.startswith("**txntable ")
    assert picture.startswith("![")
    assert [line.split("#")[0].strip() for line in block.splitlines()] == ["```bash", "make demo", "make test", "```"]
    assert len(text.splitlines()) <= MOST_LINES_OF_THE_README


def test_ci_runs_the_test_command_of_the_readme() -> None:
    assert "\nrun make test\n" in (ROOT / ".ci" / "run").read_text()


def test_make_help_lists_the_targets_that_people_are_told_of() -> None:
    answer = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout

    assert {"demo", "test", "lint", "bench"} <= set(re.findall(r"^ *make (\w+)", answer, re.MULTILINE))


def test_contributing_tells_of_every_target_and_how_many_minutes_it_takes() -> None:
    answer = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    targets = set(re.findall(r"^ *make ([a-z0-9-]+)", answer, re.MULTILINE)) - {"help"}
    rows = re.findall(
        r"^\| (`make [^|]*) \| ([^|]+) \| [^|]+ \|$", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE
    )
    told = {target for commands, _ in rows for target in re.findall(r"`make ([a-z0-9-]+)", commands)}

    assert told == targets
    assert all(re.match(r"\d|not timed|hours", minutes) for _, minutes in rows)


def test_picture_of_the_rooms_is_the_order_that_lint_holds() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (one["layers"] for one in contracts if "every module is in a room" in one["name"])
    (picture,) = re.findall(r"```text title=\"rooms\"\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL)

    assert [line[24:].split() for line in picture.splitlines()] == [layer.split(" : ") for layer in layers]


# What keys look like; each begins in two parts, or it would be found here.
SECRETS = re.compile(
    r"(?:AK|AS)IA[0-9A-Z]{16}|-----BEGI"
    r"N [A-Z ]*PRIVATE KEY|gh[pousr]_[A-Za-z0-9]{36}|xox[abp]-[0-9]"
    r"|npm_[A-Za-z0-9]{36}|pypi-[\w-]{50}|AIza[\w-]{35}|hf_[A-Za-z0-9]{30}"
)


def test_no_file_holds_a_key() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    paths = [ROOT / name for name in listed.split("\0") if name]
    texts = ((path, path.read_bytes().decode(errors="replace")) for path in paths if path.is_file())

    assert [(path.name, found[0][:8]) for path, text in texts if (found := SECRETS.search(text))] == []
    assert SECRETS.search("AKIA" + "Q" * 16)


def test_every_entry_point_can_be_loaded() -> None:
    declared = [
        entry_point
        for group in ("console_scripts", "txntable.commands")
        for entry_point in entry_points(group=group)
        if entry_point.dist is not None and entry_point.dist.name == "txntable"
    ]

    assert {"txntable", "demo"} <= {entry_point.name for entry_point in declared}
    assert all(callable(entry_point.load()) for entry_point in declared)


@pytest.mark.parametrize(
    ("answer", "status", "accepted"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 0, True),
        ('openjdk version "25-ea" 2025-09-16', 0, True),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "21" 2023-09-19', 0, True),
        ('openjdk version "11.0.2" 2019-01-15', 0, False),
        ('java version "1.8.0_392"', 0, False),
        ("no java in here", 0, False),
        ("The operation couldn't be completed. Unable to locate a Java Runtime.", 1, False),
    ],
)
def test_require_java_accepts_17_and_later_only(tmp_path: Path, answer: str, status: int, accepted: bool) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\ncat >&2 <<'EOF'\n{answer}\nEOF\nexit {status}\n")
    java.chmod(0o755)

    run = require_java({**os.environ, "JAVA_HOME": str(tmp_path)})

    assert (run.returncode == 0) is accepted
    assert ("needs java 17 or later" in run.stderr) is not accepted


def test_require_java_says_how_to_get_one_when_there_is_none(tmp_path: Path) -> None:
    run = require_java({**os.environ, "JAVA_HOME": str(tmp_path)})

    assert run.returncode == 1
    assert "apt-get install" in run.stderr
    assert "brew install" in run.stderr
    assert "conda install" in run.stderr


def require_java(environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run the check that stands before `make demo` and `make test`."""
    return subprocess.run(
        [ROOT / "tools" / "require_java.sh"], env=environment, capture_output=True, text=True, check=False
    )
