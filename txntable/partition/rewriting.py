"""Deciding that merged segments take the place of their sources in the partition logs (PROTOCOL.md §5.8).

Owns what must hold at the slot: the sources are live and published, the outputs are not tombstoned.
Whatever became of a source meanwhile (another rewrite, retention, a deletion of records or of the
topic), its rewrite is left out whole: so of two that race one wins, and no record is there twice.
A rewrite whose outputs are live already was done, by an earlier try of the same commit.  Pure.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from txntable.format.topic_policy import config_number, is_compacted
from txntable.log.actions import Action, Txn
from txntable.log.table_state import TableState
from txntable.partition.batch import Batch, batch_add, batch_of
from txntable.partition.offsets import MERGED_THROUGH, merged_through, per_topic
from txntable.partition.partition_log import PartitionLogs
from txntable.partition.projection import SEGMENTS_PREFIX, commit_position, is_aborted
from txntable.partition.removal import Removal, decide_removal
from txntable.partition.state_entry import Cleaning, after_cleaning
from txntable.partition.tombstoning import is_registrable
from txntable.segments.segment import MergedSegment


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Segments of one partition that others take the place of, all or none.

    Attributes
    ----------
    partition : int
        From 0.
    sources : tuple of str
        Paths of visible segments.
    outputs : tuple of MergedSegment
        In offset order; empty: no record is left.
    by_key : int or None
        Older records of a key were left out, and every offset below this one was looked at.
    left_out_for : int
        The highest decision of the records for which older ones may have been left out: a snapshot below it
        would lack both; 0: all are there.
    drops : bool
        Whether older records of a key were left out: only while the topic is compacted at the slot.
    eligible : bool
        Whether the sources were decided at least ``snapshot_retention_ms`` ago: else the outputs say when they were
        written, and are as young as that.
    """

    partition: int
    sources: tuple[str, ...]
    outputs: tuple[MergedSegment, ...]
    by_key: int | None = None
    left_out_for: int = 0
    drops: bool = False
    eligible: bool = True


@dataclass(frozen=True, slots=True)
class RewriteRequest:
    """What one commit of S is asked to replace, to take away and to settle.

    Attributes
    ----------
    topic_id : str
        The topic as it was read; another one has nothing to rewrite.
    rewrites : tuple of Rewrite
        Those of one partition in offset order: one that fails takes the later ones along.
    aborted : tuple of str
        Paths of segments of aborted transactions.
    settled : tuple of str
        Paths of committed segments that are to carry their decision themselves.
    """

    topic_id: str
    rewrites: tuple[Rewrite, ...] = ()
    aborted: tuple[str, ...] = ()
    settled: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RewriteDecision:
    """What to write, and which rewrites are in the log once that is written.

    Attributes
    ----------
    actions : tuple of Action
        Empty: nothing is left to do.
    done : tuple of Rewrite
        Those that hold.
    """

    actions: tuple[Action, ...] = ()
    done: tuple[Rewrite, ...] = ()


def decide_rewrite(
    logs: PartitionLogs, table: TableState, public: TableState, request: RewriteRequest, now_ms: int
) -> RewriteDecision:
    """Decide a rewrite on the state below its slot.

    Parameters
    ----------
    logs, table
        S's state.
    public : TableState
        P's state, of any age: what it has once published it keeps until S's row goes.
    request : RewriteRequest
        What was read, and what was made of it.
    now_ms : int
        The store's time, milliseconds since 1970.
    """
    settings = logs.settings
    if settings is None or settings.deleted or settings.topic_id != request.topic_id:
        return RewriteDecision()
    deciding = _Deciding(logs, table, public)
    for rewrite in request.rewrites:
        deciding.take(rewrite, now_ms)
    aborted = [row for path in request.aborted if (row := table.files.get(path)) is not None]
    gone = {row.path for row in aborted if is_aborted(logs, batch_of(row))} | deciding.gone
    settled = {path for path in request.settled if deciding.is_published(path)} - gone
    removal = decide_removal(logs, table, Removal(gone, settled, deciding.cleaned), now_ms)
    name = per_topic(MERGED_THROUGH, request.topic_id)
    raised = [Txn(name, deciding.highest)] if deciding.highest > merged_through(table.numbers, request.topic_id) else []
    return RewriteDecision((*removal, *deciding.adds, *raised), tuple(deciding.done))


