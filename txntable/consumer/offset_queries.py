"""What a consumer tells of offsets without moving: where partitions begin and end, offsets by time, lag.

Owns that no answer pretends: an end is where reading at the consumer's isolation level ends now, and no lookup names a
marker or a record that is not shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from txntable.consumer.assigned_partitions import AssignedPartitions, alone
from txntable.consumer.consumer_record import OffsetAndTimestamp
from txntable.consumer.followed_topic import FollowedTopic
from txntable.coordinator.error_kinds import shown
from txntable.coordinator.row_json import check_number
from txntable.errors import InvalidRequestError
from txntable.format.records import TopicPartition, checked_partitions
from txntable.partition.topic_view import Bounds
from txntable.snapshot.offset_lookup import first_offset_at


class OffsetQueries(AssignedPartitions):
    """The asking half of a consumer; see :class:`AssignedPartitions`."""

    @alone
    def beginning_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the log start offsets; the partitions need not be assigned.

        Raises
        ------
        UnknownTopicOrPartitionError
            There is no such topic or partition.
        """
        return {partition: bounds.start for partition, bounds in self._bounds_now(partitions).items()}

    @alone
    def end_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Return where reading ends now: the last stable offsets, or at ``read_uncommitted`` the high watermarks.

        Raises as :meth:`beginning_offsets`.
        """
        return {partition: bounds.end for partition, bounds in self._bounds_now(partitions).items()}

    @alone
    def last_stable_offset(self, partition: TopicPartition) -> int:
        """Return the last stable offset of a partition, at either level; raises as :meth:`beginning_offsets`."""
        (bounds,) = self._bounds_now([partition]).values()
        return bounds.last_stable_offset

    @alone
    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return for each partition its first record, by offset, at or after a time.

        Parameters
        ----------
        timestamps : Mapping of TopicPartition to int
            ms since 1970; the partitions need not be assigned.

        Returns
        -------
        dict of TopicPartition to OffsetAndTimestamp or None
            ``None``: every record that the isolation level shows is older.

        Raises
        ------
        InvalidRequestError
            A time is no int from 0.
        UnknownTopicOrPartitionError
            There is no such topic or partition.
        """
        if not isinstance(timestamps, Mapping):
            raise InvalidRequestError("times are given by partition, in a mapping", timestamps=shown(timestamps))
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
        """Return how many offsets are between the position and the end, as the last poll knew it.

        Offsets, not records: markers and aborted records count until the position has passed them.  ``None``: the
        position is not known yet.  Raises :class:`IllegalStateError` where the partition is not assigned.
        """
        offset = self._stands_at(partition)
        if offset is None:
            return None
        topic, number = partition
        return max(0, self._topics[topic].bounds(number).end - offset)

    def _bounds_now(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, Bounds]:
        wanted = checked_partitions(partitions)
        topics = self._topics_now(wanted)
        return {partition: topics[partition.topic].bounds(partition.partition) for partition in wanted}

    def _topics_now(self, partitions: Sequence[TopicPartition]) -> dict[str, FollowedTopic]:
        """Return the topics of partitions as they are now; those that are not read are looked at for once."""
        names = dict.fromkeys(partition.topic for partition in partitions)
        self._follow_topics([self._topics[name] for name in names if name in self._topics])
        return {name: self._topics.get(name) or self._looked_at(name) for name in names}
