"""Records waiting to be flushed, and how they become one Arrow table for each partition.

Owns the buffer of one producer.  Bounded by what the caller sends between flushes.  Must not
know of segments, sequences or transactions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txntable.client.records import RecordMetadata
from txntable.conform import TIMESTAMP_COLUMN, conform
from txntable.delta_types import TIMESTAMP
from txntable.errors import InvalidRequestError, SchemaMismatchError, UnknownTopicOrPartitionError
from txntable.key import partitions_of
from txntable.topic import TopicSettings

_TIMESTAMP = pa.field(TIMESTAMP_COLUMN, TIMESTAMP)


@dataclass(slots=True)
class Buffered:
    """A run of records of one topic with one way to find their partition.

    Attributes
    ----------
    rows : pyarrow.Table
        The topic's columns and ``_timestamp``.
    partition : int or None
        As the caller chose; ``None``: by key.
    metadata : list of RecordMetadata
        One for each row, or one for all.
    """

    rows: pa.Table
    partition: int | None
    metadata: list[RecordMetadata]


@dataclass(frozen=True, slots=True)
class PartitionRows:
    """Rows that go to one partition, in order, with whom to tell their offsets."""

    partition: int
    rows: pa.Table
    keyed: bool
    metadata: tuple[RecordMetadata, ...]


class RecordAccumulator:
    """The buffer of one topic.

    Parameters
    ----------
    settings : TopicSettings
        The topic as it is known now.
    """

    def __init__(self, settings: TopicSettings) -> None:
        self.settings = settings
        self._pending: list[tuple[dict[str, Any], int | None, RecordMetadata]] = []
        self._buffered: list[Buffered] = []
        self._ready: deque[PartitionRows] = deque()
        self._next_unkeyed = 0
        self._schema = pa.schema([*settings.schema, _TIMESTAMP])

    def add_row(self, row: Mapping[str, Any], partition: int | None, timestamp_ms: int) -> RecordMetadata:
        """Buffer one record.

        Raises
        ------
        SchemaMismatchError
            A column is unknown or missing, or a value is of another type.
        UnknownTopicOrPartitionError, InvalidRequestError
            The partition is none of the topic's, or the row is no mapping.
        """
        self._check_partition(partition)
        if not isinstance(row, Mapping):
            raise InvalidRequestError("a row is a mapping of column names to values", found=type(row).__name__)
        names = set(self.settings.schema.names)
        if unknown := sorted(set(row) - names):
            raise SchemaMismatchError(
                "the record has columns that the topic does not have",
                topic=self.settings.name,
                columns=",".join(unknown),
            )
        complete = {name: row.get(name) for name in self.settings.schema.names}
        self._conform([{**complete, TIMESTAMP_COLUMN: timestamp_ms * 1000}])
        metadata = RecordMetadata(self.settings.name)
        self._pending.append(({**complete, TIMESTAMP_COLUMN: timestamp_ms * 1000}, partition, metadata))
        return metadata

    def add_table(self, rows: pa.Table | pa.RecordBatch, partition: int | None, timestamp_ms: int) -> RecordMetadata:
        """Buffer many records; see :meth:`add_row`."""
        self._check_partition(partition)
        if isinstance(rows, pa.RecordBatch):
            rows = pa.Table.from_batches([rows])
        if not isinstance(rows, pa.Table):
            raise InvalidRequestError("rows are a pyarrow table; make one of them", found=type(rows).__name__)
        self._close_pending()
        if TIMESTAMP_COLUMN not in rows.column_names:
            times = pa.array(np.full(rows.num_rows, timestamp_ms * 1000), pa.int64()).cast(_TIMESTAMP.type)
            rows = rows.append_column(_TIMESTAMP, times)
        metadata = RecordMetadata(self.settings.name)
        self._buffered.append(Buffered(conform(rows, self.settings), partition, [metadata]))
        return metadata

    def _check_partition(self, partition: int | None) -> None:
        if partition is None:
            return
        if isinstance(partition, bool) or not isinstance(partition, int) or partition < 0:
            raise InvalidRequestError("a partition is an integer from 0 on", partition=repr(partition))
        if partition >= self.settings.partitions:
            raise UnknownTopicOrPartitionError(
                "the topic has no such partition",
                topic=self.settings.name,
                partition=partition,
                partitions=self.settings.partitions,
            )

    def _conform(self, rows: list[dict[str, Any]]) -> pa.Table:
        try:
            table = pa.Table.from_pylist(rows, self._schema)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError) as error:
            raise SchemaMismatchError(
                f"a value does not fit its column: {str(error).lower()}", topic=self.settings.name
            ) from error
        return conform(table, self.settings)

    def _close_pending(self) -> None:
        """Turn single records into tables, a run of one chosen partition each."""
        start = 0
        for end in range(1, len(self._pending) + 1):
            if end == len(self._pending) or self._pending[end][1] != self._pending[start][1]:
                run = self._pending[start:end]
                table = self._conform([row for row, _, _ in run])
                self._buffered.append(Buffered(table, run[0][1], [metadata for _, _, metadata in run]))
                start = end
        self._pending = []

    def clear(self) -> None:
        """Forget everything that waits."""
        self._pending, self._buffered = [], []
        self._ready.clear()

    def next_rows(self) -> PartitionRows | None:
        """Return what waits longest, of one partition; it goes on waiting until :meth:`forget_rows`."""
        self._close_pending()
        while self._buffered and not self._ready:
            self._ready.extend(self._split(self._buffered[0]))
            del self._buffered[0]
        return self._ready[0] if self._ready else None

    def forget_rows(self) -> None:
        """Forget what :meth:`next_rows` returned."""
        self._ready.popleft()

    def _split(self, buffered: Buffered) -> list[PartitionRows]:
        rows = buffered.rows
        if rows.num_rows == 0:
            return []
        if buffered.partition is not None:
            return [PartitionRows(buffered.partition, rows, False, tuple(buffered.metadata))]
        if not self.settings.key:
            return [self._unkeyed(rows, tuple(buffered.metadata))]
        batch = rows.combine_chunks().to_batches()[0]
        chosen = partitions_of(batch, list(self.settings.key), self.settings.partitions)
        parts = []
        for partition in pc.unique(chosen).to_pylist():
            mask = pc.is_null(chosen) if partition is None else pc.fill_null(pc.equal(chosen, partition), False)
            part = rows.filter(mask)
            metadata = buffered.metadata
            if len(metadata) > 1:
                metadata = [metadata[i] for i in np.flatnonzero(np.asarray(mask))]
            if partition is None:
                parts.append(self._unkeyed(part, tuple(metadata)))
            else:
                parts.append(PartitionRows(partition, part, True, tuple(metadata)))
        return parts

    def _unkeyed(self, rows: pa.Table, metadata: tuple[RecordMetadata, ...]) -> PartitionRows:
        """Take one partition for a flush of records without a key, then the next (KIP-480)."""
        partition = self._next_unkeyed % self.settings.partitions
        self._next_unkeyed += 1
        return PartitionRows(partition, rows, False, metadata)
