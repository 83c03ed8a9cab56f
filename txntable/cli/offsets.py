"""``txntable offsets``: where partitions begin and end, and offsets by time; Kafka's words."""

from __future__ import annotations

from typing import Annotated

import typer

from txntable.admin.offset_listing import OffsetSpec, offset_spec
from txntable.cli.both_ways import both_ways
from txntable.cli.connection import Connection, on_warehouse
from txntable.cli.output import Rows, camel_headers
from txntable.format.isolation import IsolationLevel
from txntable.format.records import TopicPartition

application = typer.Typer(add_completion=False, no_args_is_help=True, help="List offsets.")

OFFSET_HEADERS = camel_headers("topic partition offset timestamp_ms") | {"timestamp_ms": "Timestamp"}


@application.callback()
def offsets() -> None:
    """List offsets."""


@both_ways("topics", "--topic")
def list_offsets(
    connection: Connection,
    topics: Annotated[list[str] | None, typer.Argument(help="Topics; default: all.", metavar="TOPIC")] = None,
    time: Annotated[
        str,
        typer.Option(
            "--time",
            metavar="earliest|latest|max-timestamp|MS",
            help="Which offset; a number: of the first record at that time or later, milliseconds since 1970.",
        ),
    ] = OffsetSpec.LATEST.value,
    isolation_level: Annotated[
        str,
        typer.Option(
            "--isolation-level",
            metavar="LEVEL",
            help="read_uncommitted: latest is the high watermark; read_committed: the LSO.",
        ),
    ] = IsolationLevel.READ_UNCOMMITTED.value,
) -> None:
    """List an offset of each partition; none where there is no such record."""
    spec = offset_spec(int(time) if time.removeprefix("-").isdecimal() else time)
    warehouse = connection.open()
    admin = warehouse.admin()
    names = topics or admin.list_topics()
    partitions = [
        TopicPartition(name, number)
        for name in names
        for number in range(warehouse.topic_log(name).settings().partitions)
    ]
    found = admin.list_offsets(dict.fromkeys(partitions, spec), isolation_level)
    connection.output.rows(
        Rows(
            OFFSET_HEADERS,
            [(*partition, *(found[partition] or (None, None))) for partition in partitions],
            empty="there are no topics",
        )
    )


application.command("list")(on_warehouse(list_offsets))
