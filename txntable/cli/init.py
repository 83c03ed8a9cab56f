"""``txntable init``: an example project in an empty folder, which runs as it is.

Owns which files it has, and that nothing of anybody's is ever replaced.  The files are templates beside this module.
"""

from __future__ import annotations

import os
import shlex
import sys
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from txntable.cli.connection import tell_error
from txntable.cli.output import write_out
from txntable.errors import InvalidRequestError, TxnTableError

_FOLDER = "example"
_ENDING = ".template"
FILES = ("README.md", "pipeline.py", "test_pipeline.py", "conftest.py", "crontab", "orders.jsonl", "gitignore")
"""The names of the templates; what begins with a dot in a project does not here."""
# Where cron looks for programs beside those of this environment.
_SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"


def init(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="The folder; it is made where there is none.")
    ] = Path(),
) -> None:
    """Make a runnable example project in an empty folder: a pipeline, its test, and a schedule.

    The README in it says what to type next.
    """
    try:
        made = make_project(folder)
    except TxnTableError as error:
        tell_error(error)
        raise typer.Exit(1) from error
    write_out("".join(f"{path}\n" for path in made))


def make_project(folder: Path) -> list[Path]:
    """Write the project's files; return their paths.

    Raises
    ------
    InvalidRequestError
        The folder is not empty, or cannot be written to: nothing was changed.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        there = sorted(os.listdir(folder))
        if there:
            raise InvalidRequestError(
                "the folder is not empty; name another one, or an empty one", folder=folder, found=there[0]
            )
        return [_write(folder, name) for name in FILES]
    except OSError as error:
        raise InvalidRequestError(
            "the folder cannot be written to; name another one", folder=folder, reason=error.strerror
        ) from error


def _write(folder: Path, name: str) -> Path:
    text = files(__package__).joinpath(_FOLDER, name + _ENDING).read_text(encoding="utf-8")
    if name == "crontab":
        programs = f"{Path(sys.executable).parent}:{_SYSTEM_PATH}"
        there = str(folder.resolve())
        # The shell's word in a command, where cron takes a percent sign for the end of it.
        word = shlex.quote(there).replace("%", "\\%")
        text = text.replace("cd {folder}", f"cd {word}").replace("{folder}", there).replace("{path}", programs)
    path = folder / (f".{name}" if name == "gitignore" else name)
    with path.open("x", encoding="utf-8") as file:
        file.write(text)
    return path


command = init