class _Deciding:
    """What one request comes to, rewrite by rewrite."""

    def __init__(self, logs: PartitionLogs, table: TableState, public: TableState) -> None:
        self._logs, self._table, self._public = logs, table, public
        self._compacted = logs.settings is not None and is_compacted(logs.settings.config)
        self._lost: set[int] = set()
        self.gone: set[str] = set()
        self.adds: list[Action] = []
        self.cleaned: dict[int, tuple[Cleaning, ...]] = {}
        self.done: list[Rewrite] = []
        self.highest = 0

    def is_published(self, path: str) -> bool:
        """Return whether P shows a segment of a producer, so that its decision is known."""
        row = self._table.files.get(path)
        if row is None or SEGMENTS_PREFIX + path not in self._public.files:
            return False
        batch = batch_of(row)
        return batch.producer is not None and commit_position(self._logs, batch) is not None

    def take(self, rewrite: Rewrite, now_ms: int) -> None:
        if rewrite.partition in self._lost:
            return
        if rewrite.outputs and all(output.segment.path in self._table.files for output in rewrite.outputs):
            self.done.append(rewrite)
            return
        # Vacuum may have tombstoned a new file.
        may = self._compacted or not (rewrite.drops or rewrite.by_key is not None)
        safe = may and all(is_registrable(self._table, output.segment, now_ms) for output in rewrite.outputs)
        sources = self._sources(rewrite) if safe else None
        if sources is None:
            self._lost.add(rewrite.partition)
            return
        self.done.append(rewrite)
        self.gone.update(rewrite.sources)
        if sources:
            decided = decided_of(self._logs, sources)
            self.adds.extend(
                _output_add(output, decided, sources, eligible=rewrite.eligible) for output in rewrite.outputs
            )
            if decided[0] < decided[1]:
                self.highest = max(self.highest, decided[1])
            self.highest = max(self.highest, rewrite.left_out_for)
        if rewrite.by_key is not None:
            self._clean(rewrite.partition, Cleaning(rewrite.by_key, now_ms))

    def _sources(self, rewrite: Rewrite) -> list[Batch] | None:
        """Return the sources as they are, or ``None`` when one is not live, published and committed."""
        sources = []
        for path in rewrite.sources:
            row = self._table.files.get(path)
            if row is None or SEGMENTS_PREFIX + path not in self._public.files:
                return None
            sources.append(batch_of(row))
            if commit_position(self._logs, sources[-1]) is None:
                return None
        return sources

    def _clean(self, partition: int, cleaning: Cleaning) -> None:
        settings = self._logs.settings
        config = {} if settings is None else settings.config
        horizon_ms = cleaning.at_ms - config_number("delete.retention.ms", config)
        known = self.cleaned.get(partition, self._logs.cleanings.get(partition, ()))
        self.cleaned[partition] = after_cleaning(known, cleaning, horizon_ms)


def decided_of(logs: PartitionLogs, sources: Collection[Batch]) -> tuple[int, int]:
    """Return the lowest and the highest decision position inside of visible segments; 0: without a transaction."""
    bounds = []
    for batch in sources:
        position = commit_position(logs, batch)
        assert position is not None  # the caller has seen that it is visible
        bounds.append(batch.decided or (position, position))
    return min(low for low, _ in bounds), max(high for _, high in bounds)


def _output_add(
    output: MergedSegment, decided: tuple[int, int], sources: Collection[Batch], *, eligible: bool
) -> Action:
    segment = output.segment
    batch = Batch(
        path=segment.path,
        partition=segment.partition,
        base_offset=output.base_offset,
        last_offset=output.last_offset,
        records=segment.records,
        producer=None,
        transactional=False,
        first_sequence=None,
        first_timestamp_ms=segment.first_timestamp_ms,
        max_timestamp_ms=segment.max_timestamp_ms,
        # A stream that begins with the table as it is takes its files in this order: the oldest source's place.
        appended_at_ms=min(source.appended_at_ms for source in sources),
        digest=segment.digest,
        uploaded_at_ms=None if eligible else segment.uploaded_at_ms,
        decided=decided,
    )
    return replace(batch_add(batch, segment.size, segment.stats), data_change=False)
