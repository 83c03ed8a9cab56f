"""``txntable transactions``: what Kafka's ``kafka-transactions`` tells, from the transaction log."""

from __future__ import annotations

from typing import Annotated

import typer

from coordinator.transaction import TransactionMetadata
from txntable.cli.connection import Connection, on_warehouse
from txntable.cli.output import Rows
from txntable.errors import InvalidPidMappingError

application = typer.Typer(no_args_is_help=True, help="List and describe transactional ids.")

LIST_HEADERS = {
    "transactional_id": "TransactionalId",
    "producer_id": "ProducerId",
    "producer_epoch": "ProducerEpoch",
    "transaction_state": "TransactionState",
    "last_outcome": "LastOutcome",
    "last_batch_id": "LastBatchId",
    "last_position": "LastPosition",
}


def list_transactions(connection: Connection) -> None:
    """List every transactional id: who may act now, its state, and how its last transaction ended."""
    rows = [_summary(row) for row in connection.open().admin().list_transactions()]
    connection.output.rows(Rows(LIST_HEADERS, rows))


def describe(
    connection: Connection, transactional_id: Annotated[str, typer.Argument(help="The transactional id.")]
) -> None:
    """Describe one transactional id: its state, timeout, and the partitions of its transaction."""
    rows = connection.open().admin().list_transactions()
    found = next((row for row in rows if row.transactional_id == transactional_id), None)
    if found is None:
        raise InvalidPidMappingError(
            "there is no such transactional id; `txntable transactions list` names all",
            transactional_id=transactional_id,
        )
    connection.output.facts(
        {
            **dict(zip(LIST_HEADERS, _summary(found), strict=True)),
            "transaction_timeout_ms": found.timeout_ms,
            "current_transaction_start_position": found.started_position,
            "topic_partitions": [
                f"{topic.name}-{partition}" for topic in found.topics.values() for partition in sorted(topic.partitions)
            ],
            "groups": list(found.groups),
        }
    )


def _summary(row: TransactionMetadata) -> tuple[object, ...]:
    decision = row.decision
    return (
        row.transactional_id,
        row.producer_id,
        row.producer_epoch,
        row.state.value,
        None if decision is None else decision.outcome.value,
        None if decision is None else decision.batch_id,
        None if decision is None else decision.position,
    )


application.command("list")(on_warehouse(list_transactions))
application.command("describe")(on_warehouse(describe))
