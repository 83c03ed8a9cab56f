"""Rows of one partition that wait to become one segment.

Owns how single records and tables, in the order of their sends, become one table, and whom to
tell the offsets.  Must not know how a partition is chosen or when a batch is full.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import pyarrow as pa

from txntable.format.delta_types import TIMESTAMP
from txntable.format.records import BatchDelivery, RecordMetadata
from txntable.producer.partitioner import Placement
from txntable.producer.row_check import CheckedRow

# Single records in Python take many times their size: not more of them than this, then Arrow holds them.
_LOOSE_ROWS = 4096


class WaitingBatch:
    """Some rows of one partition.

    Parameters
    ----------
    partition : int
        From 0.
    placement : Placement
        How the first rows came to it.
    schema : pyarrow.Schema
        The topic's columns and ``_timestamp``, all nullable.

    Attributes
    ----------
    size : int
        Bytes of the values (see :mod:`txntable.producer.record_size`).
    delivery : BatchDelivery
        Tells the sends of the rows what became of them.
    loose, times : list
        Single records that Arrow does not hold yet, and their times in µs: the last ones.
    parts : list of pyarrow.RecordBatch
        The records before these.
    """

    __slots__ = ("delivery", "loose", "partition", "parts", "placement", "schema", "size", "times")

    def __init__(self, partition: int, placement: Placement, schema: pa.Schema) -> None:
        self.partition = partition
        self.placement = placement
        self.size = 0
        self.delivery = BatchDelivery()
        self.schema = schema
        self.loose: list[tuple[Any, ...]] = []
        self.times: list[int] = []
        self.parts: list[pa.RecordBatch] = []

    @property
    def keyed(self) -> bool:
        """Whether every record with a key came here by it."""
        return self.placement is Placement.KEYED

    def add_row(self, row: CheckedRow, timestamp_us: int, metadata: RecordMetadata) -> None:
        """Take one record; `timestamp_us` in µs since 1970."""
        self.loose.append(row.values)
        self.times.append(timestamp_us)
        self.size += row.size
        self.delivery.add(metadata, 1)
        if len(self.loose) >= _LOOSE_ROWS:
            self._gather()

    def add_rows(self, rows: pa.RecordBatch, size: int, metadata: RecordMetadata) -> None:
        """Take records that are in the schema of the batch."""
        self._gather()
        self.parts.append(rows)
        self.size += size
        self.delivery.add(metadata, rows.num_rows)

    def _gather(self) -> None:
        gather([self])

    def rows(self) -> pa.RecordBatch | pa.Table:
        """Return all rows in order."""
        self._gather()
        if len(self.parts) > 1:
            return pa.Table.from_batches(self.parts, self.schema).combine_chunks()
        return self.parts[0]


def gather(batches: Sequence[WaitingBatch]) -> None:
    """Let Arrow hold the single records of batches of one topic: of all at once, for each array costs the same."""
    loose = [batch for batch in batches if batch.loose]
    if not loose:
        return
    schema = loose[0].schema
    columns = zip(*chain.from_iterable(batch.loose for batch in loose), strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=False)]
    times = pa.array([time for batch in loose for time in batch.times], TIMESTAMP)
    rows = pa.RecordBatch.from_arrays([*arrays, times], schema=schema)
    start = 0
    for batch in loose:
        count = len(batch.loose)
        batch.parts.append(rows.slice(start, count))
        batch.loose, batch.times = [], []
        start += count
