"""Which records of a partition are the latest of their keys, in bounded memory (PROTOCOL.md §5.8).

Owns the answer: one bit for each record, found by reading the key columns alone.  Keys that do not fit
into the memory given are looked at in several passes, each for those whose hashes end alike: whenever a
pass holds too much it keeps the half of the keys, and leaves the other half to a pass of its own.
Invariant: of two records of one key the one with the higher offset stays; records without a key go.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from txntable.compaction.spec import MOST_SOURCES, RewriteTask
from txntable.format.key import partitions_of
from txntable.format.tombstone import is_tombstone
from txntable.segments.segment import SegmentPlan
from txntable.segments.segment_columns import PlannedSegment
from txntable.segments.segment_reader import SegmentReader, offsets_of
from txntable.storage.object_store import ObjectStore

_NUMBER = "_number"
# Arrow's grouping needs about as much again as the keys that it groups, and once more while they are put together.
_MEMORY_SHARE = 4
# Whatever memory there is: Arrow's grouping counts the bytes of a column's strings in 32 bits.
_LARGEST_SHARE = 1 << 30
_LARGEST_SPLIT = 1 << 16
_HASHES = (1 << 31) - 1
# Multiplying by it (2^64 ÷ the golden ratio) spreads hashes that agree in their low bits, as those of a partition do.
_SPREAD = np.uint64(0x9E3779B97F4A7C15)

Bits = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class _Pass:
    """The keys of which the hash, spread, leaves `rest` when divided by `split`, a power of two."""

    split: int
    rest: int


class LatestRecords:
    """The latest records of the keys in the sources of a task.

    Parameters
    ----------
    store : ObjectStore
        The warehouse's.
    plan : SegmentPlan
        Of the topic.
    task : RewriteTask
        By key.

    Attributes
    ----------
    read_records : int
        Of all sources.
    dropped_records : int
        That :meth:`choose` left out, or stand in sources of which nothing stays.
    passes : int
        How often the keys were read.
    """

    def __init__(self, store: ObjectStore, plan: SegmentPlan, task: RewriteTask) -> None:
        assert task.by_key is not None
        self._cleaning, self._sources, self._settings = task.by_key, task.sources, plan.settings
        self._keys = SegmentReader(store, plan.root, plan.settings, plan.settings.key) if plan.settings.key else None
        self._share_bytes = min(self._cleaning.memory_bytes // _MEMORY_SHARE, _LARGEST_SHARE)
        self._counts: dict[str, int] = {}
        self._firsts: dict[str, int] = {}
        self._staying: dict[str, int] = {}
        # Of the source that is being rewritten: its path, its bits, and how many of its records have been asked for.
        self._current: tuple[str, npt.NDArray[np.bool_], int] = ("", np.zeros(0, np.bool_), 0)
        self._latest: Bits = np.zeros(0, np.uint8)
        self.read_records = self.dropped_records = self.passes = 0

    # -- finding ----------------------------------------------------------------------------

    def find(self) -> None:
        """Read the keys and find the latest record of each.

        Raises
        ------
        DamagedDataError, StoreUnavailableError
            See :meth:`txntable.segments.segment_reader.SegmentReader.read`.
        """
        waiting = [_Pass(1, 0)]
        while waiting:
            self._run(waiting.pop(), waiting)
            self.passes += 1
        self._staying = {source.path: int(self._bits(source).sum()) for source in self._sources}

    def _run(self, this: _Pass, waiting: list[_Pass]) -> None:
        """Find the latest records of the keys of one pass; what it gives up is put to those that wait."""
        held: list[pa.Table] = []
        size = 0
        for keys, numbers in self._numbered_keys():
            rows = _of_pass(keys, numbers, this)
            held.append(rows)
            size += rows.nbytes
            if size > self._share_bytes:
                held = [_latest(held)]
                size = held[0].nbytes
                while size * 2 > self._share_bytes and this.split < _LARGEST_SPLIT:
                    waiting.append(_Pass(this.split * 2, this.rest + this.split))
                    this = _Pass(this.split * 2, this.rest)
                    held = [_of_pass(held[0].drop_columns(_NUMBER), held[0][_NUMBER], this)]
                    size = held[0].nbytes
        if held:
            numbers_found = _latest(held)[_NUMBER].to_numpy()
            np.bitwise_or.at(self._latest, numbers_found >> 3, (1 << (numbers_found & 7)).astype(np.uint8))

    def _numbered_keys(self) -> Iterator[tuple[pa.Table, pa.Array]]:
        """Yield the key columns, and for each record its number: how many came before it in all sources."""
        assert self._keys is not None
        number = 0
        for source, batches in self._keys.read_each(self._sources):
            first = number
            for batch in batches:
                numbers = pa.array(np.arange(number, number + batch.num_rows, dtype=np.int64))
                number += batch.num_rows
                yield pa.Table.from_batches([batch]), numbers
            self._firsts[source.path], self._counts[source.path] = first, number - first
            self._grow(number)
        self.read_records = number

    def _grow(self, records: int) -> None:
        wanted = (records + 7) // 8
        if len(self._latest) < wanted:
            self._latest = np.concatenate([self._latest, np.zeros(wanted - len(self._latest), np.uint8)])

    # -- what stays -------------------------------------------------------------------------

    def groups(self, segment_bytes: int) -> Iterator[tuple[PlannedSegment, ...]]:
        """Yield the sources that are to be written anew, next to each other, as many as make one segment.

        Parameters
        ----------
        segment_bytes : int
            A source of half of it or more that loses nothing stays where it is.
        """
        group: list[PlannedSegment] = []
        size = 0.0
        for source in self._sources:
            expected = source.size * self._staying[source.path] / max(1, self._counts[source.path])
            stays = not self._loses(source) and source.size * 2 >= segment_bytes
            # Of very many none may stay: still they have to fit into commits.
            full = len(group) >= MOST_SOURCES or (bool(group) and size + expected > segment_bytes)
            if stays or full:
                yield from self._worth(group)
                group, size = [], 0.0
            if not stays:
                group.append(source)
                size += expected
        yield from self._worth(group)

    def _worth(self, group: list[PlannedSegment]) -> Iterator[tuple[PlannedSegment, ...]]:
        if len(group) > 1 or any(map(self._loses, group)):
            yield tuple(group)

    def _loses(self, source: PlannedSegment) -> bool:
        """Return whether a record of a source may go."""
        loses = self._staying[source.path] < self._counts[source.path]
        return loses or not source.is_whole or self._may_lose_tombstones(source)

    def _may_lose_tombstones(self, source: PlannedSegment) -> bool:
        return source.path in self._cleaning.with_tombstones

    def _bits(self, source: PlannedSegment) -> npt.NDArray[np.bool_]:
        """Return for each record of a source whether it is the latest of its key."""
        first, count = self._firsts[source.path], self._counts[source.path]
        whole = np.unpackbits(self._latest[first >> 3 : (first + count + 7) >> 3], bitorder="little")
        return whole[first & 7 :][:count].astype(np.bool_)

    def choose(self, source: PlannedSegment, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the records of a batch that stay; batches of a source come in their order, from its first."""
        path, bits, start = self._current
        if path != source.path:
            bits, start = self._bits(source), 0
        stays = bits[start : start + batch.num_rows]
        self._current = (source.path, bits, start + batch.num_rows)
        if self._may_lose_tombstones(source):
            old = offsets_of(batch) < self._cleaning.tombstones_through
            stays = stays & ~(old & is_tombstone(batch, self._settings))
        self.dropped_records += batch.num_rows - int(stays.sum())
        return batch if bool(stays.all()) else batch.filter(pa.array(stays))


def _latest(held: list[pa.Table]) -> pa.Table:
    """Return of each key the highest number."""
    rows = pa.concat_tables(held)
    names = [name for name in rows.column_names if name != _NUMBER]
    found = rows.group_by(names).aggregate([(_NUMBER, "max")])
    return found.rename_columns([*names, _NUMBER])


def _of_pass(keys: pa.Table, numbers: Any, this: _Pass) -> pa.Table:
    """Return the records of a pass that have a key."""
    rows = keys.append_column(_NUMBER, numbers)
    if keys.num_columns == 1 and keys.column(0).null_count:
        rows = rows.filter(pc.is_valid(keys.column(0)))
        keys = rows.drop_columns(_NUMBER)
    if this.split == 1 or not rows.num_rows:
        return rows
    batch = keys.combine_chunks().to_batches()[0]
    hashes = partitions_of(batch, batch.schema.names, _HASHES).to_numpy()
    spread = hashes.astype(np.uint64) * _SPREAD
    chosen = (spread >> np.uint64(48)) % np.uint64(this.split) == np.uint64(this.rest)
    return rows.filter(pa.array(chosen))
