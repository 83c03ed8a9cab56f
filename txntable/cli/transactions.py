"""``txntable transactions``: what Kafka's ``kafka-transactions`` tells, with its columns and then ours.

What ends transactions is in ``txntable.cli.transaction_ending``.
"""

from __future__ import annotations

from dataclasses import astuple
from typing import Annotated

import typer

from txntable.admin.admin import Admin
from txntable.admin.transaction_listing import HangingTransaction, TransactionDescription
from txntable.cli.connection import Connection, on_warehouse
from txntable.cli.coordinator_run import run
from txntable.cli.output import Rows, camel_headers, note
from txntable.cli.transaction_ending import abort, fence
from txntable.coordinator.transaction import TransactionMetadata
from txntable.coordinator.transaction_state import TransactionState
from txntable.format.records import TopicPartition

application = typer.Typer(
    add_completion=False, no_args_is_help=True, help="List, describe, abort and fence transactions."
)

LIST_HEADERS = camel_headers(
    "transactional_id producer_id transaction_state producer_epoch last_outcome last_batch_id last_position"
)
PRODUCER_HEADERS = camel_headers(
    "producer_id producer_epoch latest_coordinator_epoch last_sequence last_timestamp current_transaction_start_offset"
)
HANGING_HEADERS = camel_headers(
    "topic partition producer_id producer_epoch coordinator_epoch start_offset last_timestamp duration_min"
    " transactional_id status"
) | {"duration_min": "Duration(min)"}
WAITS_FOR = {
    TransactionState.ONGOING: "its producer, or its timeout",
    TransactionState.PREPARED: "the holder of its token",
    TransactionState.PREPARE_COMMIT: "completion: it is decided",
    TransactionState.PREPARE_ABORT: "completion: it is decided",
}
_MS_PER_MINUTE = 60_000


def list_transactions(
    connection: Connection,
    state: Annotated[
        list[str] | None, typer.Option("--state", metavar="STATE", help="Only in this state; repeat it for several.")
    ] = None,
    producer_id: Annotated[
        list[int] | None, typer.Option("--producer-id", help="Only of this producer id; repeat it for several.")
    ] = None,
    duration_filter: Annotated[
        int | None,
        typer.Option("--duration-filter", metavar="MS", min=0, help="Only transactions under way for longer."),
    ] = None,
    transactional_id_pattern: Annotated[
        str | None,
        typer.Option("--transactional-id-pattern", metavar="REGEX", help="Only ids that it matches as a whole."),
    ] = None,
) -> None:
    """List transactional ids: who may act now, the state, and how the last transaction ended; PREPARED first."""
    rows = (
        connection.open()
        .admin()
        .list_transactions(
            states=state, producer_ids=producer_id, duration_ms=duration_filter, pattern=transactional_id_pattern
        )
    )
    # Nothing but its token ends a prepared transaction: it may hold readers back for ever.
    shown = sorted(rows, key=lambda row: row.state is not TransactionState.PREPARED)
    connection.output.rows(Rows(LIST_HEADERS, [_summary(row) for row in shown]))


def _summary(row: TransactionMetadata) -> tuple[object, ...]:
    decision = row.decision
    return (
        row.transactional_id,
        row.producer_id,
        row.state.value,
        row.producer_epoch,
        None if decision is None else decision.outcome.value,
        None if decision is None else decision.batch_id,
        None if decision is None else decision.position,
    )


def describe(
    connection: Connection, transactional_id: Annotated[str, typer.Argument(help="The transactional id.")]
) -> None:
    """Describe one transactional id: its state, timeout, and the partitions of its transaction."""
    described = connection.open().admin().describe_transactions([transactional_id])
    connection.output.facts(_facts(described[transactional_id]))


def _facts(found: TransactionDescription) -> dict[str, object]:
    decision = found.decision
    return {
        "transactional_id": found.transactional_id,
        "producer_id": found.producer_id,
        "producer_epoch": found.producer_epoch,
        "transaction_state": found.state.value,
        "transaction_timeout_ms": found.timeout_ms,
        "current_transaction_start_time_ms": found.start_time_ms,
        "transaction_duration_ms": found.duration_ms,
        "topic_partitions": [f"{topic}-{partition}" for topic, partition in found.topic_partitions],
        "groups": list(found.groups),
        "current_transaction_start_position": found.started_position,
        "waits_for": WAITS_FOR.get(found.state),
        "token": found.token,
        "last_epoch": None if decision is None else decision.epoch,
        "last_outcome": None if decision is None else decision.outcome.value,
        "last_batch_id": None if decision is None else decision.batch_id,
        "last_position": None if decision is None else decision.position,
        "coordinator_epoch": found.coordinator_epoch,
    }


def describe_producers(
    connection: Connection,
    topic: Annotated[str, typer.Option("--topic", help="The topic's name.")],
    partition: Annotated[int, typer.Option("--partition", help="Of the topic.")],
) -> None:
    """Describe what a partition remembers of its producers."""
    where = TopicPartition(topic, partition)
    producers = connection.open().admin().describe_producers([where])[where]
    connection.output.rows(Rows(PRODUCER_HEADERS, [astuple(one) for one in producers]))


def find_hanging(
    connection: Connection,
    topic: Annotated[str | None, typer.Option("--topic", help="Only in this topic.")] = None,
    partition: Annotated[int | None, typer.Option("--partition", help="Only in this partition of the topic.")] = None,
    max_transaction_timeout: Annotated[
        int | None,
        typer.Option(
            "--max-transaction-timeout",
            metavar="MINUTES",
            min=0,
            help="Only what has been open for longer; default: the warehouse's transaction.max.timeout.ms.",
        ),
    ] = None,
) -> None:
    """Find transactions that are open in a partition and that nothing will end; `abort` ends them."""
    if partition is not None and topic is None:
        raise typer.BadParameter("is a partition of a topic; say --topic too", param_hint="--partition")
    limit_ms = None if max_transaction_timeout is None else max_transaction_timeout * _MS_PER_MINUTE
    admin = connection.open().admin()
    found = admin.find_hanging_transactions(topic, partition, limit_ms)
    connection.output.rows(Rows(HANGING_HEADERS, [_hanging(one) for one in found]))
    _note_what_waits(admin)


def _hanging(one: HangingTransaction) -> tuple[object, ...]:
    return (
        *one.topic_partition,
        one.producer_id,
        one.producer_epoch,
        one.coordinator_epoch,
        one.start_offset,
        one.last_timestamp_ms,
        one.duration_ms // _MS_PER_MINUTE,
        one.transactional_id,
        one.status.value,
    )


def _note_what_waits(admin: Admin) -> None:
    decided = admin.list_transactions(states=[state for state in TransactionState if state.is_decided])
    if decided:
        note(
            f"{len(decided)} transactions are decided and do not hang: they wait for completion, which"
            " `txntable transactions run --once` does"
        )


application.command("list")(on_warehouse(list_transactions))
application.command("describe")(on_warehouse(describe))
application.command("describe-producers")(on_warehouse(describe_producers))
application.command("find-hanging")(on_warehouse(find_hanging))
application.command("abort")(on_warehouse(abort))
application.command("fence")(on_warehouse(fence))
application.command("run")(on_warehouse(run))
