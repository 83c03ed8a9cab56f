"""``python -m tests.correctness [--made-on DATE]``: the tables of ``docs/correctness.md``, from the last results.

With a date, all of them were made then.
"""

from __future__ import annotations

import argparse
import json

from tests.correctness.tables import DATES, DOCUMENT, MADE_BY, TABLES
from tools.documentation.tables import with_tables


def main() -> None:
    """Write the document."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--made-on", metavar="DATE", help="year-month-day")
    made_on = parser.parse_args().made_on
    if made_on is not None:
        DATES.write_text(json.dumps(dict.fromkeys(MADE_BY, made_on), indent=1) + "\n", encoding="utf-8")
    text = DOCUMENT.read_text(encoding="utf-8")
    DOCUMENT.write_text(with_tables(text, {name: make() for name, make in TABLES.items()}), encoding="utf-8")


if __name__ == "__main__":
    main()
