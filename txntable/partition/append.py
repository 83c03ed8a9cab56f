"""Deciding an append to a topic's partition logs (PROTOCOL.md §5.2, writer rules).

The append is the vote: whatever can refuse a transaction's data refuses here, on the state below
the slot, before the decision.  Offsets are assigned here and nowhere else; a lost race assigns
them again without touching the files.  Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from txntable.errors import (
    InvalidRequestError,
    TransactionAbortableError,
    UnknownTopicOrPartitionError,
)
from txntable.format.layout import segment_name
from txntable.format.topic import TopicSettings
from txntable.log.actions import Action, Txn
from txntable.log.table_state import TableState
from txntable.partition.batch import Batch, ProducerEpoch, batch_add
from txntable.partition.offsets import NEXT_OFFSET, next_offset, per_partition
from txntable.partition.partition_log import PartitionLogs
from txntable.partition.producer_state import IncomingBatch, ProducerEntry, after_append, check_append
from txntable.partition.tombstoning import check_registrable
from txntable.segments.segment import StagedSegment

LARGEST_COMMIT_SEGMENTS = 10_000
LARGEST_COMMIT_BYTES = 32 * 1024 * 1024
# A projection of a decision is one commit of P: it must stay one that a store takes and readers bear.
LARGEST_TRANSACTION_SEGMENTS = 50_000
LARGEST_TRANSACTION_BYTES = 128 * 1024 * 1024
ACTION_BYTES = 800
"""Of an action beside its statistics: path, partition values, tag; about."""


@dataclass(frozen=True, slots=True)
class SequencedSegment:
    """An uploaded segment with its place in the producer's sequence (``None``: at-least-once)."""

    segment: StagedSegment
    first_sequence: int | None


@dataclass(frozen=True, slots=True)
class AppendRequest:
    """What one commit of S is asked to register.

    Attributes
    ----------
    topic_id : str
        The topic as the writer knew it; another one is refused.
    producer : ProducerEpoch or None
        ``None``: at-least-once.
    transactional : bool
        Whether a marker will decide.
    segments : tuple of SequencedSegment
        Of one partition in the order of their sequences.
    """

    topic_id: str
    producer: ProducerEpoch | None
    transactional: bool
    segments: tuple[SequencedSegment, ...]


@dataclass(frozen=True, slots=True)
class AppendDecision:
    """What to write, and where each segment of the request stands or will stand.

    Attributes
    ----------
    actions : tuple
        Empty: all of it is there already.
    base_offsets : tuple of int
        In the order of the request's segments.
    """

    actions: tuple[Action, ...]
    base_offsets: tuple[int, ...]


def unknown_topic(name: str) -> UnknownTopicOrPartitionError:
    """Return the error about a topic that was never there."""
    return UnknownTopicOrPartitionError(
        "there is no such topic; create it, or list the topics to see their names", topic=name
    )


def deleted_topic(name: str) -> UnknownTopicOrPartitionError:
    """Return the error about a topic that is there no more."""
    return UnknownTopicOrPartitionError(
        "the topic was deleted; list the topics to see which there are, or look at what was in it before:"
        " Warehouse.snapshot(as_of=), `txntable snapshot --as-of TIME`",
        topic=name,
    )


def live_settings(logs: PartitionLogs, topic_id: str | None = None) -> TopicSettings:
    """Return the topic's settings when it exists, is not deleted, and has the id asked for.

    Raises
    ------
    UnknownTopicOrPartitionError
        Create the topic, or take its new id by making a new producer.
    """
    settings = logs.settings
    if settings is None:
        raise unknown_topic(logs.name)
    if settings.deleted:
        raise deleted_topic(logs.name)
    if topic_id is not None and settings.topic_id != topic_id:
        raise UnknownTopicOrPartitionError(
            "the topic was deleted and created again; look it up again and write again",
            topic=logs.name,
            expected_id=topic_id,
            found_id=settings.topic_id,
        )
    return settings


def decide_append(logs: PartitionLogs, table: TableState, request: AppendRequest, now_ms: int) -> AppendDecision:
    """Decide an append on the state below its slot.

    Parameters
    ----------
    logs, table
        S's state.
    request : AppendRequest
        The segments.
    now_ms : int
        The store's time: the time of the append.

    Raises
    ------
    UnknownTopicOrPartitionError
        The topic or a partition is not there, or it is another topic by now.
    TransactionAbortableError
        Keys were mapped to another number of partitions than the topic has now, or a segment's file was tombstoned
        or is too old (:func:`txntable.partition.tombstoning.check_registrable`): abort, and write again.
    InvalidProducerEpochError, OutOfOrderSequenceError, InvalidTxnStateError
        See :func:`txntable.partition.producer_state.check_append`.
    """
    settings = live_settings(logs, request.topic_id)
    log = _Appending(logs, table, request, settings)
    for item in request.segments:
        _check_segment(settings, item.segment)
        log.take(item, now_ms)
    return log.decision(settings.topic_id)


