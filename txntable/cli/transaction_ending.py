"""``txntable transactions abort|fence``: ending transactions over their producers' heads.

Both are dry runs until ``--execute``: they then say what would happen, and change nothing.
"""

from __future__ import annotations

from typing import Annotated

import typer

from txntable.admin.transaction_abort import AbortTarget
from txntable.cli.both_ways import both_ways
from txntable.cli.connection import Connection, Execute
from txntable.cli.output import Rows, camel_headers, note_dry_run
from txntable.coordinator.open_epoch_status import OpenEpochStatus
from txntable.coordinator.transaction_state import TransactionState
from txntable.errors import InvalidRequestError

ABORT_HEADERS = camel_headers("transactional_id producer_id producer_epoch action executed")
FENCE_HEADERS = camel_headers("transactional_id producer_id producer_epoch transaction_state action executed")
ABORT_ACTIONS = {
    OpenEpochStatus.OPEN: "abort",
    OpenEpochStatus.DECIDED: "complete what is decided",
    OpenEpochStatus.UNENROLLED: "abort, and write the missing marker",
    OpenEpochStatus.IDLE: "raise the epoch, and write the missing marker",
    OpenEpochStatus.PAST: "write the missing marker",
}
ABORT_PREPARED = "abort what is prepared: only where its database rolled back"


Topic = Annotated[str | None, typer.Option("--topic", metavar="TOPIC", help="Abort what is open in this topic.")]
Partition = Annotated[int | None, typer.Option("--partition", metavar="PARTITION", help="In this partition of it.")]
StartOffset = Annotated[
    int | None,
    typer.Option("--start-offset", metavar="OFFSET", help="The transaction that starts at this offset there."),
]
ProducerId = Annotated[
    int | None, typer.Option("--producer-id", metavar="ID", help="The transaction of this producer.")
]
ProducerEpoch = Annotated[int | None, typer.Option("--producer-epoch", metavar="EPOCH", help="Under this epoch.")]


@both_ways("transactional_id", "--transactional-id")
def abort(  # noqa: PLR0913  the interface of a command
    connection: Connection,
    transactional_id: Annotated[
        str | None, typer.Argument(help="Abort what this id has open.", metavar="TRANSACTIONAL_ID")
    ] = None,
    topic: Topic = None,
    partition: Partition = None,
    start_offset: StartOffset = None,
    producer_id: ProducerId = None,
    producer_epoch: ProducerEpoch = None,
    execute: Execute = False,
) -> None:
    """Abort a transaction, by its id or by where it is open: a dry run until --execute."""
    try:
        AbortTarget(transactional_id, topic, partition, start_offset, producer_id, producer_epoch)
    except InvalidRequestError as error:
        raise typer.BadParameter(str(error)) from error
    admin = connection.open().admin()
    aborted = admin.abort_transaction(
        transactional_id,
        topic=topic,
        partition=partition,
        start_offset=start_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        validate_only=not execute,
    )
    note_dry_run(execute=execute)
    prepared = not execute and aborted.transactional_id in {
        row.transactional_id for row in admin.list_transactions() if row.state is TransactionState.PREPARED
    }
    action = ABORT_PREPARED if prepared else ABORT_ACTIONS[aborted.status]
    row = (aborted.transactional_id, aborted.producer_id, aborted.producer_epoch, action, execute)
    connection.output.rows(Rows(ABORT_HEADERS, [row]))


@both_ways("transactional_ids", "--transactional-id")
def fence(
    connection: Connection,
    transactional_ids: Annotated[list[str], typer.Argument(help="The ids.", metavar="TRANSACTIONAL_ID")],
    execute: Execute = False,
) -> None:
    """Fence the producers of transactional ids, and abort what they have open: a dry run until --execute."""
    admin = connection.open().admin()
    known = {
        row.transactional_id: row for row in admin.list_transactions() if row.transactional_id in transactional_ids
    }
    fenced = admin.fence_producers(transactional_ids) if execute else {}
    note_dry_run(execute=execute)
    rows = []
    for transactional_id in dict.fromkeys(transactional_ids):
        row = known.get(transactional_id)
        before = (None, None) if row is None else (row.producer_id, row.producer_epoch)
        state = None if row is None else row.state
        named = fenced.get(transactional_id, before)
        rows.append((transactional_id, *named, None if state is None else state.value, _fencing(state), execute))
    connection.output.rows(Rows(FENCE_HEADERS, rows))


def _fencing(state: TransactionState | None) -> str:
    if state is None:
        return "create the id"
    if state is TransactionState.PREPARED:
        return "refuse: end it with its token, or abort it first"
    return "abort, and raise the epoch" if state.is_open else "raise the epoch"
