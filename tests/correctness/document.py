"""The tables of ``docs/correctness.md``: each stands between two comments, and is written by code.

Must not know what the tables say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

DOCUMENT = Path(__file__).parents[2] / "docs" / "correctness.md"
_BLOCK = re.compile(r"(<!-- table: (?P<name>[a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table.

    Parameters
    ----------
    head : sequence of str
        The columns' names.
    rows : iterable of sequence
        Numbers are written with separators of thousands.
    """
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(map(cell, row)) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def cell(value: object) -> str:
    """Return a value as it stands in a table."""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value).replace("|", "\\|")


def names_of(text: str) -> list[str]:
    """Return the tables' names that a document asks for."""
    return [found["name"] for found in _BLOCK.finditer(text)]


def with_tables(text: str, tables: Mapping[str, str]) -> str:
    """Return the document with its tables written anew.

    Raises
    ------
    KeyError
        The document asks for a table that there is none of.
    """
    return _BLOCK.sub(lambda found: found[1] + tables[found["name"]] + found[3], text)
