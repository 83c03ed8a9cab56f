"""Bringing a topic's public table up to what is decided, and looking at it (PROTOCOL.md §10).

Owns the order *complete, then read*: who may write completes what is decided first; who may not reads
what others have published whole, bounded by what the public table says of itself.  So no reader ever
advances past what is decided and not published yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice

import pyarrow as pa

from txntable.errors import (
    OffsetOutOfRangeError,
    StoreUnavailableError,
    TxnTableError,
    UnknownTopicOrPartitionError,
)
from txntable.format.isolation import IsolationLevel
from txntable.format.layout import public_root
from txntable.format.topic import TopicSettings
from txntable.log.log_view import refresh_together
from txntable.log.outcome import is_unwritable, unless_unwritable
from txntable.log.table_state import TableState
from txntable.log.time_travel import load_version
from txntable.partition.append import deleted_topic, live_settings
from txntable.partition.offsets import (
    HIGH_WATERMARK,
    LAST_STABLE,
    REFLECTS,
    decided_through,
    per_partition,
)
from txntable.partition.stable_offset import first_unstable_offsets
from txntable.partition.topic_view import TopicView, public_view, uncommitted_view
from txntable.segments.record_filter import RecordFilter
from txntable.segments.segment_columns import PlannedSegment, SegmentColumns, columns_after, segment_columns
from txntable.segments.segment_pruning import pruned
from txntable.segments.segment_reader import SegmentReader, record_schema
from txntable.segments.topic_metadata import settings_of
from txntable.snapshot.past_versions import PastVersions
from txntable.topics.topic_log import TopicLog
from txntable.transactions.completion import Completer
from txntable.transactions.transaction_log import TransactionLog


@dataclass(slots=True)
class _KnownColumns:
    """The segments of a table at a version, of the checkpoint that its state began with, and what is seen of them."""

    base: pa.Table
    of_base: SegmentColumns
    version: int | None
    columns: SegmentColumns
    # At read_committed: a topic may have very many bounds.
    committed: TopicView | None = None


class TopicReader:
    """What the readers of one topic share in a process.

    Parameters
    ----------
    topic : TopicLog
        The topic's logs; it need not exist.
    transactions : TransactionLog
        T.
    completer : Completer
        Completes what is decided.
    """

    def __init__(self, topic: TopicLog, transactions: TransactionLog, completer: Completer) -> None:
        self.topic = topic
        self._transactions = transactions
        self._completer = completer
        self._brought_through = -1
        self._known: dict[bool, _KnownColumns | None] = {True: None, False: None}

    # -- bringing up ------------------------------------------------------------------------

    def catch_up(self) -> None:
        """Publish everything that is decided or appended, as far as these credentials allow.

        A transaction that holds readers back beyond its timeout is ended: its writer is gone.

        Raises
        ------
        UnknownTopicOrPartitionError
            There is no such topic.
        StoreUnavailableError, CommitStateUnknownError
            Call again.
        """
        self._transactions.refresh()
        self.catch_up_to_known()
        if not self.topic.segments.is_read:
            if not self._holds_back():
                return
            self.topic.segments.refresh()
        with unless_unwritable():
            self._completer.abort_timed_out_in(self.topic, self.settings().topic_id)

    def _holds_back(self) -> bool:
        """Return whether an open transaction holds readers back, by the public table."""
        settings = self.settings()
        with self.topic.public.lock:
            public = self.topic.public.ensure_fresh()
        ends = (
            [public.number(per_partition(name, settings.topic_id, partition)) for name in (LAST_STABLE, HIGH_WATERMARK)]
            for partition in range(settings.partitions)
        )
        return any(stable < highest for stable, highest in ends)

    def catch_up_to_known(self) -> None:
        """Do the same as far as T is known: for who has just read it, and pinned a position.

        Who has not read the partition logs yet goes without where the public table shows all of them: they are as large
        as that, and who reads what is committed needs nothing else of them.
        """
        segments, public = self.topic.segments, self.topic.public
        if not segments.is_read and self.topic.public_shows_everything():
            self._bring_through(self.settings().topic_id)
            return
        refresh_together(segments, public)
        with segments.lock:
            # After T: what it says is decided has all its segments there.
            segments.ensure_fresh()
            topic_id = live_settings(segments.fold).topic_id
        self._bring_through(topic_id)
        with segments.lock, public.lock:
            is_behind = public.ensure_fresh().number(REFLECTS, -1) < segments.ensure_fresh().next_version - 1
        if is_behind:
            try:
                self.topic.publish()
            except TxnTableError as error:
                # Who keeps the warehouse hears of a full disk; who reads has what is published, if there is a table.
                if public.table.version is None or not is_unwritable(error):
                    raise

    def follow(self) -> None:
        """Read what is new: T and the public table, a request each; publish what is decided and not published.

        What a plain writer appended and did not live to publish is left to :meth:`catch_up` and to others.
        """
        self._transactions.refresh()
        self.follow_public()

    def follow_public(self) -> None:
        """Do the same for who has just read T: who follows many topics reads it once for all of them."""
        try:
            topic_id = self.settings().topic_id
        except UnknownTopicOrPartitionError:
            # A topic that this view saw deleted may have been created again.
            self.topic.public.refresh()
            topic_id = self.settings().topic_id
        # After T: mostly whoever decided has published by now.
        self.topic.public.refresh()
        self._bring_through(topic_id)

    def published_position(self, head: int) -> int:
        """Return the highest position at or below `head` up to which the topic shows all that it is owed.

        The head itself, but for who may not complete what others have decided.  Call :meth:`catch_up_to_known` before.
        """
        with self.topic.segments.lock, self.topic.public.lock, self._transactions.log.lock:
            topic_id = self.settings().topic_id
            shown = decided_through(self.topic.public.ensure_fresh().numbers, topic_id)
            owed = self._transactions.log.fold.incomplete_of(topic_id, shown)
        return min([head, *(row.position - 1 for row in owed)])

    def _bring_through(self, topic_id: str) -> None:
        """Write the markers that the topic is owed, and publish: no reader passes by what it saw decided."""
        with self._transactions.log.lock:
            owed = self._transactions.log.fold.incomplete_of(topic_id, self._brought_through)
        if not owed:
            return
        through = owed[-1].position
        # Read-only, or full: the bounds of the public table keep the reader below what is not published.
        with unless_unwritable():
            if decided_through(self.topic.public.ensure_fresh().numbers, topic_id) < through:
                self._completer.bring_through(self.topic, topic_id)
            self._brought_through = through

    def settings(self) -> TopicSettings:
        """Return the topic as the public table knows it.

        Raises
        ------
        UnknownTopicOrPartitionError
            There is no such topic.
        """
        with self.topic.segments.lock, self.topic.public.lock:
            public = self.topic.public.ensure_fresh()
            if public.metadata is None:
                return self.topic.settings()
            settings = settings_of(self.topic.name, public.metadata)
        if settings.deleted:
            raise deleted_topic(self.topic.name)
        return settings

    # -- looking ----------------------------------------------------------------------------

    def view(self, level: IsolationLevel, position: int | None = None) -> TopicView:
        """Return what a level shows now, on the views as they are; see :meth:`catch_up`.

        Parameters
        ----------
        level : IsolationLevel
            What is seen.
        position : int, optional
            Of a snapshot.
        """
        if level is IsolationLevel.READ_UNCOMMITTED:
            return self._uncommitted()
        with self.topic.segments.lock, self.topic.public.lock:
            public = self.topic.public.ensure_fresh()
            known = self._known_columns(public, public_table=True)
            if position is not None or public.version is None:
                return public_view(self.settings(), public, known.columns, position)
            if known.committed is None:
                known.committed = public_view(self.settings(), public, known.columns, None)
            return known.committed

    def _uncommitted(self) -> TopicView:
        with self.topic.segments.lock:
            table, logs = self.topic.segments.ensure_fresh(), self.topic.segments.fold
            settings = live_settings(logs)
            unstable = first_unstable_offsets(logs)
            return uncommitted_view(settings, table, self._known_columns(table, public_table=False).columns, unstable)

    def _known_columns(self, table: TableState, *, public_table: bool) -> _KnownColumns:
        known, files = self._known[public_table], table.files
        if known is None or known.base is not files.base:
            of_base = segment_columns(files.base, public=public_table)
        elif known.version == table.version:
            return known
        else:
            of_base = known.of_base
        columns = columns_after(of_base, files, public=public_table)
        known = self._known[public_table] = _KnownColumns(files.base, of_base, table.version, columns)
        return known

    # -- the past ---------------------------------------------------------------------------

    def version_at(self, position: int, moment_ms: int | None = None) -> int:
        """Return the version of the public table that a snapshot of the past reads; see :class:`PastVersions`."""
        return PastVersions(self.topic).version_at(position, moment_ms)

    def view_at(self, version: int, position: int) -> TopicView:
        """Return the snapshot at `position` from an older version of the public table.

        Raises
        ------
        OffsetOutOfRangeError
            Retention has removed it, or compaction has merged what was committed later into it.
        """
        view = self._view_of(version, position)
        if view.merged_through > position:
            raise OffsetOutOfRangeError(
                "compaction has merged records of later transactions into older ones; ask for a later position",
                topic=self.topic.name,
                position=position,
                merged_through=view.merged_through,
            )
        return view

    def _view_of(self, version: int, position: int) -> TopicView:
        with self.topic.segments.lock, self.topic.public.lock:
            if self.topic.public.ensure_fresh().version == version:
                return self.view(IsolationLevel.SNAPSHOT, position)
        table = load_version(self.topic.context.store, public_root(self.topic.name), version)
        if table.metadata is None:
            raise UnknownTopicOrPartitionError("there was no such topic", topic=self.topic.name, version=version)
        self._check_retained(table, position)
        settings = settings_of(self.topic.name, table.metadata)
        if settings.deleted:
            raise UnknownTopicOrPartitionError("the topic was deleted then", topic=self.topic.name, version=version)
        return public_view(settings, table, segment_columns(table.files.to_table(), public=True), position)

    def _check_retained(self, table: TableState, position: int) -> None:
        """Refuse a version of which vacuum may have taken files, by the rule by which it takes them."""
        head = self.topic.public.table
        gone = [head.tombstones.get(path) for path in table.files.paths() - head.files.paths()]
        if not gone:
            return
        horizon_ms = self.topic.context.clock.shown_ms() - head.deleted_files_retention_ms
        if any(removed is None or removed.deletion_ms < horizon_ms for removed in gone):
            raise OffsetOutOfRangeError(
                "files of that time may be vacuumed by now; ask for a later position",
                topic=self.topic.name,
                position=position,
            )

    def reader_of(self, view: TopicView, columns: Sequence[str] | None = None) -> SegmentReader:
        """Return what reads the segments of a view."""
        return SegmentReader(
            self.topic.context.store, view.root, view.settings, columns, partial(self._overtaken, view)
        )

    def _overtaken(self, view: TopicView, segment: PlannedSegment) -> TxnTableError | None:
        """Return the error of who has planned a read, and slept until vacuum took what was replaced meanwhile."""
        log = self.topic.public if view.root == self.topic.public.root else self.topic.segments
        with log.lock:
            if segment.path in log.refresh().files:
                return None
        facts = {"topic": self.topic.name, "path": segment.path, "version": view.version}
        if view.level is IsolationLevel.SNAPSHOT:
            return OffsetOutOfRangeError(
                "a file of that time is vacuumed by now, or lost; ask for a later position, or restore it from backup",
                position=view.position,
                **facts,
            )
        return StoreUnavailableError("a segment was replaced, and vacuumed before it was read; read again", **facts)

    def batches(
        self,
        view: TopicView,
        columns: Sequence[str] | None,
        offsets: tuple[dict[int, int], dict[int, int]],
        where: RecordFilter | None = None,
    ) -> pa.RecordBatchReader:
        """Return the wanted records of a view, by partition in offset order, read as they are asked for."""
        reader = self.reader_of(view, columns).where(where)
        if where is not None:
            ranges = {partition: (offsets[0][partition], offsets[1][partition]) for partition in view.bounds}
            left = pruned(view.columns.inside(ranges), where, record_schema(view.settings))
            view = replace(view, columns=left)
        planned = view.plan(*offsets)
        # What is asked for wrongly is refused now; the rest is planned as it is read.
        segments = chain(list(islice(planned, 1)), planned)
        return pa.RecordBatchReader.from_batches(reader.schema, reader.read_side_by_side(segments))
