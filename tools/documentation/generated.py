"""What of the documentation is made from the code, and where it stands: the one list of it.

What strangers read in the repository, too, stands there as it is made; a test says when it is to be made again.  The
reference of the API is made by the site's builder.  Must not know how anything is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from tools.documentation import (
    api_reference,
    command_reference,
    configuration_reference,
    error_reference,
    kafka_differences,
    state_tables,
)
from tools.documentation.tables import with_tables

SITE_PAGES: Mapping[str, Callable[[], str]] = api_reference.PAGES
"""Path in the site -> makes the page."""

PAGES: Mapping[str, Callable[[], str]] = {
    "docs/reference/command-line.md": command_reference.page,
    "docs/reference/configuration.md": configuration_reference.page,
    "docs/reference/errors.md": error_reference.page,
}
"""Path in the repository -> makes the page."""

TABLES: Mapping[str, Mapping[str, Callable[[], str]]] = {
    "docs/concepts/differences-from-kafka.md": {
        "behaviours": kafka_differences.section,
        "answers": kafka_differences.answers_section,
    },
    "docs/concepts/protocol.md": {
        "states of a transaction": state_tables.transaction_section,
        "operations on a transaction": state_tables.transaction_operations_section,
        "states of a group": state_tables.group_section,
    },
}
"""Path in the repository -> name of a table -> makes it."""


def made(root: Path) -> dict[str, str]:
    """Return the text of each page that is made from the code, or holds what is.

    Parameters
    ----------
    root : Path
        Of the repository.

    Raises
    ------
    ValueError
        A page asks for other tables than there are.
    """
    holding = {
        page: with_tables((root / page).read_text(encoding="utf-8"), {name: make() for name, make in tables.items()})
        for page, tables in TABLES.items()
    }
    return {**{page: make() for page, make in PAGES.items()}, **holding}
