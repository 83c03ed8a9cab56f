"""What producers give back for records: Kafka's words, kafka-python's shapes.

Values of the client; must not know of storage.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, TypeVar

from txntable.coordinator.error_kinds import shown
from txntable.errors import IllegalStateError, InvalidRequestError, TxnTableError
from txntable.format.kafka_call_names import answering_record_metadata

logger = logging.getLogger(__name__)

T = TypeVar("T")

OnDelivery: TypeAlias = "Callable[[RecordMetadata, TxnTableError | None], None]"
# Columns of type TIMESTAMP count microseconds in 64 bits.
LATEST_TIMESTAMP_MS = (2**63 - 1) // 1000


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


@dataclass(frozen=True, slots=True)
class SendOptions:
    """What a ``send`` says beside the records themselves.

    Attributes
    ----------
    timestamp_ms : int
        Of records that bring no ``_timestamp``, ms since 1970.
    partition : int or None
        As the caller chose; ``None``: the partitioner's choice.
    on_delivery : callable or None
        (metadata, error or None) -> None; called once.

    Raises
    ------
    InvalidRequestError
        The timestamp is no moment that a record can have, or `on_delivery` cannot be called.
    """

    timestamp_ms: int
    partition: int | None = None
    on_delivery: OnDelivery | None = None

    def __post_init__(self) -> None:
        if type(self.timestamp_ms) is not int or not 0 <= self.timestamp_ms <= LATEST_TIMESTAMP_MS:
            raise InvalidRequestError(
                "a timestamp is an int of ms since 1970",
                timestamp_ms=shown(self.timestamp_ms),
                latest=LATEST_TIMESTAMP_MS,
            )
        if self.on_delivery is not None and not callable(self.on_delivery):
            raise InvalidRequestError(
                "on_delivery is called with the metadata and an error or None; give a callable",
                on_delivery=shown(self.on_delivery),
            )


@answering_record_metadata
class RecordMetadata:
    """Where the records of one ``send`` are; known once the producer has flushed.

    Parameters
    ----------
    topic : str
        The topic's name.
    records : int, optional
        How many there are; ``None``: :meth:`expect` says it later.
    timestamp_ms : int, optional
        Of the first record, ms since 1970.
    on_delivery : callable, optional
        See :class:`SendOptions`.
    segments_by : str, optional
        See the attribute.

    Attributes
    ----------
    topic : str
        The topic's name.
    segments_by : str or None
        Of a DataFrame, who has written its segments: ``"spark"``, Spark's own Parquet writer, or ``"python: "`` and
        why not Spark.
    """

    __slots__ = ("_on_delivery", "_parts", "_records", "_sent_ms", "_untold", "segments_by", "topic")

    def __init__(
        self,
        topic: str,
        records: int | None = None,
        timestamp_ms: int | None = None,
        on_delivery: OnDelivery | None = None,
        *,
        segments_by: str | None = None,
    ) -> None:
        self.topic = topic
        self.segments_by = segments_by
        self._sent_ms = timestamp_ms
        self._on_delivery = on_delivery
        self._records = self._untold = records
        # Batch, place of the first record in it, how many.
        self._parts: list[tuple[BatchDelivery, int, int]] = []

    def __repr__(self) -> str:
        where = f"ranges={tuple(self._known())!r}" if self.is_delivered else "not known yet where"
        return f"RecordMetadata(topic={self.topic!r}, records={self._records}, {where}, error={self.error!r})"

    def expect(self, records: int) -> None:
        """Take how many records there are (the producer calls it)."""
        self._records = self._untold = records

    def lies_in(self, batch: BatchDelivery, place: int, records: int) -> bool:
        """Take where records of this send lie (the producer calls it); return whether somebody waits to be told."""
        self._parts.append((batch, place, records))
        return self._on_delivery is not None

    def tell(self, records: int) -> bool:
        """Take that records of this send are delivered (the producer calls it); return whether that was all."""
        if self._untold is not None:
            self._untold -= records
        return not self._untold

    def announce(self) -> None:
        """Call ``on_delivery``; what it raises is logged, for it is not the producer's."""
        if self._on_delivery is None:
            return
        try:
            self._on_delivery(self, self.error)
        except Exception:
            logger.exception("on_delivery failed topic=%s", self.topic)

    def _known(self) -> Iterator[OffsetRange]:
        for batch, place, records in self._parts:
            if batch.base_offset is not None and batch.partition is not None:
                first = batch.base_offset + place
                yield OffsetRange(batch.partition, first, first + records - 1)

    @property
    def error(self) -> TxnTableError | None:
        """Why records of this send will never be delivered; ``None``: they wait, or are delivered."""
        return next((batch.error for batch, _, _ in self._parts if batch.error is not None), None)

    @property
    def timestamp_ms(self) -> int | None:
        """Of the first record, ms since 1970; of topics with ``LogAppendTime`` that of the upload, once delivered."""
        stamps = (batch.stamp_ms(self._sent_ms) for batch, _, _ in self._parts)
        return next((stamp for stamp in stamps if stamp is not None), self._sent_ms)

    @property
    def is_delivered(self) -> bool:
        """Whether all records of the send have their offsets, and these are known here."""
        if not self._parts or self._records is None:
            return False
        return sum(records for batch, _, records in self._parts if batch.base_offset is not None) == self._records

    @property
    def ranges(self) -> tuple[OffsetRange, ...]:
        """All offsets of the send, in the order of partitions.

        Raises
        ------
        IllegalStateError
            Not flushed yet: call ``flush`` or commit.  Or there were no records, or the offsets are not known here.
        TxnTableError
            :attr:`error`: send the records again.
        """
        if (error := self.error) is not None:
            raise error
        if any(batch.is_somewhere for batch, _, _ in self._parts):
            raise IllegalStateError(
                "the records are committed, and the store could not be reached to learn their offsets: read the topic",
                topic=self.topic,
            )
        if self._records == 0:
            raise IllegalStateError("there were no records to send, hence no offsets", topic=self.topic)
        if not self.is_delivered:
            raise IllegalStateError("the record is not flushed yet; call flush or commit first", topic=self.topic)
        return tuple(sorted(self._known(), key=lambda r: (r.partition, r.base_offset)))

    @property
    def partition(self) -> int:
        """The partition of the (first) record; raises as :attr:`ranges` does."""
        return self.ranges[0].partition

    @property
    def offset(self) -> int:
        """The offset of the (first) record; raises as :attr:`ranges` does."""
        return self.ranges[0].base_offset


