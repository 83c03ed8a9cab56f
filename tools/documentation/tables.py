"""Markdown: tables and texts from docstrings, as the generated pages have them.

A document that people write may hold tables that code writes: each stands between two comments,
``<!-- table: NAME -->`` and ``<!-- end -->``.  Must not know what the tables say.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping, Sequence

_ROLE = re.compile(r":[\w:]+:`~?([^`]+)`")
_LITERAL = re.compile(r"``([^`]+)``")
_WRITTEN = re.compile(r"(<!-- table: (?P<name>[a-z -]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table of Markdown.

    Parameters
    ----------
    header : Sequence of str
        A cell for each column.
    rows : Iterable of Sequence
        Cells of Markdown; line breaks and bars are taken care of, whole numbers get separators of thousands.
    """
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(_cell(cell) for cell in line)} |\n" for line in lines)


def _cell(value: object) -> str:
    text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    return " ".join(text.split()).replace("|", "\\|")


def names_of(document: str) -> list[str]:
    """Return the names of the tables that a document asks for."""
    return [found["name"] for found in _WRITTEN.finditer(document)]


def with_tables(document: str, tables: Mapping[str, str]) -> str:
    """Return a document with its tables written anew.

    Parameters
    ----------
    document : str
        Its text.
    tables : Mapping of str to str
        Name -> the table.

    Raises
    ------
    ValueError
        The document asks for other tables than there are.
    """
    asked = names_of(document)
    if sorted(asked) != sorted(tables):
        raise ValueError(f"the document asks for other tables; asked={sorted(asked)} made={sorted(tables)}")
    return _WRITTEN.sub(lambda found: found[1] + tables[found["name"]] + found[3], document)


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
