"""Copying the project to a folder with one mutant in it.

The copies keep their times, so that Python's compiled files of what is not changed count there too.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.mutants.mutant import Edit, Mutant

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("coordinator", "txntable", "compaction", "jobs", "tests")


def occurrences(edit: Edit, root: Path = ROOT) -> int:
    """Return how often the text of an edit is in its file: anything but 1 means that it applies no more."""
    return (root / edit.file).read_text().count(edit.old)


def apply(mutant: Mutant | None, folder: Path) -> None:
    """Copy the packages and their tests into a folder, and make the mutant's edits there; ``None``: no edits."""
    for package in PACKAGES:
        # Links stay links: an edit of coordinator/ is one of txntable/coordinator.
        shutil.copytree(ROOT / package, folder / package, symlinks=True)
    for edit in () if mutant is None else mutant.edits:
        assert occurrences(edit, folder) == 1, f"the mutant applies no more: {mutant and mutant.name} in {edit.file}"
        path = folder / edit.file
        path.write_text(path.read_text().replace(edit.old, edit.new))
