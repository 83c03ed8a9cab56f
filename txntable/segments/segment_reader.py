"""Reading segments: record batches in offset order, in bounded memory (PROTOCOL.md §5.2, §10).

Owns the columns that a reader gets: the topic's, then ``_partition``, ``_offset``, ``_timestamp`` and ``_commit``.  A
column that was added after a segment was written is null there, also inside of a struct.  A segment that is gone or
cannot be read is an error that names it: never silently fewer rows.  Must not know of Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from copy import copy
from dataclasses import dataclass
from functools import partial
from itertools import tee
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from txntable.coordinator.error_kinds import shown
from txntable.errors import DamagedDataError, InvalidRequestError, SchemaMismatchError, TxnTableError
from txntable.format.conform import TIMESTAMP_COLUMN
from txntable.format.delta_types import TIMESTAMP, canonical_type, has_grown
from txntable.format.near_names import column_hint
from txntable.format.parquet_bounds import batch_rows as safe_batch_rows
from txntable.format.parquet_bounds import chunks_of, leaf_count
from txntable.format.schema import OFFSET_DELTA_COLUMN, all_nullable
from txntable.format.topic import TopicSettings
from txntable.runtime.background_thread import lend_to_arrow
from txntable.segments.decoding import RowGroup, decoded
from txntable.segments.record_filter import RecordFilter
from txntable.segments.segment_check import check_file
from txntable.segments.segment_columns import PlannedSegment
from txntable.segments.segment_digest import check_digest, digest_of
from txntable.segments.segment_pruning import row_groups
from txntable.storage.object_reader import WHOLE_BYTES, ObjectReader
from txntable.storage.object_store import ObjectStore
from txntable.storage.read_window import ReadWindow, readers_ahead

PARTITION_COLUMN, OFFSET_COLUMN, COMMIT_COLUMN = "_partition", "_offset", "_commit"
RECORD_COLUMNS = (
    pa.field(PARTITION_COLUMN, pa.int32()),
    pa.field(OFFSET_COLUMN, pa.int64()),
    pa.field(TIMESTAMP_COLUMN, TIMESTAMP),
    pa.field(COMMIT_COLUMN, pa.int64()),
)
DEFAULT_BATCH_ROWS = 128 * 1024
"""As pyarrow's own datasets: decoding 65,536 rows at a time takes a tenth more CPU."""
_WINDOW = ReadWindow()
# What every segment has beside the topic's columns.
_RECORDS_OWN = (
    pa.field(OFFSET_DELTA_COLUMN, pa.int64(), nullable=False),
    pa.field(TIMESTAMP_COLUMN, TIMESTAMP, nullable=False),
)
# Not Arrow's want of memory, which is no damage.
UNREADABLE = (
    pa.ArrowInvalid,
    pa.ArrowKeyError,
    pa.ArrowTypeError,
    pa.ArrowIndexError,
    pa.ArrowNotImplementedError,
    OSError,
)


Overtaken = Callable[[PlannedSegment], TxnTableError | None]
RowsOf = Callable[[PlannedSegment], int]


def _never(_: PlannedSegment) -> None:
    return None


def _default_rows(_: PlannedSegment) -> int:
    return DEFAULT_BATCH_ROWS


def record_schema(settings: TopicSettings) -> pa.Schema:
    """Return all columns of a topic's records, those of its own first; everything nullable."""
    return pa.schema([*all_nullable(settings.schema), *RECORD_COLUMNS])


@dataclass(frozen=True, slots=True)
class _FileSchema:
    """The schema of a file of the topic, and the numbers of Parquet's columns that each of its columns consists of."""

    schema: pa.Schema
    leaves: Mapping[str, list[int]]


