"""Staged segments on their way into the partition logs: sequences, enrolment, append.

Owns the order *enrol, then append*, and the numbering of batches.  What was staged stays staged
until its append is known to be durable, so that a call after an unknown outcome repeats exactly
the same batches (PROTOCOL.md §5.4 makes that safe).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from txntable.client.records import OffsetRange, RecordMetadata
from txntable.errors import RecordTooLargeError
from txntable.partition.append import (
    LARGEST_TRANSACTION_SEGMENTS,
    AppendRequest,
    SequencedSegment,
    split_for_commits,
)
from txntable.partition.batch import ProducerEpoch
from txntable.segment import StagedSegment
from txntable.topic import TopicSettings
from txntable.topic_log import TopicLog, Verify

# (topic log, topic id, partitions) -> what is asked at every attempt of an append.
VerifyFor = Callable[[str, frozenset[int]], Verify]


@dataclass(slots=True)
class Staged:
    """What waits to be appended to one topic.

    Attributes
    ----------
    topic : TopicLog
        Where to.
    settings : TopicSettings
        As they were when it was written.
    segments : list of SequencedSegment
        In order.
    metadata : list of tuple
        For each segment whom to tell: one for all its records, or one for each.
    """

    topic: TopicLog
    settings: TopicSettings
    segments: list[SequencedSegment] = field(default_factory=list)
    metadata: list[tuple[RecordMetadata, ...]] = field(default_factory=list)

    @property
    def partitions(self) -> frozenset[int]:
        """The partitions that the segments are of."""
        return frozenset(item.segment.partition for item in self.segments)


class Appender:
    """The staged segments of one producer.

    Attributes
    ----------
    producer : ProducerEpoch or None
        Under which to append; ``None``: at least once, without sequences.
    transactional : bool
        Whether markers decide.
    staged : dict of str to Staged
        By topic id, in the order of first use.
    """

    def __init__(self, *, transactional: bool) -> None:
        self.producer: ProducerEpoch | None = None
        self.transactional = transactional
        self.staged: dict[str, Staged] = {}
        self._sequences: dict[tuple[str, int], int] = {}
        self._segments: dict[str, int] = {}

    def restart(self, producer: ProducerEpoch | None) -> None:
        """Forget what is staged, and number from 0 under `producer`."""
        self.producer = producer
        self.staged = {}
        self._sequences = {}
        self._segments = {}

    def stage(
        self,
        topic: TopicLog,
        settings: TopicSettings,
        segments: Sequence[StagedSegment],
        metadata: Sequence[tuple[RecordMetadata, ...]],
    ) -> None:
        """Take uploaded segments; they get their sequences here.

        Parameters
        ----------
        topic, settings
            Where to, and as what it was known.
        segments : sequence of StagedSegment
            Of each partition in order.
        metadata : sequence of tuple
            For each segment whom to tell its offsets.

        Raises
        ------
        RecordTooLargeError
            The transaction has more segments in the topic than one projection can hold: abort.
        """
        self._count_segments(settings, len(segments))
        staged = self.staged.setdefault(settings.topic_id, Staged(topic, settings))
        for segment, tell in zip(segments, metadata, strict=True):
            staged.segments.append(SequencedSegment(segment, self._take_sequence(settings.topic_id, segment)))
            staged.metadata.append(tell)

    def _count_segments(self, settings: TopicSettings, more: int) -> None:
        counted = self._segments.get(settings.topic_id, 0) + more
        if self.transactional and counted > LARGEST_TRANSACTION_SEGMENTS:
            raise RecordTooLargeError(
                "too many segments of a transaction in one topic; abort, then write larger ones or in parts",
                topic=settings.name,
                segments=counted,
                most=LARGEST_TRANSACTION_SEGMENTS,
            )
        self._segments[settings.topic_id] = counted

    def _take_sequence(self, topic_id: str, segment: StagedSegment) -> int | None:
        if self.producer is None:
            return None
        first = self._sequences.get((topic_id, segment.partition), 0)
        self._sequences[topic_id, segment.partition] = first + segment.records
        return first

    def append_all(self, verify_for: VerifyFor) -> None:
        """Append everything that is staged, commit by commit; what is durable is staged no more.

        Parameters
        ----------
        verify_for : callable
            (topic id, partitions) -> what is asked at every attempt.

        Raises
        ------
        CommitStateUnknownError
            Call again: exactly the same batches are appended.
        TxnTableError
            Whatever refuses.
        """
        for topic_id, staged in list(self.staged.items()):
            for part in split_for_commits(staged.segments):
                partitions = frozenset(item.segment.partition for item in part)
                request = AppendRequest(topic_id, self.producer, self.transactional, part)
                offsets = staged.topic.append(request, verify_for(topic_id, partitions))
                self._deliver(staged, part, offsets)
            del self.staged[topic_id]

    def _deliver(self, staged: Staged, part: tuple[SequencedSegment, ...], offsets: tuple[int, ...]) -> None:
        for item, base in zip(part, offsets, strict=True):
            told = staged.metadata.pop(0)
            staged.segments.pop(0)
            partition, records = item.segment.partition, item.segment.records
            if len(told) == records and records > 1:
                for delta, metadata in enumerate(told):
                    metadata.deliver(OffsetRange(partition, base + delta, base + delta))
            else:
                for metadata in told:
                    metadata.deliver(OffsetRange(partition, base, base + records - 1))
