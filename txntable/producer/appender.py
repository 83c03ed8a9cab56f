"""Staged segments on their way into the partition logs: sequences, enrolment, append.

Owns the order *enrol, then append*, and the numbering of batches.  What was staged stays staged
until its append is known to be durable, so that a call after an unknown outcome repeats exactly
the same batches (PROTOCOL.md §5.4 makes that safe).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from txntable.coordinator.manifest import Manifest
from txntable.errors import RecordTooLargeError
from txntable.format.records import BatchDelivery, RecordMetadata
from txntable.format.topic import TopicSettings
from txntable.partition.append import (
    LARGEST_TRANSACTION_BYTES,
    LARGEST_TRANSACTION_SEGMENTS,
    AppendRequest,
    SequencedSegment,
    action_bytes,
    split_for_commits,
)
from txntable.partition.batch import ProducerEpoch
from txntable.partition.manifest import manifest_of
from txntable.segments.segment import StagedSegment, stamps_records
from txntable.storage.side_by_side import side_by_side
from txntable.topics.topic_log import TopicLog, Verify

# (topic log, topic id, partitions) -> what is asked at every attempt of an append.
VerifyFor = Callable[[str, frozenset[int]], Verify]
# What one commit has registered, and the offsets that it gave.
_Appended = tuple[tuple[SequencedSegment, ...], tuple[int, ...]]


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
    deliveries : list of BatchDelivery
        For each segment.
    """

    topic: TopicLog
    settings: TopicSettings
    segments: list[SequencedSegment] = field(default_factory=list)
    deliveries: list[BatchDelivery] = field(default_factory=list)

    @property
    def topic_id(self) -> str:
        """Of the topic as it was known when the segments were written."""
        return self.settings.topic_id

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
        # Of the transaction by topic id: segments, and bytes of their actions.
        self._registered: dict[str, tuple[int, int]] = {}
        # Sends whose records have all been appended, and whose callers have not been told.
        self._delivered: list[RecordMetadata] = []
        # Of what is staged, once it was asked for; a tuple, for it may be None.
        self._manifest: tuple[Manifest | None] | None = None
        # What decisions have carried, and whose offsets are not told yet.
        self._decided: list[Staged] = []

    def restart(self, producer: ProducerEpoch | None) -> None:
        """Forget what is staged, and number from 0 under `producer`."""
        self.producer = producer
        self.staged, self._manifest = {}, None
        self._sequences = {}
        self._registered = {}

    def stage(
        self,
        topic: TopicLog,
        settings: TopicSettings,
        segments: Sequence[StagedSegment],
        deliveries: Sequence[BatchDelivery],
    ) -> None:
        """Take uploaded segments; they get their sequences here.

        Parameters
        ----------
        topic, settings
            Where to, and as what it was known.
        segments : sequence of StagedSegment
            Of each partition in order.
        deliveries : sequence of BatchDelivery
            For each segment: takes its offsets.

        Raises
        ------
        RecordTooLargeError
            The transaction has more segments in the topic than one projection can hold: abort.
        """
        if not segments:
            # An empty write touches no partition: there is nothing to enrol.
            return
        self._manifest = None
        if self.transactional:
            self._count(settings, segments)
        staged = self.staged.setdefault(settings.topic_id, Staged(topic, settings))
        for segment in segments:
            staged.segments.append(SequencedSegment(segment, self._take_sequence(settings.topic_id, segment)))
        staged.deliveries += deliveries

    def _count(self, settings: TopicSettings, segments: Sequence[StagedSegment]) -> None:
        count, size = self._registered.get(settings.topic_id, (0, 0))
        count += len(segments)
        size += sum(action_bytes(segment) for segment in segments)
        if count > LARGEST_TRANSACTION_SEGMENTS or size > LARGEST_TRANSACTION_BYTES:
            raise RecordTooLargeError(
                "too many segments of one transaction in one topic; abort, then write larger ones (a DataFrame with"
                " distribution_mode='hash') or several transactions",
                topic=settings.name,
                segments=count,
                most=LARGEST_TRANSACTION_SEGMENTS,
                bytes=size,
                most_bytes=LARGEST_TRANSACTION_BYTES,
            )
        self._registered[settings.topic_id] = (count, size)

    def _take_sequence(self, topic_id: str, segment: StagedSegment) -> int | None:
        if self.producer is None:
            return None
        first = self._sequences.get((topic_id, segment.partition), 0)
        self._sequences[topic_id, segment.partition] = first + segment.records
        return first

    def manifest(self) -> Manifest | None:
        """Return what is staged as a decision can carry it; ``None``: it is too large for one, or has no producer."""
        if self.producer is None:
            return None
        if self._manifest is None:
            names = {topic_id: staged.settings.name for topic_id, staged in self.staged.items()}
            segments = {topic_id: one.segments for topic_id, one in self.staged.items()}
            self._manifest = (manifest_of(self.producer, names, segments),)
        return self._manifest[0]

    def check_all(self) -> None:
        """Return if all topics take what is staged, by their views as they are; raises as :meth:`append_all`."""
        for topic_id, staged in self.staged.items():
            request = AppendRequest(topic_id, self.producer, self.transactional, tuple(staged.segments))
            staged.topic.check_append(request)

    def decided(self) -> None:
        """Take note that a decision has carried all that is staged: its offsets are to be told."""
        self._decided.extend(self.staged.values())
        self.staged, self._manifest = {}, None

    @property
    def has_decided(self) -> bool:
        """Whether a decision has carried records whose offsets are not told yet."""
        return bool(self._decided)

    def deliver_decided(self) -> bool:
        """Tell the offsets of what decisions have carried, as far as views know them; return whether all are told."""
        waiting, self._decided = self._decided, []
        for staged in waiting:
            offsets = [staged.topic.base_offset(item.segment.path) for item in staged.segments]
            known = [offset for offset in offsets if offset is not None]
            if len(known) < len(offsets):
                self._decided.append(staged)
            else:
                self._deliver(staged, tuple(staged.segments), tuple(known))
        self._announce()
        return not self._decided

    def give_up_offsets(self) -> None:
        """Tell whom it concerns that records are committed, and their offsets not known."""
        waiting, self._decided = self._decided, []
        for staged in waiting:
            for delivery in staged.deliveries:
                self._delivered += delivery.deliver_somewhere()
        self._announce()

    def append_all(self, verify_for: VerifyFor) -> None:
        """Append everything that is staged, topics side by side, each commit by commit; what is durable is so no more.

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
        self._manifest = None
        staged = list(self.staged.items())
        # Taken note of only here: an interrupt leaves the threads to themselves.
        appended: list[list[_Appended]] = [[] for _ in staged]
        calls = [
            partial(self._append, topic_id, one, verify_for, parts)
            for (topic_id, one), parts in zip(staged, appended, strict=True)
        ]
        try:
            if staged:
                side_by_side(staged[0][1].topic.context.store, calls)
        finally:
            for (topic_id, one), parts in zip(staged, appended, strict=True):
                for part, offsets in tuple(parts):
                    self._deliver(one, part, offsets)
                if not one.segments:
                    del self.staged[topic_id]
            self._announce()

    def _append(self, topic_id: str, staged: Staged, verify_for: VerifyFor, appended: list[_Appended]) -> None:
        for part in split_for_commits(tuple(staged.segments)):
            partitions = frozenset(item.segment.partition for item in part)
            request = AppendRequest(topic_id, self.producer, self.transactional, part)
            appended.append((part, staged.topic.append(request, verify_for(topic_id, partitions))))

    def _deliver(self, staged: Staged, part: tuple[SequencedSegment, ...], offsets: tuple[int, ...]) -> None:
        told = staged.deliveries[: len(part)]
        del staged.deliveries[: len(part)], staged.segments[: len(part)]
        stamped = stamps_records(staged.settings)
        for item, offset, delivery in zip(part, offsets, told, strict=True):
            segment = item.segment
            self._delivered += delivery.deliver(segment.partition, offset, segment.first_timestamp_ms, stamped=stamped)

    def _announce(self) -> None:
        """Tell callers, once nothing is under way: they may send and flush from there."""
        told, self._delivered = self._delivered, []
        for metadata in told:
            metadata.announce()
