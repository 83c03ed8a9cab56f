"""Run the benchmarks and print their figures: ``python -m benchmarks [name …] [--json FILE] [--keep]``."""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.kept_results import keep, load_now
from benchmarks.measurement import Figure

NAMES = (
    *("commits", "transactions", "contention", "engines", "cold_start", "planning", "write", "scan", "light_reads"),
    *("format_reads", "pipeline", "memory", "streaming", "flat_cost", "compaction", "life", "history", "many_topics"),
    *("growth", "record_rates", "wide_topic", "small_segments", "sharing", "round_trips", "peers", "report"),
    *("vacuum", "time_travel", "large_topics"),
)
"""Modules beside this one; each is imported as it is run, so that one needs nothing that only others need."""


def main() -> None:
    """Measure what was asked for, all by default."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(NAMES))
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--keep", action="store_true", help="also keep them in benchmarks/results, for the page")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(NAMES):
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    console, everything = Console(), {}
    for name in arguments.names or NAMES:
        load = load_now()
        with tempfile.TemporaryDirectory(prefix="txntable-bench-") as folder:
            figures: list[Figure] = import_module(f"benchmarks.{name}").measure(Path(folder))
            # The folder may hold very many files: figures are told before it is deleted.
            everything[name] = [asdict(figure) for figure in figures]
            if arguments.keep:
                console.print(f"kept in {keep(name, figures, datetime.now(UTC).date(), load)}")
            table = Table("figure", "value", "unit", "notes", title=name)
            for figure in figures:
                table.add_row(figure.name, f"{figure.value:,.2f}", figure.unit, figure.notes)
            console.print(table)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(everything, indent=2) + "\n")


if __name__ == "__main__":
    main()
