"""``python -m tools.documentation FOLDER``: writes all pages of the site, ready for the strict build."""

from __future__ import annotations

import sys
from pathlib import Path

from tools.documentation.generated import GENERATED_PAGES, SECTIONS
from tools.documentation.site import Site


def main(arguments: list[str]) -> None:
    """Write the pages into a folder, which is made anew.

    Parameters
    ----------
    arguments : list of str
        The folder.
    """
    (folder,) = arguments
    Site(Path(__file__).parents[2], GENERATED_PAGES, SECTIONS).write(Path(folder))


if __name__ == "__main__":
    main(sys.argv[1:])
