"""The live data segments of a topic as columns, in offset order: what every read is planned on (PROTOCOL.md §5.2).

Owns how a table's rows become numbers: 100,000 segments cost no Python object each, and a commit costs
what it changed.  Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from txntable.errors import DamagedDataError
from txntable.format.partition_values import partition_column, whole_numbers
from txntable.log.actions import TAG
from txntable.log.table_state import LiveFiles

Numbers = npt.NDArray[np.int64]

# Segments that are planned at once, well before all of them are asked for.
_WINDOW = 1024

# As `txntable.statistics` writes them: the format's own columns stand last, and in no value a quote stands alone.
_RECORDS = r'^\{"numRecords":(?P<found>[0-9]{1,18})[,}]'
_DIGEST = re.compile(r'"digest":"([a-z0-9]+:[0-9a-f]+)"')
_MAX_TIMESTAMP = r'"_timestamp":"(?P<found>[^"]+)"\},"nullCount":'


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
    records : int or None
        How many the file has; ``None``: its row in the log does not say.
    start, end : int
        The offsets wanted: from `start`, before `end`.
    digest : str, optional
        Of the file's bytes; ``None``: its row in the log does not say.
    """

    path: str
    partition: int
    base_offset: int
    last_offset: int
    commit: int | None
    size: int
    records: int | None
    start: int
    end: int
    digest: str | None = None

    @property
    def is_whole(self) -> bool:
        """Whether every record of it is wanted."""
        return self.start <= self.base_offset and self.end > self.last_offset


@dataclass(frozen=True, slots=True)
class SegmentColumns:
    """Segments sorted by partition and offset; all columns but `files` have a row for each.

    Attributes
    ----------
    files : pyarrow.Table
        In any order: `path`, relative to the table's root; `stats`, Delta's statistics; `tags`; `records`, null: not
        said.
    row : numpy.ndarray of int64
        Of `files`.
    partition, base_offset, last_offset, size : numpy.ndarray of int64
        See :class:`PlannedSegment`.
    commit : numpy.ndarray of int64, optional
        ``None``: the table does not say.
    """

    files: pa.Table
    row: Numbers
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
        return self.chosen(np.flatnonzero(self.commit <= position))

    def chosen(self, rows: Numbers) -> SegmentColumns:
        """Return the segments of these rows, in the order of `rows`."""
        if len(rows) == len(self) and bool(np.all(np.diff(rows) == 1)):
            return self
        return SegmentColumns(
            self.files,
            self.row[rows],
            self.partition[rows],
            self.base_offset[rows],
            self.last_offset[rows],
            self.size[rows],
            None if self.commit is None else self.commit[rows],
        )

    def between(self, partition: int, start: int, end: int) -> Iterator[PlannedSegment]:
        """Yield the segments of a partition that may hold offsets in [start, end), in order."""
        yield from self.between_each([(partition, start, end)])

    def between_each(self, ranges: Iterable[tuple[int, int, int]]) -> Iterator[PlannedSegment]:
        """Yield what :meth:`between` yields of each (partition, start, end): planned together, however many."""
        rows: list[int] = []
        spans: list[tuple[int, int]] = []
        for partition, start, end in ranges:
            for row in self.rows_between(partition, start, end):
                rows.append(row)
                spans.append((start, end))
                if len(rows) == _WINDOW:
                    yield from self._planned(rows, spans)
                    rows, spans = [], []
        if rows:
            yield from self._planned(rows, spans)

    def rows_between(self, partition: int, start: int, end: int) -> range:
        """Return the rows of the segments that :meth:`between` yields."""
        first, stop = np.searchsorted(self.partition, np.array([partition, partition + 1], np.int64)).tolist()
        # Segments of a partition do not overlap: their last offsets rise as their base offsets do.
        from_row = first + int(np.searchsorted(self.last_offset[first:stop], start))
        to_row = first + int(np.searchsorted(self.base_offset[first:stop], end))
        return range(from_row, to_row)

    def inside(self, ranges: Mapping[int, tuple[int, int]]) -> SegmentColumns:
        """Return the segments that may hold offsets of these ranges, from and before, by partition."""
        wanted = [self.rows_between(partition, *ranges[partition]) for partition in sorted(ranges)]
        rows = [np.arange(each.start, each.stop) for each in wanted if each]
        return self.chosen(np.concatenate(rows) if rows else np.arange(0))

    def planned(self, rows: Sequence[int], start: int, end: int) -> list[PlannedSegment]:
        """Return the segments of these rows, of which the offsets in [start, end) are wanted."""
        return self._planned(rows, [(start, end)] * len(rows))

    def _planned(self, rows: Sequence[int], spans: Sequence[tuple[int, int]]) -> list[PlannedSegment]:
        at = np.asarray(rows, np.int64)
        files = self.files.select(["path", "records", "tags"]).take(pa.array(self.row[at])).to_pydict()
        digests = (digest_in(dict(tags or ()).get(TAG)) for tags in files["tags"])
        columns = (
            files["path"],
            self.partition[at].tolist(),
            self.base_offset[at].tolist(),
            self.last_offset[at].tolist(),
            repeat(None) if self.commit is None else self.commit[at].tolist(),
            self.size[at].tolist(),
            files["records"],
        )
        return list(map(PlannedSegment, *columns, *zip(*spans, strict=True), digests))

    def max_timestamps_ms(self, rows: range) -> list[int | None]:
        """Return for each row a time, ms, that no record of its segment is after; ``None``: nothing says."""
        said = _said(self.files["stats"].take(pa.array(self.row[rows.start : rows.stop])), _MAX_TIMESTAMP)
        times: list[int | None] = said.cast(pa.timestamp("ms", "UTC")).cast(pa.int64()).to_pylist()
        return times


