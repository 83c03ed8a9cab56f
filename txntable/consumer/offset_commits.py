"""Committing what a consumer has read: plainly, by itself, or as the offsets of a transaction (PROTOCOL.md §8.4).

Owns which offsets are committed, and under whose name.  A plain commit without arguments speaks of the positions, and
so of what is owned now; everything else of what was handed out, and so of who owned it *then*.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from txntable.consumer.assigned_partitions import alone
from txntable.consumer.consumer_config import ConsumerConfig
from txntable.consumer.offset_queries import OffsetQueries
from txntable.consumer.readings import Reading
from txntable.coordinator.group_request import GroupMetadata, MemberAssignment
from txntable.coordinator.offset_request import NewOffset
from txntable.errors import (
    FencedInstanceIdError,
    FencedMemberEpochError,
    GroupIdNotFoundError,
    IllegalStateError,
    TxnTableError,
    UnknownMemberIdError,
)
from txntable.format.records import TopicPartition, checked_partitions
from txntable.format.topic import TopicSettings
from txntable.groups.group_client import GroupClient
from txntable.groups.membership import Membership
from txntable.offsets.group_commit import GroupCommit, OffsetAndMetadata, new_offsets, topics_of
from txntable.snapshot.topic_reader import TopicReader
from txntable.transactions.transaction_log import TransactionLog

logger = logging.getLogger(__name__)

_NO_MEMBER = (UnknownMemberIdError, GroupIdNotFoundError, FencedMemberEpochError)


class OffsetCommits(OffsetQueries):
    """The committing part of a consumer; see :class:`~txntable.consumer.assigned_partitions.AssignedPartitions`."""

    def __init__(
        self,
        config: ConsumerConfig,
        topic_reader: Callable[[str], TopicReader],
        transactions: TransactionLog,
        groups: GroupClient,
    ) -> None:
        super().__init__(config, topic_reader, transactions, groups)
        member = config.member
        self._membership = None if member is None else Membership(member, groups, self._environment)
        # What the consumer goes by: of what the membership learns meanwhile, the next poll makes it.
        self._applied: MemberAssignment | None = None
        self._auto_committed_at = self._environment.instant()

    # -- for users --------------------------------------------------------------------------

    @alone
    def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None) -> None:
        """Commit offsets of the group, at once and durably.

        Parameters
        ----------
        offsets : Mapping of TopicPartition to OffsetAndMetadata or int, optional
            The next record to read of each partition; default: the positions, and the ends of what :meth:`read`
            returned.

        Raises
        ------
        UnknownMemberIdError, StaleMemberEpochError, FencedMemberEpochError, GroupIdNotFoundError
            Partitions are another's by now; nothing is committed: poll, and go on from there.
        CommitFailedError
            The group does not stand any more where a range was read from: read again.
        FencedInstanceIdError
            A newer consumer has the instance id: close this one.
        OffsetMetadataTooLargeError, InvalidRequestError, UnknownTopicOrPartitionError
            Mend the offsets.
        UnstableOffsetCommitError, CommitStateUnknownError, StoreUnavailableError
            Call again.
        IllegalStateError
            The consumer has no group, or is closed.
        """
        group = self._group()
        if offsets is None:
            self._give_back()
            new, read = self._positions_to_commit(), list(self._readings.ranges)
        else:
            new = self._with_ranges(new_offsets(offsets, self._settings_of(topics_of(offsets))))
            read = [TopicPartition(*partition) for partition in new]
        self._commit(GroupCommit(group, new, self._readings.metadata(self._metadata, read)))
        self._polled()

    @alone
    def committed(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return what the group has committed; waits for transactions that are about to.

        Parameters
        ----------
        partitions : sequence of TopicPartition
            They need not be assigned.

        Returns
        -------
        dict of TopicPartition to OffsetAndMetadata or None
            ``None``: nothing.

        Raises
        ------
        UnstableOffsetCommitError
            A transaction with such an offset has not ended within ``default_api_timeout_ms``: call again.
        UnknownTopicOrPartitionError
            There is no such topic.
        IllegalStateError
            The consumer has no group, or is closed.
        """
        group, wanted = self._group(), checked_partitions(partitions)
        settings = self._settings_of({partition.topic for partition in wanted})
        topic_ids = {partition: settings[partition.topic].topic_id for partition in wanted}
        return self._groups.committed(group, topic_ids, timeout_ms=self.config.default_api_timeout_ms)

    @alone
    def seek_to_committed(self, *partitions: TopicPartition) -> None:
        """Read partitions from what the group has committed: what an aborted transaction had read comes again.

        None named: all that are assigned.  The offsets are looked for by the next poll or :meth:`position`.

        Raises
        ------
        IllegalStateError
            A partition is not assigned, or the consumer has no group.
        """
        self._group()
        chosen = self._chosen(partitions)
        self._give_back()
        self._subscription.gain({each: self._subscription.of(each).reset for each in chosen})
        for partition in chosen:
            self._fetcher.drop(partition)
        self._readings.drop(chosen if partitions else list(self._readings.by_partition))

    @alone
    def group_metadata(self) -> GroupMetadata:
        """Return who commits what was read, for :meth:`txntable.Producer.send_offsets_to_transaction`.

        Who owned what was frozen when it was read: a partition that was lost since can not be committed, even when
        the consumer has it back.  Without membership it names the group only.

        Raises
        ------
        IllegalStateError
            The consumer has no group, or is closed.
        """
        frozen = self._readings.metadata(self._metadata)
        return GroupMetadata(self._group(), "", 0) if frozen is None else frozen

    # -- for producers ----------------------------------------------------------------------

    @alone
    def offsets_to_send(self) -> GroupCommit:
        """Return the offsets of everything that was handed out and not committed yet, with who owned it then.

        Raises
        ------
        IllegalStateError
            The consumer has no group, or commits by itself what the transaction may still abort.
        """
        group = self._group()
        polled = self._readings.by_partition.keys() - self._readings.ranges.keys()
        if polled and self.config.enable_auto_commit:
            raise IllegalStateError(
                "this consumer commits by itself what a transaction may abort; make it with enable_auto_commit=False",
                group=group,
            )
        new = {
            (partition.topic, partition.partition): NewOffset(
                self._end_of(partition, reading),
                reading.topic_id,
                read_from=reading.read_from,
            )
            for partition, reading in self._readings.by_partition.items()
        }
        return GroupCommit(group, new, self._readings.metadata(self._metadata))

    @alone
    def offsets_sent(self, sent: GroupCommit) -> None:
        """Take note that a transaction has these offsets: what is read from here on is the next one's."""
        self._readings.drop(TopicPartition(*partition) for partition in sent.offsets)
        self._polled()

    def refused(self, error: TxnTableError, commit: GroupCommit) -> None:
        """Take note that the group refused a commit, so that what was lost is refused once."""
        current = self._metadata
        is_about_now = (
            commit.member is not None and current is not None and commit.member.member_id == current.member_id
        )
        if self._membership is not None and isinstance(error, FencedInstanceIdError):
            self._membership.fence(error)
        elif self._membership is not None and is_about_now and isinstance(error, _NO_MEMBER):
            self._membership.forget()
        self._readings.drop(self._readings.lost(current))

    # -- how --------------------------------------------------------------------------------

    @property
    def _metadata(self) -> GroupMetadata | None:
        return None if self._applied is None else self._applied.metadata

    def _group(self) -> str:
        if self.config.group_id is None:
            raise IllegalStateError("the consumer has no group; make it with group_id=")
        return self.config.group_id

    def _polled(self, *, works: bool = False) -> None:
        if self._membership is not None:
            self._membership.polled(works=works)

    def _settings_of(self, topics: set[str]) -> dict[str, TopicSettings]:
        return {
            name: self._topics[name].view.settings
            if name in self._topics
            else self._topic_reader(name).topic.settings()
            for name in topics
        }

    def _end_of(self, partition: TopicPartition, reading: Reading) -> int:
        """Return the position, which may be past markers, unless it was moved elsewhere."""
        if reading.read_from is not None or partition not in self._subscription.positions:
            return reading.end
        return self._stands_at(partition) or reading.end

    def _positions_to_commit(self) -> dict[tuple[str, int], NewOffset]:
        """Return the positions that have moved, but of bounded reads the ends of these."""
        new = self._moved_positions()
        for (topic, number), reading in self._readings.ranges.items():
            new[topic, number] = NewOffset(reading.end, reading.topic_id, read_from=reading.read_from)
        return new

    def _moved_positions(self) -> dict[tuple[str, int], NewOffset]:
        ranges, found = self._readings.ranges, {}
        # In their own order, not a set's: which file is written first is then the same each time.
        for partition in self._subscription.positions:
            offset = None if partition in ranges else self._stands_at(partition)
            if offset is not None and offset != self._committed_at.get(partition):
                found[partition.topic, partition.partition] = NewOffset(offset, self._topics[partition.topic].topic_id)
        return found

    def _with_ranges(self, new: dict[tuple[str, int], NewOffset]) -> dict[tuple[str, int], NewOffset]:
        ranges = {(each.topic, each.partition): reading.read_from for each, reading in self._readings.ranges.items()}
        return {each: NewOffset(one.offset, one.topic_id, one.metadata, ranges.get(each)) for each, one in new.items()}

    def _commit(self, commit: GroupCommit) -> None:
        if not commit.offsets:
            return
        try:
            self._groups.commit(commit, self.config.default_api_timeout_ms)
        except TxnTableError as error:
            self.refused(error, commit)
            raise
        committed = {TopicPartition(*each): new.offset for each, new in commit.offsets.items()}
        self._readings.committed(committed)
        self._committed_at.update(committed)

    def _auto_commit(self, *, when_due: bool = False) -> None:
        """Commit the positions of what was polled; what fails is met by whoever reads those partitions next."""
        if self.config.group_id is None or not self.config.enable_auto_commit:
            return
        if when_due and self._environment.since_ms(self._auto_committed_at) < self.config.auto_commit_interval_ms:
            return
        self._auto_committed_at = self._environment.instant()
        try:
            self._commit(GroupCommit(self.config.group_id, self._moved_positions(), self._metadata))
        except TxnTableError as error:
            logger.warning("positions were not committed: %s", error)
