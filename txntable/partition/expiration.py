"""Letting partitions forget producers that are idle (PROTOCOL.md §5.4, §5.5).

Owns when a producer is idle, and the commit of S that forgets it: the state entry of its partition
written anew without it, complete up to the partition's next offset.  A producer with an open
transaction in a partition is never forgotten there.  Pure.
"""

from __future__ import annotations

from collections.abc import Collection

from txntable.log.actions import Add
from txntable.log.table_state import TableState
from txntable.partition.partition_log import PartitionLogs
from txntable.partition.removal import state_entries
from txntable.partition.state_entry import state_add


def idle_producers(logs: PartitionLogs, now_ms: int, expiration_ms: int) -> set[tuple[int, int]]:
    """Return the (partition, producer id) that may be forgotten.

    Parameters
    ----------
    logs : PartitionLogs
        S's state.
    now_ms : int
        The store's time, milliseconds since 1970.
    expiration_ms : int
        ``producer.id.expiration.ms``.
    """
    if logs.settings is None or logs.settings.deleted:
        return set()
    return {
        key
        for key, entry in logs.producers.items()
        if now_ms - entry.last_timestamp_ms >= expiration_ms and not logs.in_transaction(*key)
    }


def decide_expiry(
    logs: PartitionLogs, table: TableState, expired: Collection[tuple[int, int]], now_ms: int
) -> list[Add]:
    """Decide the state entries of the partitions that forget producers.

    Parameters
    ----------
    logs, table
        S's state.
    expired : collection of (int, int)
        What :func:`idle_producers` says of the same state.
    now_ms : int
        The store's time, milliseconds since 1970.

    Returns
    -------
    list of Add
        One for each partition that forgets a producer; empty: nothing to write.
    """
    entries = state_entries(logs, table, {partition for partition, _ in expired}, forgotten=expired)
    return [state_add(entry, now_ms) for entry in entries]
