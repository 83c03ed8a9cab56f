"""Which partitions a consumer reads, and where it stands in them.

Owns what following costs: one request to the transaction log and one to each topic's table; and that every move of a
position forgets what was read ahead there.  Must not know of groups: where these stand is told by
:mod:`txntable.consumer.offset_commits`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from txntable.consumer.consumer_config import ConsumerConfig
from txntable.consumer.consumer_record import ConsumerRecord
from txntable.consumer.fetch_position import AutoOffsetReset
from txntable.consumer.fetcher import Fetcher
from txntable.consumer.followed_topic import FollowedTopic
from txntable.consumer.partition_fetch import Ahead
from txntable.consumer.readings import Readings
from txntable.consumer.rewinds import Rewinds
from txntable.consumer.subscription import Subscription
from txntable.coordinator.row_json import check_number
from txntable.format.isolation import IsolationLevel
from txntable.format.layout import TOPICS_FOLDER, topic_names
from txntable.format.records import TopicPartition, checked_partitions
from txntable.format.topic import TopicSettings
from txntable.runtime.environment import Instant
from txntable.snapshot.topic_reader import TopicReader
from txntable.transactions.transaction_log import TransactionLog


class AssignedPartitions:
    """The partitions of one consumer.

    Parameters
    ----------
    config : ConsumerConfig
        Isolation level, where to begin, bounds of memory.
    topic_reader : callable
        Topic name -> what its readers share.
    transactions : TransactionLog
        T.

    Attributes
    ----------
    config : ConsumerConfig
        As given.
    environment : Environment
        Says how long ago something was.
    subscription : Subscription
        The positions.
    topics : dict of str to FollowedTopic
        By name: one for each topic that is read or subscribed to.
    fetcher : Fetcher
        What is read ahead.
    counters : Counters
        Of this consumer.
    readings : Readings
        What was handed out and is not committed.
    rewinds : Rewinds
        When the user went back in all partitions.
    iterated : deque of ConsumerRecord
        Records that iteration, or a poll that waits for more of them, has read and not handed out yet.
    followed_at : Instant
        When it was last looked for what is new.
    is_follow_due : bool
        Whether the next poll looks before it returns anything: a topic may have been created again.
    has_followed : bool
        Whether it was looked since the topics were.
    """

    def __init__(
        self, config: ConsumerConfig, topic_reader: Callable[[str], TopicReader], transactions: TransactionLog
    ) -> None:
        self.config = config
        self.environment = transactions.context.environment
        self.counters = transactions.context.counters.child()
        self._topic_reader, self._transactions = topic_reader, transactions
        self.subscription = Subscription(config.reset, in_group=config.group_id is not None)
        self.topics: dict[str, FollowedTopic] = {}
        self.readings, self.rewinds = Readings(), Rewinds()
        self.iterated: deque[ConsumerRecord] = deque()
        self.followed_at: Instant = self.environment.instant()
        self.is_follow_due = self.has_followed = False
        self._ahead = Ahead.of(transactions.context.store, wanted=config.prefetch)
        self.fetcher = Fetcher(config, self.environment, self.subscription, self.topics, self._ahead)

    # -- which partitions -------------------------------------------------------------------

    def assign(self, partitions: Sequence[TopicPartition]) -> None:
        """Read these partitions, chosen by the user."""
        wanted = checked_partitions(partitions)
        self.subscription.check_assigns()
        self.give_back()
        topics = self.first_look(dict.fromkeys(partition.topic for partition in wanted))
        for partition in wanted:
            topics[partition.topic].bounds(partition.partition)
        self.replace_by(topics, wanted)

    def replace_by(
        self,
        topics: Mapping[str, FollowedTopic],
        partitions: Sequence[TopicPartition],
        subscribed: frozenset[str] = frozenset(),
    ) -> None:
        """Read these partitions of these topics; those read before go on where they stand, if it is the same topic."""
        others = [name for name, old in self.topics.items() if name in topics and topics[name].topic_id != old.topic_id]
        self.subscription.forget(others)
        self.fetcher.drop_all()
        self.subscription.replace_by(partitions, subscribed)
        self.topics.clear()
        self.topics.update(topics)
        self.followed_at, self.is_follow_due, self.has_followed = self.environment.instant(), False, False

    def gain(self, partitions: Mapping[TopicPartition, AutoOffsetReset]) -> None:
        """Read more partitions of a group, each from its committed offset, else from that end."""
        self.subscription.gain(partitions)
        self.rewinds.gained(partitions)

    def lose(self, partitions: Collection[TopicPartition]) -> None:
        """Read these partitions no more."""
        self.subscription.lose(partitions)
        self.rewinds.lost(partitions)
        for partition in partitions:
            self.fetcher.drop(partition)
        if self.iterated:
            gone = frozenset(partitions)
            kept = [each for each in self.iterated if TopicPartition(each.topic, each.partition) not in gone]
            self.iterated.clear()
            self.iterated.extend(kept)

    # -- topics -----------------------------------------------------------------------------

    def topic_names(self) -> list[str]:
        """Return the names of all topics of the warehouse."""
        return topic_names(self._transactions.context.store.folders(TOPICS_FOLDER))

    def first_look(self, names: Iterable[str]) -> dict[str, FollowedTopic]:
        """Return topics as they are now, whether they are read or not."""
        return {name: self.looked_at(name) for name in names}

    def looked_at(self, name: str) -> FollowedTopic:
        """Return a topic as it is now."""
        return FollowedTopic(self._topic_reader(name), self.config.level, self.environment)

    def settings_of(self, topics: set[str]) -> dict[str, TopicSettings]:
        """Return the settings of topics, from what is followed where that is known."""
        return {
            name: self.topics[name].view.settings if name in self.topics else self._topic_reader(name).topic.settings()
            for name in topics
        }

    def follow(self) -> None:
        """Look for what is new: a request to T, and one to each topic."""
        self.follow_topics(self.topics.values())
        self.followed_at, self.is_follow_due, self.has_followed = self.environment.instant(), False, True
        if self.config.group_id is None:
            for name, topic in self.topics.items():
                self.subscription.grow(name, topic.view.settings.partitions)

    def follow_topics(self, topics: Iterable[FollowedTopic]) -> None:
        """Look for what is new in these topics."""
        if self.config.level is IsolationLevel.READ_COMMITTED:
            self._transactions.refresh()
        for topic in topics:
            topic.follow()

    def catch_up_together(self, names: Sequence[str]) -> int:
        """Renew the views of topics, and return the position up to which each of them shows every decision."""
        head = self._transactions.refresh()
        for name in names:
            self.topics[name].catch_up()
        position = min(self.topics[name].reader.published_position(head) for name in names)
        # After the position: what is published since is seen, too.
        for name in names:
            self.topics[name].look()
        return position

    # -- positions --------------------------------------------------------------------------

    def give_back(self) -> None:
        """Stand before the first record that was read and not handed out."""
        first = {TopicPartition(record.topic, record.partition): record.offset for record in reversed(self.iterated)}
        self.iterated.clear()
        for partition, offset in first.items():
            self.move(partition, offset)

    def move(self, partition: TopicPartition, offset: int) -> None:
        """Stand at an offset, and read from there."""
        self.subscription.move(partition, offset)
        self.fetcher.drop(partition)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Stand where the user says."""
        check_number(offset, "an offset")
        self.subscription.of(partition)
        self.give_back()
        is_back = self.rewinds.is_back(partition, offset, self.subscription.of(partition).offset)
        self.subscription.move(partition, offset, sought=True)
        self.fetcher.drop(partition)
        self.readings.drop([partition])
        if is_back:
            self.went_back([partition])
        else:
            self.rewinds.went_on([partition])

    def went_back(self, partitions: Iterable[TopicPartition]) -> None:
        """Take note that the user went back in these, to what is committed, or before."""
        assigned = self.subscription.positions.keys()
        since = self.rewinds.went_back(partitions, assigned)
        if since is not None:
            self.readings.set_aside(assigned, since)

    def seek_to(self, reset: AutoOffsetReset, partitions: Sequence[TopicPartition]) -> None:
        """Stand at an end of partitions, because the user says so; none named: of all."""
        chosen = self.chosen(partitions)
        self.give_back()
        for partition in chosen:
            self.subscription.move_to(partition, reset, sought=True)
            self.fetcher.drop(partition)
        self.readings.drop(chosen)
        if reset is AutoOffsetReset.EARLIEST:
            self.went_back(chosen)
        else:
            self.rewinds.went_on(chosen)

    def chosen(self, partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Return the partitions that a call names, or all; raises IllegalStateError for one that is not assigned."""
        chosen = list(partitions) or list(self.subscription.positions)
        for partition in chosen:
            self.subscription.of(partition)
        return chosen

    def positions(self) -> dict[TopicPartition, int]:
        """Return the next offset of each partition, as far as that is known."""
        found = {partition: self.stands_at(partition) for partition in self.subscription.positions}
        return {partition: offset for partition, offset in found.items() if offset is not None}

    def stands_at(self, partition: TopicPartition) -> int | None:
        """Return the offset of the next record that the caller gets; ``None``: it is not known yet."""
        waiting = (each.offset for each in self.iterated if (each.topic, each.partition) == partition)
        return next(waiting, self.subscription.of(partition).offset)

    def pause(self, partitions: Sequence[TopicPartition], *, paused: bool) -> None:
        """Want nothing of these partitions, or want them again."""
        for partition in partitions:
            self.subscription.of(partition)
        self.give_back()
        for partition in partitions:
            self.subscription.pause(partition, paused=paused)

    def close(self) -> None:
        """Read nothing ahead any more."""
        self.fetcher.drop_all()
        if self._ahead is not None:
            self._ahead.shut()