class BatchDelivery:
    """What became of the records of one batch, which the sends that they are of look up: one answer for all of them.

    Attributes
    ----------
    records : int
        How many there are so far.
    partition, base_offset : int or None
        Where they are; ``None``: not delivered, or not known where.
    is_somewhere : bool
        Whether they are committed at offsets that are not known here.
    error : TxnTableError or None
        Why they will never be delivered.
    """

    __slots__ = ("_first_ms", "_listeners", "_stamped", "base_offset", "error", "is_somewhere", "partition", "records")

    def __init__(self) -> None:
        self.records = 0
        self.partition: int | None = None
        self.base_offset: int | None = None
        self.is_somewhere = False
        self.error: TxnTableError | None = None
        self._first_ms, self._stamped = 0, False
        self._listeners: list[tuple[RecordMetadata, int]] = []

    def add(self, metadata: RecordMetadata, records: int) -> None:
        """Take records of a send, behind those that are there."""
        if metadata.lies_in(self, self.records, records):
            self._listeners.append((metadata, records))
        self.records += records

    def stamp_ms(self, sent_ms: int | None) -> int | None:
        """Return the timestamp that a send has by its delivery; ``None``: the one that it was sent with."""
        is_wanted = self.base_offset is not None and (self._stamped or sent_ms is None)
        return self._first_ms if is_wanted else None

    def deliver(self, partition: int, base_offset: int, first_ms: int, *, stamped: bool) -> list[RecordMetadata]:
        """Take where the records are; return the sends whose callers are to be told now.

        Parameters
        ----------
        partition, base_offset : int
            Of the first record.
        first_ms : int
            Its timestamp, ms since 1970.
        stamped : bool
            Whether the topic's records have the time of their upload, whatever they were sent with.
        """
        self._first_ms, self._stamped = first_ms, stamped
        # Read by other threads: what goes with the offset is there before it.
        self.partition = partition
        self.base_offset = base_offset
        return self._told()

    def deliver_somewhere(self) -> list[RecordMetadata]:
        """Take that the records are committed at offsets that are not known; see :meth:`deliver`."""
        self.is_somewhere = True
        return self._told()

    def _told(self) -> list[RecordMetadata]:
        told, self._listeners = self._listeners, []
        return [metadata for metadata, records in told if metadata.tell(records)]

    def fail(self, error: TxnTableError) -> list[RecordMetadata]:
        """Take that the records are never delivered; return the sends whose callers wait to be told."""
        self.error = error
        told, self._listeners = self._listeners, []
        return [metadata for metadata, _ in told]


