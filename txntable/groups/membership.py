"""A consumer's membership in its group: joining, heartbeats, what it is told to have, leaving (PROTOCOL.md §8.2).

Owns what a member knows of the group, and when it asks.  Two threads may call: the consumer's own, and the one of
:mod:`txntable.groups.heartbeat_thread`, which only keeps the session alive: whatever it learns waits here for the
consumer's next poll.  Must not know of positions, of listeners, or of what is read.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Collection

from txntable.coordinator.group_request import MemberAssignment, TopicsFound
from txntable.errors import (
    FencedInstanceIdError,
    FencedMemberEpochError,
    GroupIdNotFoundError,
    RetriableError,
    UnknownMemberIdError,
)
from txntable.format.records import TopicPartition
from txntable.groups.group_client import GroupClient
from txntable.groups.member_config import MemberConfig
from txntable.runtime.environment import Environment

logger = logging.getLogger(__name__)


class Membership:
    """One consumer's place in its group.

    Parameters
    ----------
    config : MemberConfig
        Group, timeouts, assignors.
    client : GroupClient
        Makes the requests.
    environment : Environment
        Says how long ago something was.

    Attributes
    ----------
    config : MemberConfig
        As given.
    """

    def __init__(self, config: MemberConfig, client: GroupClient, environment: Environment) -> None:
        self.config = config
        self._client, self._environment = client, environment
        self._lock = threading.RLock()
        self._assignment: MemberAssignment | None = None
        self._topics: TopicsFound = {}
        # Of a join whose answer was lost: the same id finds out what became of it.
        self._joining_as: str | None = None
        self._fenced: FencedInstanceIdError | None = None
        self._beat_at = self._looked_for_dead_at = self._polled_at = environment.instant()
        self._works = False

    @property
    def assignment(self) -> MemberAssignment | None:
        """What it is told to have; ``None``: it is no member (yet, or any more)."""
        with self._lock:
            return self._assignment

    # -- the consumer's thread --------------------------------------------------------------

    def polled(self, *, works: bool = False) -> None:
        """Take note of a poll; `works`: of the beginning of work of any length, until the next call."""
        with self._lock:
            self._polled_at, self._works = self._environment.instant(), works

    def ensure_joined(self, topics: TopicsFound) -> MemberAssignment:
        """Be a member that subscribes to these topics; return what it is told to have.

        Parameters
        ----------
        topics : Mapping of str to GroupTopic or None
            All that are subscribed to, as they are now.

        Raises
        ------
        FencedInstanceIdError
            A newer consumer has the instance id: close this one.
        RetriableError
            Call again.
        InconsistentGroupProtocolError, GroupMaxSizeReachedError, InvalidSessionTimeoutError
            Configure the consumer otherwise.
        """
        with self._lock:
            self.require_unfenced()
            if self._assignment is not None and topics.keys() != self._topics.keys():
                generation = self._assignment.generation
                member_id = self._assignment.member_id
                self._take(lambda: self._client.join(self.config, member_id, topics, generation))
            if self._assignment is None:
                self._join(topics)
            elif self._client.refresh(self.config.group, topics):
                self._look()
            self._topics = topics
            self.require_unfenced()
            return self._assignment or self._join(topics)

    def _join(self, topics: TopicsFound) -> MemberAssignment:
        self._joining_as = self._joining_as or self._client.new_member_id()
        try:
            self._assignment = joined = self._client.join(self.config, self._joining_as, topics)
        except FencedInstanceIdError as error:
            self._fenced = error
            raise
        # Its join counts as a heartbeat.
        self._joining_as, self._beat_at = None, self._environment.instant()
        self._topics = topics
        logger.info("joined group=%s member_id=%s generation=%s", joined.group, joined.member_id, joined.generation)
        if self._client.refresh(self.config.group, topics):
            self._look()
        # Who died long ago, with a program that is started again only now, is not waited for.
        self._looked_for_dead_at = self._environment.instant()
        try:
            if self._client.expel(self.config.group, joined.member_id):
                self._look()
        except RetriableError as error:
            logger.warning("who is dead in the group is looked for later: %s", error)
        return joined

    def release(self, partitions: Collection[TopicPartition]) -> None:
        """Give up partitions that it is not to have any more; their offsets are committed.

        Raises
        ------
        RetriableError
            Call again.
        FencedInstanceIdError
            A newer consumer has the instance id: close this one.
        """
        with self._lock:
            known = self._assignment
            if known is not None:
                self._take(lambda: self._client.release(known.metadata, partitions))
            self.require_unfenced()

    def leave(self) -> None:
        """Be a member no more.

        Raises
        ------
        RetriableError
            Call again, or leave it to the session timeout.
        """
        with self._lock:
            known, self._joining_as = self._assignment, None
            if known is None:
                return
            with contextlib.suppress(FencedInstanceIdError):
                self._client.leave(known.metadata)
            self._assignment = None

    def forget(self) -> None:
        """Be none any more without leaving: the group said so, or it is a static member, which comes back."""
        with self._lock:
            self._assignment = None

    def fence(self, error: FencedInstanceIdError) -> None:
        """Take note that a newer consumer has the instance id: every call says so from now on."""
        with self._lock:
            self._assignment, self._fenced = None, error

    def require_unfenced(self) -> None:
        """Refuse whoever was fenced.

        Raises
        ------
        FencedInstanceIdError
            A newer consumer has the instance id: close this one.
        """
        if self._fenced is not None:
            raise self._fenced

    # -- either thread ----------------------------------------------------------------------

    def tend(self) -> None:
        """Keep the session alive when that is due: a heartbeat, a look at the assignment, and at who is dead.

        Never raises what may pass: the next heartbeat tries again.
        """
        with self._lock:
            if (
                self._assignment is None
                or self._environment.since_ms(self._beat_at) < self.config.heartbeat_interval_ms
            ):
                return
            try:
                began = self._environment.instant()
                self._client.beat(self.config.group, self._assignment.member_id)
                self._beat_at = began
                self._look()
                self._look_for_dead()
            except RetriableError as error:
                logger.warning("the heartbeat is tried again: %s", error)

    def tend_in_background(self) -> int | None:
        """Tend, or leave when nobody polls any more.

        Returns
        -------
        int or None
            After how many ms to come again; ``None``: not before it is a member again.
        """
        with self._lock:
            if self._assignment is None:
                return None
            idle_ms = 0 if self._works else self._environment.since_ms(self._polled_at)
            if idle_ms > self.config.max_poll_interval_ms:
                logger.warning(
                    "no poll for longer than max_poll_interval_ms: leaving group=%s member_id=%s",
                    self.config.group,
                    self._assignment.member_id,
                )
                with contextlib.suppress(RetriableError):
                    self.leave()
                self._assignment = None
                return None
            self.tend()
            return max(0, self.config.heartbeat_interval_ms - self._environment.since_ms(self._beat_at))

    def _look(self) -> None:
        known = self._assignment
        if known is not None:
            self._take(lambda: self._client.assignment(known.metadata))

    def _take(self, ask: Callable[[], MemberAssignment]) -> None:
        """Ask for the assignment; who is no member any more has none."""
        try:
            self._assignment = ask()
        except (UnknownMemberIdError, GroupIdNotFoundError, FencedMemberEpochError) as error:
            logger.warning("not a member any more; joining again at the next poll: %s", error)
            self._assignment = None
        except FencedInstanceIdError as error:
            self.fence(error)

    def _look_for_dead(self) -> None:
        if self._assignment is None:
            return
        if self._environment.since_ms(self._looked_for_dead_at) >= self.config.expel_interval_ms:
            self._looked_for_dead_at = self._environment.instant()
            if self._client.expel(self.config.group, self._assignment.member_id):
                self._look()
