"""The pages of the site: what people write in this repository, and what is made from the code.

Owns where each document stands in the site, and that links lead there: the pages are also read in the repository, where
a link names a file.  A file that is no page is copied, so that its link leads to it.  A page may hold comments
``<!-- prepare … -->`` with what a test runs before the page's blocks, which are left out.  Must not know what is
generated.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

WRITTEN = "docs"
ELSEWHERE = {
    "README.md": "index.md",
    "PROTOCOL.md": "reference/protocol.md",
    "DECISIONS.md": "reference/decisions.md",
    "benchmarks/RESULTS.md": "reference/measurements.md",
    "CHANGELOG.md": "reference/changelog.md",
    "CONTRIBUTING.md": "reference/contributing.md",
    "SECURITY.md": "reference/security.md",
    "infra/README.md": "reference/infra/deployment.md",
    "infra/DOLLARS.md": "reference/infra/dollars.md",
    "infra/PERMISSIONS.md": "reference/infra/permissions.md",
    "infra/REQUESTS.md": "reference/infra/requests.md",
    "infra/RUNBOOK.md": "reference/infra/runbook.md",
    "infra/STORES.md": "reference/infra/stores.md",
    "infra/THROUGHPUT.md": "reference/infra/throughput.md",
}
"""Documents outside of the folder of pages, and where they stand in the site."""

_FENCE = re.compile(r"^( *)(`{3,}).*?^\1\2$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s#]*)((?:#[^()\s]*)?)\)")
_PREPARED = re.compile(r"^<!-- prepare\n.*?^-->\n", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Site:
    """All pages.

    Attributes
    ----------
    root : Path
        Of the repository.
    generated_pages : Mapping of str to callable
        Path in the site -> makes the page.
    """

    root: Path
    generated_pages: Mapping[str, Callable[[], str]]

    @property
    def documents(self) -> dict[str, str]:
        """Path of each written page in the repository -> its path in the site."""
        folder = self.root / WRITTEN
        found = sorted(str(page.relative_to(folder)) for page in folder.rglob("*.md"))
        return {**{f"{WRITTEN}/{page}": page for page in found}, **ELSEWHERE}

    @property
    def pages(self) -> set[str]:
        """The paths of all pages in the site."""
        return {*self.documents.values(), *self.generated_pages}

    def write(self, folder: Path) -> None:
        """Write all pages and what they show.

        Parameters
        ----------
        folder : Path
            Is made anew.

        Raises
        ------
        FileNotFoundError
            A link leads nowhere.
        """
        shutil.rmtree(folder, ignore_errors=True)
        copied: set[str] = set()
        for source, page in self.documents.items():
            _put(folder / page, self._page(source, page, copied))
        for page, make in self.generated_pages.items():
            _put(folder / page, make())
        for path in sorted(copied):
            target = folder / _copied(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self.root / path, target)

    def _page(self, source: str, page: str, copied: set[str]) -> str:
        text = _PREPARED.sub("", (self.root / source).read_text(encoding="utf-8"))
        parts, end = [], 0
        for fence in _FENCE.finditer(text):
            parts += [self._linked(text[end : fence.start()], source, page, copied), fence[0]]
            end = fence.end()
        return "".join([*parts, self._linked(text[end:], source, page, copied)])

    def _linked(self, text: str, source: str, page: str, copied: set[str]) -> str:
        def linked(link: re.Match[str]) -> str:
            picture, words, target, anchor = link.groups()
            if not target or ":" in target:
                return link[0]
            path = os.path.normpath(os.path.join(os.path.dirname(source), target))
            if (self.root / path).is_dir():
                return words
            if path in self.documents:
                leads_to = self.documents[path]
            elif path.startswith(f"{WRITTEN}/") and path.removeprefix(f"{WRITTEN}/") in self.generated_pages:
                leads_to = path.removeprefix(f"{WRITTEN}/")
            elif (self.root / path).is_file():
                copied.add(path)
                leads_to, anchor = _copied(path), ""
            else:
                raise FileNotFoundError(f"a link leads nowhere page={source} target={target}")
            words = self._linked(words, source, page, copied)
            return f"{picture}[{words}]({os.path.relpath(leads_to, os.path.dirname(page))}{anchor})"

        return _LINK.sub(linked, text)


def _copied(path: str) -> str:
    """Return where a file that is no page stands in the site."""
    within = path.removeprefix(f"{WRITTEN}/")
    return within if within != path else f"files/{path}"


def _put(page: Path, text: str) -> None:
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(text, encoding="utf-8")
