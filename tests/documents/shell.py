"""What stands in the shell blocks of documents: whether each command exists and takes its arguments.  Runs nothing."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import typer

from tests.documents.page import ROOT
from txntable.cli.main import application

# Others' programs, of which nothing is known here.
FOREIGN = {
    *("aws", "cd", "conda", "crontab", "curl", "export", "git", "mkdir", "psql", "pytest", "sqlite3", "unzip"),
    *("airflow", "dagster", "dbt", "source", "uv", "ls", "kubectl", "docker", "logger", "read", "done", "fi"),
    *("date", "df", "mv", "test", "start-connect-server.sh"),
}
# Before a command, in loops and conditions.
_BEFORE = {"while", "do", "if", "then"}
PROGRAMS = {
    *("txntable.jobs.pipeline", "txntable.jobs.compact", "txntable.jobs.vacuum", "txntable.jobs.coordinator"),
    "txntable.jobs.catalog",
}
# What the command line says of arguments that it does not take; no name of Typer's is public.
WRONG_USAGE: Any = typer.BadParameter.__base__
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*")
_ENDS = {"|", "||", "&&", ";", ">", ">>", "<", "2>", "&"}


def lines_of(text: str) -> list[str]:
    """The commands of a block, each in one line; of a console those after the prompt."""
    lines = text.replace("\\\n", " ").splitlines()
    if any(line.startswith("$ ") for line in lines):
        lines = [line[2:] for line in lines if line.startswith("$ ")]
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]


def fault_of(line: str) -> str | None:
    """What is wrong with a line; ``None``: nothing that can be seen without running it."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    command: list[str] = []
    for word in [*lexer, ";"]:
        if word not in _ENDS:
            command.append(word)
            continue
        if fault := _fault(command):
            return f"{line}: {fault}"
        # What follows a redirection is a file.
        command = ["cd"] if word in {">", ">>", "<", "2>"} else []
    return None


def _fault(command: list[str]) -> str | None:
    while command and (command[0] in _BEFORE or _ASSIGNMENT.fullmatch(command[0])):
        command = command[1:]
    if not command:
        return None
    program, arguments = Path(command[0]).name, command[1:]
    check = _CHECKS.get("python" if program.startswith("python") else program)
    if check is not None:
        return check(arguments)
    return None if program in FOREIGN else "nobody knows this program"


def _fault_of_call(arguments: list[str]) -> str | None:
    command: Any = typer.main.get_command(application)
    try:
        context = command.make_context("txntable", list(arguments))
        while hasattr(context.command, "commands"):
            words = [*context._protected_args, *context.args]
            name, member, rest = context.command.resolve_command(context, words)
            context = member.make_context(name, rest, parent=context)
    except typer.Exit:
        return None  # --help
    except WRONG_USAGE as error:
        # A file of the reader's is not there.
        return None if "does not exist" in str(error) else f"{type(error).__name__} {error}"
    return None


def _fault_of_make(arguments: list[str]) -> str | None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    unknown = [each for each in arguments if "=" not in each and each not in targets]
    return f"no such target: {unknown}" if unknown else None


def _fault_of_python(arguments: list[str]) -> str | None:
    if arguments[:1] != ["-m"]:
        return None
    module = arguments[1]
    if module in PROGRAMS:
        return _fault_of_job(module.rpartition(".")[2], arguments[2:])
    known = module in {"pip", "venv", "pytest"} or find_spec(module) is not None
    return None if known else f"no such module: {module}"


def _fault_of_submit(arguments: list[str]) -> str | None:
    program = next(each for each in arguments if each.endswith(".py"))
    if not (ROOT / program).is_file():
        return f"no such file: {program}"
    return _fault_of_job(Path(program).stem, arguments[arguments.index(program) + 1 :])


def _fault_of_job(job: str, arguments: list[str]) -> str | None:
    """A program for schedulers takes what its command takes."""
    words = ["transactions", "run"] if job == "coordinator" else [job]
    return _fault_of_call([*words, *arguments])


def _fault_of_install(arguments: list[str]) -> str | None:
    project = (ROOT / "pyproject.toml").read_text()
    for extra in re.findall(r"(?:txntable|\.)\[([\w,]+)\]", " ".join(arguments)):
        for name in extra.split(","):
            if not re.search(rf"^{name} = \[$", project, re.MULTILINE):
                return f"no such extra: {name}"
    return None


_CHECKS: Mapping[str, Callable[[list[str]], str | None]] = {
    "make": _fault_of_make,
    "pip": _fault_of_install,
    "python": _fault_of_python,
    "spark-submit": _fault_of_submit,
    "txntable": _fault_of_call,
}
"""What is known of programs."""
