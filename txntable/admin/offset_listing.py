"""Listing offsets: the ends of partitions, and offsets by time, with Kafka's names.

Owns what a spec means; the records behind a time are found by :mod:`txntable.snapshot.offset_lookup`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import NamedTuple

from txntable.coordinator.error_kinds import shown
from txntable.coordinator.row_json import check_number
from txntable.errors import InvalidRequestError
from txntable.format.isolation import IsolationLevel
from txntable.format.isolation import isolation_level as level_of
from txntable.format.records import TopicPartition, checked_partitions
from txntable.partition.topic_view import TopicView
from txntable.snapshot.offset_lookup import first_offset_at, latest_offset
from txntable.snapshot.topic_reader import TopicReader


class OffsetSpec(Enum):
    """Which offset of a partition to list; the value is what users write."""

    EARLIEST = "earliest"
    """The log start offset."""
    LATEST = "latest"
    """Where the next record can appear: the high watermark, or the last stable offset."""
    MAX_TIMESTAMP = "max-timestamp"
    """The record with the highest timestamp; the first if there are several."""


# What the protocol and kafka-get-offsets call them.
_KAFKAS_NUMBERS = {-1: OffsetSpec.LATEST, -2: OffsetSpec.EARLIEST, -3: OffsetSpec.MAX_TIMESTAMP}


class ListedOffset(NamedTuple):
    """An offset, and its record's timestamp in ms; ``None`` if no record was requested."""

    offset: int
    timestamp_ms: int | None


def offset_spec(given: OffsetSpec | str | int) -> OffsetSpec | int:
    """Return a spec that a user wrote; a number is a time, ms since 1970, or Kafka's for an end: -1, -2, -3.

    Raises
    ------
    InvalidRequestError
        There is no such spec.
    """
    if isinstance(given, OffsetSpec):
        return given
    if type(given) is int:
        if given in _KAFKAS_NUMBERS:
            return _KAFKAS_NUMBERS[given]
        return check_number(given, "a time, ms since 1970,")
    specs = {spec.value: spec for spec in OffsetSpec}
    if not isinstance(given, str) or given not in specs:
        raise InvalidRequestError(
            "unknown offset spec; use one of the known ones, or a time in milliseconds",
            offset=shown(given),
            known=",".join(specs),
        )
    return specs[given]


def list_offsets(
    topic_reader: Callable[[str], TopicReader],
    wanted: Mapping[TopicPartition, OffsetSpec | str | int],
    isolation_level: str | IsolationLevel,
) -> dict[TopicPartition, ListedOffset | None]:
    """Return offsets of partitions; see :meth:`txntable.admin.admin.Admin.list_offsets`."""
    level = level_of(isolation_level)
    if level is IsolationLevel.SNAPSHOT:
        raise InvalidRequestError(
            "offsets cannot be listed at the snapshot level; use read_committed or read_uncommitted",
            isolation_level=level.value,
        )
    if not isinstance(wanted, Mapping):
        raise InvalidRequestError("offset specs must be a mapping of partitions to specs", wanted=shown(wanted))
    checked_partitions(list(wanted))
    specs = {partition: offset_spec(spec) for partition, spec in wanted.items()}
    views: dict[str, TopicView] = {}
    found = {}
    for partition, spec in specs.items():
        name, number = partition
        reader = topic_reader(name)
        if name not in views:
            reader.catch_up()
            views[name] = reader.view(level)
        found[partition] = _offset(reader, views[name], number, spec)
    return found


def _offset(reader: TopicReader, view: TopicView, partition: int, spec: OffsetSpec | int) -> ListedOffset | None:
    bounds = view.bounds_of(partition)
    if spec is OffsetSpec.EARLIEST:
        return ListedOffset(bounds.start, None)
    if spec is OffsetSpec.LATEST:
        return ListedOffset(bounds.end, None)
    if isinstance(spec, int):
        at = first_offset_at(reader, view, partition, spec)
    else:
        at = latest_offset(reader, view, partition)
    return None if at is None else ListedOffset(*at)
