"""Segments that other software has written, as Spark does: what a log needs to know of them (PROTOCOL.md §5.2).

Owns that such a file is a segment before a log names it: its columns and types are exactly those that
:mod:`txntable.segments.segment_writer` writes, its encodings those that readers take, no reader will refuse a row group
for what it decodes to, its offsets count from 0 by the bounds of each row group; and that its statistics are those
that our own writer would have told.  Who made the file is trusted with the rest: page checksums, that no offset is
there twice, and that a NaN is in the bounds of its row group, as Java has them.  Must not know of Spark.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
import pyarrow.parquet as pq

from txntable.errors import DamagedDataError
from txntable.format.conform import TIMESTAMP_COLUMN, check_null_counts
from txntable.format.key import partitions_of
from txntable.format.parquet_bounds import check_footer
from txntable.format.parquet_pages import Encoding
from txntable.format.schema import OFFSET_DELTA_COLUMN, segment_schema
from txntable.segments.segment import SegmentPlan, StagedSegment
from txntable.segments.segment_digest import SegmentDigest
from txntable.segments.statistics import Leaf, Observed, delta_statistics, leaves
from txntable.storage.object_reader import WHOLE_BYTES, ObjectReader
from txntable.storage.object_store import ObjectStore

_PIECE_BYTES = 8 * 1024 * 1024
_US_PER_MS = 1000
_ENCODINGS = frozenset(encoding.name for encoding in Encoding)
_DICTIONARIES = frozenset({Encoding.PLAIN_DICTIONARY.name, Encoding.RLE_DICTIONARY.name})


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file that other software has written under a new name.

    Attributes
    ----------
    path : str
        Relative to S's root.
    size : int
        Bytes.
    partition : int
        Where its records go.
    keyed : bool
        Whether they are to go there for their key.
    stamped : bool
        Whether all its records have the time of the upload.
    """

    path: str
    size: int
    partition: int
    keyed: bool
    stamped: bool


@dataclass(frozen=True, slots=True)
class Unfit:
    """A file that no log may name, and why."""

    path: str
    reason: str


def adopted(store: ObjectStore, plan: SegmentPlan, file: WrittenFile) -> StagedSegment | Unfit | None:
    """Return what the log needs to know of a file; all of it is read, for its digest.

    Parameters
    ----------
    store : ObjectStore
        The warehouse's.
    plan : SegmentPlan
        By which it was written.
    file : WrittenFile
        The file; nobody writes to it any more.

    Returns
    -------
    StagedSegment, Unfit or None
        ``Unfit``: it is none of this format.  ``None``: it has no record.

    Raises
    ------
    SchemaMismatchError, MissingKeyError
        A record has a null where none may be, or no key: as :func:`txntable.format.conform.conform`.
    StoreUnavailableError
        It cannot be read.
    """
    try:
        source, digest = _read(store, f"{plan.root}/{file.path}", file.size)
        parquet = pq.ParquetFile(source, pre_buffer=False)
    except (DamagedDataError, pa.ArrowInvalid) as error:
        return Unfit(file.path, str(error).partition("\n")[0])
    footer = parquet.metadata
    columns = _segment_leaves(plan.settings.schema)
    reason = _unfit(footer, columns, plan.settings.schema) or (_misplaced(parquet, plan, file) if file.keyed else None)
    if reason is not None:
        return Unfit(file.path, reason)
    if not footer.num_rows:
        return None
    check_null_counts(_null_counts(footer, columns), plan.settings)
    first_ms, max_ms = (plan.uploaded_at_ms,) * 2 if file.stamped else _times(parquet)
    return StagedSegment(
        path=file.path,
        partition=file.partition,
        records=footer.num_rows,
        size=file.size,
        stats=delta_statistics(footer, columns, Observed(_with_nan(footer, columns))),
        first_timestamp_ms=first_ms,
        max_timestamp_ms=max_ms,
        partition_count=plan.settings.partitions if file.keyed else None,
        uploaded_at_ms=plan.uploaded_at_ms,
        digest=digest,
    )


def _read(store: ObjectStore, path: str, size: int) -> tuple[pa.BufferReader | ObjectReader, str]:
    """Return the file, and its digest; a small one is read once."""
    reader, digest = ObjectReader(store, path, size), SegmentDigest()
    if size <= WHOLE_BYTES:
        data = reader.read()
        digest.update(data)
        return pa.BufferReader(data), digest.text
    while piece := reader.read(_PIECE_BYTES):
        digest.update(piece)
    reader.seek(0)
    return reader, digest.text


@lru_cache(maxsize=128)
def _segment_leaves(schema: pa.Schema) -> Sequence[Leaf]:
    return tuple(leaves(segment_schema(schema)))


