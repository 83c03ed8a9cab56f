"""``python -m tests.correctness``: writes the tables of ``docs/correctness.md`` anew from the last results."""

from __future__ import annotations

from tests.correctness.tables import DOCUMENT, TABLES
from tools.documentation.tables import with_tables


def main() -> None:
    """Write the document."""
    text = DOCUMENT.read_text(encoding="utf-8")
    DOCUMENT.write_text(with_tables(text, {name: make() for name, make in TABLES.items()}), encoding="utf-8")


if __name__ == "__main__":
    main()
