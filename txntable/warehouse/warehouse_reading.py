"""What a warehouse's handle offers to people with a Spark session: DataFrames, streams, views for SQL.

Owns how a call's words become a view of a topic and a scan of it.  Must not know how a topic is
brought up to what is decided, nor need Spark where it is not used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from txntable.format.isolation import IsolationLevel
from txntable.format.layout import public_root
from txntable.partition.offsets import merged_through
from txntable.snapshot.snapshot import Snapshot, published_position
from txntable.snapshot.topic_reader import TopicReader
from txntable.spark.scan.offset_bounds import Offsets, offset_bounds
from txntable.spark.scan.reader import scan, stream
from txntable.spark.scan.views import TopicSource, drop_views, register_views
from txntable.transactions.transaction_log import TransactionLog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class SparkReading:
    """What a warehouse scans with Spark.

    Parameters
    ----------
    url : str
        The warehouse's.
    transactions : TransactionLog
        T.
    topic_reader : callable
        Topic name -> what its readers share.
    """

    def __init__(self, url: str, transactions: TransactionLog, topic_reader: Callable[[str], TopicReader]) -> None:
        self._url, self._transactions, self._topic_reader = url, transactions, topic_reader

    def read(
        self, spark: SparkSession, topic: str, level: IsolationLevel, bounds: tuple[Offsets | None, Offsets | None]
    ) -> DataFrame:
        """Return a topic at a level that has no position, between bounds."""
        reader = self._topic_reader(topic)
        reader.catch_up()
        view = reader.view(level)
        return scan(spark, self._url, view, offset_bounds(view, *bounds))

    def read_stream(self, spark: SparkSession, topic: str, options: Mapping[str, str]) -> DataFrame:
        """Return a topic's committed records as a stream."""
        self._topic_reader(topic).catch_up()
        return stream(spark, f"{self._url}/{public_root(topic)}", options)

    def register(
        self, spark: SparkSession, snapshot: Snapshot, topics: Sequence[str], level: IsolationLevel, prefix: str
    ) -> None:
        """Register topics as views of a session, and what they show; drop those of an earlier call."""
        sources = [self._source(spark, snapshot, topic, level) for topic in topics]
        drop_views(spark, prefix)
        published = published_position(self._transactions, self._transactions.refresh())
        register_views(spark, sources, (snapshot.position, published), prefix)

    def _source(self, spark: SparkSession, snapshot: Snapshot, topic: str, level: IsolationLevel) -> TopicSource:
        is_snapshot = level is IsolationLevel.SNAPSHOT
        records = snapshot.read(spark, topic) if is_snapshot else self.read(spark, topic, level, (None, None))
        numbers = self._topic_reader(topic).topic.public.ensure_fresh().numbers
        merged = merged_through(numbers, snapshot.view(topic).settings.topic_id)
        return TopicSource(topic, records, snapshot.version(topic), merged)
