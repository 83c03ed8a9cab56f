"""``python -m tests.exploration [--bound large] [--program TEXT] [--results FILE]``: explores, and says what it found.

The small bound is that of each build; the large one takes hours for all programs, so one may be chosen by its name.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from tests.exploration.explorer import Explorer, Figures
from tests.exploration.programs import BOUNDS, PROGRAMS


def main() -> None:
    """Explore every program that has the bound."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--bound", choices=list(BOUNDS), default="small")
    arguments.add_argument("--program", default="", help="only those with this in their names")
    arguments.add_argument("--results", type=Path)
    given = arguments.parse_args()
    found: list[Figures] = []
    for program in PROGRAMS:
        bound = program.bounds[BOUNDS[given.bound]]
        if bound is not None and given.program in program.name:
            found.append(Explorer(program, bound).run())
            _show(found[-1])
            if given.results is not None:
                # After each: a long exploration that is ended leaves what it found.
                told = [{**asdict(each), "named": dict(sorted(each.named.items()))} for each in found]
                given.results.write_text(json.dumps({"exploration": told}, indent=1) + "\n")


def _show(figures: Figures) -> None:
    lines = [
        f"{figures.program} ({figures.bound})",
        f"  {figures.schedules} schedules in {figures.states} states, {figures.ends} ends",
        f"  {figures.executions} executions, {figures.places} places",
        *(f"    {count:6} {name}" for name, count in sorted(figures.named.items())),
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
