"""Bringing a topic's public table up to what is decided, and looking at it (PROTOCOL.md §10).

Owns the order *complete, then read*: who may write completes what is decided first; who may not reads
what others have published whole, bounded by what the public table says of itself.  So no reader ever
advances past what is decided and not published yet.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from txntable.completion import Completer
from txntable.errors import OffsetOutOfRangeError, StorePermissionError, UnknownTopicOrPartitionError
from txntable.isolation import IsolationLevel
from txntable.layout import public_root
from txntable.log.actions import Commit, Txn
from txntable.log.table_state import LiveFiles, TableState
from txntable.log.time_travel import first_version_where, load_version
from txntable.partition.append import live_settings
from txntable.partition.offsets import DECIDED_THROUGH, merged_through, per_topic
from txntable.partition.segment_columns import SegmentColumns, segment_columns
from txntable.partition.stable_offset import last_stable_offset
from txntable.partition.topic_view import TopicView, public_view, uncommitted_view
from txntable.segment_reader import SegmentReader
from txntable.topic import TopicSettings
from txntable.topic_log import TopicLog
from txntable.topic_metadata import settings_of
from txntable.transaction_log import TransactionLog


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
        self._cached: dict[bool, tuple[LiveFiles, int, SegmentColumns]] = {}

    # -- bringing up ------------------------------------------------------------------------

    def catch_up(self) -> None:
        """Publish everything that is decided or appended, as far as these credentials allow.

        Raises
        ------
        UnknownTopicOrPartitionError
            There is no such topic.
        StoreUnavailableError, CommitStateUnknownError
            Call again.
        """
        self.topic.settings()
        self._transactions.refresh()
        self._bring_through()
        self.topic.catch_up()

    def follow(self) -> None:
        """Read what is new: T and the public table, a request each; publish what is decided and not published.

        What a plain writer appended and did not live to publish is left to :meth:`catch_up` and to others.
        """
        self._transactions.refresh()
        self._bring_through()
        self.topic.public.refresh()

    def _bring_through(self) -> None:
        """Write the markers that the topic is owed, and publish: no reader passes by what it saw decided."""
        settings = self.settings()
        with self._transactions.log.lock:
            owed = [row.position for row in self._transactions.log.fold.decided() if settings.topic_id in row.topics]
        if max(owed, default=-1) <= self._brought_through:
            return
        try:
            self._completer.bring_through(self.topic, settings.topic_id)
            self._brought_through = max(owed)
        except StorePermissionError:
            # Read-only: the bounds of the public table keep the reader below what is not published.
            return

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
            raise UnknownTopicOrPartitionError("the topic was deleted", topic=self.topic.name)
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
            return public_view(self.settings(), public, self._columns(public, public_table=True), position)

    def _uncommitted(self) -> TopicView:
        with self.topic.segments.lock:
            table, logs = self.topic.segments.ensure_fresh(), self.topic.segments.fold
            settings = live_settings(logs)
            stable = {p: last_stable_offset(logs, table, settings.topic_id, p) for p in range(settings.partitions)}
            return uncommitted_view(settings, table, self._columns(table, public_table=False), stable)

    def _columns(self, table: TableState, *, public_table: bool) -> SegmentColumns:
        known = self._cached.get(public_table)
        if known is not None and known[0] is table.files and known[1] == table.next_version:
            return known[2]
        columns = segment_columns(table.files, public=public_table)
        self._cached[public_table] = (table.files, table.next_version, columns)
        return columns

    # -- the past ---------------------------------------------------------------------------

    def version_at(self, position: int) -> int:
        """Return the version of the public table that a snapshot of the past reads.

        The first one that shows everything decided at or below `position`; the newest when none does: call
        :meth:`catch_up` before.

        Raises
        ------
        OffsetOutOfRangeError
            Retention has removed it.
        """
        settings = self.settings()
        head = self.topic.public.ensure_fresh().next_version - 1
        name = per_topic(DECIDED_THROUGH, settings.topic_id)

        def shows(commit: Commit) -> bool:
            said = [a.version for a in commit.actions if isinstance(a, Txn) and a.app_id == name]
            return bool(said) and max(said) >= position

        found = first_version_where(self.topic.context.store, public_root(self.topic.name), head, shows)
        return head if found is None else found

    def view_at(self, version: int, position: int) -> TopicView:
        """Return the snapshot at `position` from an older version of the public table.

        Raises
        ------
        OffsetOutOfRangeError
            Retention has removed it, or compaction has merged what was committed later into it.
        """
        root = public_root(self.topic.name)
        with self.topic.segments.lock, self.topic.public.lock:
            if self.topic.public.ensure_fresh().version == version:
                return self.view(IsolationLevel.SNAPSHOT, position)
        table = load_version(self.topic.context.store, root, version)
        if table.metadata is None:
            raise UnknownTopicOrPartitionError("there was no such topic", topic=self.topic.name, version=version)
        settings = settings_of(self.topic.name, table.metadata)
        if settings.deleted:
            raise UnknownTopicOrPartitionError("the topic was deleted then", topic=self.topic.name, version=version)
        if merged_through(table.numbers, settings.topic_id) > position:
            raise OffsetOutOfRangeError(
                "compaction has merged records of later transactions into older ones; ask for a later position",
                topic=self.topic.name,
                position=position,
                merged_through=merged_through(table.numbers, settings.topic_id),
            )
        return public_view(settings, table, segment_columns(table.files, public=True), position)

    def reader_of(self, view: TopicView, columns: Sequence[str] | None = None) -> SegmentReader:
        """Return what reads the segments of a view."""
        return SegmentReader(self.topic.context.store, view.root, view.settings, columns)

    def batches(
        self, view: TopicView, columns: Sequence[str] | None, offsets: tuple[dict[int, int], dict[int, int]]
    ) -> pa.RecordBatchReader:
        """Return the records of a view, partition by partition in offset order, read as they are asked for."""
        reader = self.reader_of(view, columns)
        planned = list(view.plan(*offsets))
        return pa.RecordBatchReader.from_batches(
            reader.schema, (batch for segment in planned for batch in reader.read(segment))
        )
