"""``txntable consume``: Kafka's console consumer: its options, and how a run ends.

Owns where it begins and when it stops: at the end of what there is, or with `--follow` when it is interrupted or
nothing came for the time that was said.  Whoever closes the pipe ends it without a word.
"""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from typing import Annotated, Literal

import typer

from txntable.cli.column_value import BytesForm
from txntable.cli.connection import Connection, on_warehouse
from txntable.cli.output import JsonOutput, note, tell
from txntable.cli.record_line import PrintedParts, RecordLine, record_line
from txntable.client.consumer import Consumer
from txntable.client.records import TopicPartition
from txntable.errors import InvalidRequestError
from txntable.schema import KAFKA_SCHEMA
from txntable.topic import TopicSettings

_FOREVER_MS = 2**62
_POLL_RECORDS = 500


class LineForm(StrEnum):
    """What a line of the output is."""

    LINES = "lines"
    JSON = "json"


Topic = Annotated[str, typer.Argument(help="The topic's name.")]
FromBeginning = Annotated[
    bool, typer.Option("--from-beginning", help="Begin at the log start, as it does anyway without --follow.")
]
Offset = Annotated[
    str | None,
    typer.Option("--offset", metavar="N|earliest|latest", help="Where to begin; a number needs --partition."),
]
Partition = Annotated[int | None, typer.Option("--partition", min=0, help="Only this one; default: all.")]
MaxMessages = Annotated[int | None, typer.Option("--max-messages", min=1, help="Stop after so many records.")]
Isolation = Annotated[
    Literal["read_committed", "read_uncommitted"],
    typer.Option("--isolation-level", help="Committed records only; or everything that was appended."),
]
Follow = Annotated[bool, typer.Option("--follow", help="Wait for more; begins at the end, unless it is told where.")]
Timeout = Annotated[
    int | None, typer.Option("--timeout-ms", min=0, help="With --follow: stop when nothing came for so long.")
]
Format = Annotated[
    LineForm | None,
    typer.Option("--format", help="Default: lines; json for --output json, and for topics with their own schema."),
]
PrintTimestamp = Annotated[bool, typer.Option("--print-timestamp", help="Before the value: CreateTime:ms.")]
PrintPartition = Annotated[bool, typer.Option("--print-partition", help="Print each record's partition.")]
PrintOffset = Annotated[bool, typer.Option("--print-offset", help="Print each record's offset.")]
PrintHeaders = Annotated[bool, typer.Option("--print-headers", help="Before the value: name:value,name:value.")]
PrintKey = Annotated[bool, typer.Option("--print-key", help="Before the value.")]
KeySeparator = Annotated[str, typer.Option("--key-separator", help="Between the parts of a line; default: a tab.")]
HeadersSeparator = Annotated[str, typer.Option("--headers-separator", help="Between two headers.")]
NullLiteral = Annotated[str, typer.Option("--null-literal", help="What stands for null in a line.")]
Base64 = Annotated[bool, typer.Option("--base64", help="In JSON, bytes are base64, as `produce --base64` reads them.")]


def consume(  # noqa: PLR0913 - the interface of a command
    connection: Connection,
    topic: Topic,
    from_beginning: FromBeginning = False,
    offset: Offset = None,
    partition: Partition = None,
    max_messages: MaxMessages = None,
    isolation_level: Isolation = "read_committed",
    follow: Follow = False,
    timeout_ms: Timeout = None,
    line_form: Format = None,
    print_timestamp: PrintTimestamp = False,
    print_partition: PrintPartition = False,
    print_offset: PrintOffset = False,
    print_headers: PrintHeaders = False,
    print_key: PrintKey = False,
    key_separator: KeySeparator = "\t",
    headers_separator: HeadersSeparator = ",",
    null_literal: NullLiteral = "null",
    base64: Base64 = False,
) -> None:
    """Print the records of a topic, each partition in its order: lines, or JSON lines."""
    begin = _beginning(offset, partition, from_beginning=from_beginning, follow=follow)
    marks = (key_separator.encode(), headers_separator.encode(), null_literal.encode())
    parts = PrintedParts(print_timestamp, print_partition, print_offset, print_headers, print_key, *marks)
    warehouse = connection.open()
    consumer = warehouse.consumer(
        isolation_level=isolation_level, auto_offset_reset=begin if isinstance(begin, str) else "none"
    )
    with consumer:
        _choose(consumer, topic, partition, begin)
        settings = warehouse.topic_reader(topic).settings()
        as_json = _as_json(settings, line_form, by_default=isinstance(connection.output, JsonOutput))
        line = record_line(settings, parts, BytesForm.BASE64 if base64 else None, as_json=as_json)
        wait_ms = (_FOREVER_MS if timeout_ms is None else timeout_ms) if follow else None
        printed = _print_all(consumer, line, max_messages, wait_ms)
    note(f"{printed:,} records")


def _beginning(offset: str | None, partition: int | None, *, from_beginning: bool, follow: bool) -> str | int:
    if offset is None:
        return "earliest" if from_beginning or not follow else "latest"
    if from_beginning:
        raise typer.BadParameter("says where to begin; leave --from-beginning out", param_hint="--offset")
    if offset in {"earliest", "latest"}:
        return offset
    if not offset.isascii() or not offset.isdecimal():
        raise typer.BadParameter("is a number from 0, earliest or latest", param_hint="--offset")
    if partition is None:
        raise typer.BadParameter("a number is an offset of one partition; say --partition", param_hint="--offset")
    return int(offset)


def _as_json(topic: TopicSettings, said: LineForm | None, *, by_default: bool) -> bool:
    if said is LineForm.LINES and topic.schema != KAFKA_SCHEMA:
        raise InvalidRequestError(
            "lines are for topics with Kafka's columns, this one has its own schema; say json",
            topic=topic.name,
            columns=",".join(topic.schema.names),
        )
    return by_default if said is None else said is LineForm.JSON


def _choose(consumer: Consumer, topic: str, partition: int | None, begin: str | int) -> None:
    if partition is None:
        consumer.subscribe([topic])
        return
    chosen = TopicPartition(topic, partition)
    consumer.assign([chosen])
    if isinstance(begin, int):
        consumer.seek(chosen, begin)


# -- printing -------------------------------------------------------------------------------


def _print_all(consumer: Consumer, line: RecordLine, most: int | None, wait_ms: int | None) -> int:
    """Print records until the end, or until none came for `wait_ms`; return how many."""
    ends = None if wait_ms is not None else consumer.end_offsets(sorted(consumer.assignment()))
    printed = 0
    try:
        while most is None or printed < most:
            rest = _POLL_RECORDS if most is None else min(_POLL_RECORDS, most - printed)
            found = consumer.poll(wait_ms or 0, rest)
            for records in found.values():
                for record in records:
                    _write(line(record))
                printed += len(records)
            sys.stdout.buffer.flush()
            if not found if ends is None else all(consumer.position(p) >= end for p, end in ends.items()):
                break
    except KeyboardInterrupt:
        # How following ends.
        return printed
    except BrokenPipeError:
        # Nobody reads any more; what Python would flush at its exit has nowhere to go either.
        _drop_output()
    except OSError as error:
        _drop_output()
        tell(f"error: the records could not be written out; write them to another place reason={error.strerror}")
        raise typer.Exit(1) from error
    return printed


def _drop_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _write(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")


command = on_warehouse(consume)
