"""Creating and deleting topics: decisions on S, followed by the projection (PROTOCOL.md §3.2).

S's version 0 *is* the creation.  Deletion is a commit that ends the topic id and lets go of every
row; the logs stay, and a topic created again under the name continues them with a new id.
"""

from __future__ import annotations

from collections.abc import Sequence

from txntable.coordinator.enrolment import LARGEST_PARTITION_COUNT
from txntable.coordinator.error_kinds import shown
from txntable.errors import (
    InvalidPartitionsError,
    InvalidRequestError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)
from txntable.format.schema import needs_timestamp_ntz, to_delta_schema
from txntable.format.topic import TopicSettings
from txntable.log.actions import TIMESTAMP_NTZ, Action, Metadata, Remove, guard_protocol
from txntable.log.table_state import TableState
from txntable.partition.partition_log import PartitionLogs
from txntable.segments.topic_metadata import segments_metadata

NOTHING_TO_DELETE = "there is nothing to delete: no topic has this name; list the topics to see their names"


def check_partitions(partitions: int) -> int:
    """Return `partitions` when a topic can have that many.

    Raises
    ------
    InvalidPartitionsError
        Not between 1 and 100,000.
    """
    if (
        isinstance(partitions, bool)
        or not isinstance(partitions, int)
        or not 1 <= partitions <= LARGEST_PARTITION_COUNT
    ):
        raise InvalidPartitionsError(
            "a topic has between 1 and 100000 partitions; give such a number", partitions=shown(partitions)
        )
    return partitions


def decide_creation(
    logs: PartitionLogs, table: TableState, wanted: TopicSettings, new_table_id: str, times: tuple[int, int]
) -> Sequence[Action]:
    """Decide the creation of a topic.

    Parameters
    ----------
    logs, table
        S's state.
    wanted : TopicSettings
        With a topic id that no topic had before.
    new_table_id : str
        S's Delta id, used when there is no log yet.
    times : tuple of int
        The store's time, and ``vacuum_retention_ms`` in milliseconds.

    Raises
    ------
    TopicAlreadyExistsError
        It exists: delete it first, or take another name.
    InvalidRequestError
        The name was used by a topic without zone-less timestamps: take another name.
    """
    now_ms, retention_ms = times
    if table.metadata is None or logs.settings is None:
        metadata = segments_metadata(wanted, new_table_id, now_ms, retention_ms)
        return [guard_protocol(timestamp_ntz=needs_timestamp_ntz(wanted.schema)), metadata]
    if not logs.settings.deleted:
        raise TopicAlreadyExistsError(
            "the topic exists already; use it, or delete it first",
            topic=wanted.name,
            differs=",".join(differences(logs.settings, wanted)) or None,
        )
    features = () if table.protocol is None else table.protocol.writer_features
    if needs_timestamp_ntz(wanted.schema) and TIMESTAMP_NTZ not in features:
        raise InvalidRequestError(
            "a topic of this name was created without zone-less timestamps, which cannot be added; take another name",
            topic=wanted.name,
        )
    return [segments_metadata(wanted, table.metadata.table_id, now_ms, retention_ms)]


def decide_deletion(logs: PartitionLogs, table: TableState, now_ms: int, retention_ms: int) -> Sequence[Action]:
    """Decide the deletion of a topic: every row of S goes, the topic id ends.

    Raises
    ------
    UnknownTopicOrPartitionError
        There is no such topic.
    """
    settings = logs.settings
    if settings is None or settings.deleted:
        raise UnknownTopicOrPartitionError(NOTHING_TO_DELETE, topic=logs.name)
    ended = TopicSettings(
        settings.name,
        settings.topic_id,
        settings.partitions,
        settings.schema,
        settings.key,
        settings.config,
        deleted=True,
    )
    old = table.metadata
    assert old is not None  # the settings were found in it
    metadata: Metadata = segments_metadata(ended, old.table_id, old.created_ms, retention_ms)
    removes = [Remove(add.path, now_ms, False, add.partition_values, add.size) for add in table.files]
    return [metadata, *removes]


def differences(found: TopicSettings, wanted: TopicSettings) -> list[str]:
    """Return the names of the settings in which two topics differ, ids aside."""
    return [
        name
        for name, same in (
            ("partitions", found.partitions == wanted.partitions),
            ("schema", to_delta_schema(found.schema) == to_delta_schema(wanted.schema)),
            ("key", found.key == wanted.key),
            ("config", dict(found.config) == dict(wanted.config)),
        )
        if not same
    ]
