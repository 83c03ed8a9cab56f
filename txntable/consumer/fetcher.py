"""Collecting records for a consumer: from which partition next, and how many at once.

Invariants
----------
* A position is moved by what is returned only.  Whatever goes wrong, or interrupts, before the records are
  handed out leaves the positions, and the next call begins there again.
* After a call every partition has a position, also where nothing was returned, so that a commit speaks of all.
* No partition starves another: each is asked in turn, and none keeps its place in memory for ever.
* Of a partition without a place in memory a call asks little: of ten thousand, most have none.
* An error of one partition does not lose records of another: these are returned, and the error is met by the next call.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

import pyarrow as pa

from txntable.consumer.consumer_config import ConsumerConfig
from txntable.consumer.fetch_position import FetchPosition, beginning
from txntable.consumer.followed_topic import FollowedTopic
from txntable.consumer.partition_fetch import Ahead, PartitionFetch, next_fetch
from txntable.consumer.subscription import Subscription
from txntable.errors import OffsetOutOfRangeError, TxnTableError
from txntable.format.records import TopicPartition
from txntable.runtime.environment import Environment

logger = logging.getLogger(__name__)

T = TypeVar("T")

Batches = dict[TopicPartition, list[pa.RecordBatch]]

# Once there is something to return, not more than this is waited for more, ms.
_ENOUGH_MS = 100
# Batches after which a partition that others wait for gives its memory up.
_TURN_BATCHES = 64


@dataclass(slots=True)
class _Collected:
    """What one call has collected, before it is returned."""

    rest: int
    rest_bytes: int
    enough_bytes: int | None = None
    sizes: dict[TopicPartition, int] = field(default_factory=dict)
    batches: Batches = field(default_factory=dict)
    moved: dict[TopicPartition, int] = field(default_factory=dict)
    error: TxnTableError | None = None

    def add(self, partition: TopicPartition, batch: pa.RecordBatch) -> None:
        self.batches.setdefault(partition, []).append(batch)
        size = batch.nbytes
        self.sizes[partition] = self.sizes.get(partition, 0) + size
        self.rest -= batch.num_rows
        self.rest_bytes -= size

    def has_enough_of(self, partition: TopicPartition) -> bool:
        return self.enough_bytes is not None and self.sizes.get(partition, 0) >= self.enough_bytes

    @property
    def is_full(self) -> bool:
        return self.rest <= 0 or self.rest_bytes <= 0


class Fetcher:
    """What a consumer has read ahead, partition by partition.

    Parameters
    ----------
    config : ConsumerConfig
        How much is in memory, and where to begin.
    environment : Environment
        Says how long a call has taken.
    subscription : Subscription
        The positions; moved here.
    topics : Mapping[str, FollowedTopic]
        The views that are read; one for each topic of the subscription.
    ahead : Ahead, optional
        Reads the next batches meanwhile; ``None``: nothing is read before it is asked for.
    """

    def __init__(
        self,
        config: ConsumerConfig,
        environment: Environment,
        subscription: Subscription,
        topics: Mapping[str, FollowedTopic],
        ahead: Ahead | None,
    ) -> None:
        self._config, self._environment = config, environment
        self._subscription, self._topics = subscription, topics
        self._ahead = ahead
        self._fetches: dict[TopicPartition, PartitionFetch] = {}
        self._reserved_bytes = 0
        # Whether there was no room for a fetch, and nothing was dropped since: none is planned in vain.
        self._full = False
        self._turns: deque[TopicPartition] = deque()
        # Partitions that do not stand anywhere; they and the turns are of these changes of the subscription.
        self._unplaced: list[TopicPartition] = []
        self._changes = -1
        self._batch_bytes = config.max_partition_fetch_bytes
        # Whether a partition waits for memory that others have.
        self._crowded = False

    def drop(self, partition: TopicPartition) -> None:
        """Forget what was read ahead in a partition."""
        fetch = self._fetches.pop(partition, None)
        if fetch is not None:
            self._reserved_bytes -= fetch.reserved_bytes
            self._full = False

    def drop_all(self) -> None:
        """Forget everything that was read ahead."""
        self._fetches.clear()
        self._reserved_bytes, self._full = 0, False

    def ahead_in(self, partition: TopicPartition) -> PartitionFetch | None:
        """Return what is read ahead in a partition; ``None``: nothing is."""
        return self._fetches.get(partition)

    def collect(
        self,
        limit: int,
        decode: Callable[[TopicPartition, list[pa.RecordBatch]], T],
        enough_bytes: int | None = None,
    ) -> dict[TopicPartition, T]:
        """Return the next records of the views as they are, and move the positions past them.

        Parameters
        ----------
        limit : int
            The most records.
        decode : callable
            (partition, its batches) -> what is returned of it.
        enough_bytes : int, optional
            A partition that has returned so much returns no other batch; ``None``: the limits alone count.

        Raises
        ------
        OffsetOutOfRangeError
            There is no offset to begin at, or it cannot be read, and the policy is ``none``: seek.
        DamagedDataError
            A segment cannot be read; the position stays before it.
        StoreUnavailableError, CommitStateUnknownError
            Call again.
        """
        self.stand()
        try:
            collected = self._collect(limit, enough_bytes)
            decoded = {partition: decode(partition, batches) for partition, batches in collected.batches.items()}
            self._subscription.advance(collected.moved)
        except BaseException:
            # What was taken is lost, and an iterator that was interrupted says that it is at its end.
            self.drop_all()
            raise
        if collected.error is not None and not decoded:
            raise collected.error
        return decoded

    def _collect(self, limit: int, enough_bytes: int | None) -> _Collected:
        began = self._environment.instant()
        collected = _Collected(limit, self._config.fetch_max_bytes, enough_bytes)
        self._crowded = False
        self._begin_ahead(collected)
        misses = 0
        while misses < len(self._turns) and not collected.is_full:
            if collected.batches and self._environment.since_ms(began) >= _ENOUGH_MS:
                break
            partition = self._turns[0]
            try:
                batch = None if collected.has_enough_of(partition) else self._take(partition, collected)
            except TxnTableError as error:
                self._fail(partition, collected, error)
                break
            self._turns.rotate(-1)
            misses = misses + 1 if batch is None else 0
            if batch is not None:
                collected.add(partition, batch)
        return collected

    def _line_up(self) -> None:
        """Keep the turns of the partitions that are wanted still; new ones come last."""
        if self._changes == self._subscription.changes:
            return
        wanted = dict.fromkeys(self._subscription.wanted)
        kept = [partition for partition in self._turns if partition in wanted]
        self._turns = deque(dict.fromkeys([*kept, *wanted]))
        for partition in [partition for partition in self._fetches if partition not in wanted]:
            self.drop(partition)
        self._unplaced = self._subscription.unplaced
        self._changes = self._subscription.changes

    def _begin_ahead(self, collected: _Collected) -> None:
        """Let the first batches of all partitions be on their way before one is waited for."""
        if self._ahead is None:
            return
        for partition in list(self._turns):
            # An error is met again, at its turn.
            with suppress(TxnTableError):
                self._fetch_of(partition, collected)
            if self._crowded:
                break

    def _take(self, partition: TopicPartition, collected: _Collected) -> pa.RecordBatch | None:
        while (fetch := self._fetch_of(partition, collected)) is not None:
            taken = fetch.take(collected.rest)
            if taken is not None:
                batch, collected.moved[partition] = taken
                if self._crowded and fetch.batches >= _TURN_BATCHES:
                    self.drop(partition)
                return batch
            collected.moved[partition] = fetch.through
            self.drop(partition)
        return None

    def _fail(self, partition: TopicPartition, collected: _Collected, error: TxnTableError) -> None:
        self.drop(partition)
        collected.error = error
        if not collected.batches:
            # It is raised now; next time the others are asked first.
            self._turns.rotate(-1)

    # -- where to begin ---------------------------------------------------------------------

    def stand(self) -> None:
        """Find out where each partition begins that was not read yet, also where it is paused, as Kafka does.

        So a commit speaks of all that are assigned, also of those that have returned nothing: who comes next
        would begin by a policy of its own there.
        """
        self._line_up()
        for partition in self._unplaced:
            topic, position = self._topics.get(partition.topic), self._subscription.of(partition)
            # A partition that is not there is met by whoever reads it.
            bounds = None if topic is None else topic.view.bounds.get(partition.partition)
            begins_at = None if bounds is None else beginning(position.reset, bounds)
            if position.offset is None and begins_at is not None:
                self._subscription.stand_at(partition, begins_at)
        self._unplaced = [each for each in self._unplaced if self._subscription.of(each).offset is None]

    def _fetch_of(self, partition: TopicPartition, collected: _Collected) -> PartitionFetch | None:
        fetch = self._fetches.get(partition)
        if fetch is not None:
            return fetch
        start = collected.moved.get(partition)
        if start is None:
            start = self.begins_at(partition)
        if start is None:
            return None
        collected.moved[partition] = start
        topic, number = self._topics[partition.topic], partition.partition
        # Whether there is a record is asked first: without one, no room is wanted, and nobody is crowded.
        end = topic.bounds(number).end
        if start >= end:
            collected.moved[partition] = start
            return None
        if self._full:
            self._crowded = True
            return None
        opened = next_fetch(topic, number, start, self._batch_bytes, self._ahead)
        if opened is None:
            collected.moved[partition] = end
            return None
        return self._placed(partition, opened)

    def _placed(self, partition: TopicPartition, opened: PartitionFetch) -> PartitionFetch | None:
        """Begin a fetch where there is room for it; there always is for a single one."""
        reserved = self._reserved_bytes + opened.reserved_bytes
        if self._fetches and reserved > self._config.fetch_max_bytes:
            self._full = self._crowded = True
            return None
        opened.begin()
        self._fetches[partition] = opened
        self._reserved_bytes = reserved
        return opened

    def begins_at(self, partition: TopicPartition) -> int | None:
        """Return the offset at which a partition is read from; ``None``: it is not published yet.

        Raises
        ------
        OffsetOutOfRangeError
            As :meth:`collect`.
        """
        topic, position, number = self._topics[partition.topic], self._subscription.of(partition), partition.partition
        start = position.begins_at(topic.bounds(number))
        if start is not None:
            return start
        # Beyond the high watermark, as far as a public table knows that may be behind?
        beyond = position.offset is not None and position.offset > topic.bounds(number).high_watermark
        if beyond and topic.holds(number, position.offset or 0):
            return position.begins_at(topic.bounds(number))
        return self._reset(partition, position)

    def _reset(self, partition: TopicPartition, position: FetchPosition) -> int:
        bounds = self._topics[partition.topic].bounds(partition.partition)
        start = beginning(self._config.reset, bounds)
        facts = {
            "topic": partition.topic,
            "partition": partition.partition,
            "offset": position.offset,
            "log_start": bounds.start,
            "high_watermark": bounds.high_watermark,
        }
        if start is None:
            raise OffsetOutOfRangeError(
                "the position is missing or out of range, and auto_offset_reset is none; seek to an offset", **facts
            )
        logger.info(
            "the position is missing or out of range, and is reset offset=%s to=%s of %s",
            position.offset,
            start,
            partition,
        )
        return start
