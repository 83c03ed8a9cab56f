"""What a producer has taken and not yet handed on: rows, uploaded segments, unpublished topics.

Owns the order *upload, append, publish* and the rule that nothing is forgotten before the next
stage has it: a call after a failure goes on where the failed one stopped.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby, takewhile
from operator import attrgetter

from txntable.coordinator.manifest import Manifest
from txntable.errors import TransactionAbortedError, TxnTableError
from txntable.format.records import BatchDelivery, RecordMetadata, fail_all
from txntable.format.topic import TopicSettings
from txntable.log.log_view import LogContext, moments
from txntable.partition.batch import ProducerEpoch
from txntable.producer.accumulator import RecordAccumulator
from txntable.producer.appender import Appender, Staged, VerifyFor
from txntable.producer.partitioner import StickyPartition, TopicPartitioner
from txntable.producer.producer_config import ProducerConfig
from txntable.producer.segment_upload import uploads
from txntable.producer.waiting_batch import WaitingBatch
from txntable.runtime.counters import Counters
from txntable.runtime.environment import Instant
from txntable.segments.segment import SegmentPlan, StagedSegment
from txntable.storage.side_by_side import side_by_side
from txntable.topics.topic_log import TopicLog

logger = logging.getLogger(__name__)

# How long before a commit is asked for its topics may have been read (PROTOCOL.md §6.3).
_RECENT_MS = 1_000
# Asked for each record: without a frame of Python for each topic.
_FULL = attrgetter("full")


class Outbox:
    """The outbox of one producer.

    Parameters
    ----------
    config : ProducerConfig
        Sizes, partitioner, codec; with a transactional id markers decide about what is appended.
    context : LogContext
        Of the warehouse.
    topic_log : callable
        Topic name -> its logs.
    counters : Counters
        Of the producer.
    """

    def __init__(
        self,
        config: ProducerConfig,
        context: LogContext,
        topic_log: Callable[[str], TopicLog],
        counters: Counters,
    ) -> None:
        self.topic_log = topic_log
        self._counters = counters
        self._config = config
        self._context = context
        self._appender = Appender(transactional=config.transactional_id is not None)
        self._accumulators: dict[str, RecordAccumulator] = {}
        self._partitioners: dict[str, TopicPartitioner] = {}
        self._unpublished: dict[str, TopicLog] = {}
        self._staged_since: Instant | None = None
        # Names of topics: of the last transaction, of this one, and read for it before their first record.
        self._used: frozenset[str] = frozenset()
        self._using: set[str] = set()
        self._read_ahead: set[str] = set()
        # By topic id, of topics whose marker has its file: when the reading was asked for that no record of the
        # transaction for it came after; None: a record came.
        self._looked_at: dict[str, Instant | None] = {}

    @property
    def producer(self) -> ProducerEpoch | None:
        """Under which producer id and epoch everything goes out; ``None``: at least once."""
        return self._appender.producer

    @property
    def staged(self) -> Mapping[str, Staged]:
        """The uploaded segments by topic id."""
        return self._appender.staged

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits, at any stage."""
        return not (self._accumulators or self._appender.staged or self._unpublished)

    @property
    def is_full(self) -> bool:
        """Whether a partition's rows are worth a segment."""
        return any(map(_FULL, self._accumulators.values()))

    @property
    def waiting_since(self) -> Instant | None:
        """When the oldest record that waits, at any stage, was sent, or earlier; ``None``: none waits."""
        waiting = [self._staged_since, *(accumulator.waiting_since for accumulator in self._accumulators.values())]
        return min((since for since in waiting if since is not None), key=lambda since: since.boot_ms, default=None)

    def tell_of_unsent(self) -> None:
        """Say that what waits is lost, once nobody can hand it on any more: the program went without a flush."""
        staged = {each.settings.name for each in self._appender.staged.values()}
        # An accumulator whose only record was refused holds nothing.
        held = {name for name, one in self._accumulators.items() if one.waiting_since is not None}
        if topics := sorted(held | staged):
            logger.warning(
                "a producer without a transaction was dropped, or the program ended, before flush() or close(): what it"
                " sent last is lost; close it, or use it in a with block topics=%s",
                ",".join(topics),
            )

    def restart(self, producer: ProducerEpoch | None, cause: TxnTableError | None = None) -> None:
        """Forget rows and segments, and number batches from 0 under `producer`.

        Parameters
        ----------
        producer : ProducerEpoch or None
            ``None``: at least once.
        cause : TxnTableError, optional
            Why what is forgotten will never be delivered; default: its transaction was aborted.
        """
        dropped = list(self._waiting_deliveries())
        self._accumulators = {}
        self._appender.restart(producer)
        self._staged_since = None
        self._used, self._using, self._read_ahead = frozenset(self._using or self._used), set(), set()
        self._looked_at = {}
        if dropped:
            self._counters.add("producer-metrics/record-error-total", sum(one.records for one in dropped))
            fail_all(
                dropped,
                cause
                or TransactionAbortedError(
                    "the transaction was aborted before the record was appended; send it again in another transaction"
                ),
            )

    def _waiting_deliveries(self) -> Iterator[BatchDelivery]:
        for staged in self._appender.staged.values():
            yield from staged.deliveries
        for accumulator in self._accumulators.values():
            yield from (batch.delivery for batch in accumulator.waiting)

    def accumulator(self, topic: str) -> RecordAccumulator:
        """Return where rows of a topic wait.

        Raises
        ------
        UnknownTopicOrPartitionError
            There is no such topic.
        """
        if topic not in self._accumulators:
            self._accumulators[topic] = RecordAccumulator(
                self._settings(topic),
                self._config,
                self._partitioner(topic),
                self._context.environment.instant,
            )
        return self._accumulators[topic]

    def _settings(self, topic: str) -> TopicSettings:
        """Return a topic's settings as they are now; with the first topic, those of the last transaction are read."""
        if topic not in self._read_ahead:
            self._read({topic})
        self._read_ahead.discard(topic)
        self._using.add(topic)
        return self.topic_log(topic).known_settings()

    def settings_of(self, topics: Collection[str]) -> dict[str, TopicSettings]:
        """Return settings of topics as they have been since the transaction began, by name.

        Raises
        ------
        UnknownTopicOrPartitionError
            There is no such topic.
        """
        self._read({topic for topic in topics if topic not in self._using | self._read_ahead})
        found = {topic: self.topic_log(topic).known_settings() for topic in topics}
        self._using.update(topics)
        return found

    def _read(self, topics: set[str]) -> None:
        """Read the partition logs of topics; with the first ones of a transaction, those of the last one."""
        if not topics:
            return
        names, asked = topics if self._using else topics | self._used, next(moments)
        logs = [self.topic_log(name) for name in sorted(names)]
        new = [log for log in logs if not log.is_proved_whole]
        readings = [partial(log.segments.read_since, asked) for log in logs]
        side_by_side(self._context.store, readings + [log.read_public for log in new])
        for log in new:
            log.require_decided()
            log.prove_whole()
        self._read_ahead |= names - self._using

    def _partitioner(self, topic: str) -> TopicPartitioner:
        if topic not in self._partitioners:
            config = self._config
            sticky = StickyPartition(self._context.environment, config.batch_size)
            self._partitioners[topic] = TopicPartitioner(
                config.partitioner, sticky, ignore_keys=config.partitioner_ignore_keys
            )
        return self._partitioners[topic]

    def plan(self, topic: TopicLog, settings: TopicSettings) -> SegmentPlan:
        """Return what segments that are uploaded now have in common."""
        producer = self._appender.producer
        owner = None if producer is None else (producer.producer_id, producer.epoch)
        now_ms = self._context.clock.now_ms()
        return SegmentPlan(topic.segments.root, settings, owner, now_ms, self._config.compression_type)

    def stage(
        self, topic: TopicLog, settings: TopicSettings, segments: Sequence[StagedSegment], metadata: RecordMetadata
    ) -> None:
        """Take segments that someone else uploaded."""
        metadata.expect(sum(segment.records for segment in segments))
        deliveries = []
        for one in segments:
            deliveries.append(BatchDelivery())
            deliveries[-1].add(metadata, one.records)
        self._stage(topic, settings, segments, deliveries)

    def _stage(
        self,
        topic: TopicLog,
        settings: TopicSettings,
        segments: Sequence[StagedSegment],
        deliveries: Sequence[BatchDelivery],
    ) -> None:
        self._count(segments)
        if settings.topic_id in self._looked_at:
            self._looked_at[settings.topic_id] = None
        self._appender.stage(topic, settings, segments, deliveries)

    def upload(self, *, only_full: bool = False, beside: Sequence[Callable[[], object]] = ()) -> None:
        """Upload rows that wait.

        Parameters
        ----------
        only_full : bool
            Whether what is not worth a segment yet goes on waiting.
        beside : sequence of callable
            What is to be done at the same time.

        Raises
        ------
        StoreUnavailableError
            Call again: what was not uploaded still waits.
        """
        waiting = [
            (name, accumulator, batch)
            for name, accumulator in self._accumulators.items()
            if accumulator.full or not only_full
            for batch in accumulator.close_batches(only_full=only_full)
        ]
        uploaded: dict[WaitingBatch, StagedSegment] = {}
        calls: list[Callable[[], object]] = []
        for name, of_topic in groupby(waiting, key=lambda one: one[0]):
            plan = self.plan(self.topic_log(name), self._accumulators[name].settings)
            calls.extend(uploads(self._context, plan, [batch for _, _, batch in of_topic], uploaded))
        try:
            side_by_side(self._context.store, [*calls, *beside])
        finally:
            # What follows a batch that failed is uploaded again after it: a partition's sequences have no holes.
            for name, accumulator, batch in takewhile(lambda one: one[2] in uploaded, waiting):
                self._stage_uploaded(name, accumulator, batch, uploaded[batch])

    def _stage_uploaded(
        self, name: str, accumulator: RecordAccumulator, batch: WaitingBatch, segment: StagedSegment
    ) -> None:
        self._staged_since = self._staged_since or accumulator.waiting_since
        self._stage(self.topic_log(name), accumulator.settings, [segment], [batch.delivery])
        accumulator.forget(batch)
        if accumulator.waiting_since is None:
            # The next record finds the topic as it is then.
            del self._accumulators[name]

    def _count(self, segments: Sequence[StagedSegment]) -> None:
        self._counters.add("producer-metrics/record-send-total", sum(one.records for one in segments))
        self._counters.add("producer-metrics/outgoing-byte-total", sum(one.size for one in segments))
        self._counters.add("producer-metrics/batch-total", len(segments))

    def carry(self, producer: ProducerEpoch) -> bool:
        """Make all that waits ready for a decision to carry it; return whether it can.

        Raises
        ------
        StoreUnavailableError
            Call again: what was not uploaded still waits.
        TxnTableError
            A topic refuses: see :meth:`txntable.topics.topic_log.TopicLog.check_append`.
        """
        self.prepare(producer)
        if self.manifest is None:
            return False
        self._appender.check_all()
        return True

    def prepare(self, producer: ProducerEpoch, beside: Callable[[], object] | None = None) -> None:
        """Upload all that waits, and do what has to be done before a decision carries it.

        Uploads, readings of the topics' partition logs that are asked for now, and the files of the markers to come
        are on their way together; what was prepared a moment ago is not prepared again.

        Parameters
        ----------
        producer : ProducerEpoch
            Whose transaction it is.
        beside : callable, optional
            What is to be done at the same time.

        Raises
        ------
        StoreUnavailableError
            Call again: what was not uploaded still waits.
        """
        waiting = {one.settings.topic_id: self.topic_log(name) for name, one in self._accumulators.items()}
        topics = waiting | {topic_id: one.topic for topic_id, one in self._appender.staged.items()}
        instant, asked = self._context.environment.instant(), next(moments)
        old = [topic_id for topic_id in topics if topic_id in waiting or not self._is_looked_at(topic_id)]
        readings = [partial(topics[topic_id].segments.read_since, asked) for topic_id in old]
        new = [topic_id for topic_id in topics if topic_id not in self._looked_at]
        markers = [partial(topics[topic_id].prepare_marker, topic_id, producer) for topic_id in new]
        self.upload(beside=[*readings, *markers, *([] if beside is None else [beside])])
        self._looked_at |= dict.fromkeys(old, instant)

    def _is_looked_at(self, topic_id: str) -> bool:
        """Return whether a reading of a topic, after which no record came, is recent enough for a decision."""
        since = self._looked_at.get(topic_id)
        return since is not None and self._context.environment.since_ms(since) < _RECENT_MS

    def append(self, verify_for: VerifyFor) -> None:
        """Append all segments; see :meth:`txntable.producer.appender.Appender.append_all`."""
        self._appender.append_all(verify_for)

    @property
    def manifest(self) -> Manifest | None:
        """What is staged as a decision can carry it; ``None``: it is too large for one."""
        return self._appender.manifest()

    def decided(self) -> None:
        """Take note that a decision has carried what is staged: only its offsets are still to be told."""
        self._appender.decided()

    def deliver_decided(self) -> bool:
        """Tell the offsets that decided records have got; return whether all are known."""
        if self._appender.has_decided:
            try:
                # A power cut must not take away the entry that gave them.
                self._context.store.sync_read()
            except TxnTableError as error:
                logger.warning("the records are committed; their offsets are not told: %s", error)
                return False
        return self._appender.deliver_decided()

    def give_up_offsets(self) -> None:
        """Tell that records are committed whose offsets are not known."""
        self._appender.give_up_offsets()

    def append_and_publish(self) -> None:
        """Append all segments outside of a transaction, and project their topics.

        Raises
        ------
        CommitStateUnknownError, StoreUnavailableError
            Call again: exactly the same batches are appended.
        """
        self._unpublished.update((one.topic.name, one.topic) for one in self._appender.staged.values())
        self._appender.append_all(lambda topic_id, partitions: lambda log: None)
        for name, topic in list(self._unpublished.items()):
            topic.project()
            del self._unpublished[name]
        self._staged_since = None
