"""``txntable consume``: Kafka's console consumer: its options, and how a run ends.

Owns the options: where it begins, and when it stops: at the end of what there is, or with `--follow` when it is
interrupted or nothing came for the time that was said.  Whoever closes the pipe ends it without a word.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

import typer

from txntable.admin.blocking_words import counted
from txntable.cli.both_ways import both_ways
from txntable.cli.column_value import BytesForm
from txntable.cli.connection import Connection, on_warehouse
from txntable.cli.console_property import CONSUMER, with_properties
from txntable.cli.consume_run import ConsumeRun, RunEnd
from txntable.cli.output import JsonOutput, note
from txntable.cli.record_line import PrintedParts, record_line
from txntable.errors import InvalidRequestError, OffsetOutOfRangeError
from txntable.format.records import TopicPartition
from txntable.format.schema import KAFKA_SCHEMA
from txntable.format.topic import TopicSettings
from txntable.warehouse.warehouse import Warehouse

_FOREVER_MS = 2**62


class LineForm(StrEnum):
    """What a line of the output is."""

    LINES = "lines"
    JSON = "json"


Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's name.")]
FromBeginning = Annotated[
    bool, typer.Option("--from-beginning", help="Begin at the log start, as it does anyway without --follow.")
]
Offset = Annotated[
    str | None,
    typer.Option("--offset", metavar="N|earliest|latest", help="Where to begin; a number needs --partition."),
]
Partition = Annotated[
    int | None, typer.Option("--partition", metavar="PARTITION", min=0, help="Only this one; default: all.")
]
Group = Annotated[
    str | None,
    typer.Option(
        "--group",
        metavar="GROUP",
        help="Go on where this group has committed, as a member of it, and commit what was printed. What a pipe has"
        " taken is printed, also what nobody takes out of it: end with --max-messages, not with `head`.",
    ),
]
MaxMessages = Annotated[
    int | None, typer.Option("--max-messages", metavar="NUMBER", min=1, help="Stop after so many records.")
]
Isolation = Annotated[
    Literal["read_committed", "read_uncommitted"],
    typer.Option("--isolation-level", help="Committed records only; or everything that was appended."),
]
Follow = Annotated[bool, typer.Option("--follow", help="Wait for more; begins at the end, unless it is told where.")]
Timeout = Annotated[
    int | None,
    typer.Option("--timeout-ms", metavar="MS", min=0, help="With --follow: stop when nothing came for so long."),
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
KeySeparator = Annotated[
    str, typer.Option("--key-separator", metavar="TEXT", show_default="a tab", help="Between the parts of a line.")
]
HeadersSeparator = Annotated[str, typer.Option("--headers-separator", metavar="TEXT", help="Between two headers.")]
NullLiteral = Annotated[str, typer.Option("--null-literal", metavar="TEXT", help="What stands for null in a line.")]
Base64 = Annotated[bool, typer.Option("--base64", help="In JSON, bytes are base64, as `produce --base64` reads them.")]


@both_ways("topic", "--topic")
@with_properties(CONSUMER, "--property", "--formatter-property")
def consume(  # noqa: PLR0913 - the interface of a command
    connection: Connection,
    topic: Topic,
    from_beginning: FromBeginning = False,
    offset: Offset = None,
    partition: Partition = None,
    group: Group = None,
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
    if group is not None:
        _check_no_place(offset, partition)
    begin = _beginning(offset, partition, from_beginning=from_beginning, follow=follow)
    marks = (key_separator.encode(), headers_separator.encode(), null_literal.encode())
    parts = PrintedParts(print_timestamp, print_partition, print_offset, print_headers, print_key, *marks)
    warehouse = connection.open()
    run = _new_run(warehouse, begin, isolation_level, group)
    with run.consumer:
        _choose(run, topic, partition, begin)
        settings = warehouse.topic_reader(topic).settings()
        as_json = _as_json(settings, line_form, by_default=isinstance(connection.output, JsonOutput))
        line = record_line(settings, parts, BytesForm.BASE64 if base64 else None, as_json=as_json)
        silence_ms = (_FOREVER_MS if timeout_ms is None else timeout_ms) if follow else None
        printed = run.run(line, RunEnd(max_messages, silence_ms))
    note(counted(printed, "record"))


def _check_no_place(offset: str | None, partition: int | None) -> None:
    if offset is not None or partition is not None:
        raise typer.BadParameter(
            "members share the partitions and go on where the group has committed; leave --partition and --offset out",
            param_hint="--group",
        )


def _beginning(offset: str | None, partition: int | None, *, from_beginning: bool, follow: bool) -> str | int:
    if offset is None:
        return "earliest" if from_beginning or not follow else "latest"
    if from_beginning:
        raise typer.BadParameter("says where to begin; leave --from-beginning out", param_hint="--offset")
    if offset in {"earliest", "latest"}:
        return offset
    if not offset.isascii() or not offset.isdecimal():
        raise typer.BadParameter("give a number from 0, earliest or latest", param_hint="--offset")
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


def _new_run(warehouse: Warehouse, begin: str | int, isolation_level: str, group: str | None) -> ConsumeRun:
    consumer = warehouse.consumer(
        isolation_level=isolation_level,
        auto_offset_reset=begin if isinstance(begin, str) else "none",
        group_id=group,
        enable_auto_commit=False,
    )
    return ConsumeRun(consumer, warehouse.context.environment)


def _choose(run: ConsumeRun, topic: str, partition: int | None, begin: str | int) -> None:
    if partition is None:
        run.consumer.subscribe([topic], listener=run)
        return
    chosen = TopicPartition(topic, partition)
    run.consumer.assign([chosen])
    if isinstance(begin, int):
        first, end = run.consumer.get_watermark_offsets(chosen)
        if not first <= begin <= end:
            raise OffsetOutOfRangeError(
                "there is no such offset; give one from the log start to the high watermark, or earliest or latest",
                topic=topic,
                partition=partition,
                offset=begin,
                log_start=first,
                high_watermark=end,
            )
        run.consumer.seek(chosen, begin)


command = on_warehouse(consume)
