"""The consumer: Kafka's, over a warehouse without a broker (PROTOCOL.md §10).

Owns Kafka's contract towards the caller: the records of a partition in offset order, each once, only those that the
isolation level shows; a position that moves over gaps, and by what is returned only.  Not for two
threads at once, save :meth:`Consumer.wakeup`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TypeVar

import pyarrow as pa

from txntable.consumer.assigned_partitions import alone
from txntable.consumer.bounded_reads import BoundedReads, check_timeout
from txntable.consumer.consumer_config import ConsumerConfig
from txntable.consumer.consumer_record import ConsumerRecord, one_batch, records_of
from txntable.consumer.readings import Reading
from txntable.coordinator.row_json import check_number
from txntable.errors import IllegalStateError, RetriableError
from txntable.format.records import TopicPartition
from txntable.groups.group_client import GroupClient
from txntable.runtime.environment import Instant
from txntable.segments.segment_reader import OFFSET_COLUMN
from txntable.snapshot.topic_reader import TopicReader
from txntable.storage.retries import LEAST_BUDGET_MS, ending_within
from txntable.transactions.transaction_log import TransactionLog

logger = logging.getLogger(__name__)

T = TypeVar("T")
Decode = Callable[[TopicPartition, list[pa.RecordBatch]], T]

# While there is something to return anyway, what is new is looked for as often as this, ms.
FOLLOW_MS = 500
FIRST_WAIT_MS = 50
LONGEST_WAIT_MS = 1_000
_EVERYTHING = 2**63 - 1


class Consumer(BoundedReads):
    """Reads the records of partitions; made by :meth:`txntable.Warehouse.consumer`."""

    def __init__(
        self,
        config: ConsumerConfig,
        topic_reader: Callable[[str], TopicReader],
        transactions: TransactionLog,
        groups: GroupClient,
    ) -> None:
        super().__init__(config, topic_reader, transactions, groups)
        self._woken = threading.Event()

    # -- reading ----------------------------------------------------------------------------

    @alone
    def poll(self, timeout_ms: float = 0, max_records: int | None = None) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Return the next records of each partition, in offset order.

        Parameters
        ----------
        timeout_ms : float
            How long to wait for records when there are none, ms; 0: look once.
        max_records : int, optional
            The most records; default: ``max_poll_records``.

        Returns
        -------
        dict of TopicPartition to list of ConsumerRecord
            Only partitions with records; empty when the time was over, or after :meth:`wakeup`.

        Raises
        ------
        IllegalStateError
            Nothing is assigned or subscribed to; the consumer is closed, or in use by another thread.
        OffsetOutOfRangeError
            A partition has no offset to read from, and ``auto_offset_reset`` is ``none``: seek.
        UnknownTopicOrPartitionError
            A topic was deleted, or made again: assign or subscribe again.
        DamagedDataError
            A segment can not be read; the same call raises it again.  Seek over it, or pause the partition.
        FencedInstanceIdError
            A newer consumer has the instance id of this static member: close this one.
        InconsistentGroupProtocolError, GroupMaxSizeReachedError
            The group does not take this consumer: configure it otherwise.
        StoreUnavailableError, CommitStateUnknownError
            With a timeout of 0 only: call again; no record is lost.  A longer one is used to try again, as Kafka's
            consumer does; when it is over nothing is returned and a warning is logged.
        """
        limit = self.config.max_poll_records if max_records is None else max_records
        self._give_back()
        return self._poll(timeout_ms, limit, records_of)

    @alone
    def poll_batches(
        self, timeout_ms: float = 0, max_records: int | None = None
    ) -> dict[TopicPartition, pa.RecordBatch]:
        """Return the next records of each partition as columns.

        The topic's columns, then ``_partition``, ``_offset``, ``_timestamp`` and ``_commit``.  The positions are
        those of :meth:`poll`, which says what is raised, too.

        Parameters
        ----------
        timeout_ms : float
            See :meth:`poll`.
        max_records : int, optional
            The most records; default: as many as fit into ``fetch_max_bytes``.
        """
        self._give_back()
        return self._poll(timeout_ms, _EVERYTHING if max_records is None else max_records, one_batch)

    def _poll(self, timeout_ms: float, limit: int, decode: Decode[T]) -> dict[TopicPartition, T]:
        _check(timeout_ms, limit)
        if not self._subscription.positions and not self._subscription.topics and self._pattern is None:
            raise IllegalStateError("nothing is assigned or subscribed to; assign partitions or subscribe to topics")
        began, wait_ms = self._environment.instant(), float(FIRST_WAIT_MS)
        while True:
            failure: RetriableError | None = None
            try:
                # Whatever it asks the store has the time of this call, and no more.
                with ending_within(self._environment, self._budget_ms(timeout_ms, began)):
                    self._tend()
                    if found := self._collect(limit, self._noting(decode)):
                        return found
            except RetriableError as error:
                if timeout_ms == 0:
                    raise
                failure = error
            rest_ms = timeout_ms - self._environment.since_ms(began)
            if self._is_woken() or rest_ms <= 0:
                if failure is not None:
                    logger.warning("poll found no records in its time, since the store failed: %s", failure)
                return {}
            self._environment.sleep_ms(min(wait_ms, rest_ms))
            wait_ms = min(wait_ms * 2, LONGEST_WAIT_MS)

    def _budget_ms(self, timeout_ms: float, began: Instant) -> float:
        return max(timeout_ms - self._environment.since_ms(began), LEAST_BUDGET_MS)

    def _noting(self, decode: Decode[T]) -> Decode[T]:
        """Return `decode` so that it takes note of what is handed out of a group's partitions."""
        if self.config.group_id is None:
            return decode

        def noting(partition: TopicPartition, batches: list[pa.RecordBatch]) -> T:
            start, last = batches[0].column(OFFSET_COLUMN)[0].as_py(), batches[-1].column(OFFSET_COLUMN)[-1].as_py()
            topic_id = self._topics[partition.topic].topic_id
            self._readings.polled(partition, Reading(topic_id, start, last + 1, self._metadata))
            return decode(partition, batches)

        return noting

    def _collect(self, limit: int, decode: Decode[T]) -> dict[TopicPartition, T]:
        due = self._environment.since_ms(self._followed_at) >= FOLLOW_MS
        found = {} if due else self._fetcher.collect(limit, decode)
        if found:
            return found
        self._follow()
        return self._fetcher.collect(limit, decode)

    def wakeup(self) -> None:
        """Let the poll that waits, or else the next one that would, return without records; iteration ends.

        The only call that another thread may make.  A waiting poll notices it within a second.
        """
        self._woken.set()

    def _is_woken(self) -> bool:
        woken = self._woken.is_set()
        self._woken.clear()
        return woken

    # -- iteration --------------------------------------------------------------------------

    def __iter__(self) -> Consumer:
        return self

    @alone
    def __next__(self) -> ConsumerRecord:
        """Return the next record; ends when none came for ``consumer_timeout_ms``, or after :meth:`wakeup`."""
        while not self._iterated:
            timeout_ms = self.config.consumer_timeout_ms
            found = self._poll(
                _EVERYTHING if timeout_ms is None else timeout_ms, self.config.max_poll_records, records_of
            )
            if not found:
                raise StopIteration
            for records in found.values():
                self._iterated.extend(records)
        return self._iterated.popleft()

    # -- closing ----------------------------------------------------------------------------

    def close(self) -> None:
        """Close: nothing is read any more; a second time does nothing.

        A member of a group commits by itself, if it does so, tells its listener, and leaves; a static one stays.

        Raises
        ------
        IllegalStateError
            Another thread is in a call: wake it up, then close.
        """
        if not self.is_closed:
            self._close()

    @alone
    def _close(self) -> None:
        self._give_back()
        try:
            self._leave()
        finally:
            self._fetcher.drop_all()
            self.is_closed = True
            self._stop()
        if self._ahead is not None:
            self._ahead.shutdown(wait=False, cancel_futures=True)

    def __enter__(self) -> Consumer:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.close()


def _check(timeout_ms: float, limit: int) -> None:
    check_timeout(timeout_ms)
    check_number(limit, "max_records", 1)
