"""Transactions that hold readers back: what is open in partitions, what waits behind it, and which groups stand there.

Owns the reading of three logs in an order that takes no transaction that ends meanwhile for a hanging one: the
partition logs, then the transaction log, and where that has decided or seems to have lost something the partition logs
again.  PROTOCOL.md §5.6 says what a last stable offset is.  Reads only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from txntable.admin.transaction_admin import TransactionAdmin, open_now
from txntable.admin.unreadable import Within, raising, topic_place
from txntable.coordinator.group_offsets import OffsetRow, PendingOffset
from txntable.coordinator.open_epoch_status import OpenEpochStatus
from txntable.coordinator.transaction import TransactionMetadata
from txntable.coordinator.transaction_state import TransactionState
from txntable.errors import UnknownTopicOrPartitionError
from txntable.format.partition_values import partition_column
from txntable.format.records import TopicPartition
from txntable.format.topic import TopicSettings
from txntable.log.actions import stored_add
from txntable.partition.batch import batch_of
from txntable.partition.open_transactions import OpenInPartition
from txntable.partition.projection import commit_position
from txntable.topics.topic_log import TopicLog
from txntable.transactions.completion import Completer


@dataclass(frozen=True, slots=True)
class BlockedPartition:
    """A partition in which a transaction holds readers back.

    Attributes
    ----------
    topic_partition : TopicPartition
        Where it is open.
    start_offset : int
        Of its first record here: no ``read_committed`` reader gets beyond.
    committed_records : int
        Records behind that offset that are committed, and wait.
    groups : tuple of str
        Consumer groups that have read everything below the partition's last stable offset, ascending.
    """

    topic_partition: TopicPartition
    start_offset: int
    committed_records: int
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PendingGroup:
    """A group whose offsets are part of a transaction: whoever begins to read there waits for its end.

    Attributes
    ----------
    group : str
        The group.
    partitions : tuple of TopicPartition
        Whose offsets are pending, ascending.
    """

    group: str
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class BlockingTransaction:
    """A transaction that readers wait for: no marker has ended its data, or offsets of groups are pending in it.

    Attributes
    ----------
    transactional_id : str or None
        The id that has the producer id, if there is one.
    producer_id, producer_epoch : int
        They name the transaction.
    status : OpenEpochStatus
        Who will end it, or why nothing will.
    state : TransactionState or None
        Of the id, while the transaction is its own.
    start_time_ms : int
        The store's time of its beginning, or of its first segment where the beginning is not known, ms since 1970.
    duration_ms : int
        Since then, by the store's time.
    timeout_ms : int or None
        The transaction timeout; ``None``: none will end it, since it is prepared, decided, or hangs.
    partitions : tuple of BlockedPartition
        In which it holds readers back, ascending; none where it has offsets alone.
    pending : tuple of PendingGroup
        The groups that wait for their offsets, ascending.
    """

    transactional_id: str | None
    producer_id: int
    producer_epoch: int
    status: OpenEpochStatus
    state: TransactionState | None
    start_time_ms: int
    duration_ms: int
    timeout_ms: int | None
    partitions: tuple[BlockedPartition, ...]
    pending: tuple[PendingGroup, ...] = ()

    @property
    def committed_records(self) -> int:
        """How many committed records wait behind it, in all partitions."""
        return sum(each.committed_records for each in self.partitions)

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups that wait before it in any partition, or for their offsets, ascending."""
        standing = {group for each in self.partitions for group in each.groups}
        return tuple(sorted(standing | {each.group for each in self.pending}))

    @property
    def has_timed_out(self) -> bool:
        """Whether its timeout has passed: whoever completes transactions aborts it."""
        return self.timeout_ms is not None and self.duration_ms > self.timeout_ms


@dataclass(frozen=True, slots=True)
class _Found:
    """A transaction as one topic shows it, and its partitions there."""

    topic: TopicSettings
    open: OpenInPartition
    partition: BlockedPartition
    status: OpenEpochStatus
    row: TransactionMetadata | None


# First and last offset of a committed segment, and its records.
_Extent = tuple[int, int, int]


