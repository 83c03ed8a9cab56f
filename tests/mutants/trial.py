"""Runs of one world in this process, until one fails: ``python -m tests.mutants.trial WORLD SEED...``.

Prints one line of JSON.  It is started in a copy of the project, with or without a mutant in it.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from tests.mutants.worlds import WORLDS
from tests.simulation.playing import play


@dataclass(frozen=True, slots=True)
class Tried:
    """What some runs have found.

    Attributes
    ----------
    runs : int
        How many there were.
    seed : int or None
        Of the one that failed; ``None``: every check held in all of them.
    how : str
        What failed.
    """

    runs: int
    seed: int | None = None
    how: str = ""


def run_until_one_fails(world: str, seeds: Iterable[int]) -> Tried:
    """Run seeds of a world one after the other, up to the first that fails."""
    runs = 0
    for seed in seeds:
        runs += 1
        failure = play(WORLDS[world], seed).failure
        if failure is not None:
            return Tried(runs, seed, failure.kind)
    return Tried(runs)


def main(words: Sequence[str] | None = None) -> None:
    """Run the command; a process that a mutant has left hanging in a thread does not keep it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("world", choices=sorted(WORLDS))
    parser.add_argument("seeds", type=int, nargs="*", help="in this order")
    parser.add_argument("--search", type=int, default=0, help="then so many seeds more, from 0 on")
    options = parser.parse_args(words)
    logging.disable(logging.CRITICAL)
    tried = run_until_one_fails(options.world, [*options.seeds, *range(options.search)])
    sys.stdout.write(json.dumps(asdict(tried)) + "\n")
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
