"""Writing segments: immutable Parquet files with the records of one partition (PROTOCOL.md §5.2).

Owns what such a file is like: its columns, encodings, codec, row groups, and the facts that a
log needs to know about it.  The same code runs in the Python client and on Spark's executors.
Invariant: ``_offset_delta`` counts 0, 1, 2, … in the order of writing, unless the rows bring theirs
(:mod:`txntable.segments.segment_rewriting`).  Must not know of Spark.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from txntable.errors import InvalidRequestError, RecordTooLargeError
from txntable.format.conform import TIMESTAMP_COLUMN
from txntable.format.schema import OFFSET_DELTA_COLUMN, segment_schema
from txntable.segments.segment import SegmentPlan, StagedSegment, stamps_records
from txntable.segments.segment_digest import DigestedFile, digest_of
from txntable.segments.segment_encoding import (
    FEW_ROWS,
    ColumnEncodings,
    choose_encodings,
    dictionary_encodings,
    plain_encodings,
)
from txntable.segments.statistics import LARGEST_FOOTER_BYTES, Leaf, Observed, delta_statistics, leaves
from txntable.storage.object_store import ObjectStore

# Arrow's size of a row group: large enough to compress well, small enough to hold some at once.
ROW_GROUP_BYTES = 64 * 1024 * 1024
ROW_GROUP_ROWS = 1024 * 1024
# As Arrow has it: with a full row group before it still far below what a reader takes for one.
LARGEST_RECORD_BYTES = 512 * 1024 * 1024
_ZSTD_LEVEL = 3
# Below this size a segment is put together in memory, and handed to the store as one block.
SMALL_BYTES = 1024 * 1024
_US_PER_MS = 1000
# Most segments of small transactions have no others: cut from it, instead of made for each.
_FIRST_DELTAS = pa.array(np.arange(64, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class _FileFormat:
    """What files of one schema and codec have in common; worked out once, for segments may be small and many."""

    schema: pa.Schema
    leaves: tuple[Leaf, ...]
    float_leaves: tuple[Leaf, ...]
    text_leaves: tuple[Leaf, ...]
    few: ColumnEncodings
    small: ColumnEncodings
    options: Mapping[str, Any]


@lru_cache(maxsize=128)
def _file_format(columns: pa.Schema, codec: str) -> _FileFormat:
    schema = segment_schema(columns)
    found = tuple(leaves(schema))
    options = {
        "compression": codec,
        "compression_level": _ZSTD_LEVEL if codec == "zstd" else None,
        "store_decimal_as_integer": True,
        "store_schema": False,
        "write_page_checksum": True,
    }
    single = [leaf for leaf in found if not leaf.repeated]
    floats = tuple(leaf for leaf in single if pa.types.is_floating(leaf.kind))
    texts = tuple(leaf for leaf in single if pa.types.is_string(leaf.kind))
    return _FileFormat(schema, found, floats, texts, plain_encodings(), dictionary_encodings(found), options)


class SegmentWriter:
    """Streams records of one partition into one file.

    Parameters
    ----------
    store : ObjectStore
        The warehouse's.
    plan : SegmentPlan
        What the write is about.
    partition : int
        From 0.
    unique : str
        32 hex digits that no other segment has.
    keyed : bool
        Whether the records came to this partition by their key.

    Attributes
    ----------
    place : str
        The file's path in the store.
    records : int
        Written so far, buffered ones included.
    buffered_bytes : int
        Memory held by rows that wait for their row group to fill.
    """

    def __init__(self, store: ObjectStore, plan: SegmentPlan, partition: int, unique: str, *, keyed: bool) -> None:
        self._store, self._plan, self._partition, self._keyed = store, plan, partition, keyed
        self._path = plan.path(partition, unique)
        self.place = f"{plan.root}/{self._path}"
        self._format = _file_format(plan.settings.schema, plan.codec)
        self._schema = self._format.schema
        self._stamps = stamps_records(plan.settings)
        self._observed = Observed()
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = 0
        self._footers: list[pq.FileMetaData] = []
        self._file: DigestedFile | None = None
        self._parquet: pq.ParquetWriter | None = None
        self._first_us: int | None = None
        self._max_us: int | None = None
        self.records = 0
        self.buffered_bytes = 0

    @property
    def is_small(self) -> bool:
        """Whether all records wait, and fit into a file that is put together in memory."""
        return self._parquet is None and 0 < self.buffered_bytes < SMALL_BYTES

    @property
    def written_bytes(self) -> int:
        """How large the file is so far, without the rows that wait; 0 while all of them wait."""
        return 0 if self._file is None else self._file.tell()

    def write(self, rows: pa.Table | pa.RecordBatch) -> None:
        """Add records in order.

        Parameters
        ----------
        rows : pyarrow.Table or pyarrow.RecordBatch
            As :func:`txntable.format.conform.conform` returns them.  Rows that were in a segment before bring
            ``_offset_delta`` and ``_timestamp``, and keep both.

        Raises
        ------
        StoreUnavailableError
            Abort.
        RecordTooLargeError
            A record has more than 512 MiB: abort, and leave it out.
        """
        batches = [rows] if isinstance(rows, pa.RecordBatch) else rows.to_batches()
        for batch, size in (piece for whole in batches for piece in _pieces(whole, whole.nbytes)):
            if batch.num_rows:
                self._waiting.append(self._complete(batch))
                self._waiting_rows += batch.num_rows
                self.buffered_bytes += size
            if self._waiting_rows >= ROW_GROUP_ROWS or self.buffered_bytes >= ROW_GROUP_BYTES:
                self.flush()

    def _complete(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Add the record's own columns and take note of what the log wants to know."""
        count, given = batch.num_rows, batch.schema.names
        rewritten = OFFSET_DELTA_COLUMN in given
        if rewritten:
            deltas = batch.column(OFFSET_DELTA_COLUMN)
        elif self.records + count <= len(_FIRST_DELTAS):
            deltas = _FIRST_DELTAS.slice(self.records, count)
        else:
            deltas = pa.array(np.arange(self.records, self.records + count, dtype=np.int64))
        columns = [batch.column(name) for name in self._plan.settings.schema.names]
        if TIMESTAMP_COLUMN in given and (rewritten or not self._stamps):
            times = batch.column(TIMESTAMP_COLUMN)
            first = times[0].value
            self._note_times(first, first if count == 1 else int(times.view(pa.int64()).to_numpy().max()))
        else:
            now_us = self._plan.uploaded_at_ms * _US_PER_MS
            times = pa.array(np.full(count, now_us, np.int64)).view(self._schema.field(TIMESTAMP_COLUMN).type)
            self._note_times(now_us, now_us)
        self.records += count
        return pa.RecordBatch.from_arrays([*columns, deltas, times], schema=self._schema)

    def _note_times(self, first: int, highest: int) -> None:
        self._first_us = first if self._first_us is None else self._first_us
        self._max_us = highest if self._max_us is None else max(self._max_us, highest)

    def flush(self) -> None:
        """Write the rows that wait as one row group.

        Raises
        ------
        StoreUnavailableError
            Abort.
        """
        if not self._waiting:
            return
        table = pa.Table.from_batches(self._waiting, self._schema)
        self._waiting, self._waiting_rows, self.buffered_bytes = [], 0, 0
        self._observe(table)
        if self._parquet is None:
            self._file = DigestedFile(self._store.writer(self.place))
            self._parquet = self._write_to(self._file, choose_encodings(self._format.leaves, table))
        self._parquet.write_table(table, row_group_size=table.num_rows)

    def _write_to(self, sink: Any, encodings: ColumnEncodings) -> pq.ParquetWriter:
        return pq.ParquetWriter(
            sink,
            self._schema,
            metadata_collector=self._footers,
            use_dictionary=encodings.use_dictionary,
            column_encoding=encodings.column_encoding,
            **self._format.options,
        )

    def _observe(self, table: pa.Table) -> None:
        """Take note of what the row group's footer will not tell."""
        for leaf in self._format.float_leaves:
            if leaf.path not in self._observed.with_nan and pc.any(pc.is_nan(_values(table, leaf))).as_py():
                self._observed.with_nan.add(leaf.path)
        for leaf in self._format.text_leaves:
            column = _values(table, leaf)
            if (pc.max(pc.binary_length(column)).as_py() or 0) > LARGEST_FOOTER_BYTES:
                bounds = pc.min_max(column.cast(pa.binary()))
                self._observed.note_texts(leaf.path, bounds["min"].as_py(), bounds["max"].as_py())

    def close(self) -> StagedSegment:
        """Publish the file and return what the log needs to know of it.

        Raises
        ------
        StoreUnavailableError
            It is not known whether the file is there; it is an orphan if it is.
        InvalidRequestError
            Nothing was written: a segment has records.
        """
        if self.is_small:
            data = self.encode()
            self._store.create_all([(self.place, data)])
            return self.describe(data)
        if not self.records:
            raise InvalidRequestError("a segment has at least one record; write some or abort", path=self._path)
        self.flush()
        assert self._parquet is not None  # flush opened them: there are records
        assert self._file is not None
        self._parquet.close()
        size = self._file.tell()
        self._file.close()
        return self._staged(size, self._file.digest.text)

    def encode(self) -> bytes:
        """End a segment that is small, and return its file: the caller creates it at :attr:`place`."""
        # Parquet is written in many small pieces, each a call through Python where the sink is a file of ours.
        memory = pa.BufferOutputStream()
        self._parquet = self._write_to(memory, self._format.few if self.records < FEW_ROWS else self._format.small)
        self.flush()
        self._parquet.close()
        return bytes(memory.getvalue())

    def describe(self, data: bytes) -> StagedSegment:
        """Return what the log needs to know of the file that :meth:`encode` has returned."""
        return self._staged(len(data), digest_of(data))

    def _staged(self, size: int, digest: str) -> StagedSegment:
        assert self._first_us is not None  # there are records
        assert self._max_us is not None
        return StagedSegment(
            path=self._path,
            partition=self._partition,
            records=self.records,
            size=size,
            stats=delta_statistics(self._footers[0], self._format.leaves, self._observed),
            first_timestamp_ms=self._first_us // _US_PER_MS,
            max_timestamp_ms=self._max_us // _US_PER_MS,
            partition_count=self._plan.settings.partitions if self._keyed else None,
            uploaded_at_ms=self._plan.uploaded_at_ms,
            digest=digest,
        )

    def abort(self) -> None:
        """Forget everything; nothing appears in the store.  Never fails, may be called at any time."""
        self._waiting, self._waiting_rows, self.buffered_bytes = [], 0, 0
        if self._parquet is not None and self._parquet.is_open:
            # Its end would otherwise be written when it is collected, into a file that is gone.
            with contextlib.suppress(Exception):
                self._parquet.close()
            self._parquet.is_open = False
        if self._file is not None:
            with contextlib.suppress(Exception):
                self._file.discard()


def _pieces(batch: pa.RecordBatch, size: int) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Yield the rows in pieces of a row group's size at most, or of one record, with their sizes."""
    if size <= ROW_GROUP_BYTES:
        yield batch, size
    elif batch.num_rows > 1:
        half = batch.num_rows // 2
        for part in (batch.slice(0, half), batch.slice(half)):
            yield from _pieces(part, part.nbytes)
    elif size > LARGEST_RECORD_BYTES:
        raise RecordTooLargeError(
            "a record is larger than any segment can have; leave it out", bytes=size, most=LARGEST_RECORD_BYTES
        )
    else:
        yield batch, size


def _values(table: pa.Table, leaf: Leaf) -> pa.ChunkedArray:
    column = table.column(leaf.path[0])
    for name in leaf.path[1:]:
        column = pc.struct_field(column, name)
    return column
