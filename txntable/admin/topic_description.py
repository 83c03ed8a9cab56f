"""Descriptions of topics for admins: values, and the counting behind them.  Pure."""

from __future__ import annotations

from dataclasses import dataclass

from txntable.format.topic import TopicSettings
from txntable.log.table_state import TableState
from txntable.partition.batch import batch_of


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """One partition of a topic.

    Attributes
    ----------
    partition : int
        From 0.
    log_start, last_stable_offset, high_watermark : int
        Offsets; an open transaction holds back the records between the last two.
    segments : int
        Number of live data segments, of any outcome.
    records : int
        Number of records in them.
    bytes : int
        Their total size.
    """

    partition: int
    log_start: int
    last_stable_offset: int
    high_watermark: int
    segments: int
    records: int
    bytes: int


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic, according to its partition logs.

    Attributes
    ----------
    settings : TopicSettings
        Schema, key, configuration.
    version : int
        Version of the segment log.
    decided_through : int
        Decision position up to which every marker is written.
    public_version : int or None
        Version of the public table; ``None`` if not published yet.
    partitions : tuple of PartitionDescription
        In order.
    """

    settings: TopicSettings
    version: int
    decided_through: int
    public_version: int | None
    partitions: tuple[PartitionDescription, ...]


def count_live(table: TableState) -> dict[int, tuple[int, int, int]]:
    """Return by partition how many live data segments there are, their records and bytes."""
    counted: dict[int, tuple[int, int, int]] = {}
    for add in table.files:
        values = add.partition_values
        if values["_control"] is None and values["_partition"] is not None:
            batch = batch_of(add)
            segments, records, size = counted.get(batch.partition, (0, 0, 0))
            counted[batch.partition] = (segments + 1, records + batch.records, size + add.size)
    return counted
