"""Messages and partitions as confluent-kafka has them: methods instead of attributes, offsets beside partitions.

Values of the clients; nothing is asked for here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from txntable import errors
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
    """

    topic: str
    partition: int = PARTITION_UNASSIGNED
    offset: int = field(default=OFFSET_INVALID, compare=False)
    metadata: str | None = field(default=None, compare=False)
    error: KafkaError | None = field(default=None, compare=False)

    def __hash__(self) -> int:
        return hash((self.topic, self.partition))

    def __lt__(self, other: TopicPartition) -> bool:
        return (self.topic, self.partition) < (other.topic, other.partition)


def own_partition(given: TopicPartition) -> records.TopicPartition:
    """Return a partition as txntable has it."""
    return records.TopicPartition(given.topic, given.partition)


def with_offset(partition: records.TopicPartition, offset: int, metadata: str | None = None) -> TopicPartition:
    """Return a partition as confluent-kafka has it."""
    return TopicPartition(partition.topic, partition.partition, offset, metadata)


def offsets_of(given: Iterable[TopicPartition]) -> dict[records.TopicPartition, OffsetAndMetadata]:
    """Return offsets that are to be committed; partitions without an offset are left out, as librdkafka does."""
    return {
        own_partition(each): OffsetAndMetadata(each.offset, each.metadata or "") for each in given if each.offset >= 0
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
    InvalidRequestError
        It is neither text nor bytes.
    """
    if given is None or isinstance(given, bytes):
        return given
    if not isinstance(given, str):
        raise errors.InvalidRequestError("keys, values and headers are text or bytes", found=type(given).__name__)
    return given.encode()


def header_pairs(given: Headers | None) -> list[tuple[str, bytes]] | None:
    """Return headers, given as a dict or as pairs, as txntable's producer takes them."""
    if given is None:
        return None
    pairs = given.items() if isinstance(given, Mapping) else given
    return [(name, encoded(value)) for name, value in pairs]  # type: ignore[misc]  # null is a header's value too
