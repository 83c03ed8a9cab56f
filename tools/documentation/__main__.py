"""``python -m tools.documentation``: writes what is made from the code; with a FOLDER, all pages of the site."""

from __future__ import annotations

import sys
from pathlib import Path

from tools.documentation.generated import SITE_PAGES, made
from tools.documentation.site import Site

ROOT = Path(__file__).parents[2]


def main(arguments: list[str]) -> None:
    """Write the pages.

    Parameters
    ----------
    arguments : list of str
        A folder for the site, which is made anew; none: into the repository what is made from the code.
    """
    if arguments:
        (folder,) = arguments
        Site(ROOT, SITE_PAGES).write(Path(folder))
        return
    for page, text in made(ROOT).items():
        (ROOT / page).parent.mkdir(exist_ok=True)
        (ROOT / page).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
