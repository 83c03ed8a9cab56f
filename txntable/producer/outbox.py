"""What a producer has taken and not yet handed on: rows, uploaded segments, unpublished topics.

Owns the order *upload, append, publish* and the rule that nothing is forgotten before the next
stage has it: a call after a failure goes on where the failed one stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from txntable.coordinator.manifest import Manifest
from txntable.errors import TransactionAbortedError, TxnTableError
from txntable.format.records import Delivery, RecordMetadata, fail_all
from txntable.format.topic import TopicSettings
from txntable.log.log_view import LogContext
from txntable.partition.batch import ProducerEpoch
from txntable.producer.accumulator import RecordAccumulator
from txntable.producer.appender import Appender, Staged, VerifyFor
from txntable.producer.partitioner import StickyPartition, TopicPartitioner
from txntable.producer.producer_config import ProducerConfig
from txntable.producer.segment_upload import upload_batches
from txntable.runtime.environment import Instant
from txntable.segments.segment import SegmentPlan, StagedSegment
from txntable.topics.topic_log import TopicLog


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
    """

    def __init__(self, config: ProducerConfig, context: LogContext, topic_log: Callable[[str], TopicLog]) -> None:
        self.topic_log = topic_log
        self._config = config
        self._context = context
        self._appender = Appender(transactional=config.transactional_id is not None)
        self._accumulators: dict[str, RecordAccumulator] = {}
        self._partitioners: dict[str, TopicPartitioner] = {}
        self._unpublished: dict[str, TopicLog] = {}
        self._staged_since: Instant | None = None

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
        return any(accumulator.is_full for accumulator in self._accumulators.values())

    @property
    def waiting_since(self) -> Instant | None:
        """When the oldest record that waits, at any stage, was sent, or earlier; ``None``: none waits."""
        waiting = [self._staged_since, *(accumulator.waiting_since for accumulator in self._accumulators.values())]
        return min((since for since in waiting if since is not None), key=lambda since: since.boot_ms, default=None)

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
        if dropped:
            fail_all(
                dropped,
                cause
                or TransactionAbortedError(
                    "the transaction was aborted before the record was appended; send it again in another transaction"
                ),
            )

    def _waiting_deliveries(self) -> Iterator[Delivery]:
        for staged in self._appender.staged.values():
            for deliveries in staged.deliveries:
                yield from deliveries
        for accumulator in self._accumulators.values():
            for batch in accumulator.waiting:
                yield from batch.deliveries

    def accumulator(self, topic: str) -> RecordAccumulator:
        """Return where rows of a topic wait.

        Raises
        ------
        UnknownTopicOrPartitionError
            There is no such topic.
        """
        if topic not in self._accumulators:
            self._accumulators[topic] = RecordAccumulator(
                self.topic_log(topic).settings(),
                self._config,
                self._partitioner(topic),
                self._context.environment.instant,
            )
        return self._accumulators[topic]

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
        self._appender.stage(topic, settings, segments, [(Delivery(metadata, one.records),) for one in segments])

    def upload(self, *, only_full: bool = False) -> None:
        """Upload rows that wait.

        Parameters
        ----------
        only_full : bool
            Whether what is not worth a segment yet goes on waiting.

        Raises
        ------
        StoreUnavailableError
            Call again: what was not uploaded still waits.
        """
        for name, accumulator in list(self._accumulators.items()):
            if only_full and not accumulator.is_full:
                continue
            self._staged_since = self._staged_since or accumulator.waiting_since
            topic, settings = self.topic_log(name), accumulator.settings
            batches = accumulator.close_batches(only_full=only_full)
            for batch, segment in upload_batches(self._context, self.plan(topic, settings), batches):
                self._appender.stage(topic, settings, [segment], [tuple(batch.deliveries)])
                accumulator.forget(batch)
            if accumulator.waiting_since is None:
                # The next record finds the topic as it is then.
                del self._accumulators[name]

    def append(self, verify_for: VerifyFor) -> None:
        """Append all segments; see :meth:`txntable.producer.appender.Appender.append_all`."""
        self._appender.append_all(verify_for)

    @property
    def manifest(self) -> Manifest | None:
        """What is staged as a decision can carry it; ``None``: it is too large for one."""
        return self._appender.manifest()

    def check_staged(self) -> None:
        """Return if all topics take what is staged; see :meth:`txntable.producer.appender.Appender.check_all`."""
        self._appender.check_all()

    def decided(self) -> None:
        """Take note that a decision has carried what is staged: only its offsets are still to be told."""
        self._appender.decided()

    def deliver_decided(self) -> bool:
        """Tell the offsets that decided records have got; return whether all are known."""
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
