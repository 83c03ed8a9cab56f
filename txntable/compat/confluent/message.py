"""Messages and partitions as confluent-kafka has them: methods instead of attributes, offsets beside partitions.

Values of the clients; nothing is asked for here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from txntable.compat.confluent.arguments import int_of, list_of, of_type
from txntable.compat.confluent.kafka_error import KafkaError
from txntable.consumer.consumer_record import ConsumerRecord
from txntable.format import records
from txntable.offsets.group_commit import OffsetAndMetadata

OFFSET_BEGINNING = -2
OFFSET_END = -1
OFFSET_STORED = -1000
OFFSET_INVALID = -1001
PARTITION_UNASSIGNED = -1
TIMESTAMP_NOT_AVAILABLE = 0
TIMESTAMP_CREATE_TIME = 1

Headers: TypeAlias = "Mapping[str, str | bytes | None] | Sequence[tuple[str, str | bytes | None]]"


@dataclass(slots=True)
class TopicPartition:
    """A partition of a topic, and an offset in it; equal ones are of the same topic and partition.

    Attributes
    ----------
    topic : str
        The topic's name.
    partition : int
        From 0; -1: none.
    offset : int
        An offset from 0, or one of the constants ``OFFSET_*``.
    metadata : str or None
        The text that is committed beside an offset.
    error : KafkaError or None
        Always ``None``: what fails is raised.

    Raises
    ------
    TypeError
        A value is of another type.
    """

    topic: str
    partition: int = PARTITION_UNASSIGNED
    offset: int = field(default=OFFSET_INVALID, compare=False)
    metadata: str | None = field(default=None, compare=False)
    error: KafkaError | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        of_type(str, self.topic, "topic")
        self.partition, self.offset = int_of(self.partition, "partition"), int_of(self.offset, "offset")
        if self.metadata is not None:
            of_type(str, self.metadata, "metadata")

    def __hash__(self) -> int:
        return hash((self.topic, self.partition))

    def __lt__(self, other: TopicPartition) -> bool:
        return (self.topic, self.partition) < (other.topic, other.partition)


def own_partition(given: TopicPartition) -> records.TopicPartition:
    """Return a partition as txntable has it."""
    of_type(TopicPartition, given, "partition")
    return records.TopicPartition(given.topic, given.partition)


def with_offset(partition: records.TopicPartition, offset: int, metadata: str | None = None) -> TopicPartition:
    """Return a partition as confluent-kafka has it."""
    return TopicPartition(partition.topic, partition.partition, offset, metadata)


def own_partitions(given: Sequence[TopicPartition]) -> list[records.TopicPartition]:
    """Return a list of partitions as txntable has them."""
    return [own_partition(each) for each in list_of(TopicPartition, given, "partitions")]


def offsets_of(given: Sequence[TopicPartition]) -> dict[records.TopicPartition, OffsetAndMetadata]:
    """Return offsets that are to be committed; partitions without an offset are left out, as librdkafka does."""
    return {
        own_partition(each): OffsetAndMetadata(each.offset, each.metadata or "")
        for each in list_of(TopicPartition, given, "offsets")
        if each.offset >= 0
    }


class Message:
    """A record that was read, or one that was sent.

    Parameters
    ----------
    record : ConsumerRecord
        What it holds.
    error : KafkaError, optional
        Why it was not delivered.
    """

    def __init__(self, record: ConsumerRecord, error: KafkaError | None = None) -> None:
        self._record, self._error = record, error

    def topic(self) -> str:
        """Return the topic's name."""
        return self._record.topic

    def partition(self) -> int | None:
        """Return the partition; ``None``: it is not known yet."""
        return None if self._record.partition < 0 else self._record.partition

    def offset(self) -> int | None:
        """Return the offset; ``None``: it is not known yet."""
        return None if self._record.offset < 0 else self._record.offset

    def key(self) -> bytes | None:
        """Return the key."""
        return self._record.key

    def value(self) -> bytes | None:
        """Return the value."""
        return self._record.value

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        """Return the headers; ``None``: there are none."""
        return self._record.headers or None

    def timestamp(self) -> tuple[int, int]:
        """Return the type of the timestamp, and ms since 1970."""
        known = self._record.timestamp_ms >= 0
        return (TIMESTAMP_CREATE_TIME, self._record.timestamp_ms) if known else (TIMESTAMP_NOT_AVAILABLE, 0)

    def error(self) -> KafkaError | None:
        """Return why the message was not delivered; ``None``: nothing went wrong."""
        return self._error

    def __len__(self) -> int:
        return len(self._record.value or b"")


def encoded(given: str | bytes | None) -> bytes | None:
    """Return text as UTF-8, as confluent-kafka's producer takes it.

    Raises
    ------
    TypeError
        It is neither text nor bytes.
    """
    if given is None or isinstance(given, bytes):
        return given
    if not isinstance(given, str):
        raise TypeError(f"keys, values and headers must be str, bytes or None, not {type(given).__name__}")
    return given.encode()


def header_pairs(given: Headers | None) -> list[tuple[str, bytes]] | None:
    """Return headers, given as a dict or as pairs, as txntable's producer takes them.

    Raises
    ------
    TypeError
        They are given as something else.
    """
    if given is None:
        return None
    pairs = list(given.items()) if isinstance(given, Mapping) else given
    for each in list_of(object, pairs, "headers"):
        if not isinstance(each, tuple | list) or len(each) != 2 or not isinstance(each[0], str):
            raise TypeError("headers must be a dict, or a list of pairs of a name and a value")
    return [(name, encoded(value)) for name, value in pairs]  # type: ignore[misc]  # null is a header's value too
