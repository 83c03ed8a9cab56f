"""``python -m tests.correctness [--made NAME... --on DATE]``: the tables of ``docs/correctness.md``, from the results.

With names of results, these were made on that day.
"""

from __future__ import annotations

import argparse
import json

from tests.correctness.tables import DATES, DOCUMENT, MADE_BY, TABLES, result
from tools.documentation.tables import with_tables


def main() -> None:
    """Write the document."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--made", action="append", default=[], choices=list(MADE_BY))
    parser.add_argument("--on", metavar="DATE", help="year-month-day")
    given = parser.parse_args()
    made = dict.fromkeys(given.made, given.on)
    DATES.write_text(json.dumps(result(DATES.stem) | made, indent=1) + "\n", encoding="utf-8")
    text = DOCUMENT.read_text(encoding="utf-8")
    DOCUMENT.write_text(with_tables(text, {name: make() for name, make in TABLES.items()}), encoding="utf-8")


if __name__ == "__main__":
    main()
