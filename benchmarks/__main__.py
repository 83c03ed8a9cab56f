"""Run the benchmarks and print their figures: ``python -m benchmarks [name …] [--json FILE]``."""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import (
    cold_start,
    commits,
    compaction,
    contention,
    engines,
    flat_cost,
    format_reads,
    history,
    life,
    light_reads,
    many_topics,
    memory,
    peers,
    pipeline,
    planning,
    report,
    round_trips,
    scan,
    sharing,
    small_segments,
    streaming,
    transactions,
    wide_topic,
    write,
)

ALL = {
    "commits": commits.measure,
    "transactions": transactions.measure,
    "contention": contention.measure,
    "engines": engines.measure,
    "cold_start": cold_start.measure,
    "planning": planning.measure,
    "write": write.measure,
    "scan": scan.measure,
    "light_reads": light_reads.measure,
    "format_reads": format_reads.measure,
    "pipeline": pipeline.measure,
    "memory": memory.measure,
    "streaming": streaming.measure,
    "flat_cost": flat_cost.measure,
    "compaction": compaction.measure,
    "life": life.measure,
    "history": history.measure,
    "many_topics": many_topics.measure,
    "wide_topic": wide_topic.measure,
    "small_segments": small_segments.measure,
    "sharing": sharing.measure,
    "round_trips": round_trips.measure,
    "peers": peers.measure,
    "report": report.measure,
}


def main() -> None:
    """Measure what was asked for, all by default."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(ALL))
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(ALL):
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}; there are {', '.join(ALL)}")
    console, everything = Console(), {}
    for name in arguments.names or ALL:
        with tempfile.TemporaryDirectory(prefix="txntable-bench-") as folder:
            figures = ALL[name](Path(folder))
            # The folder may hold very many files: figures are told before it is deleted.
            everything[name] = [asdict(figure) for figure in figures]
            table = Table("figure", "value", "unit", "notes", title=name)
            for figure in figures:
                table.add_row(figure.name, f"{figure.value:,.2f}", figure.unit, figure.notes)
            console.print(table)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(everything, indent=2) + "\n")


if __name__ == "__main__":
    main()
