"""Markdown: tables and texts from docstrings, as the generated pages have them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence

_ROLE = re.compile(r":[\w:]+:`~?([^`]+)`")
_LITERAL = re.compile(r"``([^`]+)``")


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of Markdown.

    Parameters
    ----------
    header : Sequence of str
        A cell for each column.
    rows : Iterable of Sequence of str
        Cells of Markdown; line breaks and bars are taken care of.
    """
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(_cell(cell) for cell in line)} |\n" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def prose(docstring: str | None) -> str:
    """Return the text of a docstring as Markdown: its roles and literals become code.

    Parameters
    ----------
    docstring : str or None
        Without one there is no text.
    """
    return as_code(inspect.cleandoc(docstring or "")).replace("::\n", ":\n")


def as_code(text: str) -> str:
    """Return a text of a docstring in which roles and literals are code of Markdown.

    Parameters
    ----------
    text : str
        As Sphinx reads it.
    """
    return _LITERAL.sub(r"`\1`", _ROLE.sub(r"`\1`", text))


def first_paragraph(docstring: str | None) -> str:
    """Return what a docstring says first.

    Parameters
    ----------
    docstring : str or None
        Without one there is no text.
    """
    return prose(docstring).split("\n\n")[0]
