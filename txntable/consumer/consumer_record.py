"""What consumers return: records, in kafka-python's shape, decoded from a batch of columns.

Values of the client; must not know of storage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
@dataclass(frozen=True, slots=True)
class ConsumerRecord:
    """One record.

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


def one_batch(partition: TopicPartition, batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the records of batches as one batch; parameters as for :func:`records_of`.

    A column that was added between two of them is null in the older one.
    """
    tables = [pa.Table.from_batches([batch]) for batch in batches]
    (batch,) = pa.concat_tables(tables, promote_options="default").combine_chunks().to_batches()
    return batch.select(batches[-1].schema.names)


def _records(partition: TopicPartition, batch: pa.RecordBatch) -> list[ConsumerRecord]:
    own = {field.name for field in RECORD_COLUMNS}
    names = [name for name in batch.schema.names if name not in own]
    values = zip(*(batch.column(name).to_pylist() for name in names), strict=True)
    offsets, commits = (batch.column(name).to_pylist() for name in (OFFSET_COLUMN, COMMIT_COLUMN))
    times = batch.column(TIMESTAMP_COLUMN).cast(pa.int64()).to_pylist()
    are_kafkas = names == KAFKA_SCHEMA.names and batch.select(names).schema == KAFKA_SCHEMA
    return [
        _record(partition, (offset, time // _MICROSECONDS, commit), dict(zip(names, row, strict=True)), are_kafkas)
        for offset, time, commit, row in zip(offsets, times, commits, values, strict=True)
    ]


def _record(
    partition: TopicPartition, place: tuple[int, int, int | None], row: dict[str, Any], are_kafkas: bool
) -> ConsumerRecord:
    offset, timestamp_ms, commit = place
    key, value, headers = (row["key"], row["value"], row["headers"]) if are_kafkas else (None, None, None)
    pairs = [(header["key"], header["value"]) for header in headers or ()]
    return ConsumerRecord(*partition, offset, timestamp_ms, key, value, pairs, row, commit)
