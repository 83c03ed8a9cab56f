"""Which partition a record goes to, where the caller does not say it: Kafka's partitioners.

Owns the choice and its state, which outlives flushes.  The default sends a key to the partition of
its murmur2 (PROTOCOL.md §9), for ever the same one; records without a key stay on one partition
until its batch is full or flushed and then move to another (KIP-480, KIP-794).  Every other
partitioner gives up "same key, same partition".  Must not know of batches or storage.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from txntable.coordinator.error_kinds import shown
from txntable.errors import InvalidRequestError
from txntable.format.key import key_bytes, partition_of, partitions_of
from txntable.format.key_encoding import encode_column, encode_composite
from txntable.format.topic import TopicSettings
from txntable.runtime.environment import Environment

# (topic, key bytes or None, number of partitions) -> partition.
CustomPartitioner: TypeAlias = Callable[[str, bytes | None, int], int]
Partitioner: TypeAlias = Literal["default", "round_robin"] | CustomPartitioner
PARTITIONERS = ("default", "round_robin")

Partitions: TypeAlias = npt.NDArray[np.int32]


class Placement(Enum):
    """How records came to their partition: one segment holds records of one placement.

    Records without a key may stand in any segment.
    """

    KEYED = "keyed"
    CHOSEN = "chosen"
    WITHOUT_KEY = "without a key"

    def joined(self, other: Placement) -> Placement | None:
        """Return the placement of a segment with both; ``None``: they need two segments."""
        if self is other or other is Placement.WITHOUT_KEY:
            return self
        return other if self is Placement.WITHOUT_KEY else None


class StickyPartition:
    """The partition of records without a key: the same one until enough went there.

    Parameters
    ----------
    environment : Environment
        Chance.
    batch_size : int
        Bytes after which another partition is next.
    """

    def __init__(self, environment: Environment, batch_size: int) -> None:
        self._environment = environment
        self._batch_size = batch_size
        self._current: int | None = None
        self._last: int | None = None
        self._bytes = 0

    @property
    def room(self) -> int:
        """Bytes after which another partition is next."""
        return self._batch_size - self._bytes

    def take(self, size: int, partitions: int) -> int:
        """Return where `size` bytes of records go."""
        if self._current is None or self._current >= partitions:
            self._current = self._another(partitions)
        partition = self._current
        self._bytes += size
        if self._bytes >= self._batch_size:
            self.close_batch()
        return partition

    def close_batch(self) -> None:
        """Go on with another partition: the batch is full, or on its way."""
        if self._current is not None:
            self._last, self._current, self._bytes = self._current, None, 0

    def _another(self, partitions: int) -> int:
        if partitions == 1:
            return 0
        last = self._last if self._last is not None and self._last < partitions else partitions
        others = partitions - (last < partitions)
        drawn = min(int(self._environment.uniform(0, others)), others - 1)
        return drawn + (drawn >= last)


class TopicPartitioner:
    """The partitioner of one producer for one topic.

    Parameters
    ----------
    partitioner : str or callable
        ``"default"``, ``"round_robin"``, or the user's own.
    ignore_keys : bool
        Whether the default treats every record as one without a key.
    sticky : StickyPartition
        For records without a key.
    """

    def __init__(self, partitioner: Partitioner, sticky: StickyPartition, *, ignore_keys: bool) -> None:
        self._partitioner = partitioner
        self._ignore_keys = ignore_keys
        self.sticky = sticky
        self._next = 0

    def place(self, settings: TopicSettings, row: tuple[object, ...], size: int) -> tuple[int, Placement]:
        """Return where a record goes.

        Parameters
        ----------
        settings : TopicSettings
            The topic.
        row : tuple
            The record's values, in the order of the topic's columns.
        size : int
            Its bytes.

        Raises
        ------
        InvalidRequestError
            The user's partitioner answered no partition of the topic: nothing was buffered; mend it.
        """
        if self._partitioner == "round_robin":
            return self._take_turns(1, settings.partitions), Placement.CHOSEN
        keyed = bool(settings.key) and not self._ignore_keys
        key = _key_of(settings, row) if keyed or callable(self._partitioner) else None
        if callable(self._partitioner):
            return self._ask(self._partitioner, settings, key), Placement.CHOSEN
        if key is not None:
            return partition_of(key, settings.partitions), Placement.KEYED
        return self.sticky.take(size, settings.partitions), self.without_key

    def place_all(
        self, settings: TopicSettings, rows: pa.RecordBatch, sizes: npt.NDArray[np.int64]
    ) -> tuple[Partitions, npt.NDArray[np.bool_]]:
        """Return where each of many records goes, and which of them their key led there; see :meth:`place`."""
        count = rows.num_rows
        nobody = np.zeros(count, np.bool_)
        if self._partitioner == "round_robin":
            first = self._take_turns(count, settings.partitions)
            return ((first + np.arange(count)) % settings.partitions).astype(np.int32), nobody
        if callable(self._partitioner):
            keys = _keys_of(rows, settings.key) if settings.key else [None] * count
            chosen = [self._ask(self._partitioner, settings, key) for key in keys]
            return np.array(chosen, np.int32), nobody
        if not settings.key or self._ignore_keys:
            return self._spread(sizes, settings.partitions), nobody
        mapped = partitions_of(rows, settings.key, settings.partitions)
        keyed = np.asarray(mapped.is_valid())
        partitions = np.array(mapped.fill_null(0), np.int32)
        if not keyed.all():
            partitions[~keyed] = self._spread(sizes[~keyed], settings.partitions)
        return partitions, keyed

    @property
    def without_key(self) -> Placement:
        """How records that no key led to their partition came there."""
        return Placement.WITHOUT_KEY if self._partitioner == "default" and not self._ignore_keys else Placement.CHOSEN

    def _take_turns(self, count: int, partitions: int) -> int:
        first = self._next % partitions
        self._next = (first + count) % partitions
        return first

    def _spread(self, sizes: npt.NDArray[np.int64], partitions: int) -> Partitions:
        """Fill one partition after the other: a step for each batch, not for each record."""
        chosen = np.empty(len(sizes), np.int32)
        totals = np.cumsum(sizes)
        start = 0
        while start < len(sizes):
            before = int(totals[start - 1]) if start else 0
            end = min(int(np.searchsorted(totals, before + self.sticky.room)) + 1, len(sizes))
            chosen[start:end] = self.sticky.take(int(totals[end - 1]) - before, partitions)
            start = end
        return chosen

    def _ask(self, partitioner: CustomPartitioner, settings: TopicSettings, key: bytes | None) -> int:
        partition: object = partitioner(settings.name, key, settings.partitions)
        if isinstance(partition, bool) or not isinstance(partition, int) or not 0 <= partition < settings.partitions:
            raise InvalidRequestError(
                "the partitioner returned no partition of the topic; it must return an int of at least 0",
                topic=settings.name,
                partition=shown(partition),
                partitions=settings.partitions,
            )
        return partition


def _key_of(settings: TopicSettings, row: tuple[object, ...]) -> bytes | None:
    values = [row[settings.schema.get_field_index(name)] for name in settings.key]
    if len(values) == 1:
        if type(values[0]) is bytes:
            return values[0]
        if type(values[0]) is str:
            return values[0].encode()
    if not values:
        return None
    return key_bytes(values, [settings.schema.field(name).type for name in settings.key])


def _keys_of(rows: pa.RecordBatch, key: tuple[str, ...]) -> list[bytes | None]:
    columns = [rows.column(name) for name in key]
    keys = encode_column(columns[0]) if len(columns) == 1 else encode_composite(columns)
    data = keys.data.tobytes()
    return [
        data[start : start + length] if valid else None
        for start, length, valid in zip(keys.starts.tolist(), keys.lengths.tolist(), keys.valid.tolist(), strict=True)
    ]
