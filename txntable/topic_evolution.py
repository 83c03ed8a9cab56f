"""Changing the columns of a topic that has records: a decision on S, followed by the projection (PROTOCOL.md §3.2).

Columns are only ever added, nullable and last: so a segment of any age is read with the newest schema,
and who knows an older one goes on.  Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from txntable.errors import InvalidRequestError, SchemaMismatchError
from txntable.log.actions import TIMESTAMP_NTZ, Action
from txntable.log.table_state import TableState
from txntable.partition.append import live_settings
from txntable.partition.partition_log import PartitionLogs
from txntable.schema import KAFKA_SCHEMA, check_topic_schema, needs_timestamp_ntz
from txntable.topic import TopicSettings
from txntable.topic_metadata import RETENTION_PROPERTY, segments_metadata


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
        A column is not nullable, is there with another type, or its name or type can not be stored.
    InvalidRequestError
        A zone-less timestamp, which the table's protocol does not have; or a topic with Kafka's columns.
    """
    settings = live_settings(logs)
    new = _new_columns(settings, columns)
    old = table.metadata
    if not new or old is None:
        return []
    schema = check_topic_schema(pa.schema([*settings.schema, *new]))
    features = () if table.protocol is None else table.protocol.writer_features
    if needs_timestamp_ntz(pa.schema(new)) and TIMESTAMP_NTZ not in features:
        # The protocol stays as it was created: raised later, it would shut out readers that have begun to follow.
        raise InvalidRequestError(
            "the topic was created without zone-less timestamps, which can not be added; use timestamp, or a new topic",
            topic=settings.name,
            columns=",".join(field.name for field in new),
        )
    wanted = replace(settings, schema=schema)
    retention_ms = int(old.configuration[RETENTION_PROPERTY])
    return [segments_metadata(wanted, old.table_id, old.created_ms, retention_ms)]


def _new_columns(settings: TopicSettings, columns: pa.Schema | Sequence[pa.Field]) -> list[pa.Field]:
    if not all(isinstance(field, pa.Field) for field in columns):
        raise SchemaMismatchError("new columns are a pyarrow.Schema, or a list of pyarrow.Field", columns=repr(columns))
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
