"""A topic's settings inside Delta metadata, for both of its tables (PROTOCOL.md §3.2).

Owns the names of our table properties.  S's metadata is the truth; P's is made from it, so that
a projection needs nothing else.  Pure.
"""

from __future__ import annotations

import hashlib
import json
import reprlib
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from txntable.coordinator.enrolment import LARGEST_PARTITION_COUNT
from txntable.coordinator.error_kinds import shown
from txntable.coordinator.row_json import parse_json
from txntable.coordinator.topic_name import is_topic_id
from txntable.errors import DamagedDataError, InvalidCallError, UnsupportedFormatError
from txntable.format.key import check_key
from txntable.format.partition_values import whole_number
from txntable.format.schema import (
    PUBLIC_PARTITION_COLUMNS,
    SEGMENTS_PARTITION_COLUMNS,
    check_topic_schema,
    from_delta_schema,
    public_schema,
    segments_schema,
    to_delta_schema,
)
from txntable.format.topic import TopicSettings
from txntable.format.topic_config import TOPIC_CONFIG, config_value
from txntable.log.actions import Metadata
from txntable.log.retention import retention_properties

FORMAT = "1"
# Of the time before there was compaction: never promised to last.
PREVIEW_FORMAT = "0"
FORMAT_PROPERTY = "txntable.format"
TOPIC_PROPERTY = "txntable.topic."
CONFIG_PROPERTY = "txntable.config."
RETENTION_PROPERTY = "txntable.vacuum.retention.ms"
# Nobody travels in time on the partition logs; every tombstone kept is one more row in each checkpoint.
SEGMENTS_RETENTION_MS = 3 * 86_400_000
_TOPIC_PROPERTIES = {f"{TOPIC_PROPERTY}{name}" for name in ("id", "partitions", "key", "state", "schema")}


def guard_properties(retention_ms: int) -> dict[str, str]:
    """Return the properties that every table of a warehouse has.

    Parameters
    ----------
    retention_ms : int
        How long removed files and old versions of the table stay readable.
    """
    return {
        "delta.enableInCommitTimestamps": "true",
        "delta.enableChangeDataFeed": "true",
        "delta.enableExpiredLogCleanup": "false",
        **retention_properties(retention_ms),
        FORMAT_PROPERTY: FORMAT,
    }


def segments_metadata(settings: TopicSettings, table_id: str, created_ms: int, retention_ms: int) -> Metadata:
    """Return S's metadata for a topic.

    Parameters
    ----------
    settings : TopicSettings
        What the user chose.
    table_id : str
        Of S; the same for ever, also when the topic is created again.
    created_ms : int
        The store's time.
    retention_ms : int
        ``vacuum_retention_ms``: P's; carried here because P is made from this.
    """
    configuration = {
        **guard_properties(SEGMENTS_RETENTION_MS),
        RETENTION_PROPERTY: str(retention_ms),
        f"{TOPIC_PROPERTY}id": settings.topic_id,
        f"{TOPIC_PROPERTY}partitions": str(settings.partitions),
        f"{TOPIC_PROPERTY}key": json.dumps(list(settings.key)),
        f"{TOPIC_PROPERTY}state": "deleted" if settings.deleted else "live",
        f"{TOPIC_PROPERTY}schema": to_delta_schema(settings.schema),
        **{f"{CONFIG_PROPERTY}{name}": value for name, value in sorted(settings.config.items())},
    }
    schema = to_delta_schema(segments_schema(settings))
    name = f"{settings.name} (partition logs)"
    return Metadata(table_id, name, schema, _names(SEGMENTS_PARTITION_COLUMNS), configuration, created_ms)


def public_metadata(segments: Metadata, settings: TopicSettings) -> Metadata:
    """Return P's metadata: a function of S's."""
    digest = hashlib.sha256(f"{segments.table_id}/public".encode()).hexdigest()
    table_id = f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}"
    schema = to_delta_schema(public_schema(settings))
    configuration = {
        **segments.configuration,
        **retention_properties(int(segments.configuration[RETENTION_PROPERTY])),
    }
    columns = _names(PUBLIC_PARTITION_COLUMNS)
    return Metadata(table_id, settings.name, schema, columns, configuration, segments.created_ms)


def _names(columns: list[pa.Field]) -> tuple[str, ...]:
    return tuple(column.name for column in columns)


def topic_id_of(metadata: Metadata) -> str | None:
    """Return the topic id that metadata of S or P says, whatever else it says; ``None``: none."""
    return metadata.configuration.get(f"{TOPIC_PROPERTY}id")


def settings_of(name: str, metadata: Metadata) -> TopicSettings:
    """Return the topic's settings that metadata of S says.

    Raises
    ------
    UnsupportedFormatError
        A newer format, or a property of ours that this version does not know: upgrade.
    DamagedDataError
        A property is missing or cannot be read.
    """
    configuration = metadata.configuration
    check_format(configuration, name)
    ours = {key for key in configuration if key.startswith(TOPIC_PROPERTY)}
    if ours - _TOPIC_PROPERTIES:
        raise UnsupportedFormatError(
            "the topic has settings of a newer format; upgrade txntable",
            topic=name,
            unknown=sorted(ours - _TOPIC_PROPERTIES),
        )
    try:
        whole_number(configuration[RETENTION_PROPERTY])
        return _checked(
            name=name,
            topic_id=configuration[f"{TOPIC_PROPERTY}id"],
            partitions=whole_number(configuration[f"{TOPIC_PROPERTY}partitions"]),
            schema=from_delta_schema(configuration[f"{TOPIC_PROPERTY}schema"]),
            key=_key(configuration[f"{TOPIC_PROPERTY}key"]),
            config={
                key.removeprefix(CONFIG_PROPERTY): value
                for key, value in configuration.items()
                if key.startswith(CONFIG_PROPERTY)
            },
            deleted={"live": False, "deleted": True}[configuration[f"{TOPIC_PROPERTY}state"]],
        )
    except (KeyError, ValueError, TypeError, RecursionError, InvalidCallError) as error:
        raise DamagedDataError("the topic's settings cannot be read", topic=name) from error


def _checked(**fields: Any) -> TopicSettings:
    """Return settings that a creation could have made: names of files and loops over partitions are made from them."""
    settings = TopicSettings(**fields)
    if not is_topic_id(settings.topic_id) or not 1 <= settings.partitions <= LARGEST_PARTITION_COUNT:
        raise ValueError("no topic id, or no number of partitions")
    check_topic_schema(settings.schema)
    check_key(settings.schema, list(settings.key))
    for name in settings.config.keys() & TOPIC_CONFIG.keys():
        config_value(name, settings.config)
    return settings


def _key(text: str) -> tuple[str, ...]:
    names = parse_json(text)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("no list of names")
    return tuple(names)


def check_format(configuration: Mapping[str, str], table: str) -> None:
    """Refuse a table of another format than this version's.

    Raises
    ------
    UnsupportedFormatError
        Upgrade, or open the warehouse with the version that wrote it.
    """
    found = configuration.get(FORMAT_PROPERTY)
    if found != FORMAT:
        raise unsupported_format(found, table=table)


def unsupported_format(found: object, **facts: object) -> UnsupportedFormatError:
    """Return the error that says what to do about a format that is not this version's."""
    remedy = "upgrade txntable"
    if found == PREVIEW_FORMAT:
        remedy = "it is a preview's: read it with the version that wrote it, and write its records into a new warehouse"
    return UnsupportedFormatError(
        f"the format is none that this version knows; {remedy}",
        **facts,
        format=reprlib.repr(found),
        known=shown(FORMAT),
    )