@lru_cache(maxsize=128)
def _parquet_schema(schema: pa.Schema) -> pq.ParquetSchema:
    """Return the columns of a segment's file as our own writer declares them."""
    memory = io.BytesIO()
    pq.ParquetWriter(memory, segment_schema(schema), store_decimal_as_integer=True, store_schema=False).close()
    return pq.ParquetFile(pa.BufferReader(memory.getvalue())).schema


def _unfit(footer: pq.FileMetaData, columns: Sequence[Leaf], schema: pa.Schema) -> str | None:
    """Return why a file is no segment; ``None``: it is one."""
    if not footer.schema.equals(_parquet_schema(schema)):
        return "its columns are not those of a segment"
    chunks = (
        (leaf, footer.row_group(group).column(leaf.index)) for group in range(footer.num_row_groups) for leaf in columns
    )
    fault = next((f"column {'.'.join(leaf.path)} {it}" for leaf, chunk in chunks if (it := _fault(leaf, chunk))), None)
    if fault is not None:
        return fault
    if not _counts_from_0(footer, next(leaf for leaf in columns if leaf.path == (OFFSET_DELTA_COLUMN,))):
        return "its offsets do not count from 0"
    try:
        check_footer(footer)
    except DamagedDataError as error:
        return error.message
    return None


def _fault(leaf: Leaf, chunk: pq.ColumnChunkMetaData) -> str | None:
    """Return what readers do not take, or a log cannot be told, of a column in a row group."""
    found = set(chunk.encodings)
    if not found <= _ENCODINGS:
        return "has an encoding that readers refuse"
    if found & _DICTIONARIES and (leaf.repeated or leaf.path[0] == OFFSET_DELTA_COLUMN):
        return "has a dictionary"
    if not leaf.repeated and (chunk.statistics is None or not chunk.statistics.has_null_count):
        return "has no count of its nulls"
    return None


def _counts_from_0(footer: pq.FileMetaData, leaf: Leaf) -> bool:
    """Return whether each row group has the offsets that follow those of the one before, by its bounds."""
    start = 0
    for group in range(footer.num_row_groups):
        found, rows = footer.row_group(group).column(leaf.index).statistics, footer.row_group(group).num_rows
        if rows and (found.null_count or not found.has_min_max or (found.min, found.max) != (start, start + rows - 1)):
            return False
        start += rows
    return True


def _misplaced(parquet: pq.ParquetFile, plan: SegmentPlan, file: WrittenFile) -> str | None:
    """Return why records are in a partition that is not their keys', by the first one; ``None``: they are in theirs."""
    settings = plan.settings
    first = next(parquet.iter_batches(1, columns=list(settings.key)), None)
    if first is None or not first.num_rows:
        return None
    chosen = partitions_of(first.select(list(settings.key)), settings.key, settings.partitions)[0].as_py()
    return None if chosen in (None, file.partition) else f"a key of partition {chosen} is in partition {file.partition}"


def _null_counts(footer: pq.FileMetaData, columns: Sequence[Leaf]) -> dict[str, int]:
    single = (leaf for leaf in columns if len(leaf.path) == 1)
    return {leaf.path[0]: _over_groups(footer, leaf, _nulls_in) for leaf in single}


def _over_groups(footer: pq.FileMetaData, leaf: Leaf, count: Callable[[pq.ColumnChunkMetaData], int]) -> int:
    return sum(count(footer.row_group(group).column(leaf.index)) for group in range(footer.num_row_groups))


def _nulls_in(chunk: pq.ColumnChunkMetaData) -> int:
    return int(chunk.statistics.null_count)


def _nan_in(chunk: pq.ColumnChunkMetaData) -> int:
    found = chunk.statistics
    # Java takes NaN for the highest of all numbers.
    return int(found.has_min_max and (math.isnan(found.max) or math.isnan(found.min)))


def _with_nan(footer: pq.FileMetaData, columns: Sequence[Leaf]) -> set[tuple[str, ...]]:
    floats = (leaf for leaf in columns if not leaf.repeated and pa.types.is_floating(leaf.kind))
    return {leaf.path for leaf in floats if _over_groups(footer, leaf, _nan_in)}


def _times(parquet: pq.ParquetFile) -> tuple[int, int]:
    """Return the first record's time and the highest of all, ms."""
    footer = parquet.metadata
    index = parquet.schema_arrow.names.index(TIMESTAMP_COLUMN) - len(parquet.schema_arrow.names) + footer.num_columns
    highest = max(footer.row_group(group).column(index).statistics.max_raw for group in range(footer.num_row_groups))
    first = next(parquet.iter_batches(1, columns=[TIMESTAMP_COLUMN]))
    return int(first.column(0)[0].value) // _US_PER_MS, int(highest) // _US_PER_MS
