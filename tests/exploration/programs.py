"""All programs that are explored."""

from __future__ import annotations

from tests.exploration import appends, fencing, manifests, offsets, series, sharing, transactions, upkeep

PROGRAMS = tuple(
    program
    for module in (transactions, manifests, series, sharing, fencing, appends, offsets, upkeep)
    for program in module.PROGRAMS
)
BOUNDS = {"small": 0, "large": 1}
"""Which of a program's bounds; not every program has the small one."""
