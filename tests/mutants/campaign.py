"""Every mutant against its killer: ``python -m tests.mutants``, ``… --only NAME``, ``… --search``.

A mutant is killed when a run fails with it that holds without it: so the seeds that are known are run without any
mutant, too.  First the seed that is known; where that kills no more, a search within the killer's budget.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.mutants.applying import apply
from tests.mutants.catalogue import MUTANTS
from tests.mutants.mutant import Mutant
from tests.mutants.trial import Tried

# Of all runs of one mutant: what hangs is not killed, but broken.
LONGEST_SECONDS = 600
# So is what says names that are not there: the code around it has changed.
_BROKEN = ("NameError", "UnboundLocalError", "ImportError", "SyntaxError")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a mutant.

    Attributes
    ----------
    name, breaks, rule, world : str
        See :class:`tests.mutants.mutant.Mutant`.
    killed : bool
        Whether a run failed.
    runs : int
        How many it took.
    seed : int or None
        Of the one that failed.
    how : str
        What failed in it.
    """

    name: str
    breaks: str
    rule: str
    world: str
    killed: bool
    runs: int
    seed: int | None
    how: str


def try_in_copy(mutant: Mutant | None, world: str, seeds: Sequence[int], search: int = 0) -> Tried:
    """Run seeds of a world in a copy of the project with a mutant in it, until one fails.

    Parameters
    ----------
    mutant : Mutant, optional
        ``None``: the project as it is.
    world : str
        Which.
    seeds : sequence of int
        In this order.
    search : int
        Then so many seeds more, from 0 on.
    """
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        apply(mutant, folder)
        words = ["-m", "tests.mutants.trial", world, *map(str, seeds), "--search", str(search)]
        try:
            ran = subprocess.run(
                [sys.executable, *words],
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=LONGEST_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Tried(0, None, "its runs do not come to an end")
    if ran.returncode:
        return Tried(0, None, "its runs do not begin: " + (ran.stderr.splitlines() or ["?"])[-1])
    return Tried(**json.loads(ran.stdout.splitlines()[-1]))


def verdict_of(mutant: Mutant, *, search: bool = False) -> Verdict:
    """Set the killer on a mutant: on the seed that is known, then on as many as its budget allows."""
    killer = mutant.killer
    known = [] if killer.seed is None or search else [killer.seed]
    tried = try_in_copy(mutant, killer.world, known, killer.runs)
    killed = tried.seed is not None and not tried.how.startswith(_BROKEN)
    return Verdict(mutant.name, mutant.breaks, mutant.rule, killer.world, killed, tried.runs, tried.seed, tried.how)


def false_alarms(mutants: Sequence[Mutant], workers: int) -> list[str]:
    """Return the worlds' seeds that are known as killers and fail without any mutant."""
    seeds: dict[str, list[int]] = {}
    for killer in {mutant.killer for mutant in mutants if mutant.killer.seed is not None}:
        seeds.setdefault(killer.world, []).append(killer.seed or 0)
    with ThreadPoolExecutor(workers) as pool:
        tried = pool.map(lambda world: (world, try_in_copy(None, world, sorted(set(seeds[world])))), sorted(seeds))
        return [f"{world} {one.seed}: {one.how}" for world, one in tried if one.seed is not None or one.how]


def judge(mutants: Sequence[Mutant], workers: int, *, search: bool = False) -> list[Verdict]:
    """Set each killer on its mutant, some at a time; the verdicts in the mutants' order."""
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(lambda mutant: verdict_of(mutant, search=search), mutants))


def _tell(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(words: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", action="append", help="only the mutant of this name")
    parser.add_argument("--search", action="store_true", help="pass over the seeds that are known")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--results", type=Path, help="write the verdicts here, as JSON")
    options = parser.parse_args(words)
    mutants = [mutant for mutant in MUTANTS if options.only is None or mutant.name in options.only]
    alarms = false_alarms(mutants, options.workers)
    verdicts = judge(mutants, options.workers, search=options.search)
    survived = [verdict for verdict in verdicts if not verdict.killed]
    for verdict in verdicts:
        found = f"killed by {verdict.world} {verdict.seed}" if verdict.killed else f"SURVIVED {verdict.world}"
        _tell(f"{verdict.name}: {found} in {verdict.runs} runs; {verdict.how}")
    for alarm in alarms:
        _tell(f"fails without any mutant: {alarm}")
    _tell(f"{len(verdicts)} mutants, {len(verdicts) - len(survived)} killed")
    if options.results is not None:
        figures = {
            "mutants": len(verdicts),
            "killed": len(verdicts) - len(survived),
            "survived": [verdict.name for verdict in survived],
            "false_alarms": alarms,
            "verdicts": [asdict(verdict) for verdict in verdicts],
        }
        options.results.write_text(json.dumps(figures, indent=2) + "\n")
    return 1 if survived or alarms or not verdicts else 0
