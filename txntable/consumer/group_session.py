"""Which partitions a subscribed consumer reads: all of its topics, or those that its group gives it.

Owns the order of a rebalance: what is to be given up is committed, told and released; what is got is told and begins
where the group has committed.  What stays is not touched, and nothing is given up under work: not while
a range of it that :meth:`Consumer.read` returned is not committed.  All of it happens inside of the caller's own calls.
"""

from __future__ import annotations

import logging
import re
import weakref
from collections.abc import Collection, Iterable, Mapping, Sequence

from txntable.consumer.assigned_partitions import AssignedPartitions
from txntable.consumer.fetch_position import AutoOffsetReset
from txntable.consumer.followed_topic import CURRENT_TOPIC_ID, FollowedTopic
from txntable.consumer.group_place import GroupPlace
from txntable.consumer.offset_commits import OffsetCommits
from txntable.consumer.rebalance_listener import ConsumerRebalanceListener
from txntable.coordinator.error_kinds import shown
from txntable.coordinator.group import GroupTopic
from txntable.coordinator.group_request import MemberAssignment
from txntable.errors import (
    InvalidRegularExpressionError,
    InvalidRequestError,
    InvalidTopicError,
    RetriableError,
    UnknownTopicOrPartitionError,
)
from txntable.format.records import TopicPartition
from txntable.groups.heartbeat_thread import HeartbeatThread

logger = logging.getLogger(__name__)


