"""``txntable transactions run``: the coordinator job, once for a scheduler or until it is stopped.

Owns what ends it: SIGINT and SIGTERM let the task under way finish; a lost lease is an error like any other, exit code
1, but with ``--once``: then another job does the rest.  With it, exit code 1 when something was left undone.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict
from functools import partial
from typing import Annotated

import typer

from txntable.admin.metric_samples import MetricFormat, samples_of_findings, samples_of_round
from txntable.cli.connection import Connection
from txntable.cli.interruption import stopped_by_signals
from txntable.cli.metrics import Metrics, write_metrics
from txntable.cli.output import note, tell
from txntable.errors import InvalidRequestError, TransactionCoordinatorFencedError
from txntable.transactions.named_topics import named_topics, open_ids
from txntable.upkeep.coordinator_round import CoordinatorReport
from txntable.upkeep.transaction_coordinator import CoordinatorConfig
from txntable.warehouse.warehouse import Warehouse

_GIVE_UP = "--give-up"
_DEFAULT_INTERVAL_MS = CoordinatorConfig().completion_interval_ms
GivenUp = Annotated[
    list[str] | None,
    typer.Option(
        _GIVE_UP,
        metavar="TOPIC",
        help="Complete transactions without what they wrote to a topic that has lost its log for good, as no backup"
        " has it; with --once. Repeat it for more.",
    ),
]


def run(
    connection: Connection,
    once: Annotated[bool, typer.Option("--once", help="Do all that there is to do, and exit.")] = False,
    interval_ms: Annotated[
        int, typer.Option("--interval-ms", metavar="MS", min=1, help="Milliseconds between rounds; without --once.")
    ] = _DEFAULT_INTERVAL_MS,
    give_up: GivenUp = None,
    metrics: Metrics = None,
) -> None:
    """Run the coordinator: abort what timed out, complete what was decided, expire what is idle, clean up logs.

    Of two that run all the time the newer one counts: the other one notices in its next round, and stops. One of
    --once stops none.
    """
    if give_up and not once:
        raise typer.BadParameter("give --once with it: what is given up is given up now", param_hint=_GIVE_UP)
    config = CoordinatorConfig(completion_interval_ms=interval_ms, given_up_topics=tuple(give_up or ()))
    warehouse = connection.open()
    _require_lost(warehouse, config.given_up_topics)
    coordinator = warehouse.coordinator(config)
    if once:
        try:
            report = coordinator.run_once()
        except TransactionCoordinatorFencedError as error:
            tell("another coordinator job took over, and does the rest")
            connection.output.facts({"taken_over": True, "coordinator_epoch": error.facts.get("coordinator_epoch")})
            return
        if metrics is None:
            connection.output.facts(asdict(report))
        else:
            _measure(warehouse, metrics, report)
        if report.failures:
            raise typer.Exit(1)
        return
    with stopped_by_signals() as stop:
        note("the coordinator runs until it is interrupted")
        coordinator.run(stop.is_set, partial(_measure_and_tell, warehouse, metrics))


def _require_lost(warehouse: Warehouse, topics: Collection[str]) -> None:
    for name in topics:
        if warehouse.topic_log(name).segments.refresh().version is not None:
            raise typer.BadParameter(f"the topic has its log, nothing of it is lost: {name}", param_hint=_GIVE_UP)
        if ids := open_ids(warehouse.transactions, name):
            raise InvalidRequestError(
                "a transaction with the topic is open; end it first, by `txntable transactions abort` with its id and"
                " --execute, which says that it cannot be completed, and give the topic up then",
                topic=name,
                transactional_ids=",".join(ids),
            )
        if name not in named_topics(warehouse.transactions, warehouse.completer.offsets):
            tell(f"nothing is owed to a topic {name}: no transaction under way names it, and no group")


def _measure_and_tell(warehouse: Warehouse, metrics: Metrics, report: CoordinatorReport) -> None:
    if metrics is not None:
        _measure(warehouse, metrics, report)
    _tell(report)


def _measure(warehouse: Warehouse, form: MetricFormat, report: CoordinatorReport) -> None:
    """Print what the round did, and what is late all the same: of the other jobs, too."""
    findings = warehouse.admin().check_upkeep()
    write_metrics(warehouse, [*samples_of_round(report), *samples_of_findings(findings)], form)


def _tell(report: CoordinatorReport) -> None:
    if report.did_something:
        facts = " ".join(f"{name}={value}" for name, value in asdict(report).items() if value)
        tell(facts)
