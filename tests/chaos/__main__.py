"""``python -m tests.chaos --store local|s3 --seconds N [--seed N] [--results FILE]``: one run, judged.

The blows are the seed's; what they meet is the machine's: no two runs are the same.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.s3 import models as moto_s3

from tests.chaos.arena import Arena
from tests.chaos.judgement import Judgement, end, figures
from tests.chaos.premises import Site, forget_accounts, shortened
from tests.checker.gathering import Folder
from txntable.testing.faulty_proxy import FaultyServer


@contextmanager
def arena_on(store: str, folder: Path, seed: int) -> Iterator[Arena]:
    """Make a warehouse on a store, and all that a run needs."""
    if store == "local":
        site = Site(str(folder / "warehouse"), str(folder), seed)
        site.create()
        yield Arena(site, stored=lambda: Folder(folder / "warehouse"))
        return
    with FaultyServer("chaos") as server:
        site = Site(f"{server.url}/warehouse", str(folder), seed, server.storage_options)
        site.create()
        yield Arena(site, lambda: objects_of(server), server)


def objects_of(server: FaultyServer) -> Mapping[str, bytes]:
    """Return the warehouse's objects, out of the server's memory."""
    keys = moto_s3.s3_backends[DEFAULT_ACCOUNT_ID]["aws"].buckets[server.bucket].keys
    return {path.removeprefix("warehouse/"): key.value for path, key in keys.items()}


def run(store: str, folder: Path, seconds: float, seed: int) -> tuple[Judgement, dict[str, int]]:
    """Do a run, and judge it."""
    with shortened(), arena_on(store, folder, seed) as arena:
        with arena.open():
            arena.run(seconds)
            judgement = end(arena)
        return judgement, figures(arena, judgement)


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--store", choices=("local", "s3"), default="local")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--keep", type=Path, help="an empty folder for the histories; default: one that goes")
    chosen = parser.parse_args(arguments)
    forget_accounts()
    with tempfile.TemporaryDirectory() as folder:
        kept = chosen.keep or Path(folder)
        judgement, found = run(chosen.store, kept, chosen.seconds, chosen.seed)
    said = {"store": chosen.store, "seconds": round(chosen.seconds), "seed": chosen.seed, **found}
    if chosen.results is not None:
        chosen.results.write_text(json.dumps(said, indent=1) + "\n")
    lines = [f"{name}: {value}" for name, value in said.items()]
    lines += [f"{each.number} {each.name}: {each.facts}" for each in judgement.violations]
    lines += [f"batch {batch}: committed {times} times" for batch, times in judgement.repeated_batches.items()]
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if found["violations"] else 0


if __name__ == "__main__":
    sys.exit(main())