def _check_segment(settings: TopicSettings, segment: StagedSegment) -> None:
    if not 0 <= segment.partition < settings.partitions:
        raise UnknownTopicOrPartitionError(
            "the topic has no such partition",
            topic=settings.name,
            partition=segment.partition,
            partitions=settings.partitions,
        )


def _check_mapping(settings: TopicSettings, segment: StagedSegment) -> None:
    if segment.partition_count is not None and segment.partition_count != settings.partitions:
        raise TransactionAbortableError(
            "the topic got more partitions after keys were mapped to them; abort the transaction, if there is one, and"
            " send the records again",
            topic=settings.name,
            partitions=segment.partition_count,
            current_partitions=settings.partitions,
        )


class _Appending:
    """The state while one append is decided: producer entries and offsets on a copy."""

    def __init__(self, logs: PartitionLogs, table: TableState, request: AppendRequest, settings: TopicSettings) -> None:
        self._logs, self._table, self._request, self._settings = logs, table, request, settings
        self._entries: dict[int, ProducerEntry | None] = {}
        self._next: dict[int, int] = {}
        self._adds: list[Action] = []
        self._base_offsets: list[int] = []

    def take(self, item: SequencedSegment, now_ms: int) -> None:
        segment, producer = item.segment, self._request.producer
        add = self._table.files.get(segment.path)
        known = None
        if add is not None and (producer is None or self._is_of_newest_epoch(producer, segment.partition)):
            # Exactly this upload, registered by an earlier try: also when more than five batches came since.
            known = int(add.partition_values["_base_offset"] or "")
        elif producer is not None:
            known = self._check(producer, item)
        if known is not None:
            self._base_offsets.append(known)
            return
        # Not before: what is registered already is answered, also when its segment was merged away since.
        _check_mapping(self._settings, segment)
        check_registrable(self._table, segment, now_ms)
        base = self._next_offset(segment.partition)
        batch = Batch(
            path=segment.path,
            partition=segment.partition,
            base_offset=base,
            last_offset=base + segment.records - 1,
            records=segment.records,
            producer=producer,
            transactional=self._request.transactional,
            first_sequence=item.first_sequence,
            first_timestamp_ms=segment.first_timestamp_ms,
            max_timestamp_ms=segment.max_timestamp_ms,
            appended_at_ms=now_ms,
            digest=segment.digest,
            partition_count=segment.partition_count,
            uploaded_at_ms=segment.uploaded_at_ms,
        )
        self._next[segment.partition] = batch.last_offset + 1
        self._entries[segment.partition] = after_append(self._entries.get(segment.partition), batch)
        self._adds.append(batch_add(batch, segment.size, segment.stats))
        self._base_offsets.append(base)

    def _is_of_newest_epoch(self, producer: ProducerEpoch, partition: int) -> bool:
        entry = self._logs.producer(partition, producer.producer_id)
        return entry is None or entry.epoch == producer.epoch

    def _check(self, producer: ProducerEpoch, item: SequencedSegment) -> int | None:
        """Return the original base offset of a repeated batch."""
        if item.first_sequence is None:
            raise InvalidRequestError("a producer with an id numbers its batches", producer_id=producer.producer_id)
        partition = item.segment.partition
        if partition not in self._entries:
            self._entries[partition] = self._logs.producer(partition, producer.producer_id)
        incoming = IncomingBatch(
            producer.producer_id,
            producer.epoch,
            item.first_sequence,
            item.segment.records,
            self._request.transactional,
            segment_name(item.segment.path),
        )
        in_transaction = self._logs.in_transaction(partition, producer.producer_id)
        known = check_append(self._entries[partition], incoming, in_transaction=in_transaction)
        return None if known is None else known.base_offset

    def _next_offset(self, partition: int) -> int:
        return self._next.get(partition, next_offset(self._table.numbers, self._request.topic_id, partition))

    def decision(self, topic_id: str) -> AppendDecision:
        numbers = [Txn(per_partition(NEXT_OFFSET, topic_id, p), offset) for p, offset in sorted(self._next.items())]
        return AppendDecision((*self._adds, *numbers), tuple(self._base_offsets))


def action_bytes(segment: StagedSegment) -> int:
    """Return how large the action that registers a segment is, about, in bytes."""
    return ACTION_BYTES + len(segment.stats)


def split_for_commits(segments: Sequence[SequencedSegment]) -> list[tuple[SequencedSegment, ...]]:
    """Return `segments`, in order, cut into parts that one commit each may register."""
    parts: list[list[SequencedSegment]] = []
    size = LARGEST_COMMIT_BYTES
    for item in segments:
        action = action_bytes(item.segment)
        if size + action > LARGEST_COMMIT_BYTES or len(parts[-1]) >= LARGEST_COMMIT_SEGMENTS:
            parts.append([])
            size = 0
        parts[-1].append(item)
        size += action
    return [tuple(part) for part in parts]
