"""``txntable status``: what holds readers back, since when, who waits, and the command that ends it.

Owns the words.  What holds back is found by :mod:`txntable.admin.blocking_transactions`.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from typing import Annotated

import typer

from txntable.admin.blocking_transactions import BlockedPartition, BlockingTransaction
from txntable.cli.connection import WAREHOUSE_VARIABLE, Connection, on_warehouse
from txntable.cli.output import instant_text
from txntable.coordinator.open_epoch_status import OpenEpochStatus
from txntable.coordinator.transaction_state import TransactionState
from txntable.format.records import TopicPartition

WAITS_FOR = {
    TransactionState.ONGOING: "its producer, or its timeout",
    TransactionState.PREPARED: "the holder of its token",
    TransactionState.PREPARE_COMMIT: "completion: it is decided",
    TransactionState.PREPARE_ABORT: "completion: it is decided",
}
_TIMED_OUT = "whoever completes transactions: its timeout has passed"
_NOTHING_ENDS_IT = "nothing that will come: it hangs"
_LOST = "a restore: the transaction log does not know it"
# Units of time, the largest first; people read two of them.
_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000))


def status(
    connection: Connection,
    topics: Annotated[list[str] | None, typer.Argument(help="Topics; default: all.", metavar="[TOPIC]...")] = None,
) -> None:
    """Show which open transactions hold readers back, what waits behind them, and how to end each.

    Changes nothing, and needs a reader's permissions. Exit code 0, whether or not something is held back; `txntable
    check` is the one for alarms.
    """
    admin = connection.open().admin()
    found = admin.find_blocking_transactions(topics)
    searched = len(set(topics or admin.list_topics()))
    connection.output.screen(status_lines(connection.url, found, searched), status_document(connection.url, found))


def status_lines(url: str, found: Sequence[BlockingTransaction], searched: int) -> list[str]:
    """Return what the screen says for people.

    Parameters
    ----------
    url : str
        Of the warehouse.
    found : sequence of BlockingTransaction
        What holds readers back.
    searched : int
        In how many topics it was looked for.
    """
    if not found:
        return [f"all is well: no transaction holds readers back in {_count(searched, 'topic')}"]
    lines = _summary(found)
    for one in found:
        lines += ["", *_block(url, one)]
    return lines


def status_document(url: str, found: Sequence[BlockingTransaction]) -> dict[str, object]:
    """Return what the screen says for programs."""
    return {"transactions": [_document(url, one) for one in found]}


def _summary(found: Sequence[BlockingTransaction]) -> list[str]:
    # What waits behind two of them waits once: behind the first in the partition.
    first: dict[TopicPartition, BlockedPartition] = {}
    for each in sorted((each for one in found for each in one.partitions), key=lambda each: each.start_offset):
        first.setdefault(each.topic_partition, each)
    records = _count(sum(each.committed_records for each in first.values()), "committed record")
    groups = _count(len({group for one in found for group in one.groups}), "group")
    return [
        f"{_count(len(found), 'open transaction')} {'holds' if len(found) == 1 else 'hold'} readers back",
        f"in {_count(len(first), 'partition')}, where {records} and {groups} wait",
    ]


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _block(url: str, one: BlockingTransaction) -> list[str]:
    who = f"producer {one.producer_id}, epoch {one.producer_epoch}"
    title = who if one.transactional_id is None else f"{one.transactional_id} ({who})"
    lines = [title, f"  {_state(one)} since {instant_text(one.start_time_ms)} ({duration_text(one.duration_ms)})"]
    for each in one.partitions:
        topic, partition = each.topic_partition
        waiting = _count(each.committed_records, "committed record")
        lines.append(f"  {topic}-{partition}: {waiting} behind offset {each.start_offset}")
        if each.groups:
            lines.append(f"    groups that stand there: {', '.join(each.groups)}")
    lines.append(f"  waits for {waits_for(one)}")
    return [*lines, *(f"  {line}" for line in _ending(url, one))]


def _state(one: BlockingTransaction) -> str:
    return "hangs" if one.state is None else one.state.value.lower().replace("_", " ")


def waits_for(one: BlockingTransaction) -> str:
    """Return what ends a transaction that holds readers back."""
    if one.status is OpenEpochStatus.AHEAD:
        return _LOST
    if one.state is None:
        return _NOTHING_ENDS_IT
    if one.has_timed_out:
        return _TIMED_OUT
    left = "" if one.timeout_ms is None else f" in {duration_text(one.timeout_ms - one.duration_ms)}"
    return WAITS_FOR[one.state] + left


def _ending(url: str, one: BlockingTransaction) -> list[str]:
    command = ending_command(url, one)
    if command is None:
        return ["to end it: restore the transaction log from its newest backup"]
    ahead = "once its database has said how it ended" if one.state is TransactionState.PREPARED else "now"
    return [f"to end it {ahead}:", f"  {command}"]


def ending_command(url: str, one: BlockingTransaction) -> str | None:
    """Return the command that ends a transaction, ready for a shell; ``None``: there is none.

    Parameters
    ----------
    url : str
        Of the warehouse: it is named where the environment does not.
    one : BlockingTransaction
        What to end.
    """
    if one.status is OpenEpochStatus.AHEAD:
        return None
    if one.status is OpenEpochStatus.DECIDED or one.has_timed_out:
        words = ["run", "--once"]
    elif one.state is not None and one.transactional_id is not None:
        # An id that begins with a hyphen is none of the options.
        words = ["abort", "--execute", "--", one.transactional_id]
        words = words if one.transactional_id.startswith("-") else ["abort", one.transactional_id, "--execute"]
    else:
        (topic, partition), offset = one.partitions[0].topic_partition, one.partitions[0].start_offset
        words = ["abort", "--topic", topic, "--partition", str(partition), "--start-offset", str(offset), "--execute"]
    named = [] if os.environ.get(WAREHOUSE_VARIABLE) == url else ["--warehouse", url]
    return shlex.join(["txntable", *named, "transactions", *words])


def duration_text(milliseconds: int) -> str:
    """Return a duration as people read it: its two largest units."""
    for index, (name, size) in enumerate(_UNITS[:-1]):
        if milliseconds >= size:
            smaller, small_size = _UNITS[index + 1]
            return f"{milliseconds // size}{name}{milliseconds % size // small_size:02d}{smaller}"
    return f"{milliseconds // 1_000}s"


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
    }


command = on_warehouse(status)
