"""``python -m tests.interface``: writes tests/golden/interface.txt anew, once a change of it is in CHANGELOG.md."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.interface import answers, surface

GOLDEN = Path(__file__).parents[1] / "golden" / "interface.txt"


def main() -> None:
    """Write what users build on, as it is now."""
    with tempfile.TemporaryDirectory() as folder:
        GOLDEN.write_text("".join(f"{line}\n" for line in [*surface.lines(), *answers.lines(Path(folder))]))


if __name__ == "__main__":
    main()
