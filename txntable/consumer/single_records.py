"""Collecting records one by one, as programs do that poll for one message: they are decoded some at a time.

Invariants
----------
* The caller sees what it would see if each record were collected by :meth:`Fetcher.collect`: what is decoded counts as
  not read.  The position is moved by what is returned only, and is the next record's.
* What is decoded is thrown away by anything but reading on: another position, a pause, partitions that come or go,
  records that were taken otherwise.  Then, and where none is left, a call is one of :meth:`Fetcher.collect`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import pyarrow as pa

from txntable.consumer.consumer_record import ConsumerRecord, records_of
from txntable.consumer.fetcher import Fetcher
from txntable.consumer.partition_fetch import PartitionFetch
from txntable.consumer.subscription import Subscription
from txntable.format.records import TopicPartition

# How many records are decoded at a time: more would keep others waiting for their turn.
_AT_A_TIME = 256


class SingleRecords:
    """The records of a consumer, one at each call.

    Parameters
    ----------
    fetcher : Fetcher
        Has what is read ahead.
    subscription : Subscription
        The positions; moved here.
    """

    def __init__(self, fetcher: Fetcher, subscription: Subscription) -> None:
        self._fetcher, self._subscription = fetcher, subscription
        self._ready: deque[ConsumerRecord] = deque()
        self._ready_bytes = 0
        self._partition: TopicPartition | None = None
        self._fetch: PartitionFetch | None = None
        # When the records that are ready were the next ones.
        self._taken = self._changes = -1

    def collect(
        self,
        decode: Callable[[TopicPartition, list[pa.RecordBatch]], list[ConsumerRecord]],
        took: Callable[[TopicPartition, int, int], None],
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Return the next record, and move the position past it; empty: there is none in the views as they are.

        Parameters
        ----------
        decode : callable
            See :meth:`Fetcher.collect`.
        took : callable
            (partition, offset, bytes): is told of a record that was decoded before, in place of `decode`.

        Raises
        ------
        TxnTableError
            See :meth:`Fetcher.collect`.
        """
        partition, fetch = self._partition, self._fetch
        if partition is not None and fetch is not None and self._is_next(partition, fetch):
            if not self._ready:
                self._make_ready(partition, fetch)
            if self._ready:
                return {partition: [self._take(partition, fetch, took)]}
        self.drop()
        found = self._fetcher.collect(1, decode)
        for each in found:
            # Decoded by the next call, which has moved nothing yet when that is interrupted.
            self._partition, self._fetch = each, self._fetcher.ahead_in(each)
            self._taken, self._changes = 0 if self._fetch is None else self._fetch.taken, self._subscription.changes
        return found

    def drop(self) -> None:
        """Forget what is decoded: it is another partition's turn, or there may be news."""
        self._ready.clear()
        self._partition = self._fetch = None

    def _is_next(self, partition: TopicPartition, fetch: PartitionFetch) -> bool:
        return (
            self._changes == self._subscription.changes
            and self._taken == fetch.taken
            and self._fetcher.ahead_in(partition) is fetch
        )

    def _make_ready(self, partition: TopicPartition, fetch: PartitionFetch) -> None:
        rows = fetch.at_hand(_AT_A_TIME)
        if rows is not None:
            self._ready.extend(records_of(partition, [rows]))
            self._ready_bytes = rows.nbytes

    def _take(
        self, partition: TopicPartition, fetch: PartitionFetch, took: Callable[[TopicPartition, int, int], None]
    ) -> ConsumerRecord:
        record, its_bytes = self._ready[0], self._ready_bytes // len(self._ready)
        before = self._subscription.of(partition)
        try:
            took(partition, record.offset, its_bytes)
            self._subscription.advance({partition: fetch.took(1, record.offset)})
            self._ready.popleft()
        except BaseException:
            # As in Fetcher.collect: whatever interrupts, nothing of it was read.
            self._fetcher.drop(partition)
            self._subscription.positions[partition] = before
            raise
        self._ready_bytes -= its_bytes
        self._taken = fetch.taken
        if not self._ready:
            # The others have their turns.
            self.drop()
        return record
