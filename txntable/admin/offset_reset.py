"""Where a reset moves a group: targets as people name them, and the offsets that they mean (Kafka's tool).

Owns Kafka's rules for targets: one out of range is brought to the nearest end, a time after the last record means the
end.  The end is the last stable offset, where Kafka's tool takes the high watermark: what is open now is read later.
Writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from txntable.admin.admin import Admin
from txntable.admin.offset_listing import ListedOffset, OffsetSpec
from txntable.errors import InvalidRequestError
from txntable.format.isolation import IsolationLevel
from txntable.format.records import TopicPartition


class ResetTarget(Enum):
    """Where to; the value is the option of Kafka's tool."""

    EARLIEST = "to-earliest"
    LATEST = "to-latest"
    CURRENT = "to-current"
    """What is committed; the end where nothing is."""
    OFFSET = "to-offset"
    SHIFT = "shift-by"
    TIME = "to-datetime"


@dataclass(frozen=True, slots=True)
class OffsetReset:
    """A target.

    Attributes
    ----------
    target : ResetTarget
        Where to.
    number : int
        The offset, how far to shift, or ms since 1970; else without meaning.
    """

    target: ResetTarget
    number: int = 0


@dataclass(frozen=True, slots=True)
class NewPosition:
    """Where a group would stand in a partition.

    Attributes
    ----------
    offset : int
        The next record to read.
    wanted : int
        What was asked for; another offset: that is out of range.
    """

    offset: int
    wanted: int


def planned_reset(
    admin: Admin, group: str, partitions: Sequence[TopicPartition], reset: OffsetReset
) -> dict[TopicPartition, NewPosition]:
    """Return where a reset would move a group.

    Parameters
    ----------
    admin : Admin
        Of the warehouse.
    group : str
        Its name; it need not exist.
    partitions : sequence of TopicPartition
        Which ones.
    reset : OffsetReset
        Where to.

    Raises
    ------
    UnknownTopicOrPartitionError
        A partition does not exist.
    InvalidRequestError
        A shift of a partition without a committed offset.
    """
    return positions(admin, _wanted(admin, group, partitions, reset))


def _wanted(
    admin: Admin, group: str, partitions: Sequence[TopicPartition], reset: OffsetReset
) -> dict[TopicPartition, int]:
    match reset.target:
        case ResetTarget.OFFSET:
            return dict.fromkeys(partitions, reset.number)
        case ResetTarget.SHIFT:
            # A partition that is none has no offset to shift either, and that is not what is wrong with it.
            end_offsets(admin, partitions)
            return _shifted(group, _committed(admin, group, partitions), partitions, reset.number)
        case ResetTarget.EARLIEST:
            return _listed(admin, partitions, OffsetSpec.EARLIEST)
        case ResetTarget.TIME:
            return end_offsets(admin, partitions) | _listed(admin, partitions, reset.number)
        case ResetTarget.CURRENT:
            return end_offsets(admin, partitions) | _committed(admin, group, partitions)
        case ResetTarget.LATEST:
            return end_offsets(admin, partitions)


def positions(admin: Admin, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, NewPosition]:
    """Return offsets brought into the range that can be read.

    Parameters
    ----------
    admin : Admin
        Of the warehouse.
    wanted : Mapping of TopicPartition to int
        What was asked for.

    Raises
    ------
    UnknownTopicOrPartitionError
        A partition does not exist.
    """
    starts = _listed(admin, list(wanted), OffsetSpec.EARLIEST)
    ends = end_offsets(admin, list(wanted))
    return {each: NewPosition(min(max(offset, starts[each]), ends[each]), offset) for each, offset in wanted.items()}


def end_offsets(admin: Admin, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
    """Return the last stable offsets of partitions, which lag is counted against.

    Raises
    ------
    UnknownTopicOrPartitionError
        A partition does not exist.
    """
    return _listed(admin, partitions, OffsetSpec.LATEST)


def _listed(admin: Admin, partitions: Sequence[TopicPartition], spec: OffsetSpec | int) -> dict[TopicPartition, int]:
    """Return the offsets of a spec; a time that no record has reached has none."""
    found: Mapping[TopicPartition, ListedOffset | None] = admin.list_offsets(
        dict.fromkeys(partitions, spec), IsolationLevel.READ_COMMITTED
    )
    return {each: listed.offset for each, listed in found.items() if listed is not None}


def _committed(admin: Admin, group: str, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
    found = admin.list_consumer_group_offsets(group, partitions)
    return {each: offset.offset for each, offset in found.items() if offset is not None}


def _shifted(
    group: str, committed: Mapping[TopicPartition, int], partitions: Sequence[TopicPartition], by: int
) -> dict[TopicPartition, int]:
    for each in partitions:
        if each not in committed:
            raise InvalidRequestError(
                "only a committed offset can be shifted; reset to another target first",
                group=group,
                topic=each.topic,
                partition=each.partition,
            )
    return {each: committed[each] + by for each in partitions}
