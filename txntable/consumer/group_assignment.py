"""Which partitions a subscribed consumer reads: all of its topics, or those that its group gives it.

Owns the order of a rebalance: what is to be given up is committed, told and released; what is got is told and begins
where the group has committed.  What stays is not touched, and nothing is given up under work: not while
a range of it that :meth:`Consumer.read` returned is not committed.  All of it happens inside of the caller's own calls.
"""

from __future__ import annotations

import logging
import re
import weakref
from collections.abc import Callable, Collection, Iterable, Sequence

from txntable.consumer.assigned_partitions import alone
from txntable.consumer.consumer_config import ConsumerConfig
from txntable.consumer.fetch_position import OffsetReset
from txntable.consumer.followed_topic import FollowedTopic
from txntable.consumer.offset_commits import OffsetCommits
from txntable.consumer.rebalance_listener import ConsumerRebalanceListener
from txntable.coordinator.error_kinds import shown
from txntable.coordinator.group import GroupTopic
from txntable.coordinator.group_request import MemberAssignment
from txntable.errors import (
    InvalidRegularExpressionError,
    InvalidRequestError,
    RetriableError,
    UnknownTopicOrPartitionError,
)
from txntable.format.layout import TOPICS_FOLDER, topic_names
from txntable.format.records import TopicPartition
from txntable.groups.group_client import GroupClient
from txntable.groups.heartbeat_thread import HeartbeatThread
from txntable.snapshot.topic_reader import TopicReader
from txntable.transactions.transaction_log import TransactionLog

logger = logging.getLogger(__name__)


