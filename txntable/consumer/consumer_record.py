"""What consumers return: records, in kafka-python's shape, decoded from a batch of columns.

Values of the client; must not know of storage.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Any, NamedTuple

import pyarrow as pa

from txntable.format.conform import TIMESTAMP_COLUMN
from txntable.format.kafka_call_names import answering_record
from txntable.format.records import TopicPartition
from txntable.format.schema import KAFKA_SCHEMA
from txntable.segments.segment_reader import COMMIT_COLUMN, OFFSET_COLUMN, RECORD_COLUMNS

_MICROSECONDS = 1000


class OffsetAndTimestamp(NamedTuple):
    """The first record at or after a time: its offset, and its own time in ms since 1970."""

    offset: int
    timestamp_ms: int


@answering_record
class ConsumerRecord(NamedTuple):
    """One record; a named tuple, as kafka-python's.

    Attributes
    ----------
    topic : str
        The topic's name.
    partition : int
        From 0.
    offset : int
        The record's offset in the partition.
    timestamp_ms : int
        The record's timestamp, in ms since 1970.
    key, value : bytes or None
        For topics with Kafka's columns; ``None`` for all others.
    headers : list of (str, bytes or None)
        Likewise; empty if there are none.
    row : dict
        The topic's columns by name, for every topic.
    commit : int or None
        The position of the decision that made it visible, 0 without a transaction; ``None`` at ``read_uncommitted``.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    row: dict[str, Any]
    commit: int | None

    @property
    def timestamp(self) -> int:
        """The same as :attr:`timestamp_ms`, under the name that kafka-python gives it."""
        return self.timestamp_ms


def records_of(partition: TopicPartition, batches: Sequence[pa.RecordBatch]) -> list[ConsumerRecord]:
    """Return the records of batches in their order.

    Parameters
    ----------
    partition : TopicPartition
        Where they are of.
    batches : sequence of pyarrow.RecordBatch
        The topic's columns and those that every record has.
    """
    return [record for batch in batches for record in _records(partition, batch)]


JOINED_BYTES = 1024 * 1024
"""Batches of a partition are joined until they have so much: a larger one is handed out as it is, without a copy."""


def one_batch(partition: TopicPartition, batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the records of batches as one batch; parameters as for :func:`records_of`.

    A column that was added between two of them is null in the older one.
    """
    if len(batches) == 1:
        return batches[0]
    tables = [pa.Table.from_batches([batch]) for batch in batches]
    (batch,) = pa.concat_tables(tables, promote_options="default").combine_chunks().to_batches()
    return batch.select(batches[-1].schema.names)


def _records(partition: TopicPartition, batch: pa.RecordBatch) -> list[ConsumerRecord]:
    own = {field.name for field in RECORD_COLUMNS}
    names = [name for name in batch.schema.names if name not in own]
    columns = [batch.column(name).to_pylist() for name in names]
    offsets, commits = (batch.column(name).to_pylist() for name in (OFFSET_COLUMN, COMMIT_COLUMN))
    times = (batch.column(TIMESTAMP_COLUMN).cast(pa.int64()).to_numpy() // _MICROSECONDS).tolist()
    places = repeat(partition.topic), repeat(partition.partition), offsets, times
    if names == KAFKA_SCHEMA.names and batch.select(names).schema == KAFKA_SCHEMA:
        keys, values, structs = columns
        headers = [[(one["key"], one["value"]) for one in each] if each else [] for each in structs]
        # A display makes a dictionary in a third of the time that pairs take.
        rows = [{"key": k, "value": v, "headers": h} for k, v, h in zip(keys, values, structs, strict=True)]
        return list(map(ConsumerRecord, *places, keys, values, headers, rows, commits))
    rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    return list(map(ConsumerRecord, *places, repeat(None), repeat(None), ([] for _ in rows), rows, commits))
