"""Changing a topic that has records: a decision on S, followed by the projection (PROTOCOL.md §3.2).

Columns are only ever added, nullable and last: so a segment of any age is read with the newest schema,
and who knows an older one goes on.  Partitions are only ever added, too: offsets keep their meaning.  Any of
Kafka's settings may change, as long as the topic could have been created with them.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from txntable.coordinator.error_kinds import shown
from txntable.errors import InvalidPartitionsError, InvalidRequestError, SchemaMismatchError
from txntable.format.schema import KAFKA_SCHEMA, check_topic_schema, needs_timestamp_ntz
from txntable.format.topic import TopicSettings
from txntable.format.topic_config import altered
from txntable.format.topic_policy import check_policy
from txntable.format.warehouse_settings import WarehouseSettings
from txntable.log.actions import TIMESTAMP_NTZ, Action, Metadata
from txntable.log.table_state import TableState
from txntable.partition.append import live_settings
from txntable.partition.partition_log import PartitionLogs
from txntable.segments.topic_metadata import RETENTION_PROPERTY, segments_metadata
from txntable.topics.topic_creation import check_partitions


def decide_new_columns(
    logs: PartitionLogs, table: TableState, columns: pa.Schema | Sequence[pa.Field]
) -> Sequence[Action]:
    """Decide that a topic gets more columns; nothing when it has them all.

    Parameters
    ----------
    logs, table
        S's state.
    columns : pyarrow.Schema or sequence of pyarrow.Field
        The new ones.

    Raises
    ------
    UnknownTopicOrPartitionError
        There is no such topic.
    SchemaMismatchError
        A column is not nullable, is there with another type, or its name or type cannot be stored.
    InvalidRequestError
        A zone-less timestamp, which the table's protocol does not have; or a topic with Kafka's columns.
    """
    settings = live_settings(logs)
    new = _new_columns(settings, columns)
    if not new:
        return []
    schema = check_topic_schema(pa.schema([*settings.schema, *new]))
    features = () if table.protocol is None else table.protocol.writer_features
    if needs_timestamp_ntz(pa.schema(new)) and TIMESTAMP_NTZ not in features:
        # The protocol stays as it was created: raised later, it would shut out readers that have begun to follow.
        raise InvalidRequestError(
            "the topic was created without zone-less timestamps, which cannot be added; use timestamp, or a new topic",
            topic=settings.name,
            columns=",".join(field.name for field in new),
        )
    return [_changed(table, replace(settings, schema=schema))]


def _new_columns(settings: TopicSettings, columns: pa.Schema | Sequence[pa.Field]) -> list[pa.Field]:
    if not isinstance(columns, Iterable) or not all(isinstance(field, pa.Field) for field in columns):
        raise SchemaMismatchError(
            "new columns are a pyarrow.Schema, or a list of pyarrow.Field", columns=shown(columns)
        )
    if settings.schema == KAFKA_SCHEMA:
        raise InvalidRequestError(
            "a topic with Kafka's columns keeps them, or its producers would fail; create a topic with its own schema",
            topic=settings.name,
        )
    new = []
    for field in check_topic_schema(pa.schema(list(columns))):
        if not field.nullable:
            raise SchemaMismatchError(
                "a column that is added is nullable, since the records that are there have no value for it",
                topic=settings.name,
                column=field.name,
            )
        index = settings.schema.get_field_index(field.name)
        if index < 0:
            new.append(field)
        elif settings.schema.field(index) != field:
            raise SchemaMismatchError(
                "the topic has a column of this name that is another; take another name",
                topic=settings.name,
                column=field.name,
                expected=str(settings.schema.field(index).type),
                found=str(field.type),
            )
    return new


def decide_more_partitions(logs: PartitionLogs, table: TableState, partitions: int) -> Sequence[Action]:
    """Decide that a topic gets more partitions; each of the new ones begins at offset 0.

    Parameters
    ----------
    logs, table
        S's state.
    partitions : int
        How many it has then, in all.

    Raises
    ------
    UnknownTopicOrPartitionError
        There is no such topic.
    InvalidPartitionsError
        It has as many, or more; or no topic can have that many.
    """
    settings = live_settings(logs)
    if check_partitions(partitions) <= settings.partitions:
        raise InvalidPartitionsError(
            "the topic has as many partitions already; say how many it is to have in all"
            if partitions == settings.partitions
            else "partitions are never taken away; say a higher number, or create another topic",
            topic=settings.name,
            partitions=partitions,
            current_partitions=settings.partitions,
        )
    return [_changed(table, replace(settings, partitions=partitions))]


def decide_new_configs(
    logs: PartitionLogs, table: TableState, changes: Mapping[str, object], warehouse: WarehouseSettings
) -> Sequence[Action]:
    """Decide that settings of a topic change; nothing when it has them all.

    Parameters
    ----------
    logs, table
        S's state.
    changes : Mapping
        By Kafka's names; ``None``: back to the default.
    warehouse : WarehouseSettings
        Which a topic's settings may not contradict.

    Raises
    ------
    UnknownTopicOrPartitionError
        There is no such topic.
    InvalidConfigError
        A name is unknown, a value not allowed, or what the settings would be together cannot be kept.
    """
    settings = live_settings(logs)
    wanted = replace(settings, config=altered(settings.config, changes))
    check_policy(wanted, warehouse)
    return [] if dict(wanted.config) == dict(settings.config) else [_changed(table, wanted)]


def decide_new_retention(logs: PartitionLogs, table: TableState, retention_ms: int) -> Sequence[Action]:
    """Decide that a topic's public table keeps removed files for another time; nothing when it does.

    Parameters
    ----------
    logs, table
        S's state.
    retention_ms : int
        The warehouse's ``vacuum_retention_ms``.

    Raises
    ------
    UnknownTopicOrPartitionError
        There is no such topic.
    """
    settings, old = live_settings(logs), table.metadata
    assert old is not None  # live_settings found the topic in it
    if int(old.configuration[RETENTION_PROPERTY]) == retention_ms:
        return []
    return [segments_metadata(settings, old.table_id, old.created_ms, retention_ms)]


def _changed(table: TableState, wanted: TopicSettings) -> Metadata:
    """Return S's metadata with other settings; all that is no setting stays."""
    old = table.metadata
    assert old is not None  # live_settings found the topic in it
    return segments_metadata(wanted, old.table_id, old.created_ms, int(old.configuration[RETENTION_PROPERTY]))
