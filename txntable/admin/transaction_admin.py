"""What an admin can see of transactions: ids in the transaction log, producers and open data in partitions.

The rules are those of PROTOCOL.md §6.5.

Owns the two readings that a hanging transaction takes: of the partition logs and of the transaction
log, in an order that never takes a transaction that ends meanwhile for a hanging one.  Reads only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from txntable.admin.transaction_listing import (
    HangingTransaction,
    ProducerState,
    TransactionDescription,
    TransactionFilter,
)
from txntable.coordinator.error_kinds import shown
from txntable.coordinator.open_epoch_status import OpenEpoch, OpenEpochStatus, open_epoch_status
from txntable.coordinator.row_json import check_name, check_number
from txntable.coordinator.transaction import TransactionMetadata
from txntable.errors import InvalidRequestError, TransactionalIdNotFoundError, UnknownTopicOrPartitionError
from txntable.format.layout import TOPICS_FOLDER, TRANSACTION_LOG_ROOT, commit_path, topic_names
from txntable.format.near_names import asking
from txntable.format.records import TopicPartition
from txntable.format.topic import TopicSettings
from txntable.partition.open_transactions import OpenInPartition, open_in_topic
from txntable.topics.topic_log import TopicLog
from txntable.transactions.completion import Completer
from txntable.transactions.transaction_log import NEXT_PRODUCER_ID


class TransactionAdmin:
    """What :class:`txntable.admin.admin.Admin` shows of transactions; its docstrings say more.

    Parameters
    ----------
    completer : Completer
        Knows T, and tells what is complete.
    topic_log : callable
        Topic name -> its logs.
    """

    def __init__(self, completer: Completer, topic_log: Callable[[str], TopicLog]) -> None:
        self._transactions, self.topic_log = completer.transactions, topic_log
        self._look_at = completer.look_at
        self._context = completer.transactions.context

    # -- transactional ids ------------------------------------------------------------------

    def listing(self, wanted: TransactionFilter) -> list[TransactionMetadata]:
        """Return the rows that pass a filter, sorted by transactional id."""
        self._look_at(self._transactions.look(self._transactions.log.fold.incomplete))
        rows = sorted(filter(wanted.takes, self._transactions.rows()), key=lambda row: row.transactional_id)
        if wanted.duration_ms is None:
            return rows
        return [row for row in rows if self._runs_longer(row, wanted.duration_ms)]

    def _runs_longer(self, row: TransactionMetadata, duration_ms: int) -> bool:
        # An entry that was cleaned away is older than anything that can be asked for.
        start_ms = self.start_ms(row)
        return start_ms is None or self._context.clock.shown_ms() - start_ms > duration_ms

    def start_ms(self, row: TransactionMetadata) -> int | None:
        """Return the store's time of a transaction's first enrolment; ``None``: none is under way, or it is too old."""
        if row.started_position is None:
            return None
        entry = self._context.store.head(commit_path(TRANSACTION_LOG_ROOT, row.started_position))
        return None if entry is None else entry.last_modified_ms

    def describe(self, transactional_ids: Sequence[str]) -> dict[str, TransactionDescription]:
        """Describe transactional ids."""
        for transactional_id in listed(transactional_ids, "ids"):
            check_name(transactional_id, "a transactional id")
        incomplete = self._transactions.look(self._transactions.log.fold.incomplete)
        self._look_at([row for row in incomplete if row.transactional_id in transactional_ids])
        with self._transactions.log.lock:
            rows = {found: self._transactions.row(found) for found in transactional_ids}
        described = {}
        for transactional_id, row in rows.items():
            if row is None:
                known = [each.transactional_id for each in self._transactions.rows()]
                raise asking(id_not_found(transactional_id), transactional_id, known)
            described[transactional_id] = self._describe(row)
        return described

    def _describe(self, row: TransactionMetadata) -> TransactionDescription:
        start_ms = self.start_ms(row)
        return TransactionDescription(
            transactional_id=row.transactional_id,
            state=row.state,
            producer_id=row.producer_id,
            producer_epoch=row.producer_epoch,
            timeout_ms=row.timeout_ms,
            start_time_ms=start_ms,
            duration_ms=None if start_ms is None else max(0, self._context.clock.shown_ms() - start_ms),
            started_position=row.started_position,
            topic_partitions=tuple(
                sorted(TopicPartition(topic.name, p) for topic in row.topics.values() for p in topic.partitions)
            ),
            groups=row.groups,
            decision=row.decision,
            token=row.token,
            coordinator_epoch=self._transactions.coordinator_epoch(),
        )

    # -- producers of partitions ------------------------------------------------------------

    def producers(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, list[ProducerState]]:
        """Describe the producers of partitions."""
        return {where: self._producers(where) for where in map(_place, listed(partitions, "partitions"))}

    def _producers(self, where: TopicPartition) -> list[ProducerState]:
        topic = self.topic_log(where.topic)
        with topic.segments.lock:
            check_partition(topic.settings(), where.partition)
            logs = topic.segments.fold
            starts = {
                producer_id: transaction.first_offsets[where.partition]
                for (producer_id, _), transaction in logs.open.items()
                if where.partition in transaction.first_offsets
            }
            return [
                ProducerState(
                    producer_id,
                    entry.epoch,
                    entry.coordinator_epoch,
                    entry.batches[-1].last_sequence if entry.batches else None,
                    entry.last_timestamp_ms,
                    starts.get(producer_id),
                )
                for (partition, producer_id), entry in sorted(logs.producers.items(), key=lambda item: item[0])
                if partition == where.partition
            ]

    # -- hanging transactions ---------------------------------------------------------------

    def hanging(self, topic: str | None, partition: int | None, limit_ms: int) -> list[HangingTransaction]:
        """Find transactions that are open for longer than a limit and that nothing will end."""
        check_number(limit_ms, "max_transaction_timeout_ms")
        if partition is not None and topic is None:
            raise InvalidRequestError("a partition needs its topic; give the topic too", partition=partition)
        if topic is not None:
            return self._hanging_in(topic, partition, limit_ms)
        found: list[HangingTransaction] = []
        for name in topic_names(self._context.store.folders(TOPICS_FOLDER)):
            # A folder of a deleted topic, or of a creation that was killed.
            with suppress(UnknownTopicOrPartitionError):
                found += self._hanging_in(name, None, limit_ms)
        return found

    def _hanging_in(self, name: str, partition: int | None, limit_ms: int) -> list[HangingTransaction]:
        topic = self.topic_log(name)
        settings, candidates = open_now(topic)
        if partition is not None:
            check_partition(settings, partition)
        now_ms = self._context.clock.now_ms()
        old = [one for one in candidates if now_ms - one.since_ms > limit_ms and partition in (None, one.partition)]
        found = [(one, self.status(settings.topic_id, one)) for one in self._with_fresh_log(old)]
        hanging = [(one, status, row) for one, (status, row) in found if status.hangs]
        if hanging:
            # T was read after S: what has ended in between shows its marker by now, what hangs is still open.
            still = set(open_now(topic)[1])
            hanging = [(one, status, row) for one, status, row in hanging if one in still]
        return [self._hanging_row(topic, one, now_ms, status, row) for one, status, row in hanging]

    def _with_fresh_log(self, candidates: Sequence[OpenInPartition]) -> Sequence[OpenInPartition]:
        if candidates:
            self._transactions.refresh()
        return candidates

    def status(self, topic_id: str, one: OpenInPartition) -> tuple[OpenEpochStatus, TransactionMetadata | None]:
        """Return how T, as the view knows it, stands to an open transaction, and the row that has its producer id."""
        with self._transactions.log.lock:
            row = self._transactions.row_of_producer(one.producer_id)
            next_id = self._transactions.log.table.number(NEXT_PRODUCER_ID)
        return open_epoch_status(row, OpenEpoch(one.producer_id, one.producer_epoch, topic_id), next_id), row

    def _hanging_row(
        self,
        topic: TopicLog,
        one: OpenInPartition,
        now_ms: int,
        status: OpenEpochStatus,
        row: TransactionMetadata | None,
    ) -> HangingTransaction:
        entry = topic.segments.fold.producer(one.partition, one.producer_id)
        return HangingTransaction(
            topic_partition=TopicPartition(topic.name, one.partition),
            producer_id=one.producer_id,
            producer_epoch=one.producer_epoch,
            coordinator_epoch=None if entry is None else entry.coordinator_epoch,
            start_offset=one.start_offset,
            last_timestamp_ms=one.since_ms if entry is None else entry.last_timestamp_ms,
            duration_ms=now_ms - one.since_ms,
            transactional_id=None if row is None else row.transactional_id,
            status=status,
        )


def open_now(topic: TopicLog) -> tuple[TopicSettings, list[OpenInPartition]]:
    """Return a topic's settings, and its open transactions by partition and offset, as they are now.

    Raises
    ------
    UnknownTopicOrPartitionError
        There is no such topic.
    """
    with topic.segments.lock:
        settings = topic.settings()
        found = open_in_topic(topic.segments.fold)
        return settings, sorted(found, key=lambda one: (one.partition, one.start_offset))


def check_partition(settings: TopicSettings, partition: int) -> None:
    """Return when the topic has the partition.

    Raises
    ------
    UnknownTopicOrPartitionError
        It has not.
    """
    if not 0 <= check_number(partition, "a partition") < settings.partitions:
        raise UnknownTopicOrPartitionError(
            "the topic has no such partition; valid ones are below the number of partitions",
            topic=settings.name,
            partition=partition,
            partitions=settings.partitions,
        )


def id_not_found(transactional_id: str) -> TransactionalIdNotFoundError:
    """Return the error for an id that the transaction log does not know."""
    return TransactionalIdNotFoundError(
        "there is no such transactional id: it never existed or has expired; list the transactions to see all",
        transactional_id=transactional_id,
    )


def listed(values: Sequence[Any], name: str) -> Sequence[Any]:
    """Return `values` when it is a list and no single value.

    Raises
    ------
    InvalidRequestError
        It is not.
    """
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        raise InvalidRequestError(f"{name} must be a list; wrap the value in a list", found=shown(values))
    return values


def _place(value: object) -> TopicPartition:
    if not isinstance(value, tuple) or len(value) != len(TopicPartition._fields) or not isinstance(value[0], str):
        raise InvalidRequestError("a partition must be given as TopicPartition(topic, partition)", found=shown(value))
    return TopicPartition(*value)
