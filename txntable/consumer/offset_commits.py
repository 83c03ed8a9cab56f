"""Committing what a consumer has read: plainly, by itself, or as the offsets of a transaction (PROTOCOL.md §8.4).

Owns which offsets are committed, under whose name, and what is known to be.  A plain commit without arguments speaks
of the positions, and so of what is owned now; everything else of what was handed out, and so of who owned it *then*.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from txntable.consumer.assigned_partitions import AssignedPartitions
from txntable.consumer.fetch_position import AutoOffsetReset
from txntable.consumer.group_place import GroupPlace
from txntable.consumer.readings import Reading, Readings
from txntable.consumer.rewinds import Rewinds
from txntable.coordinator.assignment import NamedPartition
from txntable.coordinator.error_kinds import shown
from txntable.coordinator.group_request import GroupMetadata, Loss, Rewind
from txntable.coordinator.offset_request import NewOffset
from txntable.errors import IllegalStateError, InvalidCallError, InvalidRequestError, TxnTableError
from txntable.format.records import TopicPartition, checked_partitions
from txntable.groups.group_client import GroupClient
from txntable.offsets.group_commit import (
    GroupCommit,
    OffsetAndMetadata,
    check_manual_commit,
    new_offsets,
    topics_of,
)

logger = logging.getLogger(__name__)

OnCommit: TypeAlias = Callable[[Mapping[TopicPartition, OffsetAndMetadata | int] | None, TxnTableError | None], object]
"""What is called with the offsets, and with the error that there was; with ``None`` where positions failed to be."""


@dataclass(frozen=True)
class _LiveReader:
    """The consumer behind its group metadata, whenever that was asked for."""

    readings: Readings
    past_rewinds: Rewinds
    place: GroupPlace
    # As of when the metadata was asked for.
    then: GroupMetadata | None
    joins: int

    def has_joined_since(self) -> bool:
        return self.place.joins > self.joins

    def losses(self) -> Mapping[NamedPartition, Loss]:
        # Who has left since, or was expelled, speaks as the member that it was: the log says whether that holds.
        return self.readings.losses(self.place.metadata or self.then)

    def losses_before_a_rewind(self) -> Mapping[NamedPartition, Loss]:
        return self.readings.losses_aside()

    def rewinds(self) -> Collection[Rewind]:
        return tuple(self.past_rewinds.found)

    def committed(self, offsets: Mapping[NamedPartition, int]) -> None:
        for each, offset in offsets.items():
            self.past_rewinds.committed(TopicPartition(*each), offset)

    def refused(self) -> None:
        self.readings.refuse(TopicPartition(*each) for each in self.losses())
        self.readings.refuse_aside()

    def __reduce__(self) -> tuple[type[_DistantReader], tuple[Mapping[NamedPartition, Loss], ...]]:
        return _DistantReader, (self.losses(), self.losses_before_a_rewind())

    def __deepcopy__(self, memo: object) -> _LiveReader:
        return self


@dataclass(frozen=True)
class _DistantReader:
    """A consumer of another process, as it was when its group metadata was taken from there."""

    lost: Mapping[NamedPartition, Loss]
    lost_before_a_rewind: Mapping[NamedPartition, Loss] = field(default_factory=dict)

    def has_joined_since(self) -> bool:
        """Nobody here knows of more than the metadata say."""
        return False

    def losses(self) -> Mapping[NamedPartition, Loss]:
        return self.lost

    def losses_before_a_rewind(self) -> Mapping[NamedPartition, Loss]:
        return self.lost_before_a_rewind

    def rewinds(self) -> Collection[Rewind]:
        """Return none: the order of another process says nothing about the aborts of this one."""
        return ()

    def committed(self, offsets: Mapping[NamedPartition, int]) -> None:
        """Nobody there can be told."""

    def refused(self) -> None:
        """Nobody there can be told."""


class OffsetCommits:
    """The committed offsets of a consumer's group.

    Parameters
    ----------
    partitions : AssignedPartitions
        Whose positions and readings are committed.
    groups : GroupClient
        Makes the requests.
    place : GroupPlace
        Who commits.
    """

    def __init__(self, partitions: AssignedPartitions, groups: GroupClient, place: GroupPlace) -> None:
        self._partitions, self._groups, self._place = partitions, groups, place
        self._config, self._environment = partitions.config, partitions.environment
        self._readings, self._subscription = partitions.readings, partitions.subscription
        self._rewinds = partitions.rewinds
        # What is known to be committed: a position that has not moved is not committed again.
        self._committed_at: dict[TopicPartition, int | None] = {}
        self._auto_committed_at = self._environment.instant()

    # -- for users --------------------------------------------------------------------------

    def commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None
    ) -> Mapping[TopicPartition, OffsetAndMetadata | int]:
        """Commit these offsets, or the positions and the ends of what was read; return what was committed."""
        group = self._group()
        if offsets is None:
            self._place.require_unfenced()
            self._partitions.give_back()
            new, read = self._positions_to_commit(), list(self._readings.ranges)
        else:
            new = self._with_ranges(new_offsets(offsets, self._partitions.settings_of(topics_of(offsets))))
            read = [TopicPartition(*partition) for partition in new]
        self._commit(GroupCommit(group, new, self._readings.metadata(self._place.metadata, read)))
        self._place.polled()
        if offsets is not None:
            return offsets
        return {TopicPartition(*each): OffsetAndMetadata(one.offset, one.metadata) for each, one in new.items()}

    def commit_told(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None, callback: OnCommit | None
    ) -> None:
        """Commit, and tell a callback how it went; a call that is wrong is refused as any other."""
        if callback is not None and not callable(callback):
            raise InvalidRequestError(
                "the callback of a commit is called with the offsets and an error or None; give a callable",
                callback=shown(callback),
            )
        failure: TxnTableError | None = None
        told = offsets
        try:
            told = self.commit(offsets)
        except InvalidCallError:
            raise
        except TxnTableError as error:
            failure = error
        if callback is not None:
            callback(told, failure)
        elif failure is not None:
            logger.warning("a commit without a callback failed: %s", failure)

    def committed(
        self, partitions: Sequence[TopicPartition], timeout_ms: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return what the group has committed of any partitions."""
        if timeout_ms is None:
            timeout_ms = self._config.default_api_timeout_ms
        group, wanted = self._group(), checked_partitions(partitions)
        settings = self._partitions.settings_of({partition.topic for partition in wanted})
        topic_ids = {partition: settings[partition.topic].topic_id for partition in wanted}
        found = self._groups.committed(group, topic_ids, timeout_ms=timeout_ms)
        # With a topic that is deleted, what was committed of it goes, too.
        self._partitions.is_follow_due |= any(one is None and self._had_committed(each) for each, one in found.items())
        self._note_committed({each: one.offset for each, one in found.items() if one is not None})
        return found

    def _had_committed(self, partition: TopicPartition) -> bool:
        return self._committed_at.get(partition) is not None or self._rewinds.has_committed(partition)

    def seek_to_committed(self, partitions: Sequence[TopicPartition]) -> None:
        """Let partitions begin where the group has committed, again."""
        self._group()
        chosen = self._partitions.chosen(partitions)
        self._partitions.give_back()
        self._subscription.gain({each: self._subscription.of(each).reset for each in chosen})
        for partition in chosen:
            self._partitions.fetcher.drop(partition)
        if partitions:
            self._readings.drop(chosen)
        else:
            self._readings.drop_all()
        self._partitions.went_back(chosen)
        self._partitions.is_follow_due = True

    def group_metadata(self) -> GroupMetadata:
        """Return who commits what was read, and what of that is lost."""
        current = self._place.metadata
        reader = self._reader()
        # What is another's is told as lost; who had it must not speak for what is owned now.
        gone = reader.losses().keys() - (current.ownership or {}).keys() if current is not None else set()
        there = [each for each in self._readings.by_partition if each not in gone]
        frozen = self._readings.metadata(current, there) or GroupMetadata(self._group(), "", 0)
        return replace(
            frozen, auto_commits=self._config.enable_auto_commit, topic_ids=self._topics_read(), reader=reader
        )

    def _topics_read(self) -> dict[tuple[str, int], str]:
        positions = self._subscription.positions
        followed = self._topic_ids([each for each in positions if each.topic in self._partitions.topics])
        read = {each: reading.topic_id for each, reading in self._readings.by_partition.items()}
        return {(each.topic, each.partition): topic_id for each, topic_id in {**followed, **read}.items()}

    # -- for producers ----------------------------------------------------------------------

    def offsets_to_send(self) -> GroupCommit:
        """Return the offsets of everything that was handed out, for a transaction."""
        group = self._group()
        if self._readings.by_partition.keys() - self._readings.ranges.keys():
            check_manual_commit(group, auto_commits=self._config.enable_auto_commit)
        new = {
            (partition.topic, partition.partition): NewOffset(
                self._end_of(partition, reading),
                reading.topic_id,
                read_from=reading.read_from,
            )
            for partition, reading in self._readings.by_partition.items()
        }
        member = self._readings.metadata(self._place.metadata)
        return GroupCommit(group, new, None if member is None else replace(member, reader=self._reader()))

    def offsets_sent(self, sent: GroupCommit) -> None:
        """Take note that a transaction has these offsets."""
        self._readings.sent(TopicPartition(*partition) for partition in sent.offsets)
        self._place.polled()

    def offsets_decided(self, sent: GroupCommit, *, committed: bool) -> None:
        """Take note how the transaction ended that had these offsets."""
        self._readings.decided((TopicPartition(*partition) for partition in sent.offsets), committed=committed)

    def refused(self, error: TxnTableError, commit: GroupCommit) -> None:
        """Take note that the group refused a commit: what was lost is refused until the consumer reads on."""
        self._place.refused(error, commit)
        self._readings.refuse(self._readings.lost(self._place.metadata))

    # -- where the group stands -------------------------------------------------------------

    def begin(self, *, wait: bool = True) -> None:
        """Stand at what the group has committed, in partitions where that was not looked for yet.

        Without waiting, those where a transaction is in the way are left for later.
        """
        group = self._config.group_id
        if group is None or not (awaiting := self._subscription.awaiting):
            return
        topic_ids = self._topic_ids(awaiting)
        found = (
            self._groups.committed(group, topic_ids, timeout_ms=self._config.default_api_timeout_ms)
            if wait
            else self._groups.stable(group, topic_ids)
        )
        if self._partitions.has_followed and None in found.values():
            # With a topic that is deleted, what was committed of it goes, too.
            self._partitions.is_follow_due = True
        for partition, each in found.items():
            self._committed_at[partition] = None if each is None else each.offset
            self._subscription.begin(partition, None if each is None else each.offset)

    def begin_again(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int | None]:
        """Stand where the group does, unless the user chose otherwise; return what it has committed."""
        group = self._config.group_id
        if group is None:
            return {}
        timeout_ms = self._config.default_api_timeout_ms
        found = self._groups.committed(group, self._topic_ids(partitions), timeout_ms=timeout_ms)
        committed = {each: None if one is None else one.offset for each, one in found.items()}
        for each, offset in committed.items():
            position = self._subscription.of(each)
            if position.sought:
                continue
            if offset is not None:
                self._subscription.move(each, offset)
            elif self._committed_at.get(each) is not None or position.offset is not None:
                self._subscription.move_to(each, self._reset_of(each))
        self._committed_at.update(committed)
        return committed

    def _reset_of(self, partition: TopicPartition) -> AutoOffsetReset:
        """Return where a partition begins of which nothing is committed."""
        position = self._subscription.of(partition)
        return position.reset if position.offset is None else self._config.reset

    def _topic_ids(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, str]:
        return {each: self._partitions.topics[each.topic].topic_id for each in partitions}

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """Know nothing of partitions that are another's now."""
        for partition in partitions:
            self._committed_at.pop(partition, None)

    def look_for_done(self, partitions: Collection[TopicPartition]) -> None:
        """Look whether work on these is done: users may hand offsets to a producer without telling the consumer.

        Only while they are its own: what is committed later may be what another member has read.
        """
        lost = self._readings.lost(self._place.metadata)
        found = self._readings.by_partition.items()
        readings = {each: reading for each, reading in found if each in partitions and each not in lost}
        if readings and self._config.group_id is not None:
            topic_ids = {each: reading.topic_id for each, reading in readings.items()}
            stable = self._groups.stable(self._config.group_id, topic_ids)
            self._readings.committed({each: one.offset for each, one in stable.items() if one is not None})

    # -- by itself --------------------------------------------------------------------------

    def auto_commit(self, *, when_due: bool = False) -> None:
        """Commit the positions of what was polled; what fails is met by whoever reads those partitions next."""
        if self._config.group_id is None or not self._config.enable_auto_commit:
            return
        if when_due and self._environment.since_ms(self._auto_committed_at) < self._config.auto_commit_interval_ms:
            return
        self._auto_committed_at = self._environment.instant()
        try:
            self._commit(GroupCommit(self._config.group_id, self._moved_positions(), self._place.metadata))
        except TxnTableError as error:
            logger.warning("positions were not committed: %s", error)

    # -- how --------------------------------------------------------------------------------

    def _group(self) -> str:
        if self._config.group_id is None:
            raise IllegalStateError("the consumer has no group; create it with group_id=")
        return self._config.group_id

    def _reader(self) -> _LiveReader:
        return _LiveReader(self._readings, self._rewinds, self._place, self._place.metadata, self._place.joins)

    def _note_committed(self, offsets: Mapping[TopicPartition, int]) -> None:
        for partition in offsets.keys() & self._subscription.positions.keys():
            self._rewinds.committed(partition, offsets[partition])

    def _end_of(self, partition: TopicPartition, reading: Reading) -> int:
        """Return the position, which may be past markers, unless it was moved elsewhere."""
        if reading.read_from is not None or partition not in self._subscription.positions:
            return reading.end
        return self._partitions.stands_at(partition) or reading.end

    def _positions_to_commit(self) -> dict[tuple[str, int], NewOffset]:
        """Return the positions that have moved, but of bounded reads the ends of these."""
        new = self._moved_positions()
        for (topic, number), reading in self._readings.ranges.items():
            new[topic, number] = NewOffset(reading.end, reading.topic_id, read_from=reading.read_from)
        return new

    def _moved_positions(self) -> dict[tuple[str, int], NewOffset]:
        ranges, topics, found = self._readings.ranges, self._partitions.topics, {}
        # In their own order, not a set's: which file is written first is then the same each time.
        for partition in self._subscription.positions:
            offset = None if partition in ranges else self._partitions.stands_at(partition)
            if offset is not None and offset != self._committed_at.get(partition):
                found[partition.topic, partition.partition] = NewOffset(offset, topics[partition.topic].topic_id)
        return found

    def _with_ranges(self, new: dict[tuple[str, int], NewOffset]) -> dict[tuple[str, int], NewOffset]:
        ranges = {(each.topic, each.partition): reading.read_from for each, reading in self._readings.ranges.items()}
        return {each: NewOffset(one.offset, one.topic_id, one.metadata, ranges.get(each)) for each, one in new.items()}

    def _commit(self, commit: GroupCommit) -> None:
        if not commit.offsets:
            return
        counters = self._partitions.counters
        counters.add("consumer-coordinator-metrics/commit-total")
        try:
            with counters.timing("consumer-metrics/commit-sync-time-ns-total"):
                self._groups.commit(commit, self._config.default_api_timeout_ms)
        except TxnTableError as error:
            self.refused(error, commit)
            raise
        committed = {TopicPartition(*each): new.offset for each, new in commit.offsets.items()}
        self._readings.committed(committed)
        self._committed_at.update(committed)
        self._note_committed(committed)
