"""Replaying a checkpoint's rows into producer state, by columns (PROTOCOL.md §5.5).

A checkpoint has no commit order, so replay goes in offset order: the state entry of a partition,
then live data and markers at offsets at or above its `through`.  Of the data only what can still
matter is looked at one by one: the last five batches of each producer in each partition, and the
segments that no marker has decided.  So 100,000 segments cost no Python object each.  Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txntable.errors import DamagedDataError
from txntable.format.partition_values import check_all_columns, partition_column, whole_numbers
from txntable.format.schema import SEGMENTS_PARTITION_COLUMNS
from txntable.partition.batch import Batch, ProducerEpoch, decode_batch, half_a_producer
from txntable.partition.markers import Control, Marker, marker_of
from txntable.partition.producer_state import REMEMBERED_BATCHES, ProducerEntry, after_append, after_marker
from txntable.partition.state_entry import Cleaning, StateEntry, state_entry_of

COLUMNS = frozenset(column.name for column in SEGMENTS_PARTITION_COLUMNS)
# As text: an Arrow array made at import would load pandas.
_MARKERS = (Control.COMMIT.value, Control.ABORT.value)
_KNOWN = tuple(control.value for control in Control)


@dataclass(slots=True)
class Replayed:
    """What a set of live rows says about producers and transactions."""

    producers: dict[tuple[int, int], ProducerEntry] = field(default_factory=dict)
    markers: dict[tuple[int, int], Marker] = field(default_factory=dict)
    undecided: list[tuple[ProducerEpoch, Batch]] = field(default_factory=list)
    cleanings: dict[int, tuple[Cleaning, ...]] = field(default_factory=dict)


def replay(rows: pa.Table) -> Replayed:
    """Return the producer state, the markers and the undecided batches of S's live rows.

    Parameters
    ----------
    rows : pyarrow.Table
        Columns of :data:`txntable.log.table_state.ADD_SCHEMA`.

    Raises
    ------
    DamagedDataError, UnsupportedFormatError
        A row cannot be read.
    """
    rows = rows.combine_chunks()
    check_all_columns(rows, COLUMNS)
    control = partition_column(rows, "_control")
    unknown = pc.invert(pc.or_kleene(pc.is_in(control, pa.array(_KNOWN)), pc.is_null(control)))
    if pc.any(unknown).as_py():
        raise DamagedDataError(
            "a row has a control that this format does not have", path=rows.filter(unknown)["path"][0].as_py()
        )
    markers = [_marker(row) for row in rows.filter(_mask(pc.is_in(control, pa.array(_MARKERS)))).to_pylist()]
    states = [_state(row) for row in rows.filter(_mask(pc.equal(control, Control.STATE.value))).to_pylist()]
    data = rows.filter(pc.is_null(control))
    replayed = Replayed(markers={(m.producer_id, m.ends): m for m in markers})
    replayed.cleanings = {state.partition: state.cleaned for state in states if state.cleaned}
    replayed.undecided = _undecided(data, replayed.markers)
    _replay_producers(replayed, states, markers, _last_batches(data))
    return replayed


def _mask(values: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.fill_null(values, False)


def _numbers(rows: pa.Table, name: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return a partition column as int64; absent is -1 here, and nowhere else."""
    values = partition_column(rows, name)
    filled = pc.fill_null(whole_numbers(values, rows["path"], name), -1)
    return np.asarray(filled.to_numpy(zero_copy_only=False), dtype=np.int64)


def _marker(row: dict[str, Any]) -> Marker:
    return marker_of(row["path"], dict(row["partitionValues"]))


def _state(row: dict[str, Any]) -> StateEntry:
    return state_entry_of(row["path"], dict(row["partitionValues"]), _tag(row))


def _tag(row: dict[str, Any]) -> str | None:
    return dict(row["tags"] or ()).get("txntable")


def _batches(data: pa.Table, chosen: np.ndarray[Any, Any]) -> list[Batch]:
    picked = data.take(pa.array(chosen, pa.int64()))
    batches = []
    for row in picked.select(["path", "partitionValues", "tags", "modificationTime"]).to_pylist():
        values = dict(row["partitionValues"])
        batches.append(decode_batch(row["path"], values, _tag(row), row["modificationTime"]))
    return batches


def _undecided(data: pa.Table, markers: dict[tuple[int, int], Marker]) -> list[tuple[ProducerEpoch, Batch]]:
    """Return the transactional batches without a marker, and whose they are, in offset order."""
    if data.num_rows == 0:
        return []
    ids, epochs = _numbers(data, "_producer_id"), _numbers(data, "_producer_epoch")
    half = np.flatnonzero((ids < 0) != (epochs < 0))
    if len(half):
        raise half_a_producer(data["path"][int(half[0])].as_py())
    # By hashing: to sort them costs more than linearly, and most logs have few producers with many batches.
    producers, terms = pa.array(ids).dictionary_encode(), pa.array(epochs).dictionary_encode()
    codes = producers.indices.to_numpy().astype(np.int64) * len(terms.dictionary) + terms.indices.to_numpy()
    pairs = pa.array(codes).dictionary_encode()
    named = (divmod(code, len(terms.dictionary)) for code in pairs.dictionary.to_pylist())
    distinct = [(producers.dictionary[one].as_py(), terms.dictionary[other].as_py()) for one, other in named]
    waiting = np.array([pair[0] >= 0 and pair not in markers for pair in distinct])
    batches = _batches(data, np.flatnonzero(waiting[pairs.indices.to_numpy()]))
    batches.sort(key=lambda batch: (batch.partition, batch.base_offset))
    return [
        (batch.producer, batch)
        for batch in batches
        if batch.producer is not None and batch.transactional and batch.decided is None
    ]


def _last_batches(data: pa.Table) -> list[Batch]:
    """Return the last five batches of each (partition, producer id)."""
    if data.num_rows == 0:
        return []
    partition, producer = _numbers(data, "_partition"), _numbers(data, "_producer_id")
    base = _numbers(data, "_base_offset")
    order = np.lexsort((base, producer, partition))
    order = order[producer[order] >= 0]
    if len(order) == 0:
        return []
    p, q = partition[order], producer[order]
    # The end of each row's group, then keep the rows within five of it.
    is_last = np.append((p[1:] != p[:-1]) | (q[1:] != q[:-1]), True)
    ends = np.flatnonzero(is_last)
    end_of_row = ends[np.searchsorted(ends, np.arange(len(order)))]
    return _batches(data, order[end_of_row - np.arange(len(order)) < REMEMBERED_BATCHES])


def _replay_producers(
    replayed: Replayed, states: list[StateEntry], markers: list[Marker], batches: list[Batch]
) -> None:
    through = {state.partition: state.through for state in states}
    for state in states:
        for producer_id, entry in state.producers.items():
            replayed.producers[state.partition, producer_id] = entry
    events: list[tuple[int, int, int, Batch | Marker]] = [
        (batch.partition, batch.base_offset, batch.producer.producer_id, batch)
        for batch in batches
        if batch.producer is not None
    ]
    events.extend((p, offset, marker.producer_id, marker) for marker in markers for p, offset in marker.offsets.items())
    events.sort(key=lambda event: event[:2])
    for partition, offset, producer_id, event in events:
        if offset < through.get(partition, 0):
            continue
        known = replayed.producers.get((partition, producer_id))
        after = after_append(known, event) if isinstance(event, Batch) else after_marker(known, event, partition)
        if after is not None:
            replayed.producers[partition, producer_id] = after
