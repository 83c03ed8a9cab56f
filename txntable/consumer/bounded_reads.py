"""Reading a bounded range: everything between a group's offsets and the end, pinned by the call (PROTOCOL.md §8.4).

Owns where a range begins and ends.  It begins where the group has *committed*, whatever was read since: work that
failed is done again.  Its commit counts only while the group still stands there, and only by who owned it then.
Topics that are read together end where no transaction is read in part (:mod:`txntable.consumer.joint_ends`).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from txntable.consumer.assigned_partitions import AssignedPartitions
from txntable.consumer.group_place import GroupPlace
from txntable.consumer.group_session import GroupSession
from txntable.consumer.joint_ends import TopicRanges, joint_ends
from txntable.consumer.offset_commits import OffsetCommits
from txntable.consumer.readings import Reading
from txntable.coordinator.error_kinds import shown
from txntable.coordinator.offset_request import RangeStart
from txntable.coordinator.row_json import LARGEST_NUMBER, check_number
from txntable.errors import IllegalStateError, InvalidRequestError
from txntable.format.records import TopicPartition
from txntable.partition.topic_view import TopicView

logger = logging.getLogger(__name__)

_FIRST_WAIT_MS = 250.0


@dataclass(frozen=True, slots=True)
class BoundedRange:
    """What one call reads of one topic.

    Attributes
    ----------
    view : TopicView
        What is read.
    starts, ends : dict of int to int
        Of every partition: from this offset, before that one.
    """

    view: TopicView
    starts: dict[int, int]
    ends: dict[int, int]


class BoundedReads:
    """The range-reading part of a consumer.

    Parameters
    ----------
    partitions : AssignedPartitions
        Which are read; moved to the ends of the ranges.
    commits : OffsetCommits
        Where the group stands.
    session : GroupSession
        Gets partitions.
    place : GroupPlace
        Who owns them.
    """

    def __init__(
        self, partitions: AssignedPartitions, commits: OffsetCommits, session: GroupSession, place: GroupPlace
    ) -> None:
        self._partitions, self._commits, self._session, self._place = partitions, commits, session, place
        self._config, self._environment = partitions.config, partitions.environment
        self._subscription, self._readings = partitions.subscription, partitions.readings

    def pin(self, topic: str | None, most: int | None, timeout_ms: float | None) -> BoundedRange:
        """Return the ranges of a topic, at most so many offsets of each partition, and stand at their ends."""
        _check(most, timeout_ms)
        self._partitions.give_back()
        name = self._one_topic(topic)
        wanted, committed = self._begin([name], timeout_ms)
        # After the group's offsets: they are never beyond the end that is read to.
        self._partitions.topics[name].catch_up()
        starts = self._starts(wanted)
        ends = {each: self._end(each, start, most) for each, start in starts.items()}
        return self._pinned(name, starts, ends, committed)

    def pin_together(self, most: int | None, timeout_ms: float | None) -> list[BoundedRange]:
        """Return the ranges of all topics, by their names, without a transaction in part, and stand at their ends.

        A bound is stretched where it would let nothing be read: to the first transactions that are whole.
        """
        _check(most, timeout_ms)
        self._partitions.give_back()
        names = self._names()
        if not names:
            raise IllegalStateError("there is nothing to read; subscribe to topics, or assign partitions")
        wanted, committed = self._begin(names, timeout_ms)
        position = self._partitions.catch_up_together(names)
        starts = self._starts(wanted)
        ends = self._joint_ends(names, starts, most, position)
        while most is not None and not self._goes_on(starts, ends):
            most = most * 2 if most < self._longest(starts) else None
            ends = self._joint_ends(names, starts, most, position)
        return [self._pinned(name, starts, ends, committed) for name in names]

    def _begin(
        self, names: Sequence[str], timeout_ms: float | None
    ) -> tuple[list[TopicPartition], dict[TopicPartition, int | None]]:
        """Stand where the group has committed; return the partitions of these topics, and where that is."""
        self._readings.read_on()
        # What was read before and not committed is read again.
        self._readings.drop([each for each in self._readings.ranges if each.topic in names])
        self._wait_for_partitions(timeout_ms)
        wanted = [each for each in self._subscription.wanted if each.topic in names]
        return wanted, self._commits.begin_again(wanted)

    def _starts(self, wanted: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        begins = ((each, self._partitions.fetcher.begins_at(each)) for each in wanted)
        return {each: self._bound(each) if start is None else start for each, start in begins}

    def _bound(self, partition: TopicPartition) -> int:
        return self._partitions.topics[partition.topic].bounds(partition.partition).end

    def _end(self, partition: TopicPartition, start: int, most: int | None) -> int:
        bound = self._bound(partition)
        return max(start, bound if most is None else min(bound, start + most))

    def _joint_ends(
        self, names: Sequence[str], starts: Mapping[TopicPartition, int], most: int | None, position: int
    ) -> dict[TopicPartition, int]:
        ends = {each: self._end(each, start, most) for each, start in starts.items()}
        topics = [TopicRanges(self._partitions.topics[name].view, _of(name, starts), _of(name, ends)) for name in names]
        joint = zip(names, joint_ends(topics, position), strict=True)
        return {TopicPartition(name, each): end for name, found in joint for each, end in found.items()}

    def _goes_on(self, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> bool:
        return any(ends[each] > start for each, start in starts.items())

    def _longest(self, starts: Mapping[TopicPartition, int]) -> int:
        return max((self._bound(each) - start for each, start in starts.items()), default=0)

    def _pinned(
        self,
        name: str,
        starts: Mapping[TopicPartition, int],
        ends: Mapping[TopicPartition, int],
        committed: dict[TopicPartition, int | None],
    ) -> BoundedRange:
        """Take the ranges of one topic."""
        view = self._partitions.topics[name].view
        ours = {partition: bounds.end for partition, bounds in view.bounds.items()}
        before = dict(ours)
        for each, start in starts.items():
            if each.topic != name:
                continue
            if start <= self._bound(each):
                ours[each.partition], before[each.partition] = start, ends[each]
            self._took(each, range(start, ends[each]), committed)
        return BoundedRange(view, ours, before)

    def _names(self) -> list[str]:
        return sorted({partition.topic for partition in self._subscription.positions} | self._subscription.topics)

    def _one_topic(self, topic: str | None) -> str:
        names = self._names()
        if topic is None and len(names) == 1:
            (topic,) = names
        if topic is None or topic not in names:
            raise IllegalStateError(
                "read returns one topic: name one that is subscribed to or assigned", topic=topic, topics=names
            )
        return topic

    def _wait_for_partitions(self, timeout_ms: float | None) -> None:
        # By then a dead one has been expelled, and its partitions are given to others.
        expelled_ms = self._config.session_timeout_ms + 2 * self._config.heartbeat_interval_ms
        most_ms = expelled_ms if timeout_ms is None else timeout_ms
        began, wait_ms = self._environment.instant(), _FIRST_WAIT_MS
        while True:
            self._session.tend(wait=True, works=True)
            rest_ms = most_ms - self._environment.since_ms(began)
            awaited = None if self._place.applied is None else self._place.applied.awaited
            if not awaited:
                return
            if rest_ms <= 0:
                logger.warning(
                    "the read is without partitions that another member of the group still owns group=%s partitions=%s",
                    self._config.group_id,
                    ",".join(f"{topic}-{partition}" for topic, partition in sorted(awaited)),
                )
                return
            self._environment.sleep_ms(min(wait_ms, rest_ms))
            wait_ms = min(wait_ms * 2, self._config.heartbeat_interval_ms)

    def _took(self, partition: TopicPartition, taken: range, committed: dict[TopicPartition, int | None]) -> None:
        self._partitions.move(partition, taken.stop)
        if self._config.group_id is None or committed[partition] == taken.stop:
            return
        # An empty range of a group that stands nowhere is committed, too: who comes next may begin by another policy.
        reading = Reading(
            self._partitions.topics[partition.topic].topic_id,
            taken.start,
            taken.stop,
            self._place.metadata,
            RangeStart(committed[partition]),
        )
        self._readings.took(partition, reading)


def _of(name: str, offsets: Mapping[TopicPartition, int]) -> dict[int, int]:
    return {each.partition: offset for each, offset in offsets.items() if each.topic == name}


def _check(most: int | None, timeout_ms: float | None) -> None:
    if most is not None:
        check_number(most, "max_offsets_per_partition", 1)
    if timeout_ms is not None:
        check_timeout(timeout_ms)


def refuse_unnamed(given: Sequence[object]) -> None:
    """Refuse arguments of a poll that are given without their names.

    Kafka's Python clients disagree: to one of them a number is seconds, to another one milliseconds.

    Raises
    ------
    InvalidRequestError
        There are any.
    """
    if given:
        raise InvalidRequestError(
            "say the unit of the timeout: poll(timeout_ms=1_000) waits for up to a second", given=shown(given[0])
        )


def check_timeout(timeout_ms: float) -> None:
    """Refuse what is no time to wait.

    Raises
    ------
    InvalidRequestError
        It is no number from 0 to 2^63 - 1, in ms.
    """
    fits = isinstance(timeout_ms, int | float) and not isinstance(timeout_ms, bool)
    if not fits or not 0 <= timeout_ms <= LARGEST_NUMBER:
        raise InvalidRequestError(
            "a timeout is a number of milliseconds from 0 to 2^63 - 1", timeout_ms=shown(timeout_ms)
        )
