"""``python -m tests.soak --minutes N [--seed N] [--into FOLDER]``: everything at once on an S3 API, judged and drawn.

The processes are those of ``tests.chaos``' scenario ``soak``, killed, paused and answered wrongly as there; those that
are spared show what a long life costs.  Exit code 1: the history has an anomaly, or something grows.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.chaos.__main__ import arena_on, keys_of
from tests.chaos.arena import Arena
from tests.chaos.judgement import end, figures
from tests.chaos.premises import forget_accounts
from tests.chaos.scenarios import SOAK
from tests.soak.sampling import Histories, Row, Sampler
from tests.soak.verdict import picture_of, series_of

_SPARED = sorted(f"{role} {name}" for role, name in SOAK.spared)


def soak(folder: Path, seconds: float, seed: int, samples: Path) -> tuple[dict[str, Any], list[str], list[Row]]:
    """Do a run; return its figures, the anomalies, and what was measured."""
    with arena_on("s3", folder, seed, "soak") as arena:
        with arena.open():
            sampler = sampler_of(arena, folder, samples)
            with sampler.sampling():
                arena.run(seconds)
            judgement = end(arena)
        anomalies = [f"{each.number} {each.name}: {each.facts}" for each in judgement.violations]
        anomalies += [f"batch {batch}: committed {times} times" for batch, times in judgement.repeated_batches.items()]
        return figures(arena, judgement), anomalies, sampler.rows


def sampler_of(arena: Arena, folder: Path, samples: Path) -> Sampler:
    """Return what measures a run."""
    server = arena.server
    assert server is not None
    return Sampler(
        arena.serving,
        Histories(folder),
        lambda: [path for path, _ in keys_of(server)],
        server.requests.total,
        samples,
    )


def report(into: Path, said: dict[str, Any], anomalies: Sequence[str], rows: Sequence[Row]) -> int:
    """Write figures and picture, say what was found, and return the exit code."""
    series = series_of(rows, _SPARED)
    every = [each for subjects in series.values() for each in subjects]
    growing = [each.name for each in every if not each.is_flat]
    said = {**said, "growing": growing, "anomalies": list(anomalies)}
    (into / "soak.json").write_text(json.dumps(said, indent=1) + "\n")
    (into / "soak.svg").write_text(picture_of(series))
    lines = [f"{name}: {value}" for name, value in said.items()] + list(map(str, every))
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if growing or anomalies or said["violations"] else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--into", type=Path, default=Path("build/soak"), help="samples (CSV), figures and the picture")
    chosen = parser.parse_args(arguments)
    forget_accounts()
    chosen.into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        found, anomalies, rows = soak(Path(folder), chosen.minutes * 60, chosen.seed, chosen.into / "soak.csv")
    return report(chosen.into, {"minutes": chosen.minutes, "seed": chosen.seed, **found}, anomalies, rows)


if __name__ == "__main__":
    sys.exit(main())
