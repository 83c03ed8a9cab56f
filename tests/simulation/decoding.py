"""Within a run what is immutable is decoded once, though every process reads it again: a third of a run's time.

Owns which results may be shared: entries, rows and batches cannot be changed, and of a checkpoint each reader gets a
state of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from types import SimpleNamespace
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq

from txntable.coordinator.transaction import TransactionMetadata
from txntable.log.actions import Commit, decode_commit
from txntable.log.checkpoint import decode_checkpoint
from txntable.log.table_state import LiveFiles, TableState

_entry = lru_cache(maxsize=4_000)(decode_commit)
_checkpoint = lru_cache(maxsize=200)(decode_checkpoint)
_row = lru_cache(maxsize=4_000)(TransactionMetadata.from_json)


class _Segment:
    """A file whose batches are kept."""

    def __init__(self, data: bytes) -> None:
        self._file = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
        self.metadata, self.schema_arrow = self._file.metadata, self._file.schema_arrow
        self._batches: dict[tuple[object, ...], list[pa.RecordBatch]] = {}

    def iter_batches(
        self, rows: int, row_groups: Sequence[int], columns: Sequence[str], *, use_threads: bool
    ) -> Iterator[pa.RecordBatch]:
        key = (rows, *row_groups, *columns)
        if key not in self._batches:
            found = self._file.iter_batches(rows, row_groups=row_groups, columns=columns, use_threads=use_threads)
            self._batches[key] = list(found)
        return iter(self._batches[key])


_segment = lru_cache(maxsize=500)(_Segment)


def _segment_of(source: pa.BufferReader, **_: object) -> _Segment:
    return _segment(source.read())


def entry_of(version: int, data: bytes, path: str) -> Commit:
    """Return what :func:`txntable.log.actions.decode_commit` returns."""
    return _entry(version, data, path)


def _state_of(version: int, data: bytes, path: str) -> TableState:
    known = _checkpoint(version, data, path)
    return TableState(
        version,
        chain=known.chain,
        protocol=known.protocol,
        metadata=known.metadata,
        files=LiveFiles(known.files.base),
        numbers=dict(known.numbers),
        tombstones=dict(known.tombstones),
    )


@contextmanager
def decoded_once() -> Iterator[None]:
    """Let the real code decode what it has not decoded before."""
    with ExitStack() as patches:
        patches.enter_context(patch("txntable.log.log_view.decode_commit", entry_of))
        patches.enter_context(patch("txntable.log.cold_start.decode_checkpoint", _state_of))
        patches.enter_context(patch("txntable.segments.segment_reader.pq", SimpleNamespace(ParquetFile=_segment_of)))
        patches.enter_context(patch.object(TransactionMetadata, "from_json", _row))
        yield
