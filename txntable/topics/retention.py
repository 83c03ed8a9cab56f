"""Letting go of old records: retention, deletion of records, and trimming what a log start cuts (PROTOCOL.md §5.9).

Owns the order: what is committed is published before it goes, and the log start rises before a segment is
rewritten without what lies below.  So a process that dies in between leaves records that no reader sees, and the
next round of compaction takes them.  Must not know when retention is due.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from txntable.errors import DamagedDataError, OffsetOutOfRangeError, PolicyViolationError, UnknownTopicOrPartitionError
from txntable.format.topic import TopicSettings
from txntable.format.topic_policy import config_number, is_retained
from txntable.log.actions import Action
from txntable.log.table_state import TableState
from txntable.partition.append import live_settings
from txntable.partition.log_start import (
    LogStartDecision,
    cut_segments,
    decide_deletion_of_records,
    decide_retention,
)
from txntable.partition.offsets import log_start, next_offset
from txntable.partition.rewriting import Rewrite, RewriteRequest
from txntable.segments.segment import SegmentPlan
from txntable.segments.segment_columns import PlannedSegment
from txntable.segments.segment_rewriting import RewritePlan, rewrite_segments
from txntable.topics.topic_log import TopicLog


@dataclass(frozen=True, slots=True)
class ExpiredRecords:
    """What retention took.

    Attributes
    ----------
    segments, bytes : int
        Removed from the partition logs; their files stay until they are vacuumed.
    log_starts : Mapping[int, int]
        By partition, where it rose: the log start now.
    """

    segments: int = 0
    bytes: int = 0
    log_starts: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RecordDeletion:
    """Records that are to be deleted.

    Attributes
    ----------
    topic_id : str
        The topic as it was looked at; another one keeps its records.
    before : Mapping[int, int]
        By partition: the log start then; where it is so high already, nothing happens.
    """

    topic_id: str
    before: Mapping[int, int]


def expire_records(topic: TopicLog) -> ExpiredRecords:
    """Let go of the segments that ``retention.ms`` and ``retention.bytes`` no longer keep, and of what is deleted.

    Parameters
    ----------
    topic : TopicLog
        Of a topic that exists.

    Raises
    ------
    UnknownTopicOrPartitionError
        There is no such topic.
    CommitStateUnknownError, StoreUnavailableError
        Call again.
    """
    topic.catch_up()
    counts: Counter[str] = Counter()
    log_starts: dict[int, int] = {}
    while True:
        decision = LogStartDecision()

        def decide(table: TableState, public: TableState) -> Sequence[Action]:
            nonlocal decision
            decision = decide_retention(topic.segments.fold, table, public, topic.context.clock.now_ms())
            return decision.actions

        topic.commit("RETENTION", decide)
        if not decision.actions:
            return ExpiredRecords(counts["segments"], counts["bytes"], log_starts)
        counts.update(segments=len(decision.segments), bytes=sum(segment.size for segment in decision.segments))
        log_starts |= decision.log_starts


def plan_deletion(topic: TopicLog, before: Mapping[int, int | None]) -> RecordDeletion:
    """Return where partitions would start without the records before an offset, or refuse the deletion.

    Parameters
    ----------
    topic : TopicLog
        Of the records.
    before : Mapping[int, int or None]
        By partition; ``None``: all that there is now.

    Raises
    ------
    UnknownTopicOrPartitionError
        There is no such topic or partition.
    PolicyViolationError
        The topic is only compacted: alter its ``cleanup.policy`` to delete its records.
    OffsetOutOfRangeError
        Negative, or above the high watermark.
    """
    topic.catch_up()
    with topic.segments.lock:
        settings, table = live_settings(topic.segments.fold), topic.segments.table
        starts = {
            partition: _deletion_offset(settings, table, partition, offset) for partition, offset in before.items()
        }
        return RecordDeletion(settings.topic_id, starts)


def _deletion_offset(settings: TopicSettings, table: TableState, partition: int, offset: int | None) -> int:
    if not 0 <= partition < settings.partitions:
        raise UnknownTopicOrPartitionError(
            "the topic has no such partition",
            topic=settings.name,
            partition=partition,
            partitions=settings.partitions,
        )
    if not is_retained(settings.config):
        raise PolicyViolationError(
            "records of a compacted topic go by key only; add delete to its cleanup.policy to delete them",
            topic=settings.name,
            cleanup_policy=settings.config.get("cleanup.policy"),
        )
    start = log_start(table.numbers, settings.topic_id, partition)
    highest = next_offset(table.numbers, settings.topic_id, partition)
    if offset is not None and not 0 <= offset <= highest:
        raise OffsetOutOfRangeError(
            "records are deleted before an offset that the partition has; give one up to its high watermark"
            + (", or None for Kafka's -1" if offset == -1 else ""),
            topic=settings.name,
            partition=partition,
            offset=offset,
            high_watermark=highest,
        )
    return max(start, highest if offset is None else offset)


def delete_records(topic: TopicLog, deletion: RecordDeletion) -> dict[int, int]:
    """Delete records, whoever wrote them; the same call again changes nothing.

    Parameters
    ----------
    topic : TopicLog
        Of the records.
    deletion : RecordDeletion
        What :func:`plan_deletion` says.

    Returns
    -------
    dict of int to int
        By partition: its log start now.

    Raises
    ------
    UnknownTopicOrPartitionError
        The topic was deleted meanwhile.
    CommitStateUnknownError, StoreUnavailableError
        Call again: no reader sees some or all of the records any more.
    DamagedDataError
        The segment that the offset cuts cannot be read; no reader sees the records.
    """

    def decide(table: TableState, public: TableState) -> Sequence[Action]:
        logs, now_ms = topic.segments.fold, topic.context.clock.now_ms()
        live_settings(logs, deletion.topic_id)
        return decide_deletion_of_records(logs, table, public, deletion.before, now_ms).actions

    topic.commit("DELETE RECORDS", decide)
    trim(topic, deletion.before)
    numbers = topic.segments.table.numbers
    return {partition: log_start(numbers, deletion.topic_id, partition) for partition in deletion.before}


def trim(topic: TopicLog, partitions: Collection[int]) -> int:
    """Rewrite the segments that a log start cuts, without what lies below; return how many there were.

    One that is not decided yet keeps its head, which no reader sees.

    Parameters
    ----------
    topic : TopicLog
        On its newest state.
    partitions : collection of int
        Which.

    Raises
    ------
    CommitStateUnknownError, StoreUnavailableError, DamagedDataError
        See :func:`delete_records`.
    """
    with topic.segments.lock:
        table, public = topic.segments.ensure_fresh(), topic.public.ensure_fresh()
        settings = live_settings(topic.segments.fold)
        cuts = cut_segments(topic.segments.fold, table, public, partitions)
    rewrites = tuple(_trimmed(topic, settings, segment) for segment in cuts)
    if rewrites:
        topic.rewrite(RewriteRequest(settings.topic_id, rewrites))
    return len(rewrites)


def _trimmed(topic: TopicLog, settings: TopicSettings, segment: PlannedSegment) -> Rewrite:
    context = topic.context
    segments = SegmentPlan(topic.segments.root, settings, None, context.clock.now_ms())
    plan = RewritePlan(segments, config_number("segment.bytes", settings.config), context.environment.new_id)
    try:
        outputs = rewrite_segments(context.store, plan, [segment])
    except DamagedDataError as error:
        error.add_note(
            f"the records below the log start of partition {segment.partition} are deleted; what cannot be read goes,"
            f" too, when those before offset {segment.last_offset + 1} are deleted"
        )
        raise
    return Rewrite(segment.partition, (segment.path,), tuple(outputs), eligible=False)
