"""Reading a bounded range: everything between a group's offsets and the end, pinned by the call (PROTOCOL.md §8.4).

Owns where a range begins and ends.  It begins where the group has *committed*, whatever was read since: work that
failed is done again.  Its commit counts only while the group still stands there, and only by who owned it then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from txntable.consumer.assigned_partitions import alone
from txntable.consumer.group_assignment import GroupAssignment
from txntable.consumer.readings import Reading
from txntable.coordinator.error_kinds import shown
from txntable.coordinator.offset_request import RangeStart
from txntable.coordinator.row_json import LARGEST_NUMBER, check_number
from txntable.errors import IllegalStateError, InvalidRequestError
from txntable.format.records import TopicPartition
from txntable.partition.topic_view import TopicView

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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


class BoundedReads(GroupAssignment):
    """The range-reading part of a consumer; see :class:`~txntable.consumer.assigned_partitions.AssignedPartitions`."""

    @alone
    def read(
        self,
        spark: SparkSession,
        topic: str | None = None,
        *,
        max_offsets_per_partition: int | None = None,
        timeout_ms: float = 0,
    ) -> DataFrame:
        """Return everything between what the group has committed and the end as a DataFrame.

        The ranges of the partitions that this consumer has are fixed by the call, however long the work on them takes,
        and move its positions to their ends.  Commit them with what was made of them:
        ``transaction.send_offsets(consumer)``, or :meth:`commit`; until then the next call reads them again.
        Without a group it begins at the positions.

        Parameters
        ----------
        spark : SparkSession
            With Delta; Spark Connect's too.
        topic : str, optional
            Which, where there are several.
        max_offsets_per_partition : int, optional
            The longest range of one partition, in offsets.
        timeout_ms : float
            How long to wait for partitions that another member, maybe a dead one, still has, ms.

        Returns
        -------
        DataFrame
            With the columns of :meth:`txntable.Warehouse.read`; empty when there is nothing new.

        Raises
        ------
        IllegalStateError
            Nothing is assigned or subscribed to, several topics are and none is named; the consumer is closed.
        OffsetOutOfRangeError
            A partition has no offset to read from, and ``auto_offset_reset`` is ``none``.
        UnstableOffsetCommitError
            A transaction with offsets of the group has not ended within ``default_api_timeout_ms``: again.
        UnknownTopicOrPartitionError
            The topic was deleted, or made again: subscribe again.
        StoreUnavailableError, CommitStateUnknownError
            Call again.
        """
        bounded = self._pin(topic, max_offsets_per_partition, timeout_ms)
        frame: DataFrame = self.config.read_dataframe(spark, bounded.view, bounded.starts, bounded.ends)
        return frame

    @alone
    def read_arrow(
        self,
        topic: str | None = None,
        *,
        columns: Sequence[str] | None = None,
        max_offsets_per_partition: int | None = None,
        timeout_ms: float = 0,
    ) -> pa.RecordBatchReader:
        """Return the same without Spark: record batches in offset order, read as they are asked for.

        Parameters
        ----------
        columns : sequence of str, optional
            The topic's, ``_partition``, ``_offset``, ``_timestamp``, ``_commit``; default: all.
        topic, max_offsets_per_partition, timeout_ms
            See :meth:`read`, which says what is raised, too.
        """
        bounded = self._pin(topic, max_offsets_per_partition, timeout_ms)
        reader = self._topics[bounded.view.settings.name].reader
        return reader.batches(bounded.view, columns, (bounded.starts, bounded.ends))

    def ranges(self) -> dict[TopicPartition, tuple[int, int]]:
        """Return what :meth:`read` has returned and is not committed: from the first offset, before the second.

        A partition whose group stands at the end already is not there; one without records, only offsets, is.
        """
        return {partition: (reading.start, reading.end) for partition, reading in self._readings.ranges.items()}

    def _pin(self, topic: str | None, most: int | None, timeout_ms: float) -> BoundedRange:
        if most is not None:
            check_number(most, "max_offsets_per_partition", 1)
        check_timeout(timeout_ms)
        self._give_back()
        name = self._one_topic(topic)
        # What was read before and not committed is read again.
        self._readings.drop([each for each in self._readings.ranges if each.topic == name])
        self._wait_for_partitions(timeout_ms)
        mine = [each for each in self._subscription.wanted if each.topic == name]
        committed = self._stand_at_committed(mine)
        # After the group's offsets: they are never beyond the end that is read to.
        self._topics[name].catch_up()
        view = self._topics[name].view
        starts = {partition: bounds.end for partition, bounds in view.bounds.items()}
        ends = dict(starts)
        for each in mine:
            start = self._fetcher.begins_at(each)
            bound = view.bounds_of(each.partition).end
            start = bound if start is None else start
            end = max(start, bound if most is None else min(bound, start + most))
            if start <= bound:
                starts[each.partition], ends[each.partition] = start, end
            self._took(each, range(start, end), committed)
        return BoundedRange(view, starts, ends)

    def _one_topic(self, topic: str | None) -> str:
        names = {partition.topic for partition in self._subscription.positions} | self._subscription.topics
        if topic is None and len(names) == 1:
            (topic,) = names
        if topic is None or topic not in names:
            raise IllegalStateError(
                "read returns one topic: name one that is subscribed to or assigned", topic=topic, topics=sorted(names)
            )
        return topic

    def _wait_for_partitions(self, timeout_ms: float) -> None:
        began, wait_ms = self._environment.instant(), _FIRST_WAIT_MS
        while True:
            self._tend(wait=True, works=True)
            rest_ms = timeout_ms - self._environment.since_ms(began)
            if self._applied is None or not self._applied.awaited or rest_ms <= 0:
                return
            self._environment.sleep_ms(min(wait_ms, rest_ms))
            wait_ms = min(wait_ms * 2, self.config.heartbeat_interval_ms)

    def _stand_at_committed(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int | None]:
        """Stand where the group does, unless the user chose otherwise; return what it has committed."""
        group = self.config.group_id
        if group is None:
            return {}
        topic_ids = {each: self._topics[each.topic].topic_id for each in partitions}
        found = self._groups.committed(group, topic_ids, timeout_ms=self.config.default_api_timeout_ms)
        committed = {each: None if one is None else one.offset for each, one in found.items()}
        for each, offset in committed.items():
            position = self._subscription.of(each)
            if position.sought:
                continue
            if offset is not None:
                self._subscription.move(each, offset)
            elif self._committed_at.get(each) is not None or position.offset is not None:
                self._subscription.move_to(each, self._reset_of(each))
        self._committed_at.update(committed)
        return committed

    def _took(self, partition: TopicPartition, taken: range, committed: dict[TopicPartition, int | None]) -> None:
        self._subscription.move(partition, taken.stop)
        self._fetcher.drop(partition)
        if self.config.group_id is None or committed[partition] == taken.stop:
            return
        # An empty range of a group that stands nowhere is committed, too: who comes next may begin by another policy.
        reading = Reading(
            self._topics[partition.topic].topic_id,
            taken.start,
            taken.stop,
            self._metadata,
            RangeStart(committed[partition]),
        )
        self._readings.took(partition, reading)


def check_timeout(timeout_ms: float) -> None:
    """Refuse what is no time to wait.

    Raises
    ------
    InvalidRequestError
        It is no number from 0 to 2^63 - 1, in ms.
    """
    fits = isinstance(timeout_ms, int | float) and not isinstance(timeout_ms, bool)
    if not fits or not 0 <= timeout_ms <= LARGEST_NUMBER:
        raise InvalidRequestError("a timeout is a number of ms from 0 to 2^63 - 1", timeout_ms=shown(timeout_ms))
