"""Consume, transform, produce, as a program for schedulers and spark-submit.

What a group has not read yet becomes records of other topics, in one transaction with the group's offsets.

    python -m txntable.jobs.pipeline --warehouse s3://bucket/warehouse --config delays.toml --once --batch-id 2026-11-20
    spark-submit jobs/pipeline.py --warehouse s3://bucket/warehouse --config delays.toml

Exit code 0: done, or nothing to do; 1: failed: nothing was committed, unless it says COMMIT_STATE_UNKNOWN; run it
again; 2: wrong usage; 130 or 143: ended well after SIGINT or SIGTERM.
What the function itself raises is shown as it is, with the offsets
that led to it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from txntable.cli.batch_option import batch_name
from txntable.cli.connection import Connection, named_values, on_warehouse
from txntable.cli.interruption import stopped_by_signals
from txntable.cli.output import tell
from txntable.cli.plain_help import run_alone
from txntable.jobs.pipeline_settings import read_settings
from txntable.jobs.session import spark_session
from txntable.spark.pipelines.pipeline import Pipeline, PipelineRun
from txntable.spark.pipelines.pipeline_config import check_topics
from txntable.spark.session import require_java
from txntable.warehouse.warehouse import Warehouse

BatchId = Annotated[
    str | None,
    typer.Option(
        metavar="ID", callback=batch_name, help="Names the one run, not by digits alone: a second time it does nothing."
    ),
]


Config = Annotated[Path | None, typer.Option(metavar="FILE", help="TOML: group, sources, targets, function or sql, …")]
Sources = Annotated[list[str] | None, typer.Option(metavar="TOPIC", help="A topic that is read; may be repeated.")]
Targets = Annotated[list[str] | None, typer.Option(metavar="TOPIC", help="A topic that is written; may be repeated.")]
State = Annotated[str | None, typer.Option(metavar="TOPIC", help="A keyed topic for what the function keeps.")]
Instance = Annotated[str | None, typer.Option(metavar="NAME", help="Of several that share the group: its own name.")]
Most = Annotated[int | None, typer.Option(metavar="NUMBER", min=1, help="The most that one run reads.")]
Interval = Annotated[int | None, typer.Option(metavar="MS", min=0, help="How long to wait when nothing is new.")]


def pipeline(  # noqa: PLR0913  the options of the command
    connection: Connection,
    config: Config = None,
    group: Annotated[str | None, typer.Option(metavar="GROUP", help="The consumer group.")] = None,
    source: Sources = None,
    target: Targets = None,
    state: State = None,
    function: Annotated[str | None, typer.Option(metavar="MODULE:FUNCTION", help="DataFrames -> DataFrame.")] = None,
    sql: Annotated[list[str] | None, typer.Option(metavar="TARGET=QUERY", help="In place of a function.")] = None,
    instance: Instance = None,
    max_offsets_per_partition: Most = None,
    interval_ms: Interval = None,
    batch_id: BatchId = None,
    once: Annotated[bool, typer.Option("--once", help="One transaction, and exit.")] = False,
) -> None:
    """Run a pipeline: read what is new, transform it, and commit what comes of it together with the offsets."""
    if batch_id is not None and not once:
        raise typer.BadParameter("names one run; give --once, too", param_hint="--batch-id")
    options: dict[str, object] = {
        "group": group,
        "sources": source,
        "targets": target,
        "state": state,
        "function": function,
    }
    options |= {"sql": named_values(sql or (), "--sql"), "instance": instance, "interval_ms": interval_ms}
    options |= {"max_offsets_per_partition": max_offsets_per_partition}
    settings = read_settings(config, options)
    warehouse = connection.open()
    check_topics(settings.config, lambda topic: warehouse.topic_log(topic).settings())
    if batch_id is not None and _is_committed(warehouse, settings.config.transactional_id, batch_id):
        _tell(PipelineRun({}, already_committed=True))
        return
    require_java()
    with (
        spark_session(f"txntable pipeline {settings.config.group}", warehouse.store.spec) as spark,
        Pipeline(warehouse, spark, settings.config, settings.transform) as running,
    ):
        _run(running, batch_id, once=once)


def _run(running: Pipeline, batch_id: str | None, *, once: bool) -> None:
    if once:
        _tell(running.run_once(batch_id))
        return
    with stopped_by_signals() as stop:
        running.run(stop.is_set, _tell)


def _is_committed(warehouse: Warehouse, transactional_id: str, batch_id: str) -> bool:
    """Return whether the run was done before; without a JVM, and without an init that would fence another run."""
    return warehouse.producer(transactional_id).is_committed(batch_id)


def _tell(run: PipelineRun) -> None:
    tell(str(run))


command = on_warehouse(pipeline)


def main() -> None:
    """Run the pipeline as the arguments of the process say, and exit."""
    run_alone(command)


if __name__ == "__main__":
    main()
