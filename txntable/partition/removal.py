"""Taking rows out of the partition logs so that nothing is lost with them (PROTOCOL.md §5.5).

Owns what a commit of S that removes or settles rows must hold beside: the markers that nothing needs
any more go, and the state entry of each partition that loses producer state is written anew.
Invariant: a marker stays as long as a row of its transaction that does not carry the decision itself
is live in the topic.  Must not know why rows go.  Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from txntable.format.partition_values import partition_column
from txntable.log.actions import Action, Add, Remove
from txntable.log.table_state import TableState
from txntable.partition.batch import Batch, batch_add, batch_of
from txntable.partition.offsets import next_offset
from txntable.partition.partition_log import PartitionLogs
from txntable.partition.producer_state import ProducerEntry
from txntable.partition.projection import commit_position
from txntable.partition.state_entry import Cleaning, StateEntry, state_add
from txntable.partition.unstable_offsets import TransactionKey

# Of one commit: the others go with the next one.
LARGEST_REMOVAL_MARKERS = 10_000


@dataclass(frozen=True, slots=True)
class Removal:
    """What is to go from S's state, and what is to be remembered.

    Attributes
    ----------
    gone : collection of str
        Paths of live data rows that are removed.
    settled : collection of str
        Paths of live, committed rows that get their decision into their tags; their files are not touched.
    cleaned : Mapping[int, tuple of Cleaning]
        By partition, where it changes: its cleanings from now on.
    """

    gone: Collection[str] = ()
    settled: Collection[str] = ()
    cleaned: Mapping[int, tuple[Cleaning, ...]] = field(default_factory=dict)


def decide_removal(logs: PartitionLogs, table: TableState, removal: Removal, now_ms: int) -> list[Action]:
    """Decide a removal of data rows, and what has to go and to be written with it.

    Parameters
    ----------
    logs, table
        S's state.
    removal : Removal
        Which rows.
    now_ms : int
        The store's time, milliseconds since 1970.

    Returns
    -------
    list of Action
        To be one commit, together with what replaces the rows.
    """
    removed = [row for path in sorted(removal.gone) if (row := table.files.get(path)) is not None]
    settling = [row for path in sorted(removal.settled) if (row := table.files.get(path)) is not None]
    markers = _needless_markers(logs, table, {*removal.gone, *removal.settled})
    touched = set(removal.cleaned)
    touched.update(batch.partition for batch in map(batch_of, [*removed, *settling]) if batch.producer is not None)
    touched.update(partition for key in markers for partition in logs.markers[key].offsets)
    going = [*removed, *(row for key in markers if (row := table.files.get(logs.markers[key].path)) is not None)]
    return [
        *(Remove(row.path, now_ms, False, row.partition_values, row.size) for row in going),
        *(settled_row(logs, row) for row in settling),
        *(state_add(entry, now_ms) for entry in state_entries(logs, table, touched, removal.cleaned)),
    ]


def settled_row(logs: PartitionLogs, row: Add) -> Add:
    """Return a committed segment's row with its decision in the tag: it needs no marker and is nobody's batch."""
    batch = batch_of(row)
    position = commit_position(logs, batch)
    assert position is not None  # whoever settles a row has seen that it is committed
    kept = row_without_producer(batch, (position, position))
    return replace(batch_add(kept, row.size, row.stats), data_change=False)


def row_without_producer(batch: Batch, decided: tuple[int, int]) -> Batch:
    """Return what is left of a batch once its decision is in its tag."""
    return replace(
        batch, producer=None, transactional=False, first_sequence=None, partition_count=None, decided=decided
    )


def _needless_markers(logs: PartitionLogs, table: TableState, leaving: set[str]) -> list[TransactionKey]:
    """Return markers without any row that waits for them, once the rows `leaving` are gone or settled; not too many."""
    if not logs.markers:
        return []
    needed = set(waiting_rows(table.files.untouched_base(), leaving))
    needed.update(waiting_rows(table.files.tail_table(), leaving))
    return sorted(key for key in logs.markers if key not in needed)[:LARGEST_REMOVAL_MARKERS]


def waiting_rows(rows: pa.Table, leaving: Collection[str]) -> Iterable[TransactionKey]:
    """Yield the (producer id, epoch) of the data rows that do not carry their decision themselves."""
    producer = partition_column(rows, "_producer_id")
    data = pc.and_(pc.is_null(partition_column(rows, "_control")), pc.is_valid(producer))
    if leaving:
        data = pc.and_(data, pc.invert(pc.is_in(rows["path"], pa.array(sorted(leaving), pa.string()))))
    pairs = pa.table({"id": producer, "epoch": partition_column(rows, "_producer_epoch")}).filter(data)
    for pair in pairs.group_by(["id", "epoch"]).aggregate([]).to_pylist():
        yield int(pair["id"]), int(pair["epoch"])


def state_entries(
    logs: PartitionLogs,
    table: TableState,
    partitions: Collection[int],
    cleaned: Mapping[int, tuple[Cleaning, ...]] | None = None,
    forgotten: Collection[tuple[int, int]] = (),
) -> list[StateEntry]:
    """Return the state entries of partitions, complete up to their next offsets.

    Parameters
    ----------
    logs, table
        S's state.
    partitions : collection of int
        Which.
    cleaned : Mapping[int, tuple of Cleaning], optional
        By partition, where it changes.
    forgotten : collection of (int, int)
        The (partition, producer id) that are left out.
    """
    settings = logs.settings
    if settings is None or not partitions:
        return []
    kept: dict[int, dict[int, ProducerEntry]] = {
        partition: {
            producer_id: entry
            for producer_id, entry in logs.producers_of(partition).items()
            if (partition, producer_id) not in forgotten
        }
        for partition in sorted(partitions)
    }
    cleanings = {**logs.cleanings, **(cleaned or {})}
    return [
        StateEntry(p, next_offset(table.numbers, settings.topic_id, p), producers, cleanings.get(p, ()))
        for p, producers in kept.items()
    ]
