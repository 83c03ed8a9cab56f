"""``txntable status``: what holds readers back, since when, who waits, and the command that ends it.

Owns the screen.  What holds back is found by :mod:`txntable.admin.blocking_transactions`, and put into words by
:mod:`txntable.admin.blocking_words`.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from typing import Annotated

import typer

from txntable.admin.blocking_transactions import BlockingTransaction
from txntable.admin.blocking_words import (
    RESTORE,
    counted,
    duration_text,
    ending_words,
    pending_text,
    state_word,
    summary,
    unreadable_text,
    waits_for,
    when_to_end,
)
from txntable.admin.upkeep import Finding
from txntable.cli.connection import WAREHOUSE_VARIABLE, Connection, on_warehouse
from txntable.cli.output import instant_text
from txntable.cli.unreadable import readable_part


def status(
    connection: Connection,
    topics: Annotated[list[str] | None, typer.Argument(help="Topics; default: all.", metavar="TOPIC")] = None,
) -> None:
    """Show which open transactions hold readers back, what waits behind them, and how to end each.

    Changes nothing, and needs a reader's permissions. Exit code 0, whether or not something is held back; 1 when a
    topic cannot be read: it is named, and the others are shown. `txntable check` is the one for alarms.
    """
    part = readable_part(connection.open(), topics)
    found = part.blocking()
    unreadable = part.unreadable
    connection.output.screen(
        status_lines(connection.url, found, part.searched, unreadable),
        status_document(connection.url, found, unreadable),
    )
    if unreadable:
        raise typer.Exit(1)


def status_lines(
    url: str, found: Sequence[BlockingTransaction], searched: int, unreadable: Sequence[Finding] = ()
) -> list[str]:
    """Return what the screen says for people.

    Parameters
    ----------
    url : str
        Of the warehouse.
    found : sequence of BlockingTransaction
        What holds readers back.
    searched : int
        In how many topics it was looked for; told only where nothing was found.
    unreadable : sequence of Finding
        What could not be read: it is named.
    """
    lines = []
    for each in unreadable:
        lines += [unreadable_text(each), f"  {each.remedy}", ""]
    lines += summary(found, searched, unreadable)
    for one in found:
        lines += ["", *_block(url, one)]
    return lines


def status_document(
    url: str, found: Sequence[BlockingTransaction], unreadable: Sequence[Finding] = ()
) -> dict[str, object]:
    """Return what the screen says for programs."""
    return {
        "transactions": [_document(url, one) for one in found],
        "unreadable": [{"where": one.where, "error": one.note, "remedy": one.remedy} for one in unreadable],
    }


def _block(url: str, one: BlockingTransaction) -> list[str]:
    who = f"producer {one.producer_id}, epoch {one.producer_epoch}"
    title = who if one.transactional_id is None else f"{one.transactional_id} ({who})"
    lines = [title, f"  {state_word(one)} since {instant_text(one.start_time_ms)} ({duration_text(one.duration_ms)})"]
    for each in one.partitions:
        topic, partition = each.topic_partition
        waiting = counted(each.committed_records, "committed record")
        lines.append(f"  {topic}-{partition}: {waiting} behind offset {each.start_offset}")
        if each.groups:
            lines.append(f"    groups that stand there: {', '.join(each.groups)}")
    lines += [f"  {pending_text(each)}" for each in one.pending]
    lines.append(f"  waits for {waits_for(one)}")
    return [*lines, *(f"  {line}" for line in _ending(url, one))]


def _ending(url: str, one: BlockingTransaction) -> list[str]:
    command = ending_command(url, one)
    if command is None:
        return [f"to end it: {RESTORE}"]
    return [f"to end it {when_to_end(one)}:", f"  {command}"]


def ending_command(url: str, one: BlockingTransaction) -> str | None:
    """Return the command that ends a transaction, ready for a shell; ``None``: there is none.

    Parameters
    ----------
    url : str
        Of the warehouse: it is named where the environment does not.
    one : BlockingTransaction
        What to end.
    """
    words = ending_words(one)
    if words is None:
        return None
    named = [] if os.environ.get(WAREHOUSE_VARIABLE) == url else ["--warehouse", url]
    return shlex.join(["txntable", *named, "transactions", *words])


def _document(url: str, one: BlockingTransaction) -> dict[str, object]:
    return {
        "transactional_id": one.transactional_id,
        "producer_id": one.producer_id,
        "producer_epoch": one.producer_epoch,
        "transaction_state": None if one.state is None else one.state.value,
        "status": one.status.value,
        "start_time_ms": one.start_time_ms,
        "transaction_duration_ms": one.duration_ms,
        "transaction_timeout_ms": one.timeout_ms,
        "waits_for": waits_for(one),
        "command": ending_command(url, one),
        "partitions": [
            {
                "topic": each.topic_partition.topic,
                "partition": each.topic_partition.partition,
                "start_offset": each.start_offset,
                "committed_records": each.committed_records,
                "groups": list(each.groups),
            }
            for each in one.partitions
        ],
        "pending_offsets": [
            {"group": each.group, "topic": where.topic, "partition": where.partition}
            for each in one.pending
            for where in each.partitions
        ],
    }


command = on_warehouse(status)
