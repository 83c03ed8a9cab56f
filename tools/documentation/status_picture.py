"""The picture of ``txntable status`` in README.md: ``python -m tools.documentation.status_picture``.

Owns how the text of a terminal becomes an image.  Plays the example's busy day and asks the real command, so the
picture shows what a user sees.  It is made by hand when the command's words change, since ages and times differ in each
run.  The image is one file, names no font of a network and loads nothing.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

PICTURE = Path(__file__).parents[2] / "docs" / "assets" / "status.svg"
COLUMNS = 80
_COMMAND = ["txntable", "--warehouse", "shop", "status"]
_FORMAT = """\
<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width} {height}">
<title>What txntable status prints: the open transactions that hold readers back, and how to end them</title>
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def main() -> None:
    """Write the picture."""
    PICTURE.write_text(picture(_said()), encoding="utf-8")


def picture(said: str) -> str:
    """Return an image of a terminal in which a command was typed.

    Parameters
    ----------
    said : str
        What it printed.

    Returns
    -------
    str
        SVG.
    """
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text(f"$ {' '.join(_COMMAND)}", style="bold green"))
    console.print(Text(said.rstrip("\n")))
    return console.export_svg(title="txntable status", theme=MONOKAI, code_format=_FORMAT, unique_id="status")


def _said() -> str:
    environment = os.environ | {"COLUMNS": str(COLUMNS), "PYTHONPATH": str(Path(__file__).parents[2])}
    with tempfile.TemporaryDirectory() as folder:
        _run([sys.executable, "-m", "examples.busy_warehouse", "shop"], folder, environment)
        return _run([str(Path(sys.executable).parent / _COMMAND[0]), *_COMMAND[1:]], folder, environment)


def _run(command: list[str], folder: str, environment: Mapping[str, str]) -> str:
    return subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout


if __name__ == "__main__":
    main()
