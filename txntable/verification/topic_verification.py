"""Verifying one topic: P, then S, then every file that they name, or that older versions of P do.

Owns the order in which a topic's logs are read, and which files these name.  Writes nothing; memory is bounded by the
rows of one topic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from txntable.format.layout import commit_path, public_root, segments_root
from txntable.format.topic import TopicSettings
from txntable.log.table_state import TableState
from txntable.partition.batch import Batch, batch_of
from txntable.partition.offsets import REFLECTS, decided_through
from txntable.partition.partition_log import PartitionLogs
from txntable.partition.projection import SEGMENTS_PREFIX, PublicTable
from txntable.segments.segment_columns import PlannedSegment, segment_columns
from txntable.storage.object_store import ObjectStore
from txntable.storage.side_by_side import threads
from txntable.verification.constant_files import damages_of_constant_files
from txntable.verification.damage import Damage, DamageKind, Progress
from txntable.verification.decision_record import DecisionRecord, RecordedDecision
from txntable.verification.log_replay import LogReplay
from txntable.verification.retained_segments import RetainedSegment
from txntable.verification.segment_file import NamedSegment, damages_of_file, damages_of_retained_file
from txntable.verification.segment_rules import SegmentRules
from txntable.verification.topic_rules import (
    PublicRules,
    decisions_against_markers,
    live_segments_in_order,
    owed_though_complete,
    public_against_segments,
)

_EVERYTHING = 2**63 - 1
# Of files at a time: they are read side by side.
_FILES_AT_ONCE = 64

N = TypeVar("N")


@dataclass(slots=True)
class TopicVerification:
    """One topic, as far as it was read.

    Parameters
    ----------
    store : ObjectStore
        The warehouse's.
    name : str
        The topic's.
    decisions : DecisionRecord
        Of T, read before.
    guard_ms : int
        See :class:`LogReplay`.
    now_ms : callable
        See :class:`WarehouseVerification`.

    Attributes
    ----------
    public : LogReplay
        P.
    segments : LogReplay
        S.
    damages : list of Damage
        Beside those of the two logs.
    files, bytes : int
        Of segments, read; those of older versions too.
    """

    store: ObjectStore
    name: str
    decisions: DecisionRecord
    guard_ms: int
    now_ms: Callable[[], int]
    damages: list[Damage] = field(default_factory=list)
    files: int = 0
    bytes: int = 0
    public: LogReplay[PublicTable] = field(init=False)
    segments: LogReplay[PartitionLogs] = field(init=False)
    _projection: list[Damage] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        name, guard_ms = self.name, self.guard_ms
        make_public, make_rules = partial(PublicTable, name), partial(SegmentRules, name, self.decisions, self._stand)
        self.public = LogReplay(self.store, public_root(name), make_public, PublicRules, guard_ms)
        self.segments = LogReplay(self.store, segments_root(name), partial(PartitionLogs, name), make_rules, guard_ms)

    @property
    def is_there(self) -> bool:
        """Whether anything of the topic was found, or damage in its place."""
        return bool(self.segments.exists or self.segments.damages or self.damages)

    @property
    def rules(self) -> SegmentRules:
        """The rules that have seen S."""
        assert isinstance(self.segments.rules, SegmentRules)
        return self.segments.rules

    def run(self, complete: list[RecordedDecision], progress: Progress) -> None:
        """Read both logs and every file.

        Parameters
        ----------
        complete : list of RecordedDecision
            Those of T of which nothing is owed any more.
        progress : callable
            Is told how far it is.
        """
        self.public.advance(progress)
        if count := len(self.public.table.void):
            path = commit_path(self.public.root, self.public.table.next_version - 1)
            entries = "1 entry" if count == 1 else f"{count} entries, the newest"
            problem = f"{entries} of another log, or of a process of before a restore"
            self.damages.append(Damage(DamageKind.FOREIGN_END, path, problem))
        self.segments.advance(progress)
        logs, table = self.segments.fold, self.segments.table
        if not self.segments.exists:
            if self.public.exists and not self.segments.damages:
                problem = "the topic has a public table and no segment log"
                self.damages.append(Damage(DamageKind.LOG_MISSING, self.segments.root, problem))
            return
        both_whole = self.public.is_whole and self.segments.is_whole
        if both_whole and self.public.table.number(REFLECTS) > table.next_version - 1:
            shown = self.public.table.number(REFLECTS)
            problem = f"it ends at version {table.next_version - 1}, and the public table shows version {shown} of it"
            self.damages.append(Damage(DamageKind.LOG_END, self.segments.root, problem))
        self.damages += live_segments_in_order(self.name, logs, table)
        if self.segments.is_whole:
            seen = (self.rules.markers, self.rules.complete_above)
            self.damages += decisions_against_markers(self.name, table, logs, seen, self.decisions)
            self.damages += self._owed(complete)
        self.damages += self._projection
        if logs.settings is not None:
            if not logs.settings.deleted:
                self._read_files(logs.settings, progress)
            self._read_retained(progress)

    def _stand(self, table: TableState, logs: PartitionLogs) -> None:
        """Hold P against S where S stands at the version that P reflects."""
        public = self.public.table
        if self.public.is_whole and public.version is not None and public.number(REFLECTS) == table.version:
            self._projection = list(public_against_segments(self.name, logs, table, public))

    def _owed(self, complete: list[RecordedDecision]) -> Iterator[Damage]:
        settings = self.segments.fold.settings
        if settings is not None and not settings.deleted and self.public.is_whole:
            numbers = (self.segments.table.numbers, self.public.table.numbers)
            through = tuple(decided_through(each, settings.topic_id) for each in numbers)
            yield from owed_though_complete(self.name, settings.topic_id, (through[0], through[1]), complete)

    def _read_files(self, settings: TopicSettings, progress: Progress) -> None:
        named, root = self._named(), self.segments.root
        damages = self._read_all(named, partial(damages_of_file, self.store, root, settings), "segment", progress)
        self.bytes += sum(one.planned.size for one in named)
        live = self.segments.table.files
        control = sorted(add.path for add in live if add.partition_values["_control"] is not None)
        damages += damages_of_constant_files(self.store, root, control, progress)
        if damages:
            # What was taken away meanwhile, and vacuumed, is named no more.
            gone = self._gone_since(progress)
            damages = [one for one in damages if one.path not in gone]
        self.damages += damages

    def _read_retained(self, progress: Progress) -> None:
        """Read the files that only older versions of P name."""
        retained = self._retained()
        read = partial(damages_of_retained_file, self.store, self.segments.root)
        damages = self._read_all(retained, read, "segment of older versions", progress)
        self.bytes += sum(one.size for one in retained)
        if damages:
            # What is old enough by now may be vacuumed, and with it what a shorter retention no longer keeps.
            self.public.advance(progress)
            kept = {f"{self.segments.root}/{one.path}" for one in self._retained()}
            damages = [one for one in damages if one.path in kept]
        self.damages += damages

    def _retained(self) -> list[RetainedSegment]:
        assert isinstance(self.public.rules, PublicRules)
        return self.public.rules.retained.due(self.public.table, self.now_ms())

    def _read_all(
        self, named: Sequence[N], read: Callable[[N], list[Damage]], noun: str, progress: Progress
    ) -> list[Damage]:
        damages: list[Damage] = []
        with threads(max(1, self.store.parallel_writes)) as pool:
            for first in range(0, len(named), _FILES_AT_ONCE):
                for found in pool.map(read, named[first : first + _FILES_AT_ONCE]):
                    damages += found
                done = min(first + _FILES_AT_ONCE, len(named))
                progress(f"{self.segments.root}: {noun} {done:,} of {len(named):,}")
        self.files += len(named)
        return damages

    def _gone_since(self, progress: Progress) -> set[str]:
        before = self._paths()
        for log in (self.public, self.segments):
            log.advance(progress)
        return before - self._paths()

    def _paths(self) -> set[str]:
        public = {path.removeprefix(SEGMENTS_PREFIX) for path in self.public.table.files.paths()}
        return {f"{self.segments.root}/{path}" for path in public | self.segments.table.files.paths()}

    def _named(self) -> list[NamedSegment]:
        """Return the segments of S, and those of P that S does not name any more."""
        named: dict[str, NamedSegment] = {}
        for add in self.segments.table.files:
            if add.partition_values["_control"] is None:
                batch = batch_of(add)
                times = (batch.first_timestamp_ms, batch.max_timestamp_ms)
                named[add.path] = NamedSegment(_planned(batch, add.size), add.stats, times)
        stats = {add.path.removeprefix(SEGMENTS_PREFIX): add.stats for add in self.public.table.files}
        columns = segment_columns(self.public.table.files.to_table(), public=True)
        for partition in sorted(set(columns.partition.tolist())):
            for planned in columns.between(partition, 0, _EVERYTHING):
                path = planned.path.removeprefix(SEGMENTS_PREFIX)
                if path not in named:
                    named[path] = NamedSegment(_below(planned, path), stats.get(path), None)
        return [named[path] for path in sorted(named)]


def _planned(batch: Batch, size: int) -> PlannedSegment:
    return PlannedSegment(
        batch.path,
        batch.partition,
        batch.base_offset,
        batch.last_offset,
        None,
        size,
        batch.records,
        batch.base_offset,
        batch.last_offset + 1,
        batch.digest,
    )


def _below(planned: PlannedSegment, path: str) -> PlannedSegment:
    return PlannedSegment(
        path,
        planned.partition,
        planned.base_offset,
        planned.last_offset,
        planned.commit,
        planned.size,
        planned.records,
        planned.base_offset,
        planned.last_offset + 1,
        planned.digest,
    )