@dataclass(frozen=True, slots=True)
class _Layout:
    """What is read of a file: which columns, Parquet's of them, and which row groups."""

    footer: pq.FileMetaData
    columns: list[str]
    leaves: list[int]
    groups: tuple[int, ...]


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
    overtaken : callable, optional
        Is asked about a segment that is gone: returns the error of who has slept until vacuum took it, or ``None``
        where the log still names it; default: nobody knows, and it is damage.

    Attributes
    ----------
    schema : pyarrow.Schema
        Of the batches; everything nullable.

    Raises
    ------
    SchemaMismatchError
        There is no such column, or none is asked for: the message names those that there are.
    """

    def __init__(
        self,
        store: ObjectStore,
        root: str,
        settings: TopicSettings,
        columns: Sequence[str] | None = None,
        overtaken: Overtaken = _never,
    ) -> None:
        self._overtaken = overtaken
        self._store, self._root, self._settings = store, root, settings
        self._known = known = {field.name: field for field in record_schema(settings)}
        if isinstance(columns, str) or not isinstance(columns, Sequence | None):
            raise InvalidRequestError("columns is a list of names; put the name into one", columns=shown(columns))
        names = list(known) if columns is None else list(columns)
        unknown = [str(name) for name in names if not isinstance(name, str) or name not in known]
        if unknown or not names:
            raise SchemaMismatchError(
                "the topic has no such column; name some of those it has, one at least" + column_hint(unknown, known),
                topic=settings.name,
                columns=",".join(unknown) or None,
                known=",".join(known),
            )
        self.schema = pa.schema([known[name] for name in names])
        self._decoded = self.schema
        self._where: RecordFilter | None = None
        self._fitting: _FileSchema | None = None

    def where(self, wanted: RecordFilter | None) -> Self:
        """Return a reader of the same columns that yields only the records which pass.

        Parameters
        ----------
        wanted : RecordFilter, optional
            Of columns that the topic has; ``None``: every record passes.
        """
        found = copy(self)
        found._test(wanted)  # noqa: SLF001  the copy is ours
        return found

    def _test(self, wanted: RecordFilter | None) -> None:
        names = [] if wanted is None else [name for name in wanted.columns if name not in self.schema.names]
        self._decoded = pa.schema([*self.schema, *(self._known[name] for name in names)])
        self._where = wanted

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
        TxnTableError
            What `overtaken` returned.
        """
        return self._read(segment, ObjectReader(self._store, self._path(segment), segment.size), batch_rows)

    def read_each(
        self, segments: Iterable[PlannedSegment], rows: RowsOf = _default_rows, window: ReadWindow | None = _WINDOW
    ) -> Generator[tuple[PlannedSegment, Iterator[pa.RecordBatch]], None, None]:
        """Yield segments in their order, each with its batches, which are read before the next segment is asked for.

        Parameters
        ----------
        segments : iterable of PlannedSegment
            Which.
        rows : callable
            Of a segment, the most rows of a batch.
        window : ReadWindow, optional
            What is fetched ahead meanwhile; ``None``: nothing.  Errors are those of :meth:`read`, in their place.
        """
        asked, opened = tee(segments)
        objects = ((self._path(segment), segment.size) for segment in asked)
        with closing(readers_ahead(self._store, objects, window)) as places:
            for segment, place in zip(opened, places, strict=True):
                yield segment, self._read(segment, place, rows(segment))

    def read_all(
        self, segments: Iterable[PlannedSegment], rows: RowsOf = _default_rows, window: ReadWindow | None = _WINDOW
    ) -> Iterator[pa.RecordBatch]:
        """Yield the wanted records of segments, one segment after the other; see :meth:`read_each`."""
        with closing(self.read_each(segments, rows, window)) as each:
            for _, batches in each:
                yield from batches

    def _path(self, segment: PlannedSegment) -> str:
        return f"{self._root}/{segment.path}"

    def read_side_by_side(self, segments: Iterable[PlannedSegment]) -> Iterator[pa.RecordBatch]:
        """Yield what :meth:`read_all` does; row groups of large segments are decoded by several threads ahead of it."""
        with closing(decoded(self._row_groups(segments), pa.cpu_count())) as batches:
            yield from batches

    def _row_groups(self, segments: Iterable[PlannedSegment]) -> Iterator[RowGroup]:
        asked, opened = tee(segments)
        objects = ((self._path(segment), segment.size) for segment in asked)
        with closing(readers_ahead(self._store, objects, _WINDOW)) as places:
            for segment, place in zip(opened, places, strict=True):
                try:
                    yield from self._row_groups_of(segment, place)
                except TxnTableError as error:
                    # It comes in its place, behind the records before it.
                    yield RowGroup(0, partial(_raise, error), in_turn=True)

    def _row_groups_of(self, segment: PlannedSegment, place: ObjectReader) -> Iterator[RowGroup]:
        if segment.size <= WHOLE_BYTES:
            yield RowGroup(segment.size, lambda _: self._read(segment, place, DEFAULT_BATCH_ROWS), in_turn=True)
            return
        with self._telling(segment):
            file = self._file(segment, place)
            layout = self._layout(file, segment)
            bounds = [_deltas_of(file.metadata, group) for group in range(file.metadata.num_row_groups)]
        if OFFSET_DELTA_COLUMN in layout.columns and None in bounds:
            # Without statistics only who reads one after the other sees that offsets rise.
            yield RowGroup(segment.size, lambda _: self._read(segment, place, DEFAULT_BATCH_ROWS), in_turn=True)
            return
        for group in layout.groups:
            size = sum(chunk.length for chunk in chunks_of(layout.footer, group, layout.leaves))
            before = bounds[group - 1] if group else None
            deltas = (-1 if before is None else before[1], bounds[group])
            yield RowGroup(size, partial(self._decode, segment, layout, group, deltas))

    def _decode(
        self,
        segment: PlannedSegment,
        layout: _Layout,
        group: int,
        deltas: tuple[int, tuple[int, int] | None],
        by_itself: bool,
    ) -> Generator[pa.RecordBatch | None, None, None]:
        """Yield the records of one row group; `deltas`: the last one before it, and its own by its statistics."""
        place = ObjectReader(self._store, self._path(segment), segment.size)
        with closing(place), self._telling(segment):
            file = self._file(segment, place, layout.footer)
            rows = self._hold(place, layout, group, DEFAULT_BATCH_ROWS)
            if rows < DEFAULT_BATCH_ROWS:
                yield None
            batches = file.iter_batches(rows, row_groups=[group], columns=layout.columns, use_threads=by_itself)
            last = yield from self._records(batches, segment, deltas[0])
            if OFFSET_DELTA_COLUMN in layout.columns and deltas[1] is not None and last != deltas[1][1]:
                raise DamagedDataError("its offsets are not those of its statistics")

    def _read(
        self, segment: PlannedSegment, place: ObjectReader, batch_rows: int
    ) -> Generator[pa.RecordBatch, None, None]:
        with self._telling(segment):
            yield from self._batches(segment, place, batch_rows)

    def _damaged(self, segment: PlannedSegment, reason: str) -> DamagedDataError:
        return DamagedDataError(
            "a segment cannot be read; restore the file from a backup",
            path=self._path(segment),
            partition=segment.partition,
            base_offset=segment.base_offset,
            last_offset=segment.last_offset,
            commit=segment.commit,
            reason=reason,
        )

    @contextmanager
    def _telling(self, segment: PlannedSegment) -> Iterator[None]:
        try:
            yield
        except DamagedDataError as error:
            gone = self._store.head(self._path(segment)) is None
            raise (self._overtaken(segment) if gone else None) or self._damaged(segment, error.message) from error
        except UNREADABLE as error:
            raise self._damaged(segment, str(error).partition("\n")[0].lower()) from error

    def check(self, segment: PlannedSegment) -> None:
        """Return when a segment's file is the one that the log names: all of it is read.

        Parameters
        ----------
        segment : PlannedSegment
            Which; raises as :meth:`read`, which asks by itself of a file that it fetches whole.
        """
        if segment.size > WHOLE_BYTES:
            try:
                check_file(self._store, self._path(segment), segment.size, segment.digest)
            except DamagedDataError as error:
                raise self._damaged(segment, error.message) from error

    def _batches(
        self, segment: PlannedSegment, place: ObjectReader, batch_rows: int
    ) -> Generator[pa.RecordBatch, None, None]:
        # At an error, or when nobody wants the rest, Arrow may still be reading.
        with closing(place):
            file = self._file(segment, place)
            layout = self._layout(file, segment)
            # Of a small one threads and read-ahead cost more than the decoding; threads decode a column each.
            use_threads = segment.size > WHOLE_BYTES and len(layout.columns) > 1
            before = -1
            for group in layout.groups:
                # One row group at a time: memory is bounded by what one decodes to.
                rows = self._hold(place, layout, group, batch_rows)
                batches = file.iter_batches(rows, row_groups=[group], columns=layout.columns, use_threads=use_threads)
                before = yield from self._records(batches, segment, before)

    def _file(
        self, segment: PlannedSegment, place: ObjectReader, footer: pq.FileMetaData | None = None
    ) -> pq.ParquetFile:
        small = segment.size <= WHOLE_BYTES
        source = pa.BufferReader(_checked(place.read(), segment)) if small else place
        if not small:
            lend_to_arrow(segment.path)
        return pq.ParquetFile(source, metadata=footer, pre_buffer=False, page_checksum_verification=True)

    def _layout(self, file: pq.ParquetFile, segment: PlannedSegment) -> _Layout:
        fitting = self._fitting_of(file, segment)
        columns = self._columns_in(fitting.schema, segment)
        leaves = [leaf for name in dict.fromkeys(columns) for leaf in fitting.leaves[name]]
        return _Layout(file.metadata, columns, leaves, tuple(self._groups(file.metadata, segment)))

    @staticmethod
    def _hold(place: ObjectReader, layout: _Layout, group: int, batch_rows: int) -> int:
        """Fetch what is read of a row group; return of how many rows its batches may be."""
        chunks = chunks_of(layout.footer, group, layout.leaves)
        place.hold((chunk.start, chunk.length) for chunk in chunks)
        return safe_batch_rows(layout.footer, chunks, place.at, batch_rows)

    def _records(
        self, batches: Iterable[pa.RecordBatch], segment: PlannedSegment, before: int
    ) -> Generator[pa.RecordBatch, None, int]:
        """Yield the wanted records of batches; return the delta of the last one, or `before`."""
        for batch in batches:
            if OFFSET_DELTA_COLUMN in batch.schema.names:
                before = _check_deltas(batch.column(OFFSET_DELTA_COLUMN), before, segment)
            found = self._finished(batch, segment)
            if found.num_rows:
                yield found
        return before

    def _fitting_of(self, file: pq.ParquetFile, segment: PlannedSegment) -> _FileSchema:
        """Return a file's schema; refuse a file that is not the segment."""
        if segment.records not in (None, file.metadata.num_rows):
            raise DamagedDataError(f"it has {file.metadata.num_rows} records, not {segment.records}")
        found, fitting = file.schema_arrow, self._fitting
        # Nearly all segments of a topic have the schema of the one before.
        if fitting is None or not found.equals(fitting.schema):
            self._check_columns(found)
            fitting = self._fitting = _FileSchema(found, leaves_by_column(found))
        return fitting

    def _columns_in(self, found: pa.Schema, segment: PlannedSegment) -> list[str]:
        wanted = set(self._decoded.names)
        if OFFSET_COLUMN in wanted or not segment.is_whole or not wanted.intersection(found.names):
            wanted.add(OFFSET_DELTA_COLUMN)
        return [name for name in found.names if name in wanted]

    def _check_columns(self, found: pa.Schema) -> None:
        for field in (*self._settings.schema, *_RECORDS_OWN):
            index = found.get_field_index(field.name)
            if index < 0 and not field.nullable:
                raise DamagedDataError(f"it has no column {field.name}")
            kind = canonical_type(found.field(index).type) if index >= 0 else field.type
            if kind is None or not has_grown(kind, field.type):
                raise DamagedDataError(f"its column {field.name} is {found.field(index).type}, not {field.type}")

    def _groups(self, footer: pq.FileMetaData, segment: PlannedSegment) -> Iterable[int]:
        groups = _groups(footer, segment)
        if self._where is None:
            return groups
        return row_groups(footer, list(groups), self._where, pa.schema(self._known.values()))

    def _finished(self, batch: pa.RecordBatch, segment: PlannedSegment) -> pa.RecordBatch:
        is_asked = OFFSET_COLUMN in self._decoded.names or not segment.is_whole
        offsets = pc.add(batch.column(OFFSET_DELTA_COLUMN), segment.base_offset) if is_asked else None
        arrays = [self._array(field, batch, offsets, segment) for field in self._decoded]
        finished = pa.RecordBatch.from_arrays(arrays, schema=self._decoded)
        if not segment.is_whole:
            inside = pc.and_(pc.greater_equal(offsets, segment.start), pc.less(offsets, segment.end))
            finished = finished.filter(inside)
        if self._where is None:
            return finished
        return finished.filter(self._where.of_record()).select(self.schema.names)

    def _array(
        self, field: pa.Field, batch: pa.RecordBatch, offsets: pa.Array | None, segment: PlannedSegment
    ) -> pa.Array:
        if field.name == OFFSET_COLUMN:
            return offsets
        if field.name in (PARTITION_COLUMN, COMMIT_COLUMN):
            value = segment.partition if field.name == PARTITION_COLUMN else segment.commit
            return pa.repeat(pa.scalar(value, field.type), batch.num_rows)
        if field.name not in batch.schema.names:
            return pa.nulls(batch.num_rows, field.type)
        column = batch.column(field.name)
        return column if column.type == field.type else column.cast(field.type)


