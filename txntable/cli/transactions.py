"""``txntable transactions``: what Kafka's ``kafka-transactions`` tells, with its columns and then ours.

What ends transactions is in ``txntable.cli.transaction_ending``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import astuple
from typing import Annotated

import typer

from txntable.admin.admin import Admin
from txntable.admin.blocking_transactions import BlockedPartition, BlockingTransaction
from txntable.admin.blocking_words import counted, duration_text, state_waits_for
from txntable.admin.readable_part import ReadablePart
from txntable.admin.transaction_listing import HangingTransaction, TransactionDescription
from txntable.admin.upkeep import Finding
from txntable.cli.both_ways import both_ways
from txntable.cli.connection import Connection, on_warehouse
from txntable.cli.coordinator_run import run
from txntable.cli.output import Rows, camel_headers, instant_text, note
from txntable.cli.transaction_ending import abort, fence
from txntable.cli.unreadable import fail_if_unreadable, readable_part
from txntable.coordinator.transaction import TransactionMetadata
from txntable.coordinator.transaction_state import TransactionState
from txntable.format.records import TopicPartition
from txntable.warehouse.warehouse import Warehouse

application = typer.Typer(
    add_completion=False, no_args_is_help=True, help="List, describe, abort and fence transactions."
)

LIST_HEADERS = camel_headers(
    "transactional_id producer_id transaction_state producer_epoch transaction_duration_ms transaction_timeout_ms"
    " held_back_records last_outcome last_batch_id last_position"
) | {"transaction_duration_ms": "DurationMs", "held_back_records": "HeldBack"}
_FOR_PROGRAMS = ("producer_epoch", "transaction_timeout_ms", "last_outcome", "last_batch_id", "last_position")
PRODUCER_HEADERS = camel_headers(
    "producer_id producer_epoch latest_coordinator_epoch last_sequence last_timestamp current_transaction_start_offset"
)
HANGING_HEADERS = camel_headers(
    "topic partition producer_id producer_epoch coordinator_epoch start_offset last_timestamp duration_min"
    " transactional_id status"
) | {"duration_min": "Duration(min)"}
_MS_PER_MINUTE = 60_000
_TIMES = ("last_timestamp",)
_STATES = [state.value for state in TransactionState if state is not TransactionState.DEAD]


def _states_like(incomplete: str) -> list[str]:
    """Return what a shell offers for the beginning of a state."""
    return [state for state in _STATES if state.startswith(incomplete)]


States = Annotated[
    list[str] | None,
    typer.Option(
        "--state",
        metavar="STATE",
        help=f"Only in this state; repeat it for several: {', '.join(_STATES)}.",
        autocompletion=_states_like,
    ),
]


def list_transactions(
    connection: Connection,
    state: States = None,
    producer_id: Annotated[
        list[int] | None,
        typer.Option("--producer-id", metavar="ID", help="Only of this producer id; repeat it for several."),
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
    """List transactional ids: who may act now, and the state; PREPARED first.

    Of a transaction under way: for how long, and how many committed records wait behind it. JSON also has the epoch,
    the timeout, and how the last transaction ended; `describe` has these of one id. Exit code 1 when a topic of one
    cannot be read: it is named on standard error, and what waits there is not counted.
    """
    warehouse = connection.open()
    admin = warehouse.admin()
    rows = admin.list_transactions(
        states=state, producer_ids=producer_id, duration_ms=duration_filter, pattern=transactional_id_pattern
    )
    under_way = [row for row in rows if row.state.is_open or row.state.is_decided]
    described = admin.describe_transactions([row.transactional_id for row in under_way])
    part = _enrolled(warehouse, {topic.name for row in under_way for topic in row.topics.values()})
    blocking = _blocking(part.blocking())
    # Nothing but its token ends a prepared transaction: it may hold readers back for ever.
    shown = sorted(rows, key=lambda row: row.state is not TransactionState.PREPARED)
    connection.output.rows(
        Rows(
            LIST_HEADERS,
            [_summary(row, described, blocking) for row in shown],
            counts=("held_back_records",),
            empty="no transactional id fits",
            for_programs=_FOR_PROGRAMS,
        )
    )
    fail_if_unreadable(part.unreadable)


def _enrolled(warehouse: Warehouse, topics: Collection[str]) -> ReadablePart:
    """Return a look at topics, of those that are still there."""
    part = ReadablePart(warehouse.completer, warehouse.topic_log, ())
    part.names = part.look_for(topics)
    return part


def _blocking(found: Sequence[BlockingTransaction]) -> dict[str, BlockingTransaction]:
    """Return what holds readers back by transactional id."""
    return {one.transactional_id: one for one in found if one.transactional_id is not None and one.state is not None}


def _summary(
    row: TransactionMetadata,
    described: Mapping[str, TransactionDescription],
    blocking: Mapping[str, BlockingTransaction],
) -> tuple[object, ...]:
    decision, found, held = row.decision, described.get(row.transactional_id), blocking.get(row.transactional_id)
    return (
        row.transactional_id,
        row.producer_id,
        row.state.value,
        row.producer_epoch,
        None if found is None else found.duration_ms,
        row.timeout_ms,
        None if held is None else held.committed_records,
        None if decision is None else decision.outcome.value,
        None if decision is None else decision.batch_id,
        None if decision is None else decision.position,
    )


@both_ways("transactional_id", "--transactional-id")
def describe(
    connection: Connection, transactional_id: Annotated[str, typer.Argument(help="The transactional id.")]
) -> None:
    """Describe one transactional id: its state, timeout, the partitions of its transaction, and what it holds back.

    Exit code 1 when one of its topics cannot be read: it is named on standard error, and what waits there is not told.
    """
    warehouse = connection.open()
    found = warehouse.admin().describe_transactions([transactional_id])[transactional_id]
    part = _enrolled(warehouse, {partition.topic for partition in found.topic_partitions})
    facts = _facts(found, _blocking(part.blocking()).get(transactional_id))
    connection.output.facts(facts, dict(_for_people(facts, found)))
    fail_if_unreadable(part.unreadable)


def _facts(found: TransactionDescription, held: BlockingTransaction | None) -> dict[str, object]:
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
        "waits_for": _waits_for(found),
        "held_back_partitions": [] if held is None else [_held(each) for each in held.partitions],
        "held_back_records": 0 if held is None else held.committed_records,
        "held_back_groups": [] if held is None else list(held.groups),
        "token": found.token,
        "last_epoch": None if decision is None else decision.epoch,
        "last_outcome": None if decision is None else decision.outcome.value,
        "last_batch_id": None if decision is None else decision.batch_id,
        "last_position": None if decision is None else decision.position,
        "coordinator_epoch": found.coordinator_epoch,
    }


def _waits_for(found: TransactionDescription) -> str | None:
    if not (found.state.is_open or found.state.is_decided):
        return None
    times_out = found.state is TransactionState.ONGOING and found.duration_ms is not None
    return state_waits_for(found.state, found.timeout_ms - (found.duration_ms or 0) if times_out else None)


def _for_people(facts: Mapping[str, object], found: TransactionDescription) -> Iterator[tuple[str, object]]:
    """Give the facts as people read times: since when, and for how long."""
    for name, value in facts.items():
        if name == "current_transaction_start_time_ms":
            began, lasts = found.start_time_ms, found.duration_ms
            age = "" if lasts is None else f" ({duration_text(lasts)})"
            yield "current_transaction_start_time", None if began is None else f"{instant_text(began)}{age}"
        elif name != "transaction_duration_ms":
            yield name, value


def _held(each: BlockedPartition) -> str:
    topic, partition = each.topic_partition
    return f"{topic}-{partition}"


@both_ways("topic", "--topic")
def describe_producers(
    connection: Connection,
    topic: Annotated[str, typer.Option("--topic", metavar="TOPIC", help="The topic's name.")],
    partition: Annotated[int, typer.Option("--partition", metavar="PARTITION", help="Of the topic.")],
) -> None:
    """Describe what a partition remembers of its producers."""
    where = TopicPartition(topic, partition)
    producers = connection.open().admin().describe_producers([where])[where]
    connection.output.rows(
        Rows(
            PRODUCER_HEADERS,
            [astuple(one) for one in producers],
            instants=_TIMES,
            empty="the partition remembers no producer",
        )
    )


@both_ways("topic", "--topic")
def find_hanging(
    connection: Connection,
    topic: Annotated[str | None, typer.Option("--topic", metavar="TOPIC", help="Only in this topic.")] = None,
    partition: Annotated[
        int | None, typer.Option("--partition", metavar="PARTITION", help="Only in this partition of the topic.")
    ] = None,
    max_transaction_timeout: Annotated[
        int | None,
        typer.Option(
            "--max-transaction-timeout",
            metavar="MINUTES",
            min=0,
            help="Only what has been open for longer; default: the warehouse's transaction_max_timeout_ms.",
        ),
    ] = None,
) -> None:
    """Find transactions that are open in a partition and that nothing will end; `abort` ends them.

    Exit code 1 when a topic cannot be read: it is named on standard error, and the others are looked at.
    """
    if partition is not None and topic is None:
        raise typer.BadParameter("say whose partition it is by --topic", param_hint="--partition")
    limit_ms = None if max_transaction_timeout is None else max_transaction_timeout * _MS_PER_MINUTE
    warehouse = connection.open()
    admin = warehouse.admin()
    unreadable: Sequence[Finding] = ()
    if topic is None:
        part = readable_part(warehouse)
        found = part.hanging(warehouse.settings().transaction_max_timeout_ms if limit_ms is None else limit_ms)
        unreadable = part.unreadable
    else:
        found = admin.find_hanging_transactions(topic, partition, limit_ms)
    empty = f"nothing hangs{' in what can be read' if unreadable else ''}"
    connection.output.rows(Rows(HANGING_HEADERS, [_hanging(one) for one in found], instants=_TIMES, empty=empty))
    _note_what_waits(admin)
    fail_if_unreadable(unreadable)


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
    if admin.list_transactions(states=[state for state in TransactionState if state.is_open]):
        note("what is open and will end by itself is not listed: `txntable status` shows it")
    decided = admin.list_transactions(states=[state for state in TransactionState if state.is_decided])
    if decided:
        note(
            f"decided, and not hanging: {counted(len(decided), 'transaction')}; `txntable transactions run --once`"
            " completes what is decided"
        )


application.command("list")(on_warehouse(list_transactions))
application.command("describe")(on_warehouse(describe))
application.command("describe-producers")(on_warehouse(describe_producers))
application.command("find-hanging")(on_warehouse(find_hanging))
application.command("abort")(on_warehouse(abort))
application.command("fence")(on_warehouse(fence))
application.command("run")(on_warehouse(run))
