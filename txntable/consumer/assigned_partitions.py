"""Which partitions a consumer reads, and where it stands in them.

The half of a consumer that returns no records.  Owns what following costs: one request to the transaction log and
one to each topic's table.  A position is looked for when it is needed: by the first poll, for all partitions.
"""

from __future__ import annotations

import functools
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Concatenate, ParamSpec, TypeVar

from txntable.consumer.consumer_config import ConsumerConfig
from txntable.consumer.consumer_record import ConsumerRecord
from txntable.consumer.fetch_position import OffsetReset
from txntable.consumer.fetcher import Fetcher
from txntable.consumer.followed_topic import FollowedTopic
from txntable.consumer.readings import Readings
from txntable.consumer.subscription import Subscription
from txntable.coordinator.row_json import check_number
from txntable.errors import IllegalStateError
from txntable.format.isolation import IsolationLevel
from txntable.format.records import TopicPartition, checked_partitions
from txntable.groups.group_client import GroupClient
from txntable.runtime.environment import Instant
from txntable.runtime.one_process import OfOneProcess
from txntable.snapshot.topic_reader import TopicReader
from txntable.transactions.transaction_log import TransactionLog

P = ParamSpec("P")
T = TypeVar("T")
ReaderT = TypeVar("ReaderT", bound="AssignedPartitions")


def alone(call: Callable[Concatenate[ReaderT, P], T]) -> Callable[Concatenate[ReaderT, P], T]:
    """Refuse a call while another thread is in one, and after close."""

    @functools.wraps(call)
    def run(consumer: ReaderT, /, *args: P.args, **kwargs: P.kwargs) -> T:
        if not consumer.in_use.acquire(blocking=False):
            raise IllegalStateError(
                "another thread uses this consumer; give each thread its own", call=getattr(call, "__name__", None)
            )
        try:
            if consumer.is_closed:
                raise IllegalStateError("the consumer is closed; make a new one")
            return call(consumer, *args, **kwargs)
        finally:
            consumer.in_use.release()

    return run


