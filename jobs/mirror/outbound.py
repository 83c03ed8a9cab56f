"""A topic's committed records as records of Kafka, in Kafka's transactions, together with where the mirror stands.

Owns the order: Kafka's init ends what a killed mirror left open, and fences one that still runs; only then the
positions are read.  Each record goes to the partition of the number that it has here, so its order stays.  What a
topic has beside key, value, headers and time does not travel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from txntable.consumer.consumer_record import ConsumerRecord
from txntable.errors import SchemaMismatchError, UnknownTopicOrPartitionError
from txntable.format.records import TopicPartition
from txntable.format.schema import KAFKA_SCHEMA
from txntable.jobs.mirror.kafka_client import KafkaTarget, kafkas_errors
from txntable.jobs.mirror.positions import MirrorRun, Source, resumed, sought

if TYPE_CHECKING:
    from txntable.warehouse.warehouse import Warehouse

_NEEDED = ("key", "value")
_WAIT_MS = 1_000
DEFAULT_MOST_RECORDS = 10_000


class ToKafka:
    """Mirrors a topic of a warehouse into one of Kafka.

    Parameters
    ----------
    warehouse : Warehouse
        Where the records come from.
    source : str
        Our topic.
    target : KafkaTarget
        Where they go; created where there is no such topic.
    most_records : int
        Of one transaction.
    """

    def __init__(
        self, warehouse: Warehouse, source: str, target: KafkaTarget, most_records: int = DEFAULT_MOST_RECORDS
    ) -> None:
        self._warehouse, self._topic, self._target, self._most = warehouse, source, target, most_records
        settings = warehouse.topic_log(source).settings()
        _check_columns(source, settings.schema)
        self._origin = _origin(source, settings.topic_id)
        self._consumer = warehouse.consumer(auto_offset_reset="none")
        self._count = 0
        target.grow(settings.partitions)
        target.take_over()

    def ends(self) -> Mapping[int, int]:
        """Return up to where the topic is committed now, by partition."""
        return self._source().ends

    def _source(self) -> Source:
        numbers = sorted(self._consumer.partitions_for_topic(self._topic))
        partitions = [TopicPartition(self._topic, number) for number in numbers]
        starts, ends = self._consumer.beginning_offsets(partitions), self._consumer.end_offsets(partitions)
        return Source(self._topic, self._origin, _by_number(starts), _by_number(ends))

    def run(self, goal: Mapping[int, int] | None = None) -> MirrorRun:
        """Mirror what is new, in one transaction of Kafka.

        Parameters
        ----------
        goal : Mapping of int to int, optional
            Until all partitions are there, records are waited for; then no transaction begins.  Default: records are
            waited for a second.

        Raises
        ------
        OffsetOutOfRangeError, UnknownTopicOrPartitionError
            See :func:`txntable.jobs.mirror.positions.resumed`: nothing was mirrored.
        ProducerFencedError
            Another process mirrors into the same topic: leave it to that.
        TransactionAbortableError
            Kafka failed: run the mirror anew.
        TxnTableError
            The store failed: likewise.
        """
        count = len(self._consumer.partitions_for_topic(self._topic))
        if count != self._count:
            self._place(count)
        before = _by_number(self._consumer.positions())
        found: Mapping[TopicPartition, Sequence[ConsumerRecord]] = {}
        # Asked in each turn, it raises where the store does not answer: a poll only finds nothing then.
        while not found and not self._is_at(goal) and self._consumer.partitions_for_topic(self._topic):
            found = self._consumer.poll(timeout_ms=_WAIT_MS, max_records=self._most)
            if goal is None:
                break
        if not found:
            return MirrorRun({})
        after = _by_number(self._consumer.positions())
        self._commit(after, [record for records in found.values() for record in records])
        return MirrorRun({each.partition: (before[each.partition], after[each.partition]) for each in found})

    def _is_at(self, goal: Mapping[int, int] | None) -> bool:
        if goal is None:
            return False
        positions = _by_number(self._consumer.positions())
        return all(positions[number] >= end for number, end in goal.items())

    def _place(self, count: int) -> None:
        """Let the consumer stand where the mirror stands: at the beginning, and when partitions were added."""
        self._target.grow(count)
        source, stored = self._source(), self._target.positions(count)
        positions = resumed(source, stored, target_is_empty=not stored and self._target.is_empty(count))
        partitions = [TopicPartition(self._topic, number) for number in positions]
        self._consumer.assign(partitions)
        self._check_is_still()
        for partition in partitions:
            self._consumer.seek(partition, positions[partition.partition])
        if not stored:
            # Before the first record: from here on there are positions, whatever is aborted.
            self._commit(positions)
        self._count = count

    def _check_is_still(self) -> None:
        """Refuse a topic that was created again since the mirror looked: from here on the consumer watches it."""
        topic_id = self._warehouse.topic_log(self._topic).settings().topic_id
        if _origin(self._topic, topic_id) != self._origin:
            raise UnknownTopicOrPartitionError(
                "the topic was created again while the mirror began; run the mirror again", topic=self._topic
            )

    def keep(self) -> None:
        """Commit the positions as they are: offsets that nobody commits expire in Kafka, too."""
        self._commit(_by_number(self._consumer.positions()))

    def seek(self, asked: Mapping[int, int]) -> Mapping[int, int]:
        """Set where the mirror goes on, and return it; see :func:`txntable.jobs.mirror.positions.sought`."""
        source = self._source()
        found = sought(source, self._target.positions(len(source.starts)), asked)
        self._commit(found)
        return found

    def _commit(self, positions: Mapping[int, int], records: Sequence[ConsumerRecord] = ()) -> None:
        for record in records:
            _check_headers(self._topic, record)
        with kafkas_errors(self._topic):
            self._target.producer.begin_transaction()
            for record in records:
                self._target.send(record.partition, record.timestamp_ms, record.row)
            self._target.send_positions(positions, self._origin)
            self._target.producer.commit_transaction()

    def close(self) -> None:
        """Close the consumer; the target is the caller's."""
        self._consumer.close()


def _origin(topic: str, topic_id: str) -> str:
    return f"txntable topic={topic} topic_id={topic_id}"


def _check_headers(topic: str, record: ConsumerRecord) -> None:
    """Refuse a header that Kafka's client would change: a name that is null, or that has a null character."""
    names = [header["key"] for header in record.row.get("headers") or ()]
    if any(name is None or "\0" in name for name in names):
        raise SchemaMismatchError(
            "a header's name is null, or has a null character: kafka's client cannot send it; go on behind the record"
            " by --at",
            topic=topic,
            partition=record.partition,
            offset=record.offset,
        )


def _check_columns(topic: str, schema: pa.Schema) -> None:
    """Refuse a topic that has other things in the places of Kafka's."""
    found = {field.name: field.type for field in schema}
    wanted = {field.name: field.type for field in KAFKA_SCHEMA}
    wrong = [name for name in _NEEDED if name not in found]
    wrong += [name for name in wanted if found.get(name, wanted[name]) != wanted[name]]
    if wrong:
        raise SchemaMismatchError(
            "kafka takes bytes: the topic needs the columns key and value as binary, and headers as kafka has them or"
            " none; encode its records into such a topic by a pipeline, and mirror that",
            topic=topic,
            columns=",".join(wrong),
        )


def _by_number(offsets: Mapping[TopicPartition, int]) -> dict[int, int]:
    return {partition.partition: offset for partition, offset in offsets.items()}
