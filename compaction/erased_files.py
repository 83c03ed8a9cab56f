"""The files of a topic that hold sought records: found, rewritten, tombstoned, deleted (PROTOCOL.md §5.10).

Owns the order within a topic: a segment is rewritten and P follows, then a file that no log names is tombstoned, and
only then deleted.  What is not decided yet is left alone and told.  Whoever else rewrites meanwhile makes one of the
two lose at the slot: what was lost is looked for again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum

import pyarrow as pa
import pyarrow.compute as pc

from txntable.compaction.object_records import count_in
from txntable.compaction.sought_records import SoughtRecords
from txntable.compaction.vacuum import producers_of
from txntable.compaction.vacuum_plan import Horizons, Reason, TopicStates, judge_file
from txntable.errors import DamagedDataError
from txntable.format.layout import FileKind, parse_file_name, public_root
from txntable.format.topic import TopicSettings
from txntable.format.topic_policy import config_number
from txntable.log.actions import Action, Add
from txntable.log.table_state import TableState
from txntable.partition.batch import batch_of
from txntable.partition.offsets import log_start
from txntable.partition.projection import SEGMENTS_PREFIX, commit_position, is_aborted
from txntable.partition.rewriting import Rewrite, RewriteRequest
from txntable.partition.tombstoning import LARGEST_TOMBSTONING, decide_tombstoning
from txntable.segments.segment import SegmentPlan
from txntable.segments.segment_columns import PlannedSegment
from txntable.segments.segment_rewriting import RewritePlan, rewrite_segments
from txntable.storage.object_store import ObjectMeta
from txntable.topics.topic_log import TopicLog
from txntable.warehouse.warehouse import Warehouse

# Rewritten before what was done is registered.
_SOURCES_AT_ONCE = 100

Tell = Callable[[str], object]


class Standing(Enum):
    """What a file that holds sought records is."""

    VISIBLE = "a segment of the topic"
    ABORTED = "a segment of an aborted transaction"
    UNDECIDED = "of a transaction that is not decided"
    UPLOADED = "of an upload that no log names, and its writer may still append"
    LEFT = "named by no log any more"


_GONE = frozenset({Reason.REMOVED, Reason.RETAINED, Reason.TOMBSTONED, Reason.UNNAMED})


@dataclass(slots=True)
class FoundFiles:
    """What one look at a topic's folder found.

    Attributes
    ----------
    settings : TopicSettings
        Of the topic.
    records : dict
        By standing and path relative to S's root: how many sought records.
    there : dict
        By path, of every segment's file: whether it holds sought records.
    unreadable : list of str
        Segments that cannot be decoded.
    """

    settings: TopicSettings
    records: dict[Standing, dict[str, int]] = field(default_factory=lambda: {one: {} for one in Standing})
    there: dict[str, bool] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)

    def count(self, standing: Standing) -> int:
        """Return how many sought records there are in files of a standing."""
        return sum(self.records[standing].values())


class ErasedFiles:
    """The erasure in one topic's files.

    Parameters
    ----------
    warehouse : Warehouse
        Open for writing; to look only, any.
    topic : TopicLog
        Of a topic that exists, or did.
    sought : SoughtRecords
        What is erased.
    """

    def __init__(self, warehouse: Warehouse, topic: TopicLog, sought: SoughtRecords) -> None:
        self._warehouse, self._topic, self._sought = warehouse, topic, sought
        self._store = warehouse.store
        self.failures: list[str] = []

    def look(self, now_ms: int, tell: Tell) -> FoundFiles:
        """Look at every file in the topic's folder.

        Parameters
        ----------
        now_ms : int
            The time by which an upload is young, ms since 1970.
        tell : callable
            Is told how far it is.
        """
        topic = self._topic
        # T before S, as vacuum does: what T shows as complete is in S by then.
        producers, next_producer_id = producers_of(self._warehouse.transactions)
        topic.segments.refresh()
        topic.public.refresh()
        young_ms = now_ms - topic.context.guard_ms
        segments, public = topic.segments.table, topic.public.table
        states = TopicStates(
            segments, public, topic.segments.fold.open, producers, next_producer_id, Horizons(young_ms, now_ms, now_ms)
        )
        settings = topic.segments.fold.settings
        assert settings is not None  # the caller has seen that there is one
        found = FoundFiles(settings)
        root = f"{public_root(topic.name)}/"
        for number, meta in enumerate(self._store.list(public_root(topic.name))):
            path = meta.path.removeprefix(root)
            below = path.removeprefix(SEGMENTS_PREFIX)
            name = parse_file_name(below) if below != path else None
            if name is None or name.kind is not FileKind.SEGMENT:
                continue
            tell(f"erase {topic.name}: looked at {number:,} objects")
            records = self._count(meta, segments.files.get(below), found)
            found.there[below] = bool(records)
            if records:
                found.records[self._standing(states, path, meta)][below] = records
        return found

    def _count(self, meta: ObjectMeta, row: Add | None, found: FoundFiles) -> int:
        if row is not None and not self._sought.may_be_in(row.stats, found.settings.schema):
            return 0
        try:
            return count_in(self._store, meta, self._sought)
        except DamagedDataError as error:
            if self._store.head(meta.path) is not None:
                found.unreadable.append(f"{meta.path}: {error.facts.get('reason')}")
            return 0

    def _standing(self, states: TopicStates, path: str, meta: ObjectMeta) -> Standing:
        row = states.segments.files.get(path.removeprefix(SEGMENTS_PREFIX))
        if row is not None:
            logs, batch = self._topic.segments.fold, batch_of(row)
            if commit_position(logs, batch) is not None:
                return Standing.VISIBLE
            return Standing.ABORTED if is_aborted(logs, batch) else Standing.UNDECIDED
        if path in states.public.files:
            # P is behind: whoever projects takes it away.
            return Standing.UNDECIDED
        return Standing.LEFT if judge_file(states, path, meta.last_modified_ms) in _GONE else Standing.UPLOADED

    # -- rewriting ----------------------------------------------------------------------------

    def rewrite(self, found: FoundFiles) -> Counter[str]:
        """Write visible segments anew without the sought records, and take those of aborted transactions away.

        Returns
        -------
        Counter
            `records` and `segments` that went; one that somebody else has taken meanwhile is none of them.
        """
        counts: Counter[str] = Counter()
        visible = found.records[Standing.VISIBLE]
        sources = self._sources(sorted(visible))
        aborted = tuple(sorted(found.records[Standing.ABORTED]))
        for first in range(0, max(len(sources), len(aborted)), _SOURCES_AT_ONCE):
            chunk = slice(first, first + _SOURCES_AT_ONCE)
            rewrites = tuple(self._rewrites(found.settings, sources[chunk]))
            held = self._topic.rewrite(RewriteRequest(found.settings.topic_id, rewrites, aborted[chunk]))
            counts["segments"] += len(held)
            counts["records"] += sum(visible[path] for rewrite in held for path in rewrite.sources)
        return counts

    def _sources(self, paths: Sequence[str]) -> list[PlannedSegment]:
        """Return the segments that are still visible, in offset order."""
        with self._topic.segments.lock:
            logs, table = self._topic.segments.fold, self._topic.segments.ensure_fresh()
            rows = (row for path in paths if (row := table.files.get(path)) is not None)
            assert logs.settings is not None
            planned = [_planned(row, commit_position(logs, batch_of(row)), table, logs.settings) for row in rows]
        return sorted(planned, key=lambda one: (one.partition, one.base_offset))

    def _rewrites(self, settings: TopicSettings, sources: Sequence[PlannedSegment]) -> Iterator[Rewrite]:
        context = self._topic.context
        for source in sources:
            segments = SegmentPlan(self._topic.segments.root, settings, None, context.clock.now_ms())
            plan = RewritePlan(segments, config_number("segment.bytes", settings.config), context.environment.new_id)
            try:
                outputs = tuple(rewrite_segments(context.store, plan, [source], self._kept))
            except DamagedDataError as error:
                self.failures.append(f"{error.code} {error}")
                continue
            yield Rewrite(source.partition, (source.path,), outputs, eligible=False)

    def _kept(self, _source: PlannedSegment, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.filter(pc.invert(self._sought.chosen(batch)))

    # -- deleting -----------------------------------------------------------------------------

    def delete(self, found: FoundFiles) -> int:
        """Delete the files that no log names any more, each with a tombstone of its name in S; return how many."""
        names = sorted(found.records[Standing.LEFT])
        deleted = 0
        for first in range(0, len(names), LARGEST_TOMBSTONING):
            part = names[first : first + LARGEST_TOMBSTONING]

            def decide(table: TableState, part: Sequence[str] = part) -> Sequence[Action]:
                return decide_tombstoning(table, part, self._topic.context.clock.now_ms())

            self._topic.commit_segments("TOMBSTONE", decide)
            self._topic.project()
            segments, public = self._topic.segments.table, self._topic.public.table
            going = [
                path
                for path in part
                if path not in segments.files
                and path in segments.tombstones
                and SEGMENTS_PREFIX + path not in public.files
            ]
            self._store.delete_unordered([f"{self._topic.segments.root}/{path}" for path in going])
            deleted += len(going)
        return deleted


def _planned(row: Add, position: int | None, table: TableState, settings: TopicSettings) -> PlannedSegment:
    batch = batch_of(row)
    start = max(batch.base_offset, log_start(table.numbers, settings.topic_id, batch.partition))
    return PlannedSegment(
        batch.path,
        batch.partition,
        batch.base_offset,
        batch.last_offset,
        position,
        row.size,
        batch.records,
        start,
        batch.last_offset + 1,
        batch.digest,
    )
