"""What a warehouse's handle offers to people with a Spark session: DataFrames, streams, views for SQL.

Owns how a call's words become a view of a topic and a scan of it.  Must not know how a topic is
brought up to what is decided, nor need Spark where it is not used.
"""

from __future__ import annotations

import datetime as dt
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from txntable.format.isolation import IsolationLevel, level_at
from txntable.format.layout import public_root
from txntable.partition.offsets import merged_through
from txntable.snapshot.snapshot import Snapshot, published_position
from txntable.snapshot.topic_reader import TopicReader
from txntable.spark.scan.offset_bounds import Offsets, offset_bounds
from txntable.spark.scan.reader import scan, stream
from txntable.spark.scan.views import TopicSource, check_view_names, register_views
from txntable.transactions.transaction_log import TransactionLog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from txntable.admin.admin import Admin


class SparkReading(ABC):
    """The part of :class:`txntable.Warehouse` that reads with Spark.

    Attributes
    ----------
    url : str
        The warehouse's.
    transactions : TransactionLog
        T.
    """

    url: str
    transactions: TransactionLog

    @abstractmethod
    def snapshot(self, as_of: int | dt.datetime | None = None) -> Snapshot:
        """Pin a consistent state of all topics."""

    @abstractmethod
    def topic_reader(self, name: str) -> TopicReader:
        """Return what the readers of a topic share."""

    @abstractmethod
    def admin(self) -> Admin:
        """Return the admin client."""

    def read(  # noqa: PLR0913  what to read, by name
        self,
        spark: SparkSession,
        topic: str,
        *,
        isolation_level: str | IsolationLevel = IsolationLevel.SNAPSHOT,
        as_of: int | dt.datetime | None = None,
        starting_offsets: Offsets | None = None,
        ending_offsets: Offsets | None = None,
    ) -> DataFrame:
        """Return a topic as a DataFrame: the topic's columns, ``_partition``, ``_offset``, ``_timestamp``, ``_commit``.

        What it shows is pinned by the call.  Spark leaves out whole files by the bounds given here, and by predicates
        on ``_partition``, ``_commit``, ``_timestamp`` and the topic's columns; a predicate on ``_offset`` leaves out
        none: bound the offsets here.

        Parameters
        ----------
        spark : SparkSession
            With Delta; Spark Connect's too.
        topic : str
            The topic's name.
        isolation_level : str
            ``"snapshot"``: what is committed as of one position; ``"read_committed"``: what is committed below the
            last stable offset; ``"read_uncommitted"``: what is appended.
        as_of : int or datetime, optional
            Of a snapshot: a decision position, or a time with a zone.
        starting_offsets, ending_offsets : mapping or str, optional
            By partition: from this offset, and before this one; ``"earliest"`` and ``"latest"`` stand for the ends
            of what can be read.  Default: everything.

        Raises
        ------
        InvalidRequestError
            An unknown level, or `as_of` with a level that has no position, or an offset that is none.
        OffsetOutOfRangeError
            An offset, position or time that can not be read.
        UnknownTopicOrPartitionError
            There is no such topic or partition.
        """
        level = level_at(isolation_level, as_of)
        if level is IsolationLevel.SNAPSHOT:
            snapshot = self.snapshot(as_of)
            return snapshot.read(spark, topic, starting_offsets=starting_offsets, ending_offsets=ending_offsets)
        reader = self.topic_reader(topic)
        reader.catch_up()
        view = reader.view(level)
        return scan(spark, self.url, view, offset_bounds(view, starting_offsets, ending_offsets))

    def read_stream(self, spark: SparkSession, topic: str, options: Mapping[str, str] | None = None) -> DataFrame:
        """Return a topic's committed records as a stream, with the columns of :meth:`read`.

        It is the public Delta table as it grows: records come in the order of their decisions, not of their
        offsets, and a micro-batch may end inside of a transaction; each record comes once.

        Parameters
        ----------
        spark : SparkSession
            With Delta.
        topic : str
            The topic's name.
        options : Mapping[str, str], optional
            Of Delta's streams: ``startingVersion`` (``"latest"``: only what comes), ``maxFilesPerTrigger``, …

        Raises
        ------
        UnknownTopicOrPartitionError
            There is no such topic.
        """
        self.topic_reader(topic).catch_up()
        return stream(spark, f"{self.url}/{public_root(topic)}", options or {})

    def create_views(
        self,
        spark: SparkSession,
        topics: Sequence[str] | None = None,
        as_of: int | dt.datetime | None = None,
        prefix: str = "",
        *,
        isolation_level: str | IsolationLevel = IsolationLevel.SNAPSHOT,
    ) -> Snapshot:
        """Register topics as temporary views of a session, all at one position, and the view ``txntable_snapshot``.

        That one has a row for each topic: ``topic``, ``version`` (of its public table), ``position``,
        ``published_position``, ``merged_through``; see :mod:`txntable.spark.scan.views`.

        Parameters
        ----------
        spark : SparkSession
            Gets the views.
        topics : sequence of str, optional
            Default: all.  Each costs Delta a look at its log.
        as_of : int or datetime, optional
            Of the snapshot; see :meth:`read`.
        prefix : str
            Of the views' names; the rest is the topic's.
        isolation_level : str
            Of the views; snapshots are at one position.

        Returns
        -------
        Snapshot
            What the views show.

        Raises
        ------
        InvalidRequestError, OffsetOutOfRangeError, UnknownTopicOrPartitionError
            As :meth:`read`; or SQL would not tell a topic's name from another's.
        """
        level = level_at(isolation_level, as_of)
        snapshot = self.snapshot(as_of)
        named = self.admin().list_topics() if topics is None else topics
        check_view_names(named, [*named, *self.admin().topic_twins(named)])
        sources = [self._source(spark, snapshot, topic, level) for topic in named]
        published = published_position(self.transactions, self.transactions.refresh())
        register_views(spark, sources, (snapshot.position, published), prefix)
        return snapshot

    def _source(self, spark: SparkSession, snapshot: Snapshot, topic: str, level: IsolationLevel) -> TopicSource:
        is_snapshot = level is IsolationLevel.SNAPSHOT
        records = snapshot.read(spark, topic) if is_snapshot else self.read(spark, topic, isolation_level=level)
        reader = self.topic_reader(topic)
        merged = merged_through(reader.topic.public.ensure_fresh().numbers, reader.settings().topic_id)
        return TopicSource(topic, records, snapshot.version(topic), merged)
