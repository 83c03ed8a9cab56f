"""Kafka's records as records of a topic: read by Spark, committed together with Kafka's offsets.

Owns the order: the producer's init ends what a killed mirror left open, and fences one that still runs; only then the
positions are read.  They are offsets of the group :data:`GROUP` in *the target's* partitions of the same numbers, so
the target has at least as many partitions as Kafka's topic.  A mirror that nobody runs for ``offsets.retention`` loses
them, and refuses to go on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame, functions

from txntable.errors import SchemaMismatchError, UnknownTopicOrPartitionError
from txntable.format.records import TopicPartition
from txntable.format.schema import KAFKA_SCHEMA
from txntable.format.topic import TopicSettings
from txntable.jobs.mirror.positions import MirrorRun, Position, Source, ranges, resumed, sought
from txntable.jobs.mirror.spark_kafka import SparkKafka, jobs_errors
from txntable.offsets.group_commit import OffsetAndMetadata

if TYPE_CHECKING:
    from txntable.warehouse.warehouse import Warehouse

GROUP = "mirror-from-kafka"
MIRROR_SCHEMA = pa.schema(
    [
        *KAFKA_SCHEMA,
        pa.field("kafka_topic", pa.string()),
        pa.field("kafka_partition", pa.int32()),
        pa.field("kafka_offset", pa.int64()),
    ]
)
"""Of a topic that the mirror creates; one that is there may have fewer of these, but key and value."""
_NAMES_IN_SPARK = {"kafka_topic": "topic", "kafka_partition": "partition", "kafka_offset": "offset"}


class FromKafka:
    """Mirrors a topic of Kafka into one of a warehouse.

    Parameters
    ----------
    warehouse : Warehouse
        Where the records go.
    kafka : SparkKafka
        Where they come from.
    source : str
        Kafka's topic.
    target : str
        Ours; created where there is none.
    most_offsets : int or None
        Of a partition, in one transaction; ``None``: everything there is.
    """

    def __init__(
        self, warehouse: Warehouse, kafka: SparkKafka, source: str, target: str, most_offsets: int | None = None
    ) -> None:
        self._warehouse, self._kafka, self._source, self._target = warehouse, kafka, source, target
        self._most = most_offsets
        # Of an id that is the target's: whoever mirrors into it later fences this one.
        self._producer = warehouse.producer(f"{GROUP}-{target}")
        # Of everything that was ever appended, aborted or not: whether the target is as new.
        self._consumer = warehouse.consumer(
            group_id=GROUP, enable_auto_commit=False, isolation_level="read_uncommitted"
        )
        self._settings = self._prepared()
        self._producer.init_transactions()

    def _prepared(self) -> TopicSettings:
        """Return the target, with all the partitions that it needs."""
        count, admin = len(self._kafka.source(self._source).starts), self._warehouse.admin()
        try:
            settings = self._warehouse.topic_log(self._target).settings()
        except UnknownTopicOrPartitionError:
            settings = admin.create_topic(self._target, partitions=count, schema=MIRROR_SCHEMA, key=["key"])
        if missing := {"key", "value"} - set(settings.schema.names):
            raise SchemaMismatchError(
                "a mirror needs the columns key and value; mirror into a topic that has them, or does not exist yet",
                topic=self._target,
                missing=",".join(sorted(missing)),
            )
        if settings.partitions < count:
            settings = admin.create_partitions({self._target: count})[self._target]
        return settings

    def ends(self) -> Mapping[int, int]:
        """Return up to where Kafka's topic is committed now, by partition."""
        return self._kafka.source(self._source).ends

    def run(self, goal: Mapping[int, int] | None = None) -> MirrorRun:
        """Mirror what is new, in one transaction.

        Parameters
        ----------
        goal : Mapping of int to int, optional
            Go no further, by partition; default: as far as Kafka's topic is committed.

        Raises
        ------
        OffsetOutOfRangeError, UnknownTopicOrPartitionError
            See :func:`txntable.jobs.mirror.positions.resumed`: nothing was mirrored.
        FatalError
            Another process mirrors into the same topic: leave it to that.
        TransactionAbortableError
            Kafka or the Spark job failed: nothing was mirrored; run the mirror anew.
        TxnTableError
            The store failed: likewise, unless it is a CommitStateUnknownError.
        """
        source = self._kafka.source(self._source)
        if len(source.starts) > self._settings.partitions:
            self._settings = self._prepared()
        positions = self._resumed(source)
        bounds = ranges(positions, source.ends if goal is None else goal, self._most)
        if bounds:
            with jobs_errors(self._source), self._producer.transaction() as transaction:
                transaction.write(self._target, self._frame(bounds))
                self._check_is_still(source)
                self._send(source, positions | {partition: end for partition, (_, end) in bounds.items()})
        return MirrorRun(bounds)

    def _check_is_still(self, source: Source) -> None:
        """Refuse what was read of a topic that was created again meanwhile: its offsets are another's."""
        found = self._kafka.source(self._source).origin
        if found != source.origin:
            raise UnknownTopicOrPartitionError(
                "the topic was created again while it was read, and nothing of it was mirrored; run the mirror again",
                topic=self._source,
                found=found,
                mirrored=source.origin,
            )

    def _resumed(self, source: Source) -> dict[int, int]:
        stored = self._stored()
        is_new = not stored and not any(self._consumer.end_offsets(self._partitions()).values())
        found = resumed(source, stored, target_is_empty=is_new)
        if not stored:
            # Before the first record: from here on there are positions, whatever is aborted.
            self._commit(source, found)
        return found

    def keep(self) -> None:
        """Commit the positions as they are: offsets that nobody commits expire."""
        source = self._kafka.source(self._source)
        self._commit(source, self._resumed(source))

    def seek(self, asked: Mapping[int, int]) -> Mapping[int, int]:
        """Set where the mirror goes on, and return it; see :func:`txntable.jobs.mirror.positions.sought`."""
        source = self._kafka.source(self._source)
        found = sought(source, self._stored(), asked)
        self._commit(source, found)
        return found

    def _commit(self, source: Source, positions: Mapping[int, int]) -> None:
        with self._producer.transaction():
            self._send(source, positions)

    def _send(self, source: Source, positions: Mapping[int, int]) -> None:
        offsets = {
            TopicPartition(self._target, partition): OffsetAndMetadata(offset, source.origin)
            for partition, offset in positions.items()
        }
        self._producer.send_offsets_to_transaction(offsets, GROUP)

    def _stored(self) -> dict[int, Position]:
        found = self._consumer.committed(self._partitions())
        return {
            partition.partition: Position(committed.offset, committed.metadata)
            for partition, committed in found.items()
            if committed is not None
        }

    def _partitions(self) -> list[TopicPartition]:
        return [TopicPartition(self._target, number) for number in range(self._settings.partitions)]

    def _frame(self, bounds: Mapping[int, tuple[int, int]]) -> DataFrame:
        """Return the records as rows of the target, with the columns that it has."""
        records = self._kafka.records(self._source, bounds)
        names = [name for name in MIRROR_SCHEMA.names if name in self._settings.schema.names]
        columns = [functions.col(_NAMES_IN_SPARK.get(name, name)).alias(name) for name in names]
        # Kafka's -1 is no time: those records have the time of the target's epoch.
        time = functions.greatest(functions.col("timestamp"), functions.timestamp_millis(functions.lit(0)))
        return records.select(*columns, time.alias("_timestamp"))

    def close(self) -> None:
        """Close the clients; the Kafka client is the caller's."""
        self._consumer.close()
        self._producer.close()