def fail_all(batches: Iterable[BatchDelivery], error: TxnTableError) -> None:
    """Let sends know that what waits of them is never delivered; each is told once."""
    told = [metadata for batch in batches for metadata in batch.fail(error)]
    for metadata in {id(metadata): metadata for metadata in told}.values():
        metadata.announce()


def header_structs(headers: Sequence[tuple[str, bytes]] | None) -> list[dict[str, object]] | None:
    """Return a record's headers as the column ``headers`` holds them.

    Raises
    ------
    InvalidRequestError
        They are no sequence of pairs, a name is no text, or a value no bytes.
    """
    if headers is None:
        return None
    if not isinstance(headers, list | tuple) or not all(map(_is_header, headers)):
        raise InvalidRequestError("headers are a list of (name, bytes) pairs", headers=shown(headers))
    return [{"key": name, "value": data} for name, data in headers]


def _is_header(pair: object) -> bool:
    return (
        isinstance(pair, tuple | list)
        and len(pair) == 2
        and isinstance(pair[0], str)
        and isinstance(pair[1], bytes | None)
    )


def named_partitions(given: Sequence[TopicPartition | Iterable[TopicPartition]]) -> list[TopicPartition]:
    """Return the partitions that a call names one by one, in lists, or both: Kafka's clients have either.

    Raises
    ------
    InvalidRequestError
        One of them is neither a partition nor a list of partitions.
    """
    found: list[TopicPartition] = []
    for each in given:
        is_one = isinstance(each, tuple) and len(each) == 2 and isinstance(each[0], str)
        found += checked_partitions([each] if is_one else each)  # type: ignore[arg-type, list-item]
    return list(dict.fromkeys(found))


def one_or_all(given: Sequence[object], found: dict[TopicPartition, T]) -> T | dict[TopicPartition, T]:
    """Return what was found of the one partition that a call names; of several, or of a list, all of it."""
    only = given[0] if len(given) == 1 else None
    return found[only] if isinstance(only, tuple) and only in found else found


def checked_partitions(partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
    """Return partitions as such, each once.

    Raises
    ------
    InvalidRequestError
        They are no list of pairs of a topic and a number.
    """
    pairs = partitions if isinstance(partitions, Iterable) and not isinstance(partitions, str) else None
    found = [] if pairs is None else list(pairs)
    if pairs is None or not all(
        isinstance(each, tuple) and len(each) == 2 and isinstance(each[0], str) and type(each[1]) is int
        for each in found
    ):
        raise InvalidRequestError(
            "partitions are given as a list of TopicPartition(topic, number); a topic alone is none",
            partitions=shown(partitions),
        )
    return list(dict.fromkeys(TopicPartition(*each) for each in found))
