"""A consumer's side of the group coordinator: requests to the offset log, and heartbeats (PROTOCOL.md §8.2).

Owns the loops around a request: who has to wait for a transaction completes it when it is decided, aborts it when its
timeout has passed, and waits for it otherwise, for a bounded time.  One client may serve many members, in any threads.
Must not know of positions or of when a member does what.
"""

from __future__ import annotations

import contextlib
import logging
import platform
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeAlias, TypeVar

from txntable.coordinator.group import GroupRow, GroupTopic
from txntable.coordinator.group_request import (
    ExpelRequest,
    GroupMetadata,
    JoinRequest,
    MemberAssignment,
    MemberRequest,
    OffsetLogTransition,
    TopicsFound,
)
from txntable.coordinator.group_shard import assignment_of, expel, is_expired, join, leave, refresh, release
from txntable.coordinator.offset_shard import commit, committed
from txntable.errors import (
    RetriableError,
    StorePermissionError,
    UnstableOffsetCommitError,
)
from txntable.format.records import TopicPartition
from txntable.groups.heartbeats import beat, forget
from txntable.groups.member_config import MemberConfig
from txntable.groups.silence import beats_until
from txntable.offsets.group_commit import GroupCommit, OffsetAndMetadata
from txntable.offsets.offset_log import GroupOffsets, OffsetLog
from txntable.runtime.one_process import OfOneProcess
from txntable.storage.retries import LEAST_BUDGET_MS, ending_within
from txntable.transactions.completion import Completer

T = TypeVar("T")
Committed: TypeAlias = dict[TopicPartition, OffsetAndMetadata | None]
"""Partition -> what is committed; ``None``: nothing."""

logger = logging.getLogger(__name__)

DEFAULT_API_TIMEOUT_MS = 60_000
FIRST_WAIT_MS = 50.0
LONGEST_WAIT_MS = 1_000.0
TOLD_AFTER_MS = 5_000


