"""Polling: waiting for records of the partitions that are read, and handing them out.

Owns the time of a poll, what it owes the group before it looks, and that what is handed out of a group's partitions is
taken note of.  :meth:`Polls.wakeup` is for any thread.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import pyarrow as pa

from txntable.consumer.assigned_partitions import AssignedPartitions
from txntable.consumer.bounded_reads import check_timeout
from txntable.consumer.consumer_record import ConsumerRecord, records_of
from txntable.consumer.group_place import GroupPlace
from txntable.consumer.group_session import GroupSession
from txntable.consumer.readings import Reading
from txntable.consumer.single_records import SingleRecords
from txntable.coordinator.row_json import check_number
from txntable.errors import IllegalStateError, RetriableError, TxnTableError
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
        self._singles = SingleRecords(partitions.fetcher, partitions.subscription)

    def poll(
        self, timeout_ms: float, limit: int, decode: Decode[T], enough_bytes: int | None = None
    ) -> dict[TopicPartition, T]:
        """Return the next records of each partition, as `decode` makes them; empty when the time was over."""
        check_number(limit, "max_records", 1)
        collect = partial(self._partitions.fetcher.collect, limit, self._counting(self._noting(decode)), enough_bytes)
        return self._found(timeout_ms, collect)

    def poll_records(self, timeout_ms: float, limit: int, least: int) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Return the next records, once there are so many or the time is over: then what there is."""
        check_number(limit, "max_records", 1)
        check_number(least, "min_records", 1)
        if limit == 1:
            return self._found(timeout_ms, self._next_record)
        return (
            self.poll(timeout_ms, limit, records_of)
            if least == 1
            else self._gathered(timeout_ms, limit, min(least, limit))
        )

    def _next_record(self) -> dict[TopicPartition, list[ConsumerRecord]]:
        return self._singles.collect(self._counting(self._noting(records_of)), self._took)

    def _found(self, timeout_ms: float, collect: Callable[[], dict[TopicPartition, T]]) -> dict[TopicPartition, T]:
        found: dict[TopicPartition, T] = {}

        def step() -> bool:
            found.update(self._collect(collect))
            return bool(found)

        self._wait(timeout_ms, step)
        return found

    def _gathered(self, timeout_ms: float, limit: int, least: int) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Wait for so many records.  Until they are handed out they are not read: what may come between sees that."""
        waiting, owner, first = self._partitions.iterated, self._place, self._place.applied
        decode = self._counting(records_of)

        def step() -> bool:
            nonlocal first
            if waiting and owner.applied is not first:
                # Some of it may belong to another member now: the caller hears of that before it waits on.
                return True
            first = owner.applied
            while len(waiting) < least:
                found = self._collect(partial(self._partitions.fetcher.collect, limit - len(waiting), decode))
                if not found:
                    return False
                for records in found.values():
                    waiting.extend(records)
            return True

        try:
            self._wait(timeout_ms, step)
        except TxnTableError:
            # The next call meets it again.
            if not waiting:
                raise
        except BaseException:
            self._partitions.give_back()
            raise
        return self._handed_out()

    def _handed_out(self) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Hand out what was gathered."""
        found: dict[TopicPartition, list[ConsumerRecord]] = {}
        for record in self._partitions.iterated:
            found.setdefault(TopicPartition(record.topic, record.partition), []).append(record)
        for partition, records in found.items():
            self._note(partition, records[0].offset, records[-1].offset)
        self._partitions.iterated.clear()
        return found

    def _wait(self, timeout_ms: float, step: Callable[[], bool]) -> None:
        """Take steps until one says that this is enough, or the time is over."""
        check_timeout(timeout_ms)
        if self._session.reads_nothing:
            raise IllegalStateError("nothing is assigned or subscribed to; assign partitions or subscribe to topics")
        self._partitions.readings.read_on()
        began, wait_ms = self._environment.instant(), float(FIRST_WAIT_MS)
        while True:
            failure: RetriableError | None = None
            try:
                # Whatever it asks the store has the time of this call, and no more.
                with ending_within(self._environment, self._budget_ms(timeout_ms, began)):
                    self._session.tend()
                    if step():
                        return
            except RetriableError as error:
                if timeout_ms == 0:
                    raise
                failure = error
            rest_ms = timeout_ms - self._environment.since_ms(began)
            if self._is_woken() or rest_ms <= 0:
                if failure is not None:
                    logger.warning("poll timed out without records because the store failed: %s", failure)
                return
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
            self._note(partition, start, last)
            return decode(partition, batches)

        return noting

    def _note(self, partition: TopicPartition, start: int, last: int) -> None:
        readings = self._partitions.readings
        if self._config.group_id is None:
            return
        self._partitions.rewinds.handed_out(partition, start, last + 1)
        if not readings.went_on(partition, last + 1):
            topic_id = self._partitions.topics[partition.topic].topic_id
            readings.polled(partition, Reading(topic_id, start, last + 1, self._place.metadata))

    def _counting(self, decode: Decode[T]) -> Decode[T]:
        """Return `decode` so that what is handed out is counted."""

        def counting(partition: TopicPartition, batches: list[pa.RecordBatch]) -> T:
            self._count(sum(one.num_rows for one in batches), sum(one.nbytes for one in batches))
            return decode(partition, batches)

        return counting

    def _count(self, records: int, its_bytes: int) -> None:
        counters = self._partitions.counters
        counters.add("consumer-fetch-manager-metrics/records-consumed-total", records)
        counters.add("consumer-fetch-manager-metrics/bytes-consumed-total", its_bytes)

    def _took(self, partition: TopicPartition, offset: int, its_bytes: int) -> None:
        self._count(1, its_bytes)
        self._note(partition, offset, offset)

    def _collect(self, collect: Callable[[], dict[TopicPartition, T]]) -> dict[TopicPartition, T]:
        partitions = self._partitions
        due = partitions.is_follow_due or self._environment.since_ms(partitions.followed_at) >= FOLLOW_MS
        found = {} if due else collect()
        if found:
            return found
        self._session.follow()
        self._singles.drop()
        return collect()

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
