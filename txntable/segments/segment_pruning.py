"""Which segments, and which of their row groups, may hold wanted records: by the logs' statistics, and by footers.

Owns how bounds are read from both (PROTOCOL.md §5.2).  A bound that cannot be read is none.  Pure; must not know of
storage.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from txntable.format.column_path import field_at
from txntable.segments.record_filter import ColumnBounds, RecordFilter, literal
from txntable.segments.segment_columns import SegmentColumns
from txntable.segments.statistics import leaves

_LOW, _HIGH, _NULLS, _RECORDS = "minValues", "maxValues", "nullCount", "numRecords"
# Segments whose statistics are looked at together.
_WINDOW = 4096


def pruned(columns: SegmentColumns, wanted: RecordFilter, schema: pa.Schema) -> SegmentColumns:
    """Return the segments that may hold wanted records.

    Parameters
    ----------
    columns : SegmentColumns
        Among which.
    wanted : RecordFilter
        Its columns are of `schema`.
    schema : pyarrow.Schema
        The topic's columns and the records' own.
    """
    kept = [
        first + np.flatnonzero(_may_hold(columns.chosen(np.arange(first, stop)), wanted, schema))
        for first, stop in ((first, min(first + _WINDOW, len(columns))) for first in range(0, len(columns), _WINDOW))
    ]
    return columns.chosen(np.concatenate(kept)) if kept else columns


def _may_hold(columns: SegmentColumns, wanted: RecordFilter, schema: pa.Schema) -> np.ndarray[Any, Any]:
    texts = columns.files["stats"].take(pa.array(columns.row)).to_pylist()
    statistics = [_statistics(text) for text in texts]
    own = {
        "_partition": (columns.partition, columns.partition),
        "_offset": (columns.base_offset, columns.last_offset),
        **({} if columns.commit is None else {"_commit": (columns.commit, columns.commit)}),
    }
    bounds = {}
    for path in wanted.paths:
        kind = field_at(schema, path).type
        bounds[path] = _numbers(*own[path[0]], kind) if path[0] in own else _logged(statistics, path, kind)
    return np.asarray(wanted.of_bounds(bounds, len(columns)).to_numpy(zero_copy_only=False), dtype=bool)


def _numbers(low: np.ndarray[Any, Any], high: np.ndarray[Any, Any], kind: pa.DataType) -> ColumnBounds:
    yes, no = (pa.repeat(pa.scalar(value), len(low)) for value in (True, False))
    return ColumnBounds(pa.array(low).cast(kind), pa.array(high).cast(kind), no, yes)


def _statistics(text: str | None) -> Mapping[str, Any]:
    try:
        found = json.loads(text or "{}", parse_float=Decimal)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _logged(statistics: Sequence[Mapping[str, Any]], path: tuple[str, ...], kind: pa.DataType) -> ColumnBounds:
    lows, highs = ([_bound(_member(each, side, path), kind) for each in statistics] for side in (_LOW, _HIGH))
    nulls = [_member(each, _NULLS, path) for each in statistics]
    records = [each.get(_RECORDS) for each in statistics]
    return ColumnBounds(
        pa.array(lows, kind),
        pa.array(highs, kind),
        pa.array([count != 0 for count in nulls], pa.bool_()),
        pa.array([count is None or count != total for count, total in zip(nulls, records, strict=True)], pa.bool_()),
    )


def _member(statistics: Mapping[str, Any], side: str, path: tuple[str, ...]) -> Any:
    found = statistics.get(side)
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _bound(said: Any, kind: pa.DataType) -> Any:
    """Return a bound of the log as Python has it; ``None``: it says none."""
    try:
        if pa.types.is_timestamp(kind):
            said = dt.datetime.fromisoformat(said)
        elif pa.types.is_date32(kind):
            said = dt.date.fromisoformat(said)
        elif pa.types.is_floating(kind):
            said = float(said)
    except (TypeError, ValueError):
        return None
    found = literal(said, kind)
    return None if found is None else found.as_py()


def row_groups(footer: pq.FileMetaData, groups: Sequence[int], wanted: RecordFilter, schema: pa.Schema) -> list[int]:
    """Return the row groups that may hold wanted records.

    Parameters
    ----------
    footer : pyarrow.parquet.FileMetaData
        Of the segment.
    groups : sequence of int
        Among which.
    wanted : RecordFilter
        Its columns are of `schema`; the file need not have them.
    schema : pyarrow.Schema
        The topic's columns and the records' own.
    """
    if not groups:
        return []
    index_of = _indexes(footer)
    bounds = {
        path: _of_footer([footer.row_group(group).column(index_of[path]) for group in groups], path, schema)
        for path in wanted.paths
        if path in index_of
    }
    kept = wanted.of_bounds(bounds, len(groups)).to_pylist()
    return [group for group, may in zip(groups, kept, strict=True) if may]


def _indexes(footer: pq.FileMetaData) -> dict[tuple[str, ...], int]:
    # Parquet's path of a column inside of another may be the name of a column with a dot: Arrow's schema tells.
    named = {leaf.path: leaf.index for leaf in leaves(footer.schema.to_arrow_schema())}
    paths = [footer.schema.column(index).path for index in range(footer.num_columns)]
    # Of types that no topic has, their numbers may be others.
    return {path: index for path, index in named.items() if paths[index : index + 1] == [".".join(path)]}


def _of_footer(chunks: Sequence[pq.ColumnChunkMetaData], path: tuple[str, ...], schema: pa.Schema) -> ColumnBounds:
    kind = field_at(schema, path).type
    found = [_chunk_bounds(chunk, kind) for chunk in chunks]
    lows, highs, nulls, values = ([each[part] for each in found] for part in range(4))
    return ColumnBounds(pa.array(lows, kind), pa.array(highs, kind), pa.array(nulls), pa.array(values))


def _chunk_bounds(chunk: pq.ColumnChunkMetaData, kind: pa.DataType) -> tuple[Any, Any, bool, bool]:
    found = chunk.statistics
    nulls = found.null_count if found is not None and found.has_null_count else None
    may_be_null, may_have_values = nulls != 0, nulls is None or nulls != chunk.num_values
    try:
        bounds = (found.min, found.max) if found is not None and found.has_min_max else (None, None)
    except (pa.ArrowException, ValueError, OverflowError):
        bounds = (None, None)
    low, high = (None if bound is None else literal(bound, kind) for bound in bounds)
    # Half of what should be two: a NaN, or a text that is none.
    if low is None or high is None or any(isinstance(each, float) and math.isnan(each) for each in bounds):
        return None, None, may_be_null, may_have_values
    return low.as_py(), high.as_py(), may_be_null, may_have_values