class GroupSession:
    """The subscribing part of a consumer, in a group and without one.

    Parameters
    ----------
    partitions : AssignedPartitions
        What it changes.
    commits : OffsetCommits
        Where the group stands.
    place : GroupPlace
        Who the consumer is in the group.
    """

    def __init__(self, partitions: AssignedPartitions, commits: OffsetCommits, place: GroupPlace) -> None:
        self._partitions, self._commits, self._place = partitions, commits, place
        self._config, self._environment = partitions.config, partitions.environment
        self._subscription = partitions.subscription
        self._listener = ConsumerRebalanceListener()
        self._pattern: re.Pattern[str] | None = None
        self._matched_at = self._environment.instant()
        self._untold: set[TopicPartition] = set()
        self._told: set[TopicPartition] = set()
        # How many partitions a topic had at the first look: what it got later holds nothing older.
        self._first_partitions: dict[str, int] = {}
        self.heartbeats: HeartbeatThread | None = None
        self._woken_for: MemberAssignment | None = None
        if place.membership is not None and self._config.background_heartbeat:
            self.heartbeats = HeartbeatThread(place.membership.tend_in_background)
            # Nobody reads through a consumer that was dropped without being closed: its session ends, too.
            weakref.finalize(self, self.heartbeats.stop)

    # -- for users --------------------------------------------------------------------------

    def subscribe(self, topics: Sequence[str], pattern: str | None, listener: ConsumerRebalanceListener | None) -> None:
        """Read these topics, or those whose names match, instead of what was subscribed to."""
        if not isinstance(listener, ConsumerRebalanceListener | None):
            raise InvalidRequestError(
                "the listener must be a txntable.ConsumerRebalanceListener: or give on_assign=, on_revoke=, on_lost=",
                listener=shown(listener),
            )
        if isinstance(topics, str) or not isinstance(topics, Iterable):
            raise InvalidRequestError("topics must be a list of names", topics=shown(topics))
        names, compiled = list(topics), _compiled(pattern)
        if names and compiled is not None:
            raise InvalidRequestError("give either topics or a pattern, not both", topics=shown(names), pattern=pattern)
        if any(isinstance(name, str) and name.startswith("^") for name in names):
            raise InvalidTopicError("a topic's name has no ^; give a pattern as pattern=", topics=shown(names))
        self._subscription.check_subscribes()
        self._partitions.give_back()
        followed = self._partitions.first_look(names) if compiled is None else self._matching(compiled)
        if not names and compiled is None:
            self.leave()
        is_new = listener is not None and listener is not self._listener
        self._listener, self._pattern = listener or ConsumerRebalanceListener(), compiled
        self._matched_at = self._environment.instant()
        self._subscribe_to(followed)
        # A new listener has not been told of what the member keeps; in Kafka it hears of it by the next rebalance.
        self._untold = set(self._subscription.positions) if is_new else set()
        if is_new:
            self._told = set()

    def unsubscribe(self) -> None:
        """Read nothing, and leave the group."""
        self._partitions.give_back()
        self.leave()
        self._pattern = None
        self._partitions.replace_by({}, [])

    @property
    def reads_nothing(self) -> bool:
        """Whether nothing is assigned or subscribed to."""
        return not self._subscription.positions and not self._subscription.topics and self._pattern is None

    def position(self, partition: TopicPartition) -> int:
        """Return the next offset that is read; looks for it where it is the committed one, the beginning or the end."""
        if self._subscription.of(partition).awaits_committed:
            self._commits.begin()
        if self._subscription.of(partition).offset is None:
            self.follow()
            self._partitions.fetcher.stand()
        if self._subscription.of(partition).offset is None:
            # Says why there is none.
            self._partitions.fetcher.begins_at(partition)
        return self._partitions.stands_at(partition) or 0

    def leave(self) -> None:
        """Give everything up, and be a member no more; a static member stays one."""
        if self._place.membership is None:
            self._tell_without_group(set())
            return
        self._partitions.give_back()
        self._commits.auto_commit()
        if self._place.applied is not None:
            self._tell_given_up(self._subscription.positions)
        self._subscription.lose(list(self._subscription.positions))
        if self._config.group_instance_id is not None:
            self._place.membership.forget()
        else:
            try:
                self._place.membership.leave()
            except RetriableError as error:
                logger.warning("could not leave the group; its session will time out: %s", error)
                self._place.membership.forget()
        self._place.applied = None

    def stop(self) -> None:
        """Send no heartbeats in the background any more."""
        if self.heartbeats is not None:
            self.heartbeats.stop()

    # -- topics -----------------------------------------------------------------------------

    def _subscribe_to(self, followed: dict[str, FollowedTopic]) -> None:
        self._partitions.give_back()
        same = {name for name in followed.keys() & self._partitions.topics.keys() if self._is_same(followed[name])}
        self._first_partitions = {
            name: self._first_partitions[name] if name in same else topic.view.settings.partitions
            for name, topic in followed.items()
        }
        if self._place.membership is None:
            found = [TopicPartition(name, p) for name, topic in followed.items() for p in topic.view.bounds]
        else:
            self._give_up(each for each in list(self._subscription.positions) if each.topic not in same)
            found = list(self._subscription.positions)
        self._partitions.replace_by(followed, found, frozenset(followed))

    def _is_same(self, topic: FollowedTopic) -> bool:
        return self._partitions.topics[topic.view.settings.name].topic_id == topic.topic_id

    def _matching(self, pattern: re.Pattern[str]) -> dict[str, FollowedTopic]:
        """Return the topics whose names match, as they are now; one that is deleted is none."""
        found = {}
        for name in self._partitions.topic_names():
            if pattern.fullmatch(name):
                try:
                    found[name] = self._kept_or_looked_at(name)
                except UnknownTopicOrPartitionError:
                    continue
        return found

    def _kept_or_looked_at(self, name: str) -> FollowedTopic:
        if (known := self._partitions.topics.get(name)) is not None:
            try:
                known.follow()
            except UnknownTopicOrPartitionError:
                logger.info("a topic was deleted topic=%s", name)
            else:
                return known
        return self._partitions.looked_at(name)

    def _match_again(self) -> None:
        if self._pattern is None:
            return
        self._matched_at = self._environment.instant()
        followed = self._matching(self._pattern)
        if {name: topic.topic_id for name, topic in followed.items()} != {
            name: topic.topic_id for name, topic in self._partitions.topics.items()
        }:
            self._tell_created_again(followed)
            self._subscribe_to(followed)

    def follow(self) -> None:
        """Look for what is new, also for topics that match the pattern now."""
        if self._pattern is not None and (
            self._environment.since_ms(self._matched_at) >= self._config.metadata_max_age_ms
        ):
            self._match_again()
        try:
            self._partitions.follow()
        except UnknownTopicOrPartitionError as error:
            if self._pattern is not None:
                self._match_again()
            elif self._subscription.topics and CURRENT_TOPIC_ID in error.facts:
                self._subscribe_again()
            else:
                raise
            self._partitions.follow()

    def _subscribe_again(self) -> None:
        """Subscribe to the topics that now have these names: nothing of a position or an offset is the new one's.

        As Kafka's consumer after UNKNOWN_TOPIC_ID, which asks what there is and goes on.
        """
        found = self._partitions.first_look(sorted(self._subscription.topics))
        self._tell_created_again(found)
        self._subscribe_to(found)

    def _tell_created_again(self, found: Mapping[str, FollowedTopic]) -> None:
        others = [name for name, topic in found.items() if name in self._partitions.topics and not self._is_same(topic)]
        if others:
            said = ",".join(sorted(others))
            logger.warning("a topic was created again, and is read as auto_offset_reset says topics=%s", said)

    # -- the group --------------------------------------------------------------------------

    def tend(self, *, wait: bool = False, works: bool = False) -> None:
        """Do what a poll owes the group: heartbeat, auto commit, rebalance; stand where it has committed."""
        if self._place.membership is not None and self._subscription.topics:
            self._place.membership.polled(works=works)
            self._place.membership.tend()
            if self._place.membership.assignment is None and self._place.applied is not None:
                self._place.applied = None
                self._lose(list(self._subscription.positions))
            self._apply(self._place.membership.ensure_joined(self._topics_found()))
            self._introduce()
            self._wake_heartbeats()
        elif self._place.applied is not None:
            # No topic matches the pattern any more.
            self.leave()
        elif self._place.membership is None and (self._subscription.topics or self._pattern is not None):
            self._tell_without_group(set(self._subscription.positions))
        self._commits.auto_commit(when_due=True)
        self._commits.begin(wait=wait)

    def _wake_heartbeats(self) -> None:
        """Let the thread look now where it has none, or another session, to keep alive than at its last look."""
        applied = self._place.applied
        if self.heartbeats is not None and not (applied is self._woken_for and self.heartbeats.is_running):
            self._woken_for = applied
            self.heartbeats.wake()

    def _topics_found(self) -> dict[str, GroupTopic | None]:
        return {
            name: GroupTopic(topic.topic_id, topic.view.settings.partitions)
            for name, topic in self._partitions.topics.items()
        }

    def _apply(self, told: MemberAssignment) -> None:
        if self._place.membership is None or (self._place.applied is told and not told.to_release):
            return
        self._lose(self._lost(told))
        self._place.applied = told
        give_up = {TopicPartition(*each) for each in told.to_release}
        self._commits.look_for_done(give_up)
        give_up -= self._partitions.readings.ranges.keys()
        if give_up:
            self._give_up(each for each in give_up if each in self._subscription.positions)
            self._partitions.readings.give_up(give_up)
            self._place.membership.release(give_up)
            now = self._place.membership.assignment
            if now is None:
                return
            self._place.applied = now
        self._gain(self._place.applied)

    def _lost(self, told: MemberAssignment) -> list[TopicPartition]:
        """Return what is read and is not this member's any more without its doing."""
        before = self._place.applied
        if before is None or before.member_id != told.member_id:
            return list(self._subscription.positions)
        had, has = ({**each.partitions, **each.to_release} for each in (before, told))
        return [each for each in self._subscription.positions if each not in has or has[each] != had.get(each)]

    def _gain(self, told: MemberAssignment) -> None:
        gained = {}
        for each in map(TopicPartition._make, told.partitions):
            topic = self._partitions.topics.get(each.topic)
            if each in self._subscription.positions or topic is None:
                continue
            if each.partition >= topic.view.settings.partitions:
                topic.catch_up()
            is_new = each.partition >= self._first_partitions[each.topic]
            gained[each] = AutoOffsetReset.EARLIEST if is_new else self._config.reset
        if gained:
            self._partitions.counters.add("consumer-coordinator-metrics/rebalance-total")
            logger.info("partitions assigned group=%s partitions=%s", self._config.group_id, _named(gained))
            self._partitions.gain(gained)
            self._listener.on_partitions_assigned(set(gained))

    def _tell_without_group(self, partitions: set[TopicPartition]) -> None:
        """Tell the listener of a consumer that has no group, and so all partitions, what came and what went."""
        came, went, self._told = partitions - self._told, self._told - partitions, partitions
        if went:
            self._listener.on_partitions_revoked(went)
        if came:
            self._listener.on_partitions_assigned(came)

    def _introduce(self) -> None:
        """Tell a listener that came later what the member has had before."""
        kept, self._untold = self._untold & self._subscription.positions.keys(), set()
        if kept:
            self._listener.on_partitions_assigned(kept)

    def _give_up(self, partitions: Iterable[TopicPartition]) -> None:
        """Commit and tell partitions, then read them no more; the release is the caller's."""
        given_up = list(partitions)
        if given_up:
            self._commits.auto_commit()
            self._tell_given_up(given_up)
            self._drop(given_up)

    def _tell_given_up(self, partitions: Collection[TopicPartition]) -> None:
        if partitions:
            logger.info("partitions revoked group=%s partitions=%s", self._config.group_id, _named(partitions))
            self._listener.on_partitions_revoked(set(partitions))

    def _lose(self, partitions: Collection[TopicPartition]) -> None:
        if partitions:
            logger.warning("partitions lost group=%s partitions=%s", self._config.group_id, _named(partitions))
            self._drop(partitions)
            self._listener.on_partitions_lost(set(partitions))

    def _drop(self, partitions: Collection[TopicPartition]) -> None:
        self._partitions.lose(partitions)
        self._commits.forget(partitions)


def _named(partitions: Iterable[TopicPartition]) -> str:
    return ",".join(f"{each.topic}-{each.partition}" for each in sorted(partitions))


def _compiled(pattern: str | None) -> re.Pattern[str] | None:
    try:
        return None if pattern is None else re.compile(pattern)
    except (re.error, TypeError) as error:
        raise InvalidRegularExpressionError(
            "the pattern is not a valid regular expression", pattern=shown(pattern)
        ) from error
