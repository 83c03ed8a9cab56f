"""``python -m tests.chaos --scenario NAME --store local|s3 --seconds N [--seed N] [--results FILE]``: one run, judged.

The blows are the seed's; what they meet is the machine's: no two runs are the same.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.s3 import models as moto_s3

from tests.chaos.archive import Archive, Stamped
from tests.chaos.arena import Arena
from tests.chaos.judgement import Judgement, end, figures
from tests.chaos.limits import shortened
from tests.chaos.premises import Site, forget_accounts
from tests.chaos.scenarios import SCENARIOS, create, scenario_of
from tests.checker.gathering import Folder
from tests.doubles.faulty_proxy import FaultyServer


@contextmanager
def arena_on(store: str, folder: Path, seed: int, scenario: str) -> Iterator[Arena]:
    """Make a warehouse on a store, and all that a run needs."""
    with ExitStack() as stack:
        root, server = folder / "warehouse", None
        site = Site(str(root), str(folder), seed, scenario=scenario)
        archive = Archive(lambda: entries_in(root), lambda: Folder(root))
        if store == "s3":
            server = stack.enter_context(FaultyServer("chaos"))
            site = replace(site, url=f"{server.url}/warehouse", options=server.storage_options)
            archive = Archive(partial(entries_of, server), partial(objects_of, server))
        stack.enter_context(shortened(scenario_of(site).limits))
        create(site)
        stack.enter_context(archive.kept())
        yield Arena(site, scenario_of(site), archive.stored, server)


def entries_in(root: Path) -> Stamped:
    """Return the log entries in a folder, with when each was written."""
    found = {}
    for path in root.glob("**/_delta_log/*.json"):
        with suppress(FileNotFoundError):
            found[path.relative_to(root).as_posix()] = path.stat().st_mtime_ns // 1_000_000, path.read_bytes
    return found


def entries_of(server: FaultyServer) -> Stamped:
    """Return the log entries on a server."""
    return {
        path.removeprefix("warehouse/"): (round(key.last_modified.timestamp() * 1000), partial(getattr, key, "value"))
        for path, key in keys_of(server)
        if "/_delta_log/" in path and path.endswith(".json")
    }


def objects_of(server: FaultyServer) -> Mapping[str, bytes]:
    """Return the warehouse's objects, out of the server's memory."""
    return {path.removeprefix("warehouse/"): key.value for path, key in keys_of(server)}


def keys_of(server: FaultyServer) -> list[tuple[str, Any]]:
    """Return what the server has, while it goes on."""
    keys = moto_s3.s3_backends[DEFAULT_ACCOUNT_ID]["aws"].buckets[server.bucket].keys
    while True:
        try:
            return list(keys.items())
        except (RuntimeError, KeyError):
            # It has changed meanwhile: grown, or lost a key that was about to be read.
            continue


def run(
    store: str, folder: Path, seconds: float, seed: int, scenario: str = "everyday"
) -> tuple[Judgement, dict[str, int]]:
    """Do a run, and judge it."""
    with arena_on(store, folder, seed, scenario) as arena:
        with arena.open():
            arena.run(seconds)
            judgement = end(arena)
        return judgement, figures(arena, judgement)


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scenario", choices=list(SCENARIOS), default="everyday")
    parser.add_argument("--store", choices=("local", "s3"), default="local")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--keep", type=Path, help="an empty folder for the histories; default: one that goes")
    chosen = parser.parse_args(arguments)
    forget_accounts()
    with tempfile.TemporaryDirectory() as folder:
        kept = chosen.keep or Path(folder)
        judgement, found = run(chosen.store, kept, chosen.seconds, chosen.seed, chosen.scenario)
    said = {
        "scenario": chosen.scenario,
        "store": chosen.store,
        "seconds": round(chosen.seconds),
        "seed": chosen.seed,
        **found,
    }
    if chosen.results is not None:
        chosen.results.write_text(json.dumps(said, indent=1) + "\n")
    lines = [f"{name}: {value}" for name, value in said.items()]
    lines += [f"{each.number} {each.name}: {each.facts}" for each in judgement.violations]
    lines += [f"batch {batch}: committed {times} times" for batch, times in judgement.repeated_batches.items()]
    lines += [f"decided otherwise outside: {txn}" for txn in judgement.disagreements]
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if found["violations"] else 0


if __name__ == "__main__":
    sys.exit(main())
