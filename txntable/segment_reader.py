"""Reading segments: record batches in offset order, in bounded memory (PROTOCOL.md §5.2, §10).

Owns the columns that a reader gets: the topic's, then ``_partition``, ``_offset``, ``_timestamp`` and
``_commit``.  A column that was added after a segment was written is null there.  A segment that is gone
or can not be read is an error that names it: never silently fewer rows.  Must not know of Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from txntable.delta_types import TIMESTAMP
from txntable.errors import DamagedDataError, SchemaMismatchError
from txntable.partition.segment_columns import PlannedSegment
from txntable.schema import OFFSET_DELTA_COLUMN, TIMESTAMP_COLUMN, all_nullable
from txntable.storage.object_reader import ObjectReader
from txntable.storage.object_store import ObjectStore
from txntable.topic import TopicSettings

PARTITION_COLUMN, OFFSET_COLUMN, COMMIT_COLUMN = "_partition", "_offset", "_commit"
RECORD_COLUMNS = (
    pa.field(PARTITION_COLUMN, pa.int32()),
    pa.field(OFFSET_COLUMN, pa.int64()),
    pa.field(TIMESTAMP_COLUMN, TIMESTAMP),
    pa.field(COMMIT_COLUMN, pa.int64()),
)
DEFAULT_BATCH_ROWS = 64 * 1024


class SegmentReader:
    """Reads segments of one topic.

    Parameters
    ----------
    store : ObjectStore
        The warehouse's.
    root : str
        Of the table that the segments' paths are relative to.
    settings : TopicSettings
        The topic.
    columns : sequence of str, optional
        Which columns, in this order; default: all.

    Attributes
    ----------
    schema : pyarrow.Schema
        Of the batches; everything nullable.

    Raises
    ------
    SchemaMismatchError
        There is no such column: the message names those that there are.
    """

    def __init__(
        self, store: ObjectStore, root: str, settings: TopicSettings, columns: Sequence[str] | None = None
    ) -> None:
        self._store, self._root, self._settings = store, root, settings
        known = {field.name: field for field in (*all_nullable(settings.schema), *RECORD_COLUMNS)}
        names = list(known) if columns is None else list(columns)
        unknown = [name for name in names if name not in known]
        if unknown:
            raise SchemaMismatchError(
                "the topic has no such column; name some of those it has",
                topic=settings.name,
                columns=",".join(unknown),
                known=",".join(known),
            )
        self.schema = pa.schema([known[name] for name in names])

    def read(self, segment: PlannedSegment, batch_rows: int = DEFAULT_BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """Yield the wanted records of a segment in offset order.

        Parameters
        ----------
        segment : PlannedSegment
            Which segment, and which of its offsets.
        batch_rows : int
            The most rows of a batch.

        Raises
        ------
        DamagedDataError
            The segment is gone, truncated or no segment; the message names it.
        StoreUnavailableError
            Try again.
        """
        path = f"{self._root}/{segment.path}"
        try:
            file = pq.ParquetFile(ObjectReader(self._store, path, segment.size))
            needed = self._columns_in(file.schema_arrow, segment)
            for group in _groups(file, segment):
                for batch in file.iter_batches(batch_rows, row_groups=[group], columns=needed):
                    found = self._finished(batch, segment)
                    if found.num_rows:
                        yield found
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
            raise _damaged(segment, str(error).splitlines()[0].lower()) from error

    def _columns_in(self, found: pa.Schema, segment: PlannedSegment) -> list[str]:
        missing = {OFFSET_DELTA_COLUMN, TIMESTAMP_COLUMN} - set(found.names)
        missing |= {f.name for f in self._settings.schema if not f.nullable and f.name not in found.names}
        if missing:
            raise _damaged(segment, f"columns are missing: {','.join(sorted(missing))}")
        wanted = {OFFSET_DELTA_COLUMN, *self.schema.names}
        return [name for name in found.names if name in wanted]

    def _finished(self, batch: pa.RecordBatch, segment: PlannedSegment) -> pa.RecordBatch:
        offsets = pc.add(batch.column(OFFSET_DELTA_COLUMN), segment.base_offset)
        arrays = [self._array(field, batch, offsets, segment) for field in self.schema]
        finished = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        if segment.is_whole:
            return finished
        inside = pc.and_(pc.greater_equal(offsets, segment.start), pc.less(offsets, segment.end))
        return finished.filter(inside)

    def _array(self, field: pa.Field, batch: pa.RecordBatch, offsets: pa.Array, segment: PlannedSegment) -> pa.Array:
        if field.name == OFFSET_COLUMN:
            return offsets
        if field.name in (PARTITION_COLUMN, COMMIT_COLUMN):
            value = segment.partition if field.name == PARTITION_COLUMN else segment.commit
            return pa.repeat(pa.scalar(value, field.type), batch.num_rows)
        if field.name not in batch.schema.names:
            return pa.nulls(batch.num_rows, field.type)
        column = batch.column(field.name)
        return column if column.type == field.type else column.cast(field.type)


def _groups(file: pq.ParquetFile, segment: PlannedSegment) -> Iterator[int]:
    """Yield the row groups that may hold wanted offsets."""
    footer = file.metadata
    index = footer.schema.to_arrow_schema().names.index(OFFSET_DELTA_COLUMN) if footer.num_row_groups > 1 else None
    for group in range(footer.num_row_groups):
        bounds = None if index is None or segment.is_whole else _offset_bounds(footer, group)
        if bounds is None or (
            segment.base_offset + bounds[1] >= segment.start and segment.base_offset + bounds[0] < segment.end
        ):
            yield group


def _offset_bounds(footer: Any, group: int) -> tuple[int, int] | None:
    columns = (footer.row_group(group).column(i) for i in range(footer.num_columns))
    found = next((column.statistics for column in columns if column.path_in_schema == OFFSET_DELTA_COLUMN), None)
    return None if found is None or not found.has_min_max else (int(found.min), int(found.max))


def _damaged(segment: PlannedSegment, reason: str) -> DamagedDataError:
    return DamagedDataError(
        "a segment can not be read; restore the file from a backup",
        path=segment.path,
        partition=segment.partition,
        base_offset=segment.base_offset,
        last_offset=segment.last_offset,
        commit=segment.commit,
        reason=reason,
    )


def empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch without records."""
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


def offsets_of(batch: pa.RecordBatch) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the offsets of a batch's records."""
    return np.asarray(batch.column(OFFSET_COLUMN).to_numpy(zero_copy_only=False), dtype=np.int64)