class AssignedPartitions(OfOneProcess):
    """The partitions of one consumer.

    Parameters
    ----------
    config : ConsumerConfig
        Isolation level, where to begin, bounds of memory.
    topic_reader : callable
        Topic name -> what its readers share.
    transactions : TransactionLog
        T.
    groups : GroupClient
        Knows what groups have committed.

    Attributes
    ----------
    config : ConsumerConfig
        As given.
    in_use : threading.RLock
        Held by the thread that is in a call.
    is_closed : bool
        Whether it was closed.
    """

    def __init__(
        self,
        config: ConsumerConfig,
        topic_reader: Callable[[str], TopicReader],
        transactions: TransactionLog,
        groups: GroupClient,
    ) -> None:
        self.config = config
        self.in_use = threading.RLock()
        self.is_closed = False
        self._topic_reader, self._transactions, self._groups = topic_reader, transactions, groups
        self._environment = transactions.context.environment
        self._subscription = Subscription(config.reset, in_group=config.group_id is not None)
        self._readings = Readings()
        # What is known to be committed: a position that has not moved is not committed again.
        self._committed_at: dict[TopicPartition, int | None] = {}
        self._topics: dict[str, FollowedTopic] = {}
        self._followed_at: Instant = self._environment.instant()
        self._ahead = self._executor()
        self._fetcher = Fetcher(config, self._environment, self._subscription, self._topics, self._ahead)
        # Records that iteration has read, and not handed out yet.
        self._iterated: deque[ConsumerRecord] = deque()

    def _executor(self) -> ThreadPoolExecutor | None:
        parallel = self._transactions.context.store.parallel_writes
        wanted = parallel > 1 if self.config.prefetch is None else self.config.prefetch
        return ThreadPoolExecutor(parallel, "txntable-prefetch") if wanted else None

    # -- which partitions -------------------------------------------------------------------

    @alone
    def assign(self, partitions: Sequence[TopicPartition]) -> None:
        """Read these partitions, instead of those that were assigned before.

        Parameters
        ----------
        partitions : sequence of TopicPartition
            All that are to be read; those assigned before go on where they stand.

        Raises
        ------
        UnknownTopicOrPartitionError
            There is no such topic or partition.
        IllegalStateError
            Topics are subscribed to: unsubscribe first.
        InvalidRequestError
            They are no list of partitions.
        """
        wanted = checked_partitions(partitions)
        self._subscription.check_assigns()
        self._give_back()
        topics = self._first_look(dict.fromkeys(partition.topic for partition in wanted))
        for partition in wanted:
            topics[partition.topic].bounds(partition.partition)
        self._read(topics, wanted, frozenset())

    def _first_look(self, names: Iterable[str]) -> dict[str, FollowedTopic]:
        return {name: self._looked_at(name) for name in names}

    def _looked_at(self, name: str) -> FollowedTopic:
        return FollowedTopic(self._topic_reader(name), self.config.level, self._environment)

    def _read(
        self, topics: Mapping[str, FollowedTopic], partitions: Sequence[TopicPartition], subscribed: frozenset[str]
    ) -> None:
        others = [
            name for name, old in self._topics.items() if name in topics and topics[name].topic_id != old.topic_id
        ]
        self._subscription.forget(others)
        self._fetcher.drop_all()
        self._subscription.replace_by(partitions, subscribed)
        self._topics.clear()
        self._topics.update(topics)
        self._followed_at = self._environment.instant()

    def assignment(self) -> set[TopicPartition]:
        """Return the partitions that it reads."""
        return set(self._subscription.positions)

    def subscription(self) -> set[str]:
        """Return the topics that it subscribed to; empty where partitions are assigned."""
        return set(self._subscription.topics)

    # -- following --------------------------------------------------------------------------

    def _follow(self) -> None:
        """Look for what is new: a request to T, and one to each topic."""
        self._follow_topics(self._topics.values())
        self._followed_at = self._environment.instant()
        if self.config.group_id is None:
            for name, topic in self._topics.items():
                self._subscription.grow(name, topic.view.settings.partitions)

    def _follow_topics(self, topics: Iterable[FollowedTopic]) -> None:
        if self.config.level is IsolationLevel.READ_COMMITTED:
            self._transactions.refresh()
        for topic in topics:
            topic.follow()

    def _give_back(self) -> None:
        """Stand before the first record that iteration has read and not handed out."""
        first = {TopicPartition(record.topic, record.partition): record.offset for record in reversed(self._iterated)}
        self._iterated.clear()
        for partition, offset in first.items():
            self._subscription.move(partition, offset)
            self._fetcher.drop(partition)

    # -- positions --------------------------------------------------------------------------

    @alone
    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Read a partition from an offset; whether there is such an offset is seen by the next poll.

        Raises
        ------
        IllegalStateError
            The partition is not assigned.
        InvalidRequestError
            It is no offset.
        """
        check_number(offset, "an offset")
        self._subscription.of(partition)
        self._give_back()
        self._subscription.move(partition, offset, sought=True)
        self._fetcher.drop(partition)
        self._readings.drop([partition])

    @alone
    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Read partitions from the log start; none named: all that are assigned.  Raises as :meth:`seek`."""
        self._seek_to(OffsetReset.EARLIEST, partitions)

    @alone
    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Read partitions from the end, which is looked for by the next poll or :meth:`position`.

        The last stable offset, or at ``read_uncommitted`` the high watermark.  None named: all that are assigned.
        Raises as :meth:`seek`.
        """
        self._seek_to(OffsetReset.LATEST, partitions)

    def _seek_to(self, reset: OffsetReset, partitions: Sequence[TopicPartition]) -> None:
        chosen = self._chosen(partitions)
        self._give_back()
        for partition in chosen:
            self._subscription.move_to(partition, reset, sought=True)
            self._fetcher.drop(partition)
        self._readings.drop(chosen)

    def _chosen(self, partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
        chosen = list(partitions) or list(self._subscription.positions)
        for partition in chosen:
            self._subscription.of(partition)
        return chosen

    @alone
    def position(self, partition: TopicPartition) -> int:
        """Return the next offset that is read; looks for it where it is the committed one, the beginning or the end.

        Raises
        ------
        IllegalStateError
            The partition is not assigned.
        UnstableOffsetCommitError
            A transaction with an offset of the group has not ended within ``default_api_timeout_ms``: again.
        OffsetOutOfRangeError
            There is none yet, and ``auto_offset_reset`` is ``none``: seek.
        """
        if self._subscription.of(partition).awaits_committed:
            self._take_committed()
        if self._subscription.of(partition).offset is None:
            self._follow()
            self._fetcher.stand()
        if self._subscription.of(partition).offset is None:
            # Says why there is none.
            self._fetcher.begins_at(partition)
        return self._stands_at(partition) or 0

    def positions(self) -> dict[TopicPartition, int]:
        """Return the next offset of each partition that it reads, as far as that is known; asks for nothing.

        After a poll it is known of all but those whose group's offset a transaction still keeps from being read, and
        those without an offset where ``auto_offset_reset`` is ``none``.
        """
        found = {partition: self._stands_at(partition) for partition in self._subscription.positions}
        return {partition: offset for partition, offset in found.items() if offset is not None}

    def _take_committed(self, *, wait: bool = True) -> None:
        """Stand at what the group has committed, in partitions where that was not looked for yet.

        Without waiting, those where a transaction is in the way are left for later.
        """
        group, awaiting = self.config.group_id, self._subscription.awaiting
        if group is None or not awaiting:
            return
        topic_ids = {partition: self._topics[partition.topic].topic_id for partition in awaiting}
        found = (
            self._groups.committed(group, topic_ids, timeout_ms=self.config.default_api_timeout_ms)
            if wait
            else self._groups.stable(group, topic_ids)
        )
        for partition, each in found.items():
            self._committed_at[partition] = None if each is None else each.offset
            self._subscription.begin(partition, None if each is None else each.offset)

    def _reset_of(self, partition: TopicPartition) -> OffsetReset:
        """Return where a partition begins of which nothing is committed."""
        position = self._subscription.of(partition)
        return position.reset if position.offset is None else self.config.reset

    def _stands_at(self, partition: TopicPartition) -> int | None:
        """Return the offset of the next record that the caller gets; ``None``: it is not known yet."""
        waiting = (each.offset for each in self._iterated if (each.topic, each.partition) == partition)
        return next(waiting, self._subscription.of(partition).offset)

    @alone
    def pause(self, *partitions: TopicPartition) -> None:
        """Return no records of these partitions until they are resumed; raises as :meth:`seek`."""
        self._pause(partitions, paused=True)

    @alone
    def resume(self, *partitions: TopicPartition) -> None:
        """Return records of these partitions again; raises as :meth:`seek`."""
        self._pause(partitions, paused=False)

    def _pause(self, partitions: Sequence[TopicPartition], *, paused: bool) -> None:
        for partition in partitions:
            self._subscription.of(partition)
        self._give_back()
        for partition in partitions:
            self._subscription.pause(partition, paused=paused)

    def paused(self) -> set[TopicPartition]:
        """Return the partitions that are paused."""
        return {partition for partition, position in self._subscription.positions.items() if position.paused}