def leaves_by_column(schema: pa.Schema) -> dict[str, list[int]]:
    """Return the numbers of Parquet's columns that each column of a file consists of."""
    found: dict[str, list[int]] = {}
    first = 0
    for field in schema:
        count = leaf_count(field.type)
        found.setdefault(field.name, []).extend(range(first, first + count))
        first += count
    return found


def _groups(footer: pq.FileMetaData, segment: PlannedSegment) -> Iterator[int]:
    """Yield the row groups that may hold wanted offsets."""
    for group in range(footer.num_row_groups):
        deltas = None if segment.is_whole else _deltas_of(footer, group)
        if deltas is None or (
            segment.base_offset + deltas[1] >= segment.start and segment.base_offset + deltas[0] < segment.end
        ):
            yield group


def _deltas_of(footer: pq.FileMetaData, group: int) -> tuple[int, int] | None:
    """Return the first and the last delta of a row group, where its statistics say them."""
    leaves = [footer.schema.column(index).path for index in range(footer.num_columns)]
    found = footer.row_group(group).column(leaves.index(OFFSET_DELTA_COLUMN)).statistics
    return None if found is None or not found.has_min_max else (found.min, found.max)


def _raise(error: TxnTableError, _: bool) -> Generator[pa.RecordBatch, None, None]:
    raise error
    yield


def _check_deltas(deltas: pa.Array, before: int, segment: PlannedSegment) -> int:
    """Return the last of the deltas, which must rise from `before` and stay inside of the segment."""
    if deltas.null_count:
        raise DamagedDataError("it has a record without an offset")
    values = deltas.to_numpy(zero_copy_only=False)
    if not len(values):
        return before
    last = int(values[-1])
    rise = values[0] > before and bool(np.all(values[1:] > values[:-1]))
    if not rise or segment.base_offset + last > segment.last_offset:
        raise DamagedDataError("its offsets do not rise, or leave the segment")
    return last


def _checked(data: bytes, segment: PlannedSegment) -> bytes:
    """Return a whole file's bytes when they are those of the log: another valid segment would be read as truth."""
    check_digest(segment.digest, digest_of(data))
    return data


def offsets_of(batch: pa.RecordBatch) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the offsets of a batch's records."""
    return np.asarray(batch.column(OFFSET_COLUMN).to_numpy(zero_copy_only=False), dtype=np.int64)
