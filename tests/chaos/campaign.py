"""``python -m tests.chaos.campaign --seconds N [--seed N] [--results FILE]``: each scenario on each of its stores.

All but the everyday one, which ``python -m tests.chaos`` runs; each run is a process of its own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.chaos.scenarios import SCENARIOS

EVERYDAY = "everyday"
_LARGEST = "longest_pause_s"


def run(scenario: str, store: str, seconds: float, seed: int) -> dict[str, Any] | None:
    """Do one run, and return its figures; ``None``: it has ended before it was judged, and has said why."""
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.json"
        asked = ["--scenario", scenario, "--store", store, "--seconds", str(seconds), "--seed", str(seed)]
        subprocess.run([sys.executable, "-m", "tests.chaos", *asked, "--results", str(results)], check=False)
        return json.loads(results.read_text()) if results.exists() else None


def total(runs: Sequence[dict[str, Any]]) -> dict[str, int]:
    """Return what the runs of a scenario come to."""
    found: Counter[str] = Counter({"episodes": len(runs)})
    for each in runs:
        found.update({name: count for name, count in each.items() if isinstance(count, int) and name != _LARGEST})
    return {**found, _LARGEST: max(each[_LARGEST] for each in runs)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.campaign")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--episodes", type=int, default=1)
    parser.add_argument("--results", type=Path, help="what is there is added to")
    chosen = parser.parse_args(arguments)
    known = json.loads(chosen.results.read_text()) if chosen.results is not None and chosen.results.exists() else {}
    failed = False
    for name, scenario in SCENARIOS.items():
        for number in range(chosen.episodes if name != EVERYDAY else 0):
            for store in scenario.stores:
                found = run(name, store, chosen.seconds, chosen.seed + number)
                failed |= found is None or bool(found["violations"])
                known.setdefault(name, []).extend([] if found is None else [found])
                if chosen.results is not None:
                    chosen.results.write_text(json.dumps(known, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
