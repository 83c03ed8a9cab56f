"""Many runs of all worlds, each from a seed; a failing one is made small and printed with the line that replays it.

``python -m tests.simulation.campaign --runs 2000``, ``… --world NAME --seed 7``, ``… --replay FILE``.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from itertools import islice
from pathlib import Path

from tests.simulation.every_world import EVERY as WORLDS
from tests.simulation.playing import play
from tests.simulation.shrinking import shrink
from tests.simulation.tape import Recording
from tests.simulation.telling import decode_failure, describe, encode_failure
from tests.simulation.totals import Totals
from txntable.runtime.environment import SystemEnvironment

RUNS_AT_ONCE = 10
SHRINKING_RUNS = 400

Seeds = Sequence[tuple[str, int]]
"""Worlds' names, each with a seed."""


def run_part(seeds: Seeds) -> Totals:
    """Run some seeds one after the other.

    Parameters
    ----------
    seeds : sequence of (str, int)
        Worlds and seeds.
    """
    totals = Totals()
    for name, seed in seeds:
        totals.add(name, seed, play(WORLDS[name], seed))
    return totals


def seeds_of(names: Sequence[str], first: int) -> Iterator[tuple[str, int]]:
    """Yield each world with the first seed, then each with the next one, and so on."""
    seed = first
    while True:
        yield from ((name, seed) for name in names)
        seed += 1


def tell_failure(name: str, source: int | Recording, keep: Path, budget: int) -> str:
    """Make a failing run again, shrink it, keep its recording in a file, and return all that is to be said of it."""
    played = play(WORLDS[name], source)
    if played.failure is None:
        return f"world {name}: it does not fail when it is run again: the run depends on more than its tape"
    shrunk = shrink(WORLDS[name], played, budget)
    keep.mkdir(parents=True, exist_ok=True)
    file = keep / f"failure-{name}-{source if isinstance(source, int) else 'replayed'}.json"
    file.write_text(encode_failure(name, shrunk.played.recording))
    made_small = f"made small in {shrunk.runs} runs, from {len(played.names)} processes and {played.steps} steps"
    replay = f"replay: python -m tests.simulation.campaign --replay {file}"
    again = f"or: python -m tests.simulation.campaign --world {name} --seed {source}" if isinstance(source, int) else ""
    return "\n".join(filter(None, [describe(name, shrunk.played), made_small, replay, again]))


# -- the command ----------------------------------------------------------------------------


def run_all(seeds: Iterator[tuple[str, int]], workers: int, passed: Callable[[], bool]) -> Totals:
    """Run seeds in several processes until there are none left, the time has passed, or one fails."""
    totals = Totals()
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        parts = iter(lambda: list(islice(seeds, RUNS_AT_ONCE)), [])
        under_way = {pool.submit(run_part, part) for part in islice(parts, workers * 2)}
        while under_way:
            done, under_way = wait(under_way, return_when=FIRST_COMPLETED)
            for each in done:
                totals.merge(each.result())
            if not passed() and not totals.failed:
                under_way |= {pool.submit(run_part, part) for part in islice(parts, len(done))}
    return totals


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    """Return the command line's options."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=2000, help="how many runs at most, of all worlds together")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no runs after so long")
    parser.add_argument("--first", type=int, default=0, help="the first seed of each world")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--world", choices=sorted(WORLDS), help="only this one")
    parser.add_argument("--seed", type=int, help="run this seed alone, of --world")
    parser.add_argument("--replay", type=Path, help="make the run again that is kept in this file")
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()), help="folder for failing runs")
    parser.add_argument("--shrinking-runs", type=int, default=SHRINKING_RUNS, help="to make a failing run small")
    parser.add_argument("--results", type=Path, help="write the figures here, as JSON")
    options = parser.parse_args(words)
    if options.seed is not None and options.world is None:
        parser.error("a seed is of one world: name it with --world")
    return options


def run_one(name: str, source: int | Recording, options: argparse.Namespace) -> int:
    """Make one run; tell how it failed, as it is when it is replayed and made small when it is from a seed."""
    played = play(WORLDS[name], source)
    if played.failure is None:
        say(f"world {name}: {len(played.names)} processes, {played.steps} steps, and every check holds")
        return 0
    replayed = isinstance(source, Recording)
    say(describe(name, played) if replayed else tell_failure(name, source, options.keep, options.shrinking_runs))
    return 1


def main(words: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    options = arguments(words)
    if options.replay is not None:
        return run_one(*decode_failure(options.replay.read_text()), options)
    if options.seed is not None:
        return run_one(options.world, options.seed, options)
    machine = SystemEnvironment()
    began = machine.instant()
    seeds = islice(seeds_of([options.world] if options.world else list(WORLDS), options.first), options.runs)
    totals = run_all(seeds, options.workers, lambda: machine.since_ms(began) > options.seconds * 1000)
    figures = totals.encode(machine.since_ms(began) / 1000)
    say(figures)
    if options.results is not None:
        options.results.write_text(f"{figures}\n")
    for name, seed, kind in totals.failed:
        say(f"failed: world {name} seed {seed}: {kind}")
    # One of each kind is told: the others are likely to be the same.
    for name, seed in {kind: (name, seed) for name, seed, kind in reversed(totals.failed)}.values():
        say(tell_failure(name, seed, options.keep, options.shrinking_runs))
    return 1 if totals.failed else 0


def say(text: str) -> None:
    """Tell the person before the screen."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