class BlockingTransactions:
    """What :meth:`txntable.admin.admin.Admin.find_blocking_transactions` finds.

    Parameters
    ----------
    completer : Completer
        Knows T and O.
    topic_log : callable
        Topic name -> its logs.
    shown : TransactionAdmin
        Tells how T stands to what is open.
    within : callable
        What becomes of an error of a topic, or of O; default: it is raised.
    """

    def __init__(
        self,
        completer: Completer,
        topic_log: Callable[[str], TopicLog],
        shown: TransactionAdmin,
        within: Within = raising,
    ) -> None:
        self._transactions, self._offsets = completer.transactions, completer.offsets
        self._topic_log, self._shown, self._within = topic_log, shown, within

    def find(self, names: Sequence[str]) -> list[BlockingTransaction]:
        """Return the transactions that are open in topics, the oldest first.

        Parameters
        ----------
        names : sequence of str
            The topics; one that is deleted meanwhile holds nothing back.
        """
        by_transaction: dict[tuple[int, int, OpenEpochStatus], list[_Found]] = {}
        for name in names:
            with suppress(UnknownTopicOrPartitionError), self._within(topic_place(name)):
                topic = self._topic_log(name)
                for one in self._in_topic(topic):
                    key = (one.open.producer_id, one.open.producer_epoch, one.status)
                    by_transaction.setdefault(key, []).append(one)
                # What has lost its end does not show what is open there.
                topic.read_public()
                topic.require_whole()
                topic.require_decided()
        pending = self._pending(set(names))
        now_ms = self._transactions.context.clock.shown_ms() if by_transaction or pending else 0
        told = []
        for (producer_id, epoch, _), parts in by_transaction.items():
            # What has data and offsets is told once.
            _, groups = pending.pop((producer_id, epoch), (None, ()))
            told.append(self._transaction(parts, groups, now_ms))
        told += [self._of_offsets(row, groups, now_ms) for row, groups in pending.values()]
        return sorted(told, key=lambda one: (one.start_time_ms, one.producer_id))

    def _pending(
        self, names: Collection[str]
    ) -> dict[tuple[int, int], tuple[TransactionMetadata, tuple[PendingGroup, ...]]]:
        """Return by producer id and epoch what is under way, maybe for long, with offsets of groups in these topics."""
        waiting: list[tuple[OffsetRow, PendingOffset]] = []
        with self._within(self._offsets.log.root):
            self._offsets.refresh()
            self._offsets.require_whole()
            waiting = [(row, each) for row in self._offsets.pending() if row.topic in names for each in row.pending]
        if not waiting:
            return {}
        # After O: what has ended in between is known to have.
        self._transactions.refresh()
        owners: dict[tuple[int, int], TransactionMetadata] = {}
        found: dict[tuple[int, int], dict[str, list[TopicPartition]]] = {}
        for row, each in waiting:
            who, owner = (each.producer_id, each.epoch), self._transactions.row(each.transactional_id)
            if owner is not None and _is_under_way(owner, each):
                owners[who] = owner
                partitions = found.setdefault(who, {}).setdefault(row.group, [])
                partitions.append(TopicPartition(row.topic, row.partition))
        return {
            who: (owner, tuple(PendingGroup(name, tuple(sorted(found[who][name]))) for name in sorted(found[who])))
            for who, owner in owners.items()
        }

    def _of_offsets(
        self, row: TransactionMetadata, pending: tuple[PendingGroup, ...], now_ms: int
    ) -> BlockingTransaction:
        """Return a transaction of which no partition shows anything."""
        began_ms = self._shown.start_ms(row)
        start_ms = now_ms if began_ms is None else began_ms
        return BlockingTransaction(
            transactional_id=row.transactional_id,
            producer_id=row.producer_id,
            producer_epoch=row.producer_epoch,
            status=OpenEpochStatus.OPEN,
            state=row.state,
            start_time_ms=start_ms,
            duration_ms=max(0, now_ms - start_ms),
            timeout_ms=row.timeout_ms if row.state is TransactionState.ONGOING else None,
            partitions=(),
            pending=pending,
        )

    def _in_topic(self, topic: TopicLog) -> Iterator[_Found]:
        settings, candidates = open_now(topic)
        if not candidates:
            return
        extents = _committed_extents(topic, {one.partition for one in candidates})
        self._transactions.refresh()
        found = [(one, *self._shown.status(settings.topic_id, one)) for one in candidates]
        if any(status is not OpenEpochStatus.OPEN for _, status, _ in found):
            # T was read after S: what has ended in between shows its marker by now.
            still = set(open_now(topic)[1])
            found = [each for each in found if each[0] in still]
        # By partition and offset: the first one in a partition is where its last stable offset is.
        stable: dict[int, int] = {}
        for one, _, _ in found:
            stable.setdefault(one.partition, one.start_offset)
        groups = self._groups_at(settings, extents, stable)
        for one, status, row in found:
            waiting = sum(records for first, _, records in extents[one.partition] if first > one.start_offset)
            where = TopicPartition(settings.name, one.partition)
            blocked = BlockedPartition(where, one.start_offset, waiting, groups[one.partition])
            yield _Found(settings, one, blocked, status, row)

    def _groups_at(
        self, settings: TopicSettings, extents: Mapping[int, Sequence[_Extent]], stable: Mapping[int, int]
    ) -> dict[int, tuple[str, ...]]:
        """Return by partition the groups with nothing left to read below the last stable offset."""
        found: dict[int, list[str]] = {partition: [] for partition in stable}
        names: Sequence[str] = ()
        with self._within(self._offsets.log.root):
            self._offsets.refresh()
            names = self._offsets.names()
        for group in names:
            for partition, offset in self._reads_from(group, settings).items():
                end = stable.get(partition)
                if end is not None and not any(first < end and last >= offset for first, last, _ in extents[partition]):
                    found[partition].append(group)
        return {partition: tuple(groups) for partition, groups in found.items()}

    def _reads_from(self, group: str, settings: TopicSettings) -> dict[int, int]:
        """Return by partition where a group goes on: at 0, where it has a member and has committed nothing."""
        row = self._offsets.group(group)
        owned = () if row is None else (each for member in row.members.values() for each in member.owned)
        starts = {partition: 0 for topic, partition in owned if topic == settings.name}
        for (topic, partition), offset in self._offsets.offsets(group).items():
            committed = offset.committed
            if topic == settings.name and committed is not None and committed.topic_id in ("", settings.topic_id):
                starts[partition] = committed.offset
        return starts

    def _transaction(
        self, parts: Sequence[_Found], pending: tuple[PendingGroup, ...], now_ms: int
    ) -> BlockingTransaction:
        one, row, status = parts[0].open, parts[0].row, parts[0].status
        is_its_own = row is not None and status in (OpenEpochStatus.OPEN, OpenEpochStatus.DECIDED)
        own = row if is_its_own else None
        began_ms = None if own is None else self._shown.start_ms(own)
        start_ms = min(part.open.since_ms for part in parts) if began_ms is None else began_ms
        times_out = own is not None and own.state is TransactionState.ONGOING
        return BlockingTransaction(
            transactional_id=None if row is None else row.transactional_id,
            producer_id=one.producer_id,
            producer_epoch=one.producer_epoch,
            status=status,
            state=None if own is None else own.state,
            start_time_ms=start_ms,
            duration_ms=max(0, now_ms - start_ms),
            timeout_ms=own.timeout_ms if own is not None and times_out else None,
            partitions=tuple(sorted((part.partition for part in parts), key=lambda each: each.topic_partition)),
            pending=pending,
        )


def _is_under_way(row: TransactionMetadata, pending: PendingOffset) -> bool:
    is_its_own = (row.producer_id, row.producer_epoch) == (pending.producer_id, pending.epoch)
    return is_its_own and row.state in (TransactionState.ONGOING, TransactionState.PREPARED)


def _committed_extents(topic: TopicLog, partitions: set[int]) -> dict[int, list[_Extent]]:
    """Return the committed segments of partitions, as S shows them now."""
    extents: dict[int, list[_Extent]] = {partition: [] for partition in partitions}
    wanted = pa.array([str(partition) for partition in partitions], pa.string())
    with topic.segments.lock:
        logs = topic.segments.fold
        rows = topic.segments.table.files.to_table()
        # Of a topic that is large and old, few partitions are held back: only their rows become objects.
        rows = rows.filter(pc.is_in(partition_column(rows, "_partition"), value_set=wanted))
        rows = rows.filter(pc.is_null(partition_column(rows, "_control")))
        for row in rows.to_pylist():
            batch = batch_of(stored_add(row))
            if commit_position(logs, batch) is not None:
                extents[batch.partition].append((batch.base_offset, batch.last_offset, batch.records))
    return extents
