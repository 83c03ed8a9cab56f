"""``txntable topics``: create, list, describe, add columns, delete; Kafka's words and columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple
from datetime import datetime
from typing import Annotated

import pyarrow as pa
import typer

from txntable.admin.admin import Admin
from txntable.admin.config_admin import config_entries
from txntable.admin.topic_description import TopicDescription
from txntable.cli.both_ways import both_ways
from txntable.cli.column import column_from_text, column_text, type_name
from txntable.cli.connection import Connection, Execute, named_values, on_warehouse
from txntable.cli.output import Rows, camel_headers, note_dry_run, tell
from txntable.cli.snapshot import AsOf
from txntable.cli.topic_changes import alter, delete_records
from txntable.cli.unreadable import fail_if_unreadable, readable_part
from txntable.errors import TopicAlreadyExistsError, UnknownTopicOrPartitionError
from txntable.format.topic import TopicSettings
from txntable.snapshot.snapshot import as_of as moment
from txntable.snapshot.snapshot_description import topics_then
from txntable.topics.topic_creation import NOTHING_TO_DELETE
from txntable.warehouse.warehouse import Warehouse

application = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Create, list, describe, change and delete topics."
)

LIST_HEADERS = camel_headers("topic topic_id partition_count key segments bytes")
PARTITION_HEADERS = camel_headers(
    "topic partition log_start_offset last_stable_offset high_watermark segments appended_records bytes"
)
TOPIC_THEN_HEADERS = camel_headers("topic topic_id partition_count key")
CONFIG_HEADERS = camel_headers("topic name value source about")
COUNTS = ("segments", "appended_records", "bytes")
_NAMES = ("key",)
COLUMN_HEADERS = camel_headers("topic column type nullable key")


Keys = Annotated[
    list[str] | None, typer.Option("--key", metavar="NAME", help="A column that chooses the partition; repeat it.")
]
Configs = Annotated[
    list[str] | None, typer.Option("--config", metavar="NAME=VALUE", help="A setting, Kafka's name; repeat it.")
]
IfNotExists = Annotated[
    bool, typer.Option("--if-not-exists", help="A topic that is there stays as it is, and is shown.")
]
ReplicationFactor = Annotated[
    int | None,
    typer.Option("--replication-factor", metavar="NUMBER", help="Taken, and means nothing: the store replicates."),
]


@both_ways("name", "--topic")
def create(  # noqa: PLR0913 - the interface of a command
    connection: Connection,
    name: Annotated[str, typer.Argument(help="The topic's name, by Kafka's rule.")],
    partitions: Annotated[int, typer.Option("--partitions", metavar="NUMBER", help="How many.")] = 1,
    column: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            metavar="'NAME TYPE [NOT NULL]'",
            help="A column with Spark SQL's name of its type; repeat it. Without any: Kafka's key, value, headers.",
        ),
    ] = None,
    key: Keys = None,
    config: Configs = None,
    if_not_exists: IfNotExists = False,
    replication_factor: ReplicationFactor = None,
) -> None:
    """Create a topic."""
    columns = [column_from_text(text) for text in column or ()]
    admin = connection.open().admin()
    try:
        settings = admin.create_topic(
            name,
            partitions=partitions,
            schema=pa.schema(columns) if columns else None,
            key=key or (),
            config=dict(named_values(config or (), "--config")),
        )
    except TopicAlreadyExistsError:
        if not if_not_exists:
            raise
        settings = _already(admin, name)
    connection.output.facts(_facts(settings))


def _already(admin: Admin, name: str) -> TopicSettings:
    (found,) = admin.describe_topics([name])
    tell("the topic is there already, and stays as it is")
    return found.settings


def _facts(settings: TopicSettings) -> dict[str, object]:
    return {
        "topic": settings.name,
        "topic_id": settings.topic_id,
        "partition_count": settings.partitions,
        "key": list(settings.key),
        "columns": [column_text(field) for field in settings.schema],
        "configs": dict(settings.config),
    }


def list_topics(connection: Connection) -> None:
    """List all topics; exit code 1 when one of them cannot be read: it is named on standard error."""
    part = readable_part(connection.open())
    rows = [_summary(topic) for topic in part.topics()]
    empty = "no topic can be read" if part.unreadable else "there are no topics"
    connection.output.rows(Rows(LIST_HEADERS, rows, counts=COUNTS, names=_NAMES, empty=empty))
    fail_if_unreadable(part.unreadable)


def _summary(topic: TopicDescription) -> tuple[object, ...]:
    return (
        topic.settings.name,
        topic.settings.topic_id,
        topic.settings.partitions,
        list(topic.settings.key),
        sum(partition.segments for partition in topic.partitions),
        sum(partition.bytes for partition in topic.partitions),
    )


@both_ways("names", "--topic")
def describe(
    connection: Connection,
    names: Annotated[list[str] | None, typer.Argument(help="Topics; default: all.", metavar="TOPIC")] = None,
    all_configs: Annotated[
        bool, typer.Option("--all-configs", help="All settings, also those that have their defaults.")
    ] = False,
    as_of: AsOf = None,
) -> None:
    """Describe topics: columns and settings, and each partition's offsets and size.

    Exit code 1 when one of them cannot be read: it is named on standard error, and the others are described.
    With --as-of what they had then, without offsets and sizes: also those that were deleted since.
    """
    warehouse = connection.open()
    if as_of is not None:
        _describe_then(connection, warehouse, names, all_configs=all_configs, then=moment(as_of))
        return
    part = readable_part(warehouse, names)
    topics = part.topics()
    sections = {
        "topics": Rows(LIST_HEADERS, [_summary(topic) for topic in topics], "Topics", COUNTS, names=_NAMES),
        "columns": _columns_of([topic.settings for topic in topics]),
        "partitions": Rows(
            PARTITION_HEADERS, [row for topic in topics for row in _partitions(topic)], "Partitions", COUNTS
        ),
        "configs": _configs_of([topic.settings for topic in topics], all_configs=all_configs),
    }
    connection.output.report(sections)
    fail_if_unreadable(part.unreadable)


def _describe_then(
    connection: Connection, warehouse: Warehouse, names: list[str] | None, *, all_configs: bool, then: int | datetime
) -> None:
    """Describe topics as they were made, by a snapshot of the past."""
    snapshot = warehouse.snapshot(then)
    if names:
        settings = [snapshot.topic_settings(name) for name in dict.fromkeys(names)]
    else:
        there = topics_then(snapshot, warehouse.admin().list_topics(deleted=True))
        settings = [view.settings for _, view in there]
    topics = [(one.name, one.topic_id, one.partitions, list(one.key)) for one in settings]
    sections = {
        "topics": Rows(TOPIC_THEN_HEADERS, topics, "Topics", names=_NAMES),
        "columns": _columns_of(settings),
        "configs": _configs_of(settings, all_configs=all_configs),
    }
    connection.output.report(sections)


@both_ways("name", "--topic")
@both_ways("columns", "--column")
def add_column(
    connection: Connection,
    name: Annotated[str, typer.Argument(help="The topic's name.")],
    columns: Annotated[
        list[str], typer.Argument(metavar="'NAME TYPE'...", help="Columns with Spark SQL's names of their types.")
    ],
    inside: Annotated[
        list[str] | None,
        typer.Option(
            "--inside",
            metavar="NAME",
            help="A struct that gets them; repeat it on the way down, with element for what is in a list.",
        ),
    ] = None,
) -> None:
    """Add nullable columns to a topic, or to a struct in it: null in the records that are there."""
    wanted = [column_from_text(text) for text in columns]
    warehouse = connection.open()
    before = warehouse.topic_reader(name).settings()
    settings = warehouse.admin().add_columns(name, wanted, inside=inside or ())
    if settings.schema == before.schema:
        tell("the columns are there already, and nothing was changed")
    connection.output.facts(_facts(settings))


@both_ways("name", "--topic")
def delete(
    connection: Connection,
    name: Annotated[str, typer.Argument(help="The topic's name.")],
    execute: Execute = False,
) -> None:
    """Delete a topic: without --execute only say what would be deleted."""
    admin = connection.open().admin()
    topic = _to_delete(admin, name)
    if execute:
        admin.delete_topic(name)
    note_dry_run(execute=execute)
    connection.output.rows(
        Rows({**LIST_HEADERS, "deleted": "Deleted"}, [(*_summary(topic), execute)], counts=COUNTS, names=_NAMES),
    )


def _to_delete(admin: Admin, name: str) -> TopicDescription:
    try:
        (topic,) = admin.describe_topics([name])
    except UnknownTopicOrPartitionError as error:
        raise UnknownTopicOrPartitionError(NOTHING_TO_DELETE, **error.facts) from error
    return topic


def _columns_of(topics: Sequence[TopicSettings]) -> Rows:
    rows = [
        (settings.name, field.name, type_name(field), field.nullable, field.name in settings.key)
        for settings in topics
        for field in settings.schema
    ]
    return Rows(COLUMN_HEADERS, rows, "Columns")


def _partitions(topic: TopicDescription) -> list[tuple[object, ...]]:
    return [(topic.settings.name, *astuple(partition)) for partition in topic.partitions]


def _configs_of(topics: Sequence[TopicSettings], *, all_configs: bool) -> Rows:
    rows = [
        (settings.name, entry.name, entry.value, entry.source.value, entry.documentation)
        for settings in topics
        for entry in config_entries(settings).values()
        if all_configs or not entry.is_default
    ]
    return Rows(CONFIG_HEADERS, rows, "Settings", empty="all settings have their defaults: --all-configs shows them")


application.command("create")(on_warehouse(create))
application.command("list")(on_warehouse(list_topics))
application.command("describe")(on_warehouse(describe))
application.command("add-column")(on_warehouse(add_column))
application.command("alter")(on_warehouse(alter))
application.command("delete-records")(on_warehouse(delete_records))
application.command("delete")(on_warehouse(delete))
