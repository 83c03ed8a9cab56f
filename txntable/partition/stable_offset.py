"""High watermark and last stable offset, as pure functions of S's state (PROTOCOL.md §5.6).

The last stable offset (LSO) is the first offset of the earliest open transaction *with data* in
the partition, never below the log start; without one it is the high watermark.
"""

from __future__ import annotations

from txntable.log.table_state import TableState
from txntable.partition.offsets import log_start, next_offset
from txntable.partition.partition_log import PartitionLogs


def high_watermark(table: TableState, topic_id: str, partition: int) -> int:
    """Return the offset after the last record or marker of the partition."""
    return next_offset(table.numbers, topic_id, partition)


def first_unstable_offsets(logs: PartitionLogs) -> dict[int, int]:
    """Return by partition the first offset of its earliest open transaction with data there."""
    return logs.unstable.firsts()


def last_stable_offset(logs: PartitionLogs, table: TableState, topic_id: str, partition: int) -> int:
    """Return the first offset that a ``read_committed`` reader must not reach (exclusive bound)."""
    unstable = logs.unstable.first(partition)
    stable = high_watermark(table, topic_id, partition) if unstable is None else unstable
    return max(stable, log_start(table.numbers, topic_id, partition))