class GroupClient(OfOneProcess):
    """Requests of members and of consumers, run by this process over the shared log.

    Parameters
    ----------
    offsets : OffsetLog
        O.
    completer : Completer
        Completes decided transactions.
    """

    def __init__(self, offsets: OffsetLog, completer: Completer) -> None:
        self._offsets, self._completer = offsets, completer
        self._context = offsets.context
        # The last heartbeats that were looked at: who was seen alive is not looked at before it could be expelled.
        self._beats: dict[tuple[str, str], int] = {}

    # -- membership -------------------------------------------------------------------------

    def new_member_id(self) -> str:
        """Return a member id that nobody has had."""
        return self._context.environment.new_id()

    def join(
        self, config: MemberConfig, member_id: str, topics: TopicsFound, generation: int | None = None
    ) -> MemberAssignment:
        """Let a member join, come back, or change what it subscribes to.

        Parameters
        ----------
        config : MemberConfig
            Group, instance id, session timeout, assignors.
        member_id : str
            Of its own making, see :meth:`new_member_id`.
        topics : Mapping of str to GroupTopic or None
            All that it subscribes to, as it finds them.
        generation : int, optional
            The last that it knew; ``None``: it is new.

        Raises
        ------
        CommitStateUnknownError, StoreUnavailableError
            The same call again.
        TxnTableError
            As :func:`txntable.coordinator.group_shard.join`.
        """
        now_ms = self._context.clock.now_ms()

        def request(row: GroupRow | None, _: GroupOffsets, position: int) -> OffsetLogTransition[MemberAssignment]:
            asked = JoinRequest(
                group=config.group,
                member_id=member_id,
                topics=frozenset(topics),
                topics_found=topics,
                now_ms=now_ms,
                position=position,
                session_timeout_ms=config.session_timeout_ms,
                assignors=config.assignors,
                instance_id=config.instance_id,
                generation=generation,
                client_id=config.client_id,
                host=platform.node(),
            )
            return join(row, asked)

        return self._offsets.request("JOIN", config.group, request)

    def beat(self, group: str, member_id: str) -> None:
        """Write a member's heartbeat.

        Raises
        ------
        StoreUnavailableError
            Try again.
        """
        beat(self._context.store, group, member_id)

    def assignment(self, metadata: GroupMetadata) -> MemberAssignment:
        """Return what a member has and is to do, as of now: one look at O.

        Raises
        ------
        StoreUnavailableError
            Try again.
        TxnTableError
            As :func:`txntable.coordinator.group_shard.assignment_of`.
        """
        row = self._offsets.look(lambda: self._offsets.group(metadata.group))
        return assignment_of(row, MemberRequest(metadata.member_id, 0, metadata.instance_id, metadata.generation))

    def release(self, metadata: GroupMetadata, partitions: Collection[TopicPartition]) -> MemberAssignment:
        """Give up partitions whose offsets are committed; return what the member has now.

        Raises
        ------
        CommitStateUnknownError, StoreUnavailableError
            The same call again.
        TxnTableError
            As :func:`txntable.coordinator.group_shard.release`.
        """
        member_id, instance_id = metadata.member_id, metadata.instance_id

        def request(row: GroupRow | None, _: GroupOffsets, position: int) -> OffsetLogTransition[MemberAssignment]:
            return release(row, MemberRequest(member_id, position, instance_id, partitions=partitions))

        return self._offsets.request("RELEASE", metadata.group, request)

    def leave(self, metadata: GroupMetadata, topics: TopicsFound | None = None) -> None:
        """Let a member leave; that it is none any more is no error.

        Raises
        ------
        CommitStateUnknownError, StoreUnavailableError
            The same call again, or leave it to the session timeout.
        FencedInstanceIdError
            A newer consumer has its instance id, and stays.
        """
        member_id, instance_id, found = metadata.member_id, metadata.instance_id, topics or {}

        def request(row: GroupRow | None, _: GroupOffsets, position: int) -> OffsetLogTransition[None]:
            return leave(row, MemberRequest(member_id, position, instance_id, topics_found=found))

        self._offsets.request("LEAVE", metadata.group, request)
        self._forget(metadata.group, [member_id])

    def expel(self, group: str, asking: str | None = None) -> tuple[str, ...]:
        """Expel the members of a group whose sessions have expired; return their member ids.

        Parameters
        ----------
        group : str
            As the view of O knows it: refresh it before.
        asking : str, optional
            Member id of who asks: it is alive.

        Raises
        ------
        CommitStateUnknownError, StoreUnavailableError
            Try again later.
        """
        row = self._offsets.group(group)
        # Before the heartbeats are looked at: what is written meanwhile makes a member younger, never older.
        now_ms = self._context.clock.now_ms()
        if row is None or not (suspects := self._silent(row, row.members.keys() - {asking}, now_ms)):
            return ()
        # This process may have slept since: ahead of `now_ms`, but not of the store, is no time far ahead.
        beats = beats_until(self._context.store, group, suspects, now_ms, self._context.clock.now_ms)
        self._beats.update({(group, name): at for name, at in beats.items()})
        if not (silent := self._silent(row, suspects, now_ms)):
            return ()

        def request(row: GroupRow | None, _: GroupOffsets, position: int) -> OffsetLogTransition[tuple[str, ...]]:
            # Only whom we looked at: the heartbeats of others are not known.
            known = {name: now_ms for name in (row.members if row else ()) if name not in silent}
            return expel(row, ExpelRequest({**known, **beats}, now_ms, position))

        expelled = self._offsets.request("EXPEL", group, request)
        self._forget(group, expelled)
        return expelled

    def _silent(self, row: GroupRow, names: Iterable[str], now_ms: int) -> list[str]:
        known = {name: at for name in names if (at := self._beats.get((row.group, name))) is not None}
        asked = ExpelRequest(known, now_ms, position=0)
        return [name for name in names if is_expired(row.members[name], asked)]

    def _forget(self, group: str, member_ids: Iterable[str]) -> None:
        for member_id in member_ids:
            self._beats.pop((group, member_id), None)
            # Objects of who is gone mean nothing.
            with contextlib.suppress(RetriableError, StorePermissionError):
                forget(self._context.store, group, member_id)

    def refresh(self, group: str, topics: TopicsFound) -> bool:
        """Tell a group what became of its topics, if it does not know; return whether that began a generation.

        Parameters
        ----------
        group : str
            As the view of O knows it: nothing is asked of the store when it knows all of `topics`.
        topics : Mapping of str to GroupTopic or None
            What was found.

        Raises
        ------
        CommitStateUnknownError, StoreUnavailableError
            The same call again.
        """
        if not _news(self._offsets.group(group), topics):
            return False

        def request(row: GroupRow | None, _: GroupOffsets, position: int) -> OffsetLogTransition[GroupRow | None]:
            return refresh(row, _news(row, topics), position)

        self._offsets.request("REFRESH", group, request)
        return True

    # -- offsets ----------------------------------------------------------------------------

    def commit(self, offsets: GroupCommit, timeout_ms: float = DEFAULT_API_TIMEOUT_MS) -> None:
        """Commit offsets of a group at once.

        Raises
        ------
        CommitStateUnknownError, StoreUnavailableError
            The same call again.
        UnstableOffsetCommitError
            A transaction that is open has offsets where a range was read, and has not ended in time: again later.
        TxnTableError
            As :func:`txntable.coordinator.offset_shard.commit`.
        """

        def request(row: GroupRow | None, rows: GroupOffsets, position: int) -> OffsetLogTransition[None]:
            transition = commit(row, rows, offsets.request(position))
            for refusal in transition.answer.values():
                raise refusal
            return OffsetLogTransition(None, offsets=transition.offsets)

        self._when_stable(lambda: self._offsets.request("COMMIT OFFSETS", offsets.group, request), timeout_ms)

    def committed(
        self,
        group: str,
        topic_ids: Mapping[TopicPartition, str],
        *,
        require_stable: bool = True,
        timeout_ms: float = DEFAULT_API_TIMEOUT_MS,
    ) -> Committed:
        """Return what a group has committed, as of now: one look at O.

        Parameters
        ----------
        group : str
            The group.
        topic_ids : Mapping of TopicPartition to str
            The partitions, with the ids of their topics: an offset in an earlier topic of the name is none.
        require_stable : bool
            Whether an offset that a transaction has sent is waited for.
        timeout_ms : float
            How long, ms.

        Raises
        ------
        UnstableOffsetCommitError
            A transaction with offsets here is still open: again later.
        DamagedDataError
            The offset log has lost its newest entries: restore them.
        StoreUnavailableError
            Again.
        """

        def look() -> Committed:
            found, unstable = self._look(group, topic_ids, require_stable=require_stable)
            if unstable is not None:
                raise unstable
            return found

        return self._when_stable(look, timeout_ms)

    def stable(self, group: str, topic_ids: Mapping[TopicPartition, str]) -> Committed:
        """Return what a group has committed in those partitions where no transaction is in the way: one look at O.

        Raises
        ------
        StoreUnavailableError
            Again.
        """
        found, unstable = self._look(group, topic_ids, require_stable=True)
        if unstable is not None and self._ended(unstable):
            found, _ = self._look(group, topic_ids, require_stable=True)
        return found

    def _look(
        self, group: str, topic_ids: Mapping[TopicPartition, str], *, require_stable: bool
    ) -> tuple[Committed, UnstableOffsetCommitError | None]:
        rows = self._offsets.look(lambda: self._offsets.offsets(group))
        self._offsets.require_whole()
        found: Committed = {}
        unstable: UnstableOffsetCommitError | None = None
        for partition, topic_id in topic_ids.items():
            try:
                each = committed(rows.get(partition), topic_id, require_stable=require_stable)
            except UnstableOffsetCommitError as error:
                unstable = error
            else:
                found[partition] = None if each is None else OffsetAndMetadata(each.offset, each.metadata)
        return found, unstable

    def _when_stable(self, look: Callable[[], T], timeout_ms: float) -> T:
        """Call until no transaction is in the way, or the time is over: the error says after how long."""
        environment = self._context.environment
        began, wait_ms, is_over, is_told = environment.instant(), FIRST_WAIT_MS, False, False
        while True:
            try:
                with ending_within(environment, max(timeout_ms - environment.since_ms(began), LEAST_BUDGET_MS)):
                    return look()
            except UnstableOffsetCommitError as error:
                rest_ms = timeout_ms - environment.since_ms(began)
                if self._ended(error) and not is_over:
                    # What was ended is looked at again, once where no time is left: others may begin for ever.
                    is_over = rest_ms <= 0
                    continue
                if rest_ms <= 0:
                    tried_for_ms = environment.since_ms(began)
                    raise type(error)(error.message, **error.facts, tried_for_ms=tried_for_ms) from error
                if not is_told and environment.since_ms(began) >= TOLD_AFTER_MS:
                    is_told = True
                    logger.warning("waits for a transaction that has offsets of the group: %s", error)
                environment.sleep_ms(min(wait_ms, rest_ms))
                wait_ms = min(wait_ms * 2, LONGEST_WAIT_MS)

    def _ended(self, unstable: UnstableOffsetCommitError) -> bool:
        """End the transaction that is in the way: complete a decided one, abort one whose timeout has passed."""
        transactions = self._completer.transactions
        row = transactions.look(lambda: transactions.row(str(unstable.facts["transactional_id"])))
        try:
            if row is None or not (row.state.is_decided or self._completer.time_out(row)):
                return False
            self._completer.look_and_bring(row.transactional_id)
        except StorePermissionError:
            # Who may not write waits for who may.
            return False
        return True


def _news(row: GroupRow | None, topics: TopicsFound) -> TopicsFound:
    """Return what a group does not know of its topics; partitions only grow: who knows less is behind."""
    if row is None:
        return {}
    known = {name: row.topics.get(name) for name in topics if name in row.subscribed_topics or name in row.topics}
    return {name: topics[name] for name, old in known.items() if not _is_known(old, topics[name])}


def _is_known(old: GroupTopic | None, found: GroupTopic | None) -> bool:
    if old is None or found is None:
        return old is found
    return old.topic_id == found.topic_id and old.partitions >= found.partitions
