"""What a producer has taken and not yet handed on: rows, uploaded segments, unpublished topics.

Owns the order *upload, append, publish* and the rule that nothing is forgotten before the next
stage has it: a call after a failure goes on where the failed one stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from txntable.client.accumulator import RecordAccumulator
from txntable.client.appender import Appender, Staged, VerifyFor
from txntable.client.records import RecordMetadata
from txntable.client.segment_upload import upload_rows
from txntable.log.delta_log import LogContext
from txntable.partition.batch import ProducerEpoch
from txntable.segment import SegmentPlan, StagedSegment
from txntable.topic import TopicSettings
from txntable.topic_log import TopicLog


class Outbox:
    """The outbox of one producer.

    Parameters
    ----------
    context : LogContext
        Of the warehouse.
    topic_log : callable
        Topic name -> its logs.
    transactional : bool
        Whether markers decide about what is appended.
    """

    def __init__(self, context: LogContext, topic_log: Callable[[str], TopicLog], *, transactional: bool) -> None:
        self.topic_log = topic_log
        self._context = context
        self._appender = Appender(transactional=transactional)
        self._accumulators: dict[str, RecordAccumulator] = {}
        self._unpublished: dict[str, TopicLog] = {}

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

    def restart(self, producer: ProducerEpoch | None) -> None:
        """Forget rows and segments, and number batches from 0 under `producer`."""
        self._accumulators = {}
        self._appender.restart(producer)

    def accumulator(self, topic: str) -> RecordAccumulator:
        """Return where rows of a topic wait.

        Raises
        ------
        UnknownTopicOrPartitionError
            There is no such topic.
        """
        if topic not in self._accumulators:
            self._accumulators[topic] = RecordAccumulator(self.topic_log(topic).settings())
        return self._accumulators[topic]

    def plan(self, topic: TopicLog, settings: TopicSettings) -> SegmentPlan:
        """Return what segments that are uploaded now have in common."""
        producer = self._appender.producer
        owner = None if producer is None else (producer.producer_id, producer.epoch)
        return SegmentPlan(topic.segments.root, settings, owner, self._context.clock.now_ms())

    def stage(
        self, topic: TopicLog, settings: TopicSettings, segments: Sequence[StagedSegment], metadata: RecordMetadata
    ) -> None:
        """Take segments that someone else uploaded."""
        self._appender.stage(topic, settings, segments, [(metadata,)] * len(segments))

    def upload(self) -> None:
        """Upload all rows that wait.

        Raises
        ------
        StoreUnavailableError
            Call again: what was not uploaded still waits.
        """
        for name, accumulator in list(self._accumulators.items()):
            topic = self.topic_log(name)
            while (rows := accumulator.next_rows()) is not None:
                segment = upload_rows(self._context, self.plan(topic, accumulator.settings), rows)
                self._appender.stage(topic, accumulator.settings, [segment], [rows.metadata])
                accumulator.forget_rows()
            del self._accumulators[name]

    def append(self, verify_for: VerifyFor) -> None:
        """Append all segments; see :meth:`txntable.client.appender.Appender.append_all`."""
        self._appender.append_all(verify_for)

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
