"""Where topics stand: bounds, sizes and last writes of their partitions, from the partition logs alone.

Owns the counting, by columns: a topic of 100,000 segments costs no Python object for each.  Reads only.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from txntable.log.table_state import TableState
from txntable.partition.topic_view import TopicView
from txntable.report.warehouse_report import Bounded, PartitionStanding, TopicStanding

_Numbers = npt.NDArray[np.int64]


def topic_standing(view: TopicView, segments: TableState, most: int) -> TopicStanding:
    """Return where a topic stands.

    Parameters
    ----------
    view : TopicView
        Everything appended, of `segments`.
    segments : TableState
        S's state.
    most : int
        How many partitions are told of one by one.
    """
    columns, count = view.columns, view.settings.partitions
    segments_in = np.bincount(columns.partition, minlength=count)
    size_in = _sums(columns.partition, columns.size, count)
    records_in = _sums(columns.partition, _records(view), count)
    held = {partition: bounds.high_watermark - bounds.last_stable_offset for partition, bounds in view.bounds.items()}
    chosen = sorted(sorted(held, key=lambda partition: (held[partition] <= 0, partition))[:most])
    newest = dict(zip(chosen, _last_writes(view, segments, chosen), strict=True))
    partitions = tuple(
        PartitionStanding(
            partition,
            view.bounds[partition].start,
            view.bounds[partition].last_stable_offset,
            view.bounds[partition].high_watermark,
            int(segments_in[partition]),
            int(records_in[partition]),
            int(size_in[partition]),
            newest[partition],
        )
        for partition in chosen
    )
    return TopicStanding(
        name=view.settings.name,
        partition_count=count,
        segments=len(columns),
        records=int(records_in.sum()),
        size=int(size_in.sum()),
        held_back=sum(held.values()),
        last_write_ms=pc.max(segments.files.to_table()["modificationTime"]).as_py() if len(columns) else None,
        config=dict(sorted(view.settings.config.items())),
        partitions=Bounded(partitions, count),
    )


def _records(view: TopicView) -> _Numbers:
    said = view.columns.files["records"].take(pa.array(view.columns.row))
    return np.asarray(pc.fill_null(said, 0).to_numpy(), dtype=np.int64)


def _sums(partition: _Numbers, values: _Numbers, count: int) -> _Numbers:
    sums = np.zeros(count, dtype=np.int64)
    np.add.at(sums, partition, values)
    return sums


def _last_writes(view: TopicView, segments: TableState, partitions: Sequence[int]) -> list[int | None]:
    columns, found = view.columns, []
    for partition in partitions:
        stop = int(np.searchsorted(columns.partition, partition + 1))
        is_empty = stop == 0 or int(columns.partition[stop - 1]) != partition
        add = None if is_empty else segments.files.get(columns.files["path"][int(columns.row[stop - 1])].as_py())
        found.append(None if add is None else add.modification_time)
    return found