class GroupAssignment(OffsetCommits):
    """The subscribing part of a consumer; see :class:`~txntable.consumer.assigned_partitions.AssignedPartitions`."""

    def __init__(
        self,
        config: ConsumerConfig,
        topic_reader: Callable[[str], TopicReader],
        transactions: TransactionLog,
        groups: GroupClient,
    ) -> None:
        super().__init__(config, topic_reader, transactions, groups)
        self._listener = ConsumerRebalanceListener()
        self._pattern: re.Pattern[str] | None = None
        self._matched_at = self._environment.instant()
        # How many partitions a topic had at the first look: what it got later holds nothing older.
        self._first_partitions: dict[str, int] = {}
        self._heartbeats: HeartbeatThread | None = None
        if self._membership is not None and config.background_heartbeat:
            self._heartbeats = HeartbeatThread(self._membership.tend_in_background)
            # Nobody reads through a consumer that was dropped without being closed: its session ends, too.
            weakref.finalize(self, self._heartbeats.stop)

    # -- for users --------------------------------------------------------------------------

    @alone
    def subscribe(
        self,
        topics: Sequence[str] = (),
        *,
        pattern: str | None = None,
        listener: ConsumerRebalanceListener | None = None,
    ) -> None:
        """Read these topics, also the partitions that they get later, instead of what was subscribed to.

        With a group, the members share the partitions; the first poll joins.

        Parameters
        ----------
        topics : sequence of str
            Names; none, and no pattern: as :meth:`unsubscribe`.
        pattern : str, optional
            A regular expression of Python's :mod:`re` that matches whole names; new topics are found within
            ``metadata_max_age_ms``.
        listener : ConsumerRebalanceListener, optional
            Is told which partitions are got and given up.

        Raises
        ------
        UnknownTopicOrPartitionError
            There is no such topic.
        IllegalStateError
            Partitions are assigned: unsubscribe first.
        InvalidRequestError, InvalidTopicError, InvalidRegularExpressionError
            They are no list of names of topics, or the pattern is none, or both are given.
        """
        if not isinstance(listener, ConsumerRebalanceListener | None):
            raise InvalidRequestError("a listener is a ConsumerRebalanceListener; give one", listener=shown(listener))
        if isinstance(topics, str) or not isinstance(topics, Iterable):
            raise InvalidRequestError("topics are given as a list of names", topics=shown(topics))
        names, compiled = list(topics), _compiled(pattern)
        if names and compiled is not None:
            raise InvalidRequestError("give topics or a pattern: one of them", topics=shown(names), pattern=pattern)
        self._subscription.check_subscribes()
        self._give_back()
        followed = self._first_look(names) if compiled is None else self._matching(compiled)
        if not names and compiled is None:
            self._leave()
        self._listener, self._pattern = listener or ConsumerRebalanceListener(), compiled
        self._matched_at = self._environment.instant()
        self._subscribe_to(followed)

    @alone
    def unsubscribe(self) -> None:
        """Read nothing, and leave the group; what comes next may be assigned or subscribed to."""
        self._give_back()
        self._leave()
        self._pattern = None
        self._read({}, [], frozenset())

    def _leave(self) -> None:
        """Give everything up, and be a member no more; a static member stays one."""
        if self._membership is None:
            return
        self._auto_commit()
        if self._applied is not None:
            self._tell_given_up(self._subscription.positions)
        self._subscription.lose(list(self._subscription.positions))
        if self.config.group_instance_id is not None:
            self._membership.forget()
        else:
            try:
                self._membership.leave()
            except RetriableError as error:
                logger.warning("could not leave the group; its session will time out: %s", error)
                self._membership.forget()
        self._applied = None

    # -- topics -----------------------------------------------------------------------------

    def _subscribe_to(self, followed: dict[str, FollowedTopic]) -> None:
        same = {name for name in followed.keys() & self._topics.keys() if self._is_same(followed[name])}
        self._first_partitions = {
            name: self._first_partitions[name] if name in same else topic.view.settings.partitions
            for name, topic in followed.items()
        }
        if self._membership is None:
            found = [TopicPartition(name, p) for name, topic in followed.items() for p in topic.view.bounds]
        else:
            self._give_up(each for each in list(self._subscription.positions) if each.topic not in same)
            found = list(self._subscription.positions)
        self._read(followed, found, frozenset(followed))

    def _is_same(self, topic: FollowedTopic) -> bool:
        return self._topics[topic.view.settings.name].topic_id == topic.topic_id

    def _matching(self, pattern: re.Pattern[str]) -> dict[str, FollowedTopic]:
        """Return the topics whose names match, as they are now; one that is deleted is none."""
        found = {}
        for name in topic_names(self._transactions.context.store.folders(TOPICS_FOLDER)):
            if pattern.fullmatch(name):
                try:
                    found[name] = self._kept_or_looked_at(name)
                except UnknownTopicOrPartitionError:
                    continue
        return found

    def _kept_or_looked_at(self, name: str) -> FollowedTopic:
        if (known := self._topics.get(name)) is not None:
            try:
                known.follow()
            except UnknownTopicOrPartitionError:
                logger.info("a topic was deleted topic=%s", name)
            else:
                return known
        return self._looked_at(name)

    def _match_again(self) -> None:
        if self._pattern is None:
            return
        self._matched_at = self._environment.instant()
        followed = self._matching(self._pattern)
        if {name: topic.topic_id for name, topic in followed.items()} != {
            name: topic.topic_id for name, topic in self._topics.items()
        }:
            self._subscribe_to(followed)

    def _follow(self) -> None:
        if self._pattern is not None and (
            self._environment.since_ms(self._matched_at) >= self.config.metadata_max_age_ms
        ):
            self._match_again()
        try:
            super()._follow()
        except UnknownTopicOrPartitionError:
            if self._pattern is None:
                raise
            self._match_again()
            super()._follow()

    # -- the group --------------------------------------------------------------------------

    def _tend(self, *, wait: bool = False, works: bool = False) -> None:
        """Do what a poll owes the group: heartbeat, auto commit, rebalance; stand where it has committed."""
        if self._membership is not None and self._subscription.topics:
            self._membership.polled(works=works)
            self._membership.tend()
            if self._membership.assignment is None and self._applied is not None:
                self._applied = None
                self._lose(list(self._subscription.positions))
            self._apply(self._membership.ensure_joined(self._topics_found()))
            if self._heartbeats is not None:
                self._heartbeats.wake()
        elif self._applied is not None:
            # No topic matches the pattern any more.
            self._leave()
        self._auto_commit(when_due=True)
        self._take_committed(wait=wait)

    def _topics_found(self) -> dict[str, GroupTopic | None]:
        return {
            name: GroupTopic(topic.topic_id, topic.view.settings.partitions) for name, topic in self._topics.items()
        }

    def _apply(self, told: MemberAssignment) -> None:
        if self._membership is None or (self._applied is told and not told.to_release):
            return
        self._lose(self._lost(told))
        self._applied = told
        give_up = {TopicPartition(*each) for each in told.to_release}
        self._forget_committed(give_up)
        give_up -= self._readings.ranges.keys()
        if give_up:
            self._give_up(each for each in give_up if each in self._subscription.positions)
            self._readings.give_up(give_up)
            self._membership.release(give_up)
            now = self._membership.assignment
            if now is None:
                return
            self._applied = now
        self._gain(self._applied)

    def _forget_committed(self, partitions: Collection[TopicPartition]) -> None:
        """Look whether work on these is done: users may hand offsets to a producer without telling the consumer.

        Only here, while they are its own: what is committed later may be what another member has read.
        """
        lost = self._readings.lost(self._metadata)
        found = self._readings.by_partition.items()
        readings = {each: reading for each, reading in found if each in partitions and each not in lost}
        if readings and self.config.group_id is not None:
            topic_ids = {each: reading.topic_id for each, reading in readings.items()}
            stable = self._groups.stable(self.config.group_id, topic_ids)
            self._readings.committed({each: one.offset for each, one in stable.items() if one is not None})

    def _lost(self, told: MemberAssignment) -> list[TopicPartition]:
        """Return what is read and is not this member's any more without its doing."""
        before = self._applied
        if before is None or before.member_id != told.member_id:
            return list(self._subscription.positions)
        had, has = ({**each.partitions, **each.to_release} for each in (before, told))
        return [each for each in self._subscription.positions if each not in has or has[each] != had.get(each)]

    def _gain(self, told: MemberAssignment) -> None:
        gained = {}
        for each in map(TopicPartition._make, told.partitions):
            topic = self._topics.get(each.topic)
            if each in self._subscription.positions or topic is None:
                continue
            if each.partition >= topic.view.settings.partitions:
                topic.catch_up()
            is_new = each.partition >= self._first_partitions[each.topic]
            gained[each] = OffsetReset.EARLIEST if is_new else self.config.reset
        if gained:
            self._subscription.gain(gained)
            self._listener.on_partitions_assigned(set(gained))

    def _give_up(self, partitions: Iterable[TopicPartition]) -> None:
        """Commit and tell partitions, then read them no more; the release is the caller's."""
        given_up = list(partitions)
        if given_up:
            self._auto_commit()
            self._tell_given_up(given_up)
            self._drop(given_up)

    def _tell_given_up(self, partitions: Collection[TopicPartition]) -> None:
        if partitions:
            self._listener.on_partitions_revoked(set(partitions))

    def _lose(self, partitions: Collection[TopicPartition]) -> None:
        if partitions:
            self._drop(partitions)
            self._listener.on_partitions_lost(set(partitions))

    def _drop(self, partitions: Collection[TopicPartition]) -> None:
        self._subscription.lose(partitions)
        for partition in partitions:
            self._fetcher.drop(partition)
            self._committed_at.pop(partition, None)

    def _stop(self) -> None:
        if self._heartbeats is not None:
            self._heartbeats.stop()


def _compiled(pattern: str | None) -> re.Pattern[str] | None:
    try:
        return None if pattern is None else re.compile(pattern)
    except (re.error, TypeError) as error:
        raise InvalidRegularExpressionError("the pattern is no regular expression", pattern=shown(pattern)) from error
