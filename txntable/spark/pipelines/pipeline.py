"""Consume, transform, produce: what a group has not read yet becomes records of other topics, in one transaction.

Owns the order of a run: the producer's init ends what a killed run left open; then the range is read, and the group
metadata is frozen with it; outputs, changed state and offsets are one decision.  So a run counts once or not at all,
and two that read the same range cannot both commit.  Must not know how a function is found.

Who keeps state is the only writer of it: a pipeline with state has one instance, and starting it a second time fences
the first.  What is read each time: the range, once for every output unless the function persists it; and of the state
topic everything that is committed.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, TypeAlias

from pyspark.sql import DataFrame, SparkSession

from txntable.consumer.consumer import Consumer
from txntable.coordinator.batch_memory import BatchId
from txntable.errors import (
    BatchAlreadyCommittedError,
    CommitFailedError,
    FencedMemberEpochError,
    GroupIdNotFoundError,
    IllegalGenerationError,
    InvalidRequestError,
    RetriableError,
    StaleMemberEpochError,
    UnknownMemberIdError,
)
from txntable.groups.member_config import DEFAULT_HEARTBEAT_INTERVAL_MS, DEFAULT_MAX_POLL_INTERVAL_MS
from txntable.producer.producer import Producer
from txntable.producer.transaction import Transaction
from txntable.spark.pipelines.latest_rows import latest_rows
from txntable.spark.pipelines.pipeline_config import PipelineConfig, check_topics

if TYPE_CHECKING:
    from txntable.format.records import TopicPartition
    from txntable.warehouse.warehouse import Warehouse

Frames: TypeAlias = Mapping[str, DataFrame]
Transform: TypeAlias = Callable[[Frames], Frames]
"""What was read, by topic, the state's latest rows among it -> what is written, by topic, changed rows of the state
among it."""

logger = logging.getLogger(__name__)

# What a record carries beside its topic's columns and its time, and what no topic takes.
_OF_THE_SOURCE = ("_partition", "_offset", "_commit")
_STEP_MS = 200
# The next run settles it: it reads what this instance owns by then, from what is committed by then.
_PASSING = (
    RetriableError,
    CommitFailedError,
    FencedMemberEpochError,
    GroupIdNotFoundError,
    IllegalGenerationError,
    StaleMemberEpochError,
    UnknownMemberIdError,
)


@dataclass(frozen=True, slots=True)
class PipelineRun:
    """What one run did.

    Attributes
    ----------
    read : Mapping of TopicPartition to (int, int)
        The offsets that are committed now, from and before; empty: there were none.
    already_committed : bool
        Whether a run with this batch id had committed before: nothing was done.
    """

    read: Mapping[TopicPartition, tuple[int, int]]
    already_committed: bool = False

    @property
    def offsets(self) -> int:
        """How many offsets that were; records are fewer where there are markers."""
        return sum(end - start for start, end in self.read.values())

    def __str__(self) -> str:
        if self.already_committed:
            return "this batch id has committed before, nothing was done"
        if not self.read:
            return "there was nothing to read"
        return f"committed offsets={self.offsets} {_words(self.read)}"


def _words(ranges: Mapping[TopicPartition, tuple[int, int]]) -> str:
    return " ".join(f"{each.topic}-{each.partition}={start}..{end}" for each, (start, end) in sorted(ranges.items()))


class Pipeline:
    """Runs a pipeline in this process.

    Parameters
    ----------
    warehouse : Warehouse
        Has all topics.
    spark : SparkSession
        With Delta.
    config : PipelineConfig
        What is read and written.
    transform : callable
        See :data:`Transform`; :mod:`txntable.spark.pipelines.transforms` makes one of a function of DataFrames, or of
        SQL.

    Examples
    --------
    >>> config = PipelineConfig("delays", sources=("flights",), targets=("delays",))
    >>> with Pipeline(warehouse, spark, config, transform) as pipeline:  # doctest: +SKIP
    ...     pipeline.run_once(batch_id="2026-11-20")
    """

    def __init__(self, warehouse: Warehouse, spark: SparkSession, config: PipelineConfig, transform: Transform) -> None:
        self._warehouse, self._spark, self._config, self._transform = warehouse, spark, config, transform
        self._producer: Producer | None = None
        self._consumer: Consumer | None = None

    def run_once(self, batch_id: BatchId | None = None) -> PipelineRun:
        """Read what is new, transform it, and commit all that comes of it.

        Parameters
        ----------
        batch_id : str or int, optional
            Names the run, such as a scheduler does: once it has committed, the same again does nothing.  A string of
            digits alone is refused.

        Raises
        ------
        InvalidConfigError, UnknownTopicOrPartitionError
            Mend the settings, or create the topics.
        AbortableError, RetriableError
            Nothing was committed, unless it is a CommitStateUnknownError: run again.
        FatalError
            Another process has started the same instance: leave the work to it.
        Exception
            Whatever the function or its Spark jobs raise, with a note that names the offsets; nothing was committed.
        """
        # Long enough that the partitions of an instance that died are waited for.
        return self._run_once(batch_id, wait_ms=2 * self._config.session_timeout_ms)

    def _run_once(self, batch_id: BatchId | None, wait_ms: int) -> PipelineRun:
        producer, consumer = self._clients()
        try:
            with contextlib.ExitStack() as stack:
                try:
                    transaction = stack.enter_context(producer.transaction(batch_id))
                except BatchAlreadyCommittedError:
                    return PipelineRun({}, already_committed=True)
                return PipelineRun(self._fill(transaction, consumer, wait_ms))
        except RetriableError:
            # How the transaction ended is not known here; the next producer's init finds out.
            self._producer = None
            raise

    def run(self, stop: Callable[[], bool], tell: Callable[[PipelineRun], object]) -> None:
        """Run again and again; wait where there was nothing to read.

        What another run settles by itself (a lost partition, a store that does not answer) is logged and tried again.

        Parameters
        ----------
        stop : callable
            Asked several times a second; ``True``: return after the run under way.
        tell : callable
            Gets what each run did that read something.

        Raises
        ------
        TxnTableError, Exception
            As :meth:`run_once`, save what the next run settles.
        """
        environment = self._warehouse.context.environment
        while not stop():
            done = self._tried()
            if done is not None and done.read:
                tell(done)
                continue
            began = environment.instant()
            while not stop() and (rest_ms := self._config.interval_ms - environment.since_ms(began)) > 0:
                environment.sleep_ms(min(_STEP_MS, rest_ms))

    def _tried(self) -> PipelineRun | None:
        try:
            return self._run_once(None, wait_ms=0)
        except _PASSING as error:
            logger.warning("nothing was committed, the run is tried again: %s", error)
            return None

    def _clients(self) -> tuple[Producer, Consumer]:
        """Return the producer and the consumer; the first time they take the instance over from an earlier process."""
        config = self._config
        if self._producer is None:
            producer = self._warehouse.producer(
                config.transactional_id, transaction_timeout_ms=config.transaction_timeout_ms
            )
            # Before anything is read: it ends what a killed run left open, so that the offsets are settled.
            producer.init_transactions()
            self._producer = producer
        if self._consumer is None:
            check_topics(config, lambda topic: self._warehouse.topic_log(topic).settings())
            consumer = self._warehouse.consumer(
                group_id=config.group,
                group_instance_id=config.instance,
                auto_offset_reset=config.auto_offset_reset,
                enable_auto_commit=False,
                session_timeout_ms=config.session_timeout_ms,
                heartbeat_interval_ms=min(DEFAULT_HEARTBEAT_INTERVAL_MS, config.session_timeout_ms // 3),
                # Between two runs it waits for the interval.
                max_poll_interval_ms=DEFAULT_MAX_POLL_INTERVAL_MS + config.interval_ms,
            )
            consumer.subscribe(config.sources)
            self._consumer = consumer
        return self._producer, self._consumer

    def _fill(
        self, transaction: Transaction, consumer: Consumer, wait_ms: int
    ) -> Mapping[TopicPartition, tuple[int, int]]:
        """Read, transform and write; return the offsets that the transaction commits."""
        frames = self._read(consumer, wait_ms)
        # A group that stands nowhere yet takes its stand with the first run, also where there is nothing to read.
        read = {partition: (start, end) for partition, (start, end) in consumer.ranges().items() if start < end}
        try:
            written = self._transformed(frames) if read else {}
            transaction.write_all(written, distribution_mode=self._config.distribution_mode)
        except Exception as error:
            error.add_note(f"nothing is committed of what it read: {_words(read)}")
            raise
        transaction.send_offsets(consumer)
        return read

    def _read(self, consumer: Consumer, wait_ms: int) -> dict[str, DataFrame]:
        config = self._config
        most = config.max_offsets_per_partition
        if len(config.sources) == 1:
            found = consumer.read(self._spark, max_offsets_per_partition=most, timeout_ms=wait_ms)
            frames = {config.sources[0]: found}
        else:
            # They may be joined: what one transaction wrote to several of them comes in one run.
            read = consumer.read_together(self._spark, max_offsets_per_partition=most, timeout_ms=wait_ms)
            frames = {topic: read[topic] for topic in config.sources}
        if config.state is not None:
            settings = self._warehouse.topic_log(config.state).settings()
            records = self._warehouse.read(self._spark, config.state)
            frames[config.state] = latest_rows(records, settings)
        return frames

    def _transformed(self, frames: Frames) -> dict[str, DataFrame]:
        found = self._transform(frames)
        if others := sorted(set(found) - set(self._config.outputs)):
            raise InvalidRequestError(
                "the function returns records of a topic that the pipeline does not write; name it as a target",
                topics=",".join(others),
                targets=",".join(self._config.outputs),
            )
        return {topic: records.drop(*_OF_THE_SOURCE) for topic, records in found.items()}

    def close(self) -> None:
        """Close: the instance remains a member of its group until its session is over, or it is started again."""
        if self._consumer is not None:
            self._consumer.close()
        if self._producer is not None:
            self._producer.close()
        self._consumer = self._producer = None

    def __enter__(self) -> Pipeline:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
