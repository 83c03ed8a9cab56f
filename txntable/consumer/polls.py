"""Polling: waiting for records of the partitions that are read, and handing them out.

Owns the time of a poll, what it owes the group before it looks, and that what is handed out of a group's partitions is
taken note of.  :meth:`Polls.wakeup` is for any thread.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TypeVar

import pyarrow as pa

from txntable.consumer.assigned_partitions import AssignedPartitions
from txntable.consumer.bounded_reads import check_timeout
from txntable.consumer.consumer_record import ConsumerRecord, records_of
from txntable.consumer.group_place import GroupPlace
from txntable.consumer.group_session import GroupSession
from txntable.consumer.readings import Reading
from txntable.coordinator.row_json import check_number
from txntable.errors import IllegalStateError, RetriableError
from txntable.format.records import TopicPartition
from txntable.runtime.environment import Instant
from txntable.segments.segment_reader import OFFSET_COLUMN
from txntable.storage.retries import LEAST_BUDGET_MS, ending_within

logger = logging.getLogger(__name__)

T = TypeVar("T")
Decode = Callable[[TopicPartition, list[pa.RecordBatch]], T]

# While there is something to return anyway, what is new is looked for as often as this, ms.
FOLLOW_MS = 500
FIRST_WAIT_MS = 50
LONGEST_WAIT_MS = 1_000
EVERYTHING = 2**63 - 1


class Polls:
    """The polling part of a consumer.

    Parameters
    ----------
    partitions : AssignedPartitions
        Whose records are handed out.
    session : GroupSession
        Does what a poll owes the group.
    place : GroupPlace
        Who owns what is handed out.
    """

    def __init__(self, partitions: AssignedPartitions, session: GroupSession, place: GroupPlace) -> None:
        self._partitions, self._session, self._place = partitions, session, place
        self._config, self._environment = partitions.config, partitions.environment
        self._woken = threading.Event()

    def poll(self, timeout_ms: float, limit: int, decode: Decode[T]) -> dict[TopicPartition, T]:
        """Return the next records of each partition, as `decode` makes them; empty when the time was over."""
        check_timeout(timeout_ms)
        check_number(limit, "max_records", 1)
        if self._session.reads_nothing:
            raise IllegalStateError("nothing is assigned or subscribed to; assign partitions or subscribe to topics")
        began, wait_ms = self._environment.instant(), float(FIRST_WAIT_MS)
        while True:
            failure: RetriableError | None = None
            try:
                # Whatever it asks the store has the time of this call, and no more.
                with ending_within(self._environment, self._budget_ms(timeout_ms, began)):
                    self._session.tend()
                    if found := self._collect(limit, self._counting(self._noting(decode))):
                        return found
            except RetriableError as error:
                if timeout_ms == 0:
                    raise
                failure = error
            rest_ms = timeout_ms - self._environment.since_ms(began)
            if self._is_woken() or rest_ms <= 0:
                if failure is not None:
                    logger.warning("poll timed out without records because the store failed: %s", failure)
                return {}
            self._environment.sleep_ms(min(wait_ms, rest_ms))
            wait_ms = min(wait_ms * 2, LONGEST_WAIT_MS)

    def _budget_ms(self, timeout_ms: float, began: Instant) -> float:
        return max(timeout_ms - self._environment.since_ms(began), LEAST_BUDGET_MS)

    def _noting(self, decode: Decode[T]) -> Decode[T]:
        """Return `decode` so that it takes note of what is handed out of a group's partitions."""
        if self._config.group_id is None:
            return decode

        def noting(partition: TopicPartition, batches: list[pa.RecordBatch]) -> T:
            start, last = batches[0].column(OFFSET_COLUMN)[0].as_py(), batches[-1].column(OFFSET_COLUMN)[-1].as_py()
            topic_id = self._partitions.topics[partition.topic].topic_id
            self._partitions.readings.polled(partition, Reading(topic_id, start, last + 1, self._place.metadata))
            return decode(partition, batches)

        return noting

    def _counting(self, decode: Decode[T]) -> Decode[T]:
        """Return `decode` so that what is handed out is counted."""

        def counting(partition: TopicPartition, batches: list[pa.RecordBatch]) -> T:
            counters = self._partitions.counters
            counters.add("consumer-fetch-manager-metrics/records-consumed-total", sum(one.num_rows for one in batches))
            counters.add("consumer-fetch-manager-metrics/bytes-consumed-total", sum(one.nbytes for one in batches))
            return decode(partition, batches)

        return counting

    def _collect(self, limit: int, decode: Decode[T]) -> dict[TopicPartition, T]:
        due = self._environment.since_ms(self._partitions.followed_at) >= FOLLOW_MS
        found = {} if due else self._partitions.fetcher.collect(limit, decode)
        if found:
            return found
        self._session.follow()
        return self._partitions.fetcher.collect(limit, decode)

    def next_record(self) -> ConsumerRecord:
        """Return the next record for iteration; raises StopIteration when none came in time."""
        iterated, timeout_ms = self._partitions.iterated, self._config.consumer_timeout_ms
        while not iterated:
            found = self.poll(
                EVERYTHING if timeout_ms is None else timeout_ms, self._config.max_poll_records, records_of
            )
            if not found:
                raise StopIteration
            for records in found.values():
                iterated.extend(records)
        return iterated.popleft()

    def wakeup(self) -> None:
        """Let the poll that waits, or else the next one that would, return without records."""
        self._woken.set()

    def _is_woken(self) -> bool:
        woken = self._woken.is_set()
        self._woken.clear()
        return woken
