"""Explore the models and their mutants: ``python -m tests.model [--results FILE] [--large STATES]``."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

from tests.model.breadth_first import BreadthFirst, Exploration, never_taken
from tests.model.mutants import LOOSE, MUTANTS
from tests.model.protocol_rules import COVERED, NOT_MODELLED
from tests.model.sizes import FORBIDDEN, all_models, large_model


def say(*lines: str) -> None:
    """Print each on a line of its own, at once."""
    sys.stdout.write("\n    ".join(lines) + "\n")
    sys.stdout.flush()


def explored(found: Exploration) -> dict[str, Any]:
    """Return the figures of an exploration, and print them."""
    figures = dataclasses.asdict(found)
    end = "to the end" if found.complete else "not to the end"
    say(f"{found.model}: states={found.states} transitions={found.transitions} depth={found.depth} {end}")
    if found.violation is not None:
        say(f"  VIOLATED: {found.violation.invariant}", *found.violation.trace)
    return figures


def main(arguments: list[str]) -> int:
    """Explore everything; return 1 when an invariant fails, a mutant survives, or an action is never taken."""
    parser = argparse.ArgumentParser(prog="python -m tests.model", description=__doc__)
    parser.add_argument("--results", type=Path, help="write the figures there, as JSON")
    parser.add_argument("--large", type=int, default=0, metavar="STATES", help="explore the large model so far, too")
    parser.add_argument("--traces", action="store_true", help="show how each mutant breaks its invariant")
    options = parser.parse_args(arguments)
    found_in = [BreadthFirst(model).explore() for model in all_models()]
    explorations = [explored(found) for found in found_in]
    # Both ways: an action that a rule is said to forbid everywhere, and that is taken, is as wrong.
    untried = sorted(never_taken(found_in) ^ FORBIDDEN)
    for action in untried:
        say(f"NEVER TAKEN in any size of its model, or TAKEN though it is forbidden: {action}")
    if options.large:
        explorations.append(explored(BreadthFirst(large_model(), options.large).explore()))
    mutants = []
    for mutant in MUTANTS:
        found = mutant.explore()
        trace = () if found.violation is None else found.violation.trace
        mutants.append({"mutant": mutant.name, "breaks": mutant.invariant, "states": found.states, "trace": trace})
        steps = trace if options.traces else ()
        say(f"{'killed' if trace else 'SURVIVED'}: {mutant.name}: {mutant.invariant}: steps={len(trace)}", *steps)
    if options.results is not None:
        protocol = [dataclasses.asdict(each) for each in COVERED]
        results = {
            "explorations": explorations,
            "mutants": mutants,
            "loose_rules": LOOSE,
            "untried": untried,
            "protocol": protocol,
        }
        options.results.write_text(json.dumps(results | {"not_modelled": NOT_MODELLED}, indent=1) + "\n")
    is_wrong = any(each["violation"] for each in explorations) or not all(each["trace"] for each in mutants)
    return int(is_wrong or bool(untried))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
