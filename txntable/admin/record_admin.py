"""Deleting records from the front of partitions, in Kafka's words (PROTOCOL.md §5.9).

Owns no rule: which records may go is :mod:`txntable.topics.retention`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from txntable.coordinator.error_kinds import shown
from txntable.errors import InvalidRequestError
from txntable.format.records import TopicPartition
from txntable.topics.retention import delete_records, plan_deletion
from txntable.topics.topic_log import TopicLog


def delete_before(
    topic_log: Callable[[str], TopicLog], before: Mapping[TopicPartition, int | None], *, validate_only: bool
) -> dict[TopicPartition, int]:
    """Delete the records before offsets; return the lowest offset that each partition has then."""
    wanted: dict[str, dict[int, int | None]] = {}
    for topic, partition, offset in _checked(before):
        wanted.setdefault(topic, {})[partition] = offset
    planned = {topic: plan_deletion(topic_log(topic), offsets) for topic, offsets in wanted.items()}
    found = {
        topic: deletion.before if validate_only else delete_records(topic_log(topic), deletion)
        for topic, deletion in planned.items()
    }
    return {TopicPartition(topic, partition): found[topic][partition] for topic, partition in before}


def _checked(before: Mapping[TopicPartition, int | None]) -> list[tuple[str, int, int | None]]:
    """Return topic, partition and offset of each, or refuse what is none."""
    if not isinstance(before, Mapping):
        raise InvalidRequestError("offsets must be a mapping of partitions to offsets", before=shown(before))
    checked = []
    for place, offset in before.items():
        if not isinstance(place, tuple) or len(place) != len(TopicPartition._fields):
            raise InvalidRequestError("a partition must be a TopicPartition", found=shown(place))
        topic, partition = place
        if not _is_integer(partition) or not (offset is None or _is_integer(offset)):
            raise InvalidRequestError(
                "partition and offset must be integers", topic=topic, partition=partition, offset=offset
            )
        checked.append((topic, partition, offset))
    return checked


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
