"""Changing a topic that has records: a decision on S, followed by the projection (PROTOCOL.md §3.2).

Columns are only ever added, nullable and last, to the topic or to a struct in it: so a segment of any age is read with
the newest schema, and who knows an older one goes on.  Partitions are only ever added, too: offsets keep their meaning.
Any of Kafka's settings may change, as long as the topic could have been created with them.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from txntable.coordinator.error_kinds import shown
from txntable.errors import InvalidPartitionsError, InvalidRequestError, PolicyViolationError, SchemaMismatchError
from txntable.format.schema import KAFKA_SCHEMA, check_topic_schema, needs_timestamp_ntz
from txntable.format.topic import TopicSettings
from txntable.format.topic_config import altered
from txntable.format.topic_policy import check_policy, is_compacted
from txntable.format.warehouse_settings import WarehouseSettings
from txntable.log.actions import TIMESTAMP_NTZ, Action, Metadata
from txntable.log.table_state import TableState
from txntable.partition.append import live_settings
from txntable.partition.offsets import next_offset
from txntable.partition.partition_log import PartitionLogs
from txntable.segments.topic_metadata import RETENTION_PROPERTY, segments_metadata
from txntable.topics.topic_creation import check_partitions


def decide_new_columns(
    logs: PartitionLogs,
    table: TableState,
    columns: pa.Schema | Sequence[pa.Field],
    inside: Sequence[str] = (),
) -> Sequence[Action]:
    """Decide that a topic, or a struct in it, gets more columns; nothing when it has them all.

    Parameters
    ----------
    logs, table
        S's state.
    columns : pyarrow.Schema or sequence of pyarrow.Field
        The new ones.
    inside : sequence of str
        The way to the struct: a column, and below it names of fields, and ``element`` for what is in a list.

    Raises
    ------
    UnknownTopicOrPartitionError
        There is no such topic.
    SchemaMismatchError
        A column is not nullable, is there with another type, or its name or type cannot be stored; or there is no
        such struct.
    InvalidRequestError
        A zone-less timestamp, which the table's protocol does not have; or a topic with Kafka's columns.
    """
    settings = live_settings(logs)
    _check_may_grow(settings, columns)
    whole = pa.struct(list(settings.schema))
    new = _new_columns(settings, columns, _struct_at(settings, inside), inside)
    if not new:
        return []
    schema = check_topic_schema(pa.schema(_with_fields(whole, inside, new).fields))
    features = () if table.protocol is None else table.protocol.writer_features
    if needs_timestamp_ntz(pa.schema(new)) and TIMESTAMP_NTZ not in features:
        # The protocol stays as it was created: raised later, it would shut out readers that have begun to follow.
        raise InvalidRequestError(
            "the topic was created without zone-less timestamps, which cannot be added; use timestamp, or a new topic",
            topic=settings.name,
            columns=",".join(field.name for field in new),
        )
    return [_changed(table, replace(settings, schema=schema))]


def _check_may_grow(settings: TopicSettings, columns: pa.Schema | Sequence[pa.Field]) -> None:
    if not isinstance(columns, Iterable) or not all(isinstance(field, pa.Field) for field in columns):
        raise SchemaMismatchError(
            "new columns are a pyarrow.Schema, or a list of pyarrow.Field", columns=shown(columns)
        )
    if settings.schema == KAFKA_SCHEMA:
        raise InvalidRequestError(
            "a topic with Kafka's columns keeps them, or its producers would fail; create a topic with its own schema",
            topic=settings.name,
        )


def _new_columns(
    settings: TopicSettings,
    columns: pa.Schema | Sequence[pa.Field],
    struct: pa.StructType,
    inside: Sequence[str],
) -> list[pa.Field]:
    new = []
    for field in check_topic_schema(pa.schema(list(columns))):
        path = ".".join([*inside, field.name])
        if not field.nullable:
            raise SchemaMismatchError(
                "a column that is added is nullable, since the records that are there have no value for it",
                topic=settings.name,
                column=path,
            )
        index = struct.get_field_index(field.name)
        if index < 0:
            new.append(field)
        elif struct.field(index) != field:
            raise SchemaMismatchError(
                "the topic has a column of this name that is another; take another name",
                topic=settings.name,
                column=path,
                expected=str(struct.field(index).type),
                found=str(field.type),
            )
    return new


def _struct_at(settings: TopicSettings, inside: Sequence[str]) -> pa.StructType:
    """Return the struct at the end of a way; of an empty one that of all columns."""
    kind: pa.DataType = pa.struct(list(settings.schema))
    for name in inside:
        part = _part_of(kind, name)
        kind = pa.null() if part is None else part.type
    if pa.types.is_struct(kind):
        return kind
    raise SchemaMismatchError(
        "columns are added inside of a struct, and there is none at the end of this way; name the columns on the way"
        " to it, and element for what is in a list (what is in a map stays as it is: not every reader reads it else)",
        topic=settings.name,
        inside=shown(".".join(inside)),
    )


def _part_of(kind: pa.DataType, name: str) -> pa.Field | None:
    """Return a field of a struct, or the element of a list, by its name; deltalake's queries read no map that grew."""
    if pa.types.is_struct(kind):
        index = kind.get_field_index(name)
        return None if index < 0 else kind.field(index)
    return kind.value_field if pa.types.is_list(kind) and name == "element" else None


def _with_fields(kind: pa.DataType, inside: Sequence[str], new: Sequence[pa.Field]) -> pa.DataType:
    """Return a type in which the struct at the end of a way has more fields."""
    if not inside:
        return pa.struct([*kind.fields, *new])
    part = _part_of(kind, inside[0])
    assert part is not None  # _struct_at came by here
    grown = part.with_type(_with_fields(part.type, inside[1:], new))
    if pa.types.is_struct(kind):
        return pa.struct([grown if field.name == part.name else field for field in kind.fields])
    return pa.list_(grown)


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
    PolicyViolationError
        It is compacted and has had records: their keys would be in two partitions each.
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
    ends = (next_offset(table.numbers, settings.topic_id, partition) for partition in range(settings.partitions))
    if is_compacted(settings.config) and any(ends):
        raise PolicyViolationError(
            "a compacted topic that has records gets no more partitions: keys would be in two of them, and an old"
            " record would stay beside the latest; create a topic with as many as it needs, and copy the latest rows",
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
