"""The live data segments of a topic as columns, in offset order: what every read is planned on.

Owns how a table's rows become numbers: 100,000 segments cost no Python object each.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from txntable.errors import DamagedDataError
from txntable.log.table_state import LiveFiles

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PlannedSegment:
    """One segment, and which of its offsets are wanted.

    Attributes
    ----------
    path : str
        Relative to the table's root.
    partition : int
        From 0.
    base_offset, last_offset : int
        Of the segment, inclusive; a merged one may hold fewer records.
    commit : int or None
        The position of the decision that made it visible, 0 without a transaction; ``None``: not known at this level.
    size : int
        Bytes of the file.
    start, end : int
        The offsets wanted: from `start`, before `end`.
    """

    path: str
    partition: int
    base_offset: int
    last_offset: int
    commit: int | None
    size: int
    start: int
    end: int

    @property
    def is_whole(self) -> bool:
        """Whether every record of it is wanted."""
        return self.start <= self.base_offset and self.end > self.last_offset


@dataclass(frozen=True, slots=True)
class SegmentColumns:
    """Segments sorted by partition and offset; all columns of one length.

    Attributes
    ----------
    paths : pyarrow.StringArray
        Relative to the table's root.
    partition, base_offset, last_offset, size : numpy.ndarray of int64
        See :class:`PlannedSegment`.
    commit : numpy.ndarray of int64, optional
        ``None``: the table does not say.
    """

    paths: pa.StringArray
    partition: Numbers
    base_offset: Numbers
    last_offset: Numbers
    size: Numbers
    commit: Numbers | None

    def __len__(self) -> int:
        return len(self.partition)

    def committed_through(self, position: int) -> SegmentColumns:
        """Return the segments that were committed at or below a decision position."""
        if self.commit is None:
            raise DamagedDataError("only the public table says what is committed", position=position)
        return self._chosen(np.flatnonzero(self.commit <= position))

    def _chosen(self, rows: Numbers) -> SegmentColumns:
        if len(rows) == len(self):
            return self
        return SegmentColumns(
            self.paths.take(pa.array(rows)),
            self.partition[rows],
            self.base_offset[rows],
            self.last_offset[rows],
            self.size[rows],
            None if self.commit is None else self.commit[rows],
        )

    def between(self, partition: int, start: int, end: int) -> Iterator[PlannedSegment]:
        """Yield the segments of a partition that may hold offsets in [start, end), in order."""
        first, stop = np.searchsorted(self.partition, [partition, partition + 1])
        # Segments of a partition do not overlap: their last offsets rise as their base offsets do.
        row = int(first) + int(np.searchsorted(self.last_offset[first:stop], start))
        while row < stop and self.base_offset[row] < end:
            yield PlannedSegment(
                self.paths[row].as_py(),
                partition,
                int(self.base_offset[row]),
                int(self.last_offset[row]),
                None if self.commit is None else int(self.commit[row]),
                int(self.size[row]),
                start,
                end,
            )
            row += 1


def segment_columns(files: LiveFiles, *, public: bool) -> SegmentColumns:
    """Return the data segments among a topic's live files.

    Parameters
    ----------
    files : LiveFiles
        Of the public table, or of the partition logs.
    public : bool
        Which of the two.

    Raises
    ------
    DamagedDataError
        A row has no partition or offset.
    """
    rows = files.to_table().combine_chunks()
    if not public:
        rows = rows.filter(pc.is_null(_value(rows, "_control")))
    names = ("_partition", "_base_offset", "_last_offset", *(("_commit",) if public else ()))
    numbers = {name: _numbers(rows, name) for name in names}
    order = np.lexsort((numbers["_base_offset"], numbers["_partition"]))
    paths = rows["path"].combine_chunks() if rows.num_rows else pa.array([], pa.string())
    return SegmentColumns(
        paths.take(pa.array(order)),
        numbers["_partition"][order],
        numbers["_base_offset"][order],
        numbers["_last_offset"][order],
        np.asarray(rows["size"].to_numpy(), dtype=np.int64)[order],
        numbers["_commit"][order] if public else None,
    )


def _value(rows: pa.Table, name: str) -> Any:
    return pc.map_lookup(rows["partitionValues"], query_key=pa.scalar(name), occurrence="first")


def _numbers(rows: pa.Table, name: str) -> Numbers:
    try:
        values = pc.cast(_value(rows, name), pa.int64())
    except pa.ArrowInvalid as error:
        raise DamagedDataError("a row of a topic has a column that is no number", column=name) from error
    if values.null_count:
        path = rows.filter(pc.is_null(values))["path"][0].as_py()
        raise DamagedDataError("a segment's row lacks a column; restore the log from a backup", path=path, column=name)
    return np.asarray(values.to_numpy(), dtype=np.int64)
