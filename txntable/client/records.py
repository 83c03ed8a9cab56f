"""What producers give back for records: Kafka's words, kafka-python's shapes.

Values of the client; must not know of storage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from txntable.errors import IllegalStateError, InvalidRequestError


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets that one segment got.

    Attributes
    ----------
    partition : int
        From 0.
    base_offset, last_offset : int
        Inclusive.
    """

    partition: int
    base_offset: int
    last_offset: int


class RecordMetadata:
    """Where the records of one ``send`` are; known once the producer has flushed.

    Attributes
    ----------
    topic : str
        The topic's name.
    """

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self._ranges: list[OffsetRange] = []

    def __repr__(self) -> str:
        return f"RecordMetadata(topic={self.topic!r}, ranges={self._ranges!r})"

    def deliver(self, delivered: OffsetRange) -> None:
        """Take what became of records of this send (the producer calls it)."""
        self._ranges.append(delivered)

    @property
    def is_delivered(self) -> bool:
        """Whether offsets are known."""
        return bool(self._ranges)

    @property
    def ranges(self) -> tuple[OffsetRange, ...]:
        """All offsets of the send, in the order of partitions.

        Raises
        ------
        IllegalStateError
            Not flushed yet: call ``flush`` or commit.
        """
        if not self._ranges:
            raise IllegalStateError("the record is not flushed yet; call flush or commit first", topic=self.topic)
        return tuple(sorted(self._ranges, key=lambda r: (r.partition, r.base_offset)))

    @property
    def partition(self) -> int:
        """The partition of the (first) record."""
        return self.ranges[0].partition

    @property
    def offset(self) -> int:
        """The offset of the (first) record."""
        return self.ranges[0].base_offset


def header_structs(headers: Sequence[tuple[str, bytes]] | None) -> list[dict[str, object]] | None:
    """Return a record's headers as the column ``headers`` holds them.

    Raises
    ------
    InvalidRequestError
        They are no sequence of pairs.
    """
    if headers is None:
        return None
    if isinstance(headers, str | bytes) or not all(
        isinstance(pair, tuple | list) and len(pair) == 2 for pair in headers
    ):
        raise InvalidRequestError("headers are a list of (name, bytes) pairs", headers=repr(headers))
    return [{"key": name, "value": data} for name, data in headers]
