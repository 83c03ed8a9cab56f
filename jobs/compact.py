"""Compaction and retention, for schedulers and spark-submit; ``txntable compact`` is the same.

    python -m txntable.jobs.compact --warehouse s3://bucket/warehouse --once
    spark-submit jobs/compact.py --warehouse s3://bucket/warehouse --once --engine spark

Exit code 0: done, or nothing to do; 1: something failed, and the next run does it; 2: wrong usage; 130 or 143: ended
well after SIGINT or SIGTERM.  Killed at any moment it leaves a correct warehouse.  Spark is loaded when there is work
for it only.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Annotated

import typer

from txntable.cli.both_ways import both_ways
from txntable.cli.connection import Connection, on_warehouse
from txntable.cli.interruption import stopped_by_signals
from txntable.cli.output import note, tell
from txntable.cli.plain_help import run_alone
from txntable.compaction.compact_command import answer, repeat, shown_progress
from txntable.compaction.compactor import CompactionOptions, compact
from txntable.compaction.engine import Engine, chosen_rewriter
from txntable.compaction.rewriter import Rewriter, rewriter_here
from txntable.compaction.spec import TopicReport
from txntable.errors import MissingDependencyError


@both_ways("topic", "--topic")
def compact_topics(  # noqa: PLR0913  the options of the command
    connection: Connection,
    topic: Annotated[
        list[str] | None, typer.Option("--topic", metavar="TOPIC", help="Only this one; may be repeated.")
    ] = None,
    engine: Annotated[Engine, typer.Option(help="auto: Spark for topics with GiBs to rewrite.")] = Engine.AUTO,
    parallelism: Annotated[int, typer.Option(metavar="NUMBER", min=1, help="The most Spark tasks at once.")] = 64,
    memory_mib: Annotated[
        int, typer.Option(metavar="MIB", min=1, help="Of each task, for the keys of a compaction by key.")
    ] = 256,
    once: Annotated[bool, typer.Option("--once", help="One run, and exit; without it: until it is stopped.")] = False,
    interval_ms: Annotated[
        int, typer.Option(metavar="MS", min=1, help="Milliseconds from run to run, without --once.")
    ] = 300_000,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and exit.")] = False,
) -> None:
    """Merge small segments; drop older records of their keys, and what retention lets go, where the topic says so.

    Records go by the topic's own configuration only.  Readers and writers go on meanwhile, and notice nothing.
    What was decided less than the warehouse's snapshot_retention_ms ago (one hour, unless it was created otherwise)
    waits for a later run. Without --once it goes on, run after run, until it is stopped (Ctrl-C, SIGTERM).

    Segments are counted: Expired by retention, Aborted with their transaction, Settled (they carry their decision
    now), Merged into those Written, Young (for a later run). Dropped are records. Lost are merges that another
    compaction, a retention or a deletion came before: the next run does them.
    """
    warehouse = connection.open()
    with stopped_by_signals() as stop, ExitStack() as sessions:
        options = CompactionOptions(memory_bytes=memory_mib * 1024 * 1024, stop=stop.is_set)
        here = rewriter_here(warehouse.context)
        on_spark = functools.cache(lambda: _on_spark(sessions, parallelism))
        rewriter = chosen_rewriter(engine, here, on_spark, note)

        def run() -> Sequence[TopicReport]:
            with shown_progress() as progress:
                return compact(
                    warehouse, topic, rewriter=rewriter, options=options, execute=not dry_run, progress=progress
                )

        if once or dry_run:
            reports = run()
            if stop.is_set():
                note("stopped: what was done holds, and the next run does the rest")
            answer(connection.output, reports, executed=not dry_run)
            return
        tell("compaction goes on until it is stopped (Ctrl-C); --once is one run")
        repeat(run, interval_ms, stop.is_set, warehouse.context.environment)


def _on_spark(sessions: ExitStack, parallelism: int) -> Rewriter:
    try:
        # Imported where it is wanted: most runs rewrite little, and do without Spark's start-up time.
        started: Rewriter = importlib.import_module("txntable.jobs.compaction_session").start_rewriter(
            sessions, parallelism
        )
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            "spark is not installed; pip install 'txntable[spark]', or say --engine here", missing=error.name
        ) from error
    return started


command = on_warehouse(compact_topics)


def main() -> None:
    """Compact as the arguments of the process say, and exit."""
    run_alone(command)


if __name__ == "__main__":
    main()
