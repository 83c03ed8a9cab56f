"""What a Parquet file holds, whatever any log says of it: read for an erasure, in bounded memory.

Owns that a file is read by its own schema, and that one which cannot be decoded is an error and never empty.
Must not know of topics or logs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from txntable.compaction.sought_records import SoughtRecords
from txntable.errors import DamagedDataError
from txntable.format.column_path import has_texts
from txntable.format.parquet_bounds import batch_rows, chunks_of
from txntable.runtime.background_thread import lend_to_arrow
from txntable.segments.segment_reader import DEFAULT_BATCH_ROWS, UNREADABLE, leaves_by_column
from txntable.storage.object_reader import WHOLE_BYTES, ObjectReader
from txntable.storage.object_store import ObjectMeta, ObjectStore


def batches_of(store: ObjectStore, meta: ObjectMeta, sought: SoughtRecords) -> Iterator[pa.RecordBatch]:
    """Yield the records of a Parquet file, with the sought columns that it has, and with those that hold texts.

    Parameters
    ----------
    store : ObjectStore
        The warehouse's.
    meta : ObjectMeta
        The file.
    sought : SoughtRecords
        Names the columns.

    Raises
    ------
    DamagedDataError
        It is gone, or no Parquet file that can be read; the message names it.
    StoreUnavailableError
        Try again.
    """
    try:
        with closing(ObjectReader(store, meta.path, meta.size)) as place:
            small = meta.size <= WHOLE_BYTES
            if not small:
                lend_to_arrow(meta.path)
            file = pq.ParquetFile(pa.BufferReader(place.read()) if small else place, pre_buffer=False)
            schema = file.schema_arrow
            columns = sought.columns_of(schema)
            wanted = [field.name for field in schema if field.name in columns or has_texts(field.type)]
            leaves = [leaf for name, each in leaves_by_column(schema).items() if name in wanted for leaf in each]
            for group in range(file.metadata.num_row_groups):
                chunks = chunks_of(file.metadata, group, leaves)
                rows = batch_rows(file.metadata, chunks, place.at, DEFAULT_BATCH_ROWS)
                read = file.iter_batches(rows, row_groups=[group], columns=wanted, use_threads=False)
                yield from map(_without_dictionaries, read)
    except DamagedDataError as error:
        raise DamagedDataError("a file cannot be read", path=meta.path, reason=error.message) from error
    except UNREADABLE as error:
        reason = str(error).partition("\n")[0].lower()
        raise DamagedDataError("a file cannot be read", path=meta.path, reason=reason) from error


def count_in(store: ObjectStore, meta: ObjectMeta, sought: SoughtRecords) -> int:
    """Return how many sought records a Parquet file holds; raises as :func:`batches_of`."""
    batches = batches_of(store, meta, sought)
    return sum(int(pc.sum(sought.chosen(batch)).as_py() or 0) for batch in batches)


def _without_dictionaries(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch whose columns are plain: other software may have said that they are dictionaries."""
    columns = [c.dictionary_decode() if pa.types.is_dictionary(c.type) else c for c in batch.columns]
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)
