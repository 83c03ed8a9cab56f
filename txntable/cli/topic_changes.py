"""``txntable topics alter`` and ``topics delete-records``: what a topic with records may become.

Owns how settings and offsets are said on the command line.  Both are dry runs until ``--execute``: they check
everything, and print what is and what would be.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated

import typer

from txntable.admin.admin import Admin
from txntable.admin.config_admin import ConfigEntry
from txntable.cli.both_ways import both_ways
from txntable.cli.connection import Connection, Execute, changed_values, named_values
from txntable.cli.output import Rows, camel_headers, note_dry_run, tell
from txntable.format.records import TopicPartition

PARTITIONS_HEADERS = camel_headers("topic partition_count new_partition_count executed")
CONFIGS_HEADERS = camel_headers("topic name value new_value executed")
RECORDS_HEADERS = camel_headers("topic partition low_watermark new_low_watermark executed")
_LATEST = ("latest", "-1")
_NUMBER = re.compile(r"[0-9]{1,19}")

Topic = Annotated[str, typer.Argument(help="The topic's name.", metavar="TOPIC")]


@both_ways("name", "--topic")
def alter(  # noqa: PLR0913  the interface of a command
    connection: Connection,
    name: Topic,
    partitions: Annotated[
        int | None, typer.Option("--partitions", metavar="NUMBER", help="How many it has then, in all: only more.")
    ] = None,
    config: Annotated[
        list[str] | None, typer.Option("--config", metavar="NAME=VALUE", help="A setting, Kafka's name; repeat it.")
    ] = None,
    delete_config: Annotated[
        list[str] | None,
        typer.Option("--delete-config", metavar="NAME", help="A setting that goes back to its default; repeat it."),
    ] = None,
    execute: Execute = False,
) -> None:
    """Give a topic more partitions, which it keeps, or other settings: without --execute only check."""
    changes = changed_values(config or (), delete_config or ())
    if bool(changes) == (partitions is not None):
        raise typer.BadParameter("say --partitions, or --config and --delete-config", param_hint="what to alter")
    admin = connection.open().admin()
    if partitions is None:
        rows = _alter_configs(admin, name, changes, execute=execute)
    else:
        rows = _alter_partitions(admin, name, partitions, execute=execute)
    note_dry_run(execute=execute)
    connection.output.rows(rows)


def _alter_partitions(admin: Admin, name: str, partitions: int, *, execute: bool) -> Rows:
    settings = admin.create_partitions({name: partitions}, validate_only=True)[name]
    if settings.key:
        tell("warning: keys map to other partitions from then on; the records that are there stay where they are")
    if execute:
        admin.create_partitions({name: partitions})
    return Rows(PARTITIONS_HEADERS, [(name, settings.partitions, partitions, execute)])


def _alter_configs(admin: Admin, name: str, changes: dict[str, str | None], *, execute: bool) -> Rows:
    admin.alter_configs(name, changes, validate_only=True)
    before = admin.describe_configs([name])[name]
    if execute:
        admin.alter_configs(name, changes)
    return Rows(CONFIGS_HEADERS, [_altered(name, before[each], changes[each], execute) for each in sorted(changes)])


def _altered(topic: str, entry: ConfigEntry, value: str | None, execute: bool) -> tuple[object, ...]:
    return topic, entry.name, entry.value, entry.default if value is None else value, execute


@both_ways("name", "--topic")
def delete_records(
    connection: Connection,
    name: Topic,
    offset: Annotated[
        list[str],
        typer.Option(
            "--offset",
            metavar="PARTITION=OFFSET",
            help="Delete the records before this offset; latest, or Kafka's -1: all that there are. Repeat it for "
            "several partitions.",
        ),
    ],
    execute: Execute = False,
) -> None:
    """Delete the records before an offset of each partition that is named: without --execute only check."""
    before = {
        TopicPartition(name, int(partition)): None if text in _LATEST else int(text)
        for partition, text in _offsets(offset).items()
    }
    admin = connection.open().admin()
    planned = admin.delete_records(before, validate_only=True)
    earliest = admin.list_offsets(dict.fromkeys(before, "earliest"))
    if execute:
        planned = admin.delete_records(before)
    note_dry_run(execute=execute)
    rows = [
        (*each, None if (now := earliest[each]) is None else now.offset, low, execute)
        for each, low in sorted(planned.items())
    ]
    connection.output.rows(Rows(RECORDS_HEADERS, rows))


def _offsets(said: Sequence[str]) -> dict[str, str]:
    found = named_values(said, "--offset", "PARTITION=OFFSET")
    for partition, text in found.items():
        if not _NUMBER.fullmatch(partition) or not (text in _LATEST or _NUMBER.fullmatch(text)):
            raise typer.BadParameter("give PARTITION=OFFSET, or PARTITION=latest", param_hint="--offset")
    return found
