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


class RecordAdmin:
    """The part of :class:`txntable.admin.admin.Admin` that is about records.

    Parameters
    ----------
    topic_log : callable
        A topic's name -> its logs.
    """

    def __init__(self, topic_log: Callable[[str], TopicLog]) -> None:
        self._topic_log = topic_log

    def delete_records(
        self, before: Mapping[TopicPartition, int | None], *, validate_only: bool = False
    ) -> dict[TopicPartition, int]:
        """Delete the records before an offset; all partitions are checked before the first is changed.

        Records of open and aborted transactions go as well, as in Kafka: such a transaction can commit, without them.
        A segment that holds later records too is written again without those before.

        Parameters
        ----------
        before : Mapping of TopicPartition to int or None
            The first offset that stays; ``None``: nothing that there is now.  At or below the log start: nothing
            happens.
        validate_only : bool
            Whether only to check; nothing is changed.

        Returns
        -------
        dict of TopicPartition to int
            The partition's low watermark: the lowest offset that it has then (with `validate_only`: would have).

        Raises
        ------
        UnknownTopicOrPartitionError
            There is no such topic or partition.
        PolicyViolationError
            A topic is only compacted: add ``delete`` to its ``cleanup.policy``.
        OffsetOutOfRangeError
            An offset is negative, or above the high watermark.
        InvalidRequestError
            `before` is no mapping of partitions to offsets.
        CommitStateUnknownError, StoreUnavailableError
            Call again.
        DamagedDataError
            A segment that an offset cuts can not be read; no reader sees the records any more.
        """
        wanted: dict[str, dict[int, int | None]] = {}
        for topic, partition, offset in _checked(before):
            wanted.setdefault(topic, {})[partition] = offset
        planned = {topic: plan_deletion(self._topic_log(topic), offsets) for topic, offsets in wanted.items()}
        found = {
            topic: deletion.before if validate_only else delete_records(self._topic_log(topic), deletion)
            for topic, deletion in planned.items()
        }
        return {TopicPartition(topic, partition): found[topic][partition] for topic, partition in before}


def _checked(before: Mapping[TopicPartition, int | None]) -> list[tuple[str, int, int | None]]:
    """Return topic, partition and offset of each, or refuse what is none."""
    if not isinstance(before, Mapping):
        raise InvalidRequestError("offsets are given by partition, in a mapping", before=shown(before))
    checked = []
    for place, offset in before.items():
        if not isinstance(place, tuple) or len(place) != len(TopicPartition._fields):
            raise InvalidRequestError("a partition is a topic and a number; make a TopicPartition", found=shown(place))
        topic, partition = place
        if not _is_integer(partition) or not (offset is None or _is_integer(offset)):
            raise InvalidRequestError(
                "partition and offset are integers", topic=topic, partition=partition, offset=offset
            )
        checked.append((topic, partition, offset))
    return checked


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