def segment_columns(rows: pa.Table, *, public: bool) -> SegmentColumns:
    """Return the data segments among a topic's live files.

    Parameters
    ----------
    rows : pyarrow.Table
        Columns of :data:`txntable.log.table_state.ADD_SCHEMA`: of the public table, or of the partition logs.
    public : bool
        Which of the two.

    Raises
    ------
    DamagedDataError
        A row has no partition or offset.
    """
    columns = ["path", "partitionValues", "size", "stats", "tags"]
    data = rows.select(columns).combine_chunks()
    if not public:
        control = partition_column(data, "_control")
        if control.null_count != len(control):
            data = data.filter(pc.is_null(control))
    names = ("_partition", "_base_offset", "_last_offset", *(("_commit",) if public else ()))
    numbers = {name: _numbers(data, name) for name in names}
    found = SegmentColumns(
        data.select(["path", "stats", "tags"]).append_column(
            "records", _said(data["stats"], _RECORDS).cast(pa.int64())
        ),
        np.arange(data.num_rows),
        numbers["_partition"],
        numbers["_base_offset"],
        numbers["_last_offset"],
        np.asarray(data["size"].to_numpy(), dtype=np.int64),
        numbers.get("_commit"),
    )
    return _sorted(found)


def columns_after(base: SegmentColumns, files: LiveFiles, *, public: bool) -> SegmentColumns:
    """Return what :func:`segment_columns` returns of all live files, from the columns of a checkpoint's.

    Parameters
    ----------
    base : SegmentColumns
        Of ``files.base``.
    files : LiveFiles
        The table's.
    public : bool
        Of which table.
    """
    changed = files.changed_paths()
    if not len(changed):
        return base
    replaced = pc.is_in(base.files["path"], value_set=changed).to_numpy()
    kept = base.chosen(np.flatnonzero(~replaced[base.row]))
    new = segment_columns(files.tail_table(), public=public)
    if not len(new):
        return kept
    merged = SegmentColumns(
        pa.concat_tables([kept.files, new.files]),
        np.concatenate([kept.row, new.row + kept.files.num_rows]),
        np.concatenate([kept.partition, new.partition]),
        np.concatenate([kept.base_offset, new.base_offset]),
        np.concatenate([kept.last_offset, new.last_offset]),
        np.concatenate([kept.size, new.size]),
        None if kept.commit is None or new.commit is None else np.concatenate([kept.commit, new.commit]),
    )
    return _sorted(merged)


def _sorted(columns: SegmentColumns) -> SegmentColumns:
    return columns.chosen(np.lexsort((columns.base_offset, columns.partition)))


def digest_in(tag: str | None) -> str | None:
    """Return the digest that a segment's row has in its tag; ``None``: it has none."""
    # Value by value: Arrow takes longer, of few and of many.
    found = _DIGEST.search(tag or "")
    return None if found is None else found[1]


def _said(stats: pa.ChunkedArray, pattern: str) -> pa.ChunkedArray:
    """Return what a pattern finds in statistics; null: they do not say, or there are none."""
    return pc.struct_field(pc.extract_regex(stats, pattern), "found")


def _numbers(rows: pa.Table, name: str) -> Numbers:
    values = whole_numbers(partition_column(rows, name), rows["path"], name)
    if values.null_count:
        path = rows.filter(pc.is_null(values))["path"][0].as_py()
        raise DamagedDataError("a segment's row lacks a column; restore the log from a backup", path=path, column=name)
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.int64)
