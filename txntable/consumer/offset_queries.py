"""What a consumer tells of offsets without moving: where partitions begin and end, offsets by time, lag.

Owns that no answer pretends: an end is where reading at the consumer's isolation level ends now, and no lookup names a
marker or a record that is not shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from txntable.consumer.assigned_partitions import AssignedPartitions
from txntable.consumer.consumer_record import OffsetAndTimestamp
from txntable.consumer.followed_topic import FollowedTopic
from txntable.coordinator.error_kinds import shown
from txntable.coordinator.row_json import check_number
from txntable.errors import InvalidRequestError, UnknownTopicOrPartitionError
from txntable.format.records import TopicPartition, checked_partitions
from txntable.partition.topic_view import Bounds
from txntable.snapshot.offset_lookup import first_offset_at


class OffsetQueries:
    """The asking part of a consumer; it asks of what is read, and of any other partition."""

    def __init__(self, partitions: AssignedPartitions) -> None:
        self._partitions = partitions

    def bounds(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, Bounds]:
        """Return the bounds of partitions as they are now."""
        wanted = checked_partitions(partitions)
        topics = self._topics_now(wanted)
        return {partition: topics[partition.topic].bounds(partition.partition) for partition in wanted}

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return for each partition its first record at or after a time."""
        if not isinstance(timestamps, Mapping):
            raise InvalidRequestError("times must be a mapping of partitions to times", timestamps=shown(timestamps))
        for time_ms in timestamps.values():
            check_number(time_ms, "a time, ms since 1970,")
        topics = self._topics_now(checked_partitions(list(timestamps)))
        found = {}
        for partition, time_ms in timestamps.items():
            name, number = partition
            first = first_offset_at(topics[name].reader, topics[name].view, number, time_ms)
            found[partition] = None if first is None else OffsetAndTimestamp(*first)
        return found

    def current_lag(self, partition: TopicPartition) -> int | None:
        """Return how far the position is from the end, as the last poll knew it; ``None``: it is not known yet."""
        offset = self._partitions.stands_at(partition)
        if offset is None:
            return None
        topic, number = partition
        return max(0, self._partitions.topics[topic].bounds(number).end - offset)

    def known_bounds(self, partition: TopicPartition) -> Bounds:
        """Return the bounds of an assigned partition as the last poll knew them."""
        self._partitions.subscription.of(partition)
        topic, number = partition
        return self._partitions.topics[topic].bounds(number)

    def topics(self) -> set[str]:
        """Return the names of the topics that there are now."""
        found = set()
        for name in self._partitions.topic_names():
            # A folder of a deleted topic is none.
            with suppress(UnknownTopicOrPartitionError):
                self._partitions.looked_at(name)
                found.add(name)
        return found

    def partitions_for_topic(self, topic: str) -> set[int]:
        """Return the partitions that a topic has now."""
        return set(range(self._partitions.looked_at(topic).view.settings.partitions))

    def _topics_now(self, partitions: Sequence[TopicPartition]) -> dict[str, FollowedTopic]:
        """Return the topics of partitions as they are now; those that are not read are looked at for once."""
        names, known = dict.fromkeys(partition.topic for partition in partitions), self._partitions.topics
        self._partitions.follow_topics([known[name] for name in names if name in known])
        return {name: known.get(name) or self._partitions.looked_at(name) for name in names}
