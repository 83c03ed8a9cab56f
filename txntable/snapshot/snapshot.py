"""Reading committed data: one position pinned over all topics (PROTOCOL.md §10).

Owns the order *pin, complete, read*: a snapshot at D shows every transaction decided at or
below D whole, in every topic, and none above; open transactions hold nothing back.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import TYPE_CHECKING

import pyarrow as pa

from txntable.coordinator.error_kinds import shown
from txntable.coordinator.offset_shard import committed
from txntable.errors import (
    InvalidRequestError,
    OffsetOutOfRangeError,
    TxnTableError,
    UnknownTopicOrPartitionError,
)
from txntable.format.layout import TRANSACTION_LOG_ROOT
from txntable.format.records import TopicPartition
from txntable.format.topic import TopicSettings
from txntable.log.entry_time import version_as_of
from txntable.log.outcome import is_unwritable
from txntable.offsets.group_commit import OffsetAndMetadata
from txntable.partition.offsets import MERGED_THROUGH
from txntable.partition.topic_view import TopicView
from txntable.runtime.one_process import OfOneProcess
from txntable.segments.filter_terms import Filters, record_filter
from txntable.segments.segment_reader import record_schema
from txntable.snapshot.offset_history import OffsetHistory
from txntable.snapshot.topic_reader import TopicReader
from txntable.spark.scan.offset_bounds import Offsets, offset_bounds
from txntable.spark.scan.reader import scan
from txntable.topics.topic_question import asking_for_topics
from txntable.transactions.completion import Completer
from txntable.transactions.transaction_log import TransactionLog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MILLISECOND = dt.timedelta(milliseconds=1)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@asking_for_topics(attrgetter("_offsets.context"))
class Snapshot(OfOneProcess):
    """A consistent state of all topics; made by :meth:`txntable.Warehouse.snapshot`.

    Transactions are those of its position.  What has no position (records without a transaction, the topic itself and
    its columns) is as the topic is at its first read; of a snapshot as of a time, as it was then.  As of an earlier
    position, records without a transaction are among it that came until the next decision was published, or later.

    Attributes
    ----------
    position : int
        The decision position that it is pinned at.
    """

    def __init__(
        self, position: int, url: str, reader: Callable[[str], TopicReader], offsets: OffsetHistory, *, past: bool
    ) -> None:
        self.position = position
        self._url = url
        self._reader = reader
        self._offsets = offsets
        self._past = past
        self._caught_up: str | None = None
        self._moment_ms: int | None = None
        self._versions: dict[str, int] = {}
        self._views: dict[str, TopicView] = {}

    def __repr__(self) -> str:
        return f"Snapshot(position={self.position}, warehouse={self._url!r})"

    @classmethod
    def pin(
        cls,
        transactions: TransactionLog,
        completer: Completer,
        reader: Callable[[str], TopicReader],
        as_of: int | dt.datetime | None,
        topic: str | None = None,
    ) -> Snapshot:
        """Pin the head of the transaction log, or an earlier position.

        Parameters
        ----------
        transactions : TransactionLog
            T.
        completer : Completer
            Does what is owed.
        reader : callable
            Topic name -> its reader.
        as_of : int or datetime, optional
            A position, or a time with a zone; default: now.
        topic : str, optional
            What alone is read: nothing is asked, nor waited for, of what others are owed.

        Raises
        ------
        OffsetOutOfRangeError
            `as_of` has not happened yet, or is before the warehouse.
        InvalidRequestError
            `as_of` is neither a position nor a time with a zone.
        """
        url = transactions.context.store.spec.url
        with transactions.log.lock:
            head = transactions.refresh()
            decided, incomplete = transactions.log.fold.decided(), transactions.log.fold.incomplete()
        wanted = head if as_of is None else _position(transactions, head, as_of)
        caught_up = None
        # Who may not complete reads what others have published whole.
        if topic is None:
            try:
                completer.bring_rows(incomplete)
            except TxnTableError as error:
                if not is_unwritable(error):
                    raise
                wanted = min(wanted, published_position(transactions, head))
        else:
            # A topic that is not there any more may have been there then: its view tells.
            with suppress(UnknownTopicOrPartitionError):
                reader(topic).catch_up_to_known()
                wanted, caught_up = min(wanted, reader(topic).published_position(head)), topic
        # A position that was asked for shows the topics as they were then, also while it is the head.
        past = as_of is not None or wanted < head
        moment_ms = _milliseconds(as_of) if isinstance(as_of, dt.datetime) else None
        offsets = OffsetHistory(transactions, completer.offsets, wanted, None if past else decided, moment_ms)
        snapshot = cls(wanted, url, reader, offsets, past=past)
        snapshot._caught_up, snapshot._moment_ms = caught_up, moment_ms
        return snapshot

    def version(self, topic: str) -> int:
        """Return the version of the public table that the snapshot reads; pinned at the first call.

        Raises
        ------
        UnknownTopicOrPartitionError
            There is no such topic.
        OffsetOutOfRangeError
            Retention has removed it.
        """
        if topic not in self._versions:
            reader = self._reader(topic)
            with reader.topic.segments.lock, reader.topic.public.lock:
                try:
                    if topic != self._caught_up:
                        reader.catch_up_to_known()
                except UnknownTopicOrPartitionError:
                    # What was deleted since is still there in the past.
                    if not self._past:
                        raise
                public = reader.topic.public.table
            # A snapshot that is older than snapshot_retention_ms may find its topic merged beyond it.
            merged = any(
                number > self.position
                for name, number in public.numbers.items()
                if name.startswith(f"{MERGED_THROUGH}/")
            )
            past = self._past or merged
            version = reader.version_at(self.position, self._moment_ms) if past else public.next_version - 1
            self._versions[topic] = version
        return self._versions[topic]

    def view(self, topic: str) -> TopicView:
        """Return what the snapshot shows of a topic; raises as :meth:`version`."""
        if topic not in self._views:
            self._views[topic] = self._reader(topic).view_at(self.version(topic), self.position)
        return self._views[topic]

    def topic_settings(self, topic: str) -> TopicSettings:
        """Return what a topic was made with, as it was then: to create one anew that was deleted by mistake.

        Raises
        ------
        UnknownTopicOrPartitionError
            There was no such topic.
        OffsetOutOfRangeError
            Retention has removed what the snapshot reads of it.
        """
        return self.view(topic).settings

    def read(
        self,
        spark: SparkSession,
        topic: str,
        *,
        starting_offsets: Offsets | None = None,
        ending_offsets: Offsets | None = None,
    ) -> DataFrame:
        """Return a topic's committed records as a DataFrame; see :meth:`txntable.Warehouse.read`."""
        view = self.view(topic)
        return scan(spark, self._url, view, offset_bounds(view, starting_offsets, ending_offsets))

    def read_arrow(
        self,
        topic: str,
        *,
        columns: Sequence[str] | None = None,
        filters: Filters | None = None,
        starting_offsets: Offsets | None = None,
        ending_offsets: Offsets | None = None,
    ) -> pa.RecordBatchReader:
        """Return a topic's committed records without Spark; see :meth:`txntable.Warehouse.read_arrow`."""
        offsets = (starting_offsets, ending_offsets)
        return records_of(self._reader(topic), self.view(topic), (columns, filters), offsets)

    def committed_offsets(self, group: str) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the offsets that a group had committed: of one state with the records of all topics.

        Those of transactions are those of the position.  Plain commits have none: they count as they are at the first
        call, in the past as they were then.

        Parameters
        ----------
        group : str
            Its name; one that there was not has no offsets.

        Raises
        ------
        OffsetOutOfRangeError
            Log cleanup or retention has removed what is needed: ask for a later position.
        """
        rows = self._offsets.of_group(group)
        found = {}
        for topic in sorted({topic for topic, _ in rows}):
            try:
                topic_id = self.view(topic).settings.topic_id
            except UnknownTopicOrPartitionError:
                # It was deleted, or there was none of the name then.
                continue
            for partition in sorted(partition for name, partition in rows if name == topic):
                one = committed(rows[topic, partition], topic_id, require_stable=False)
                if one is not None:
                    found[TopicPartition(topic, partition)] = OffsetAndMetadata(one.offset, one.metadata)
        return found


def records_of(
    reader: TopicReader,
    view: TopicView,
    wanted: tuple[Sequence[str] | None, Filters | None],
    offsets: tuple[Offsets | None, Offsets | None],
) -> pa.RecordBatchReader:
    """Return columns of the wanted records of a view between offsets; see :meth:`txntable.Warehouse.read_arrow`."""
    ranges = offset_bounds(view, *offsets)
    starts = {partition: one.start for partition, one in ranges.items()}
    ends = {partition: one.end for partition, one in ranges.items()}
    columns, filters = wanted
    where = None if filters is None else record_filter(filters, record_schema(view.settings))
    return reader.batches(view, columns, (starts, ends), where)


def published_position(transactions: TransactionLog, head: int) -> int:
    """Return the highest position at or below `head` with nothing decided and unpublished at or below it."""
    with transactions.log.lock:
        waiting = [row.position for row in transactions.log.fold.incomplete()]
    return min([head, *(position - 1 for position in waiting)])


def as_of(text: str) -> int | dt.datetime:
    """Return what a text says of a moment: a decision position, or a time with a zone.

    Raises
    ------
    InvalidRequestError
        It is neither.
    """
    try:
        return int(text) if text.isdecimal() else dt.datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidRequestError(
            "a snapshot is as of a position, or of a time with its zone such as 2026-11-20T12:00:00Z", as_of=shown(text)
        ) from error


def _position(transactions: TransactionLog, head: int, as_of: int | dt.datetime) -> int:
    if isinstance(as_of, dt.datetime):
        return _position_at(transactions, head, as_of)
    if isinstance(as_of, bool) or not isinstance(as_of, int):
        raise InvalidRequestError("as_of is a position or a datetime with a time zone", as_of=shown(as_of))
    if not 0 <= as_of <= head:
        raise OffsetOutOfRangeError(
            "a snapshot is taken at a position between 0 and the head of the transaction log", as_of=as_of, head=head
        )
    return as_of


def _milliseconds(moment: dt.datetime) -> int:
    return (moment - _EPOCH) // _MILLISECOND


def _position_at(transactions: TransactionLog, head: int, moment: dt.datetime) -> int:
    if moment.tzinfo is None:
        raise InvalidRequestError(
            "the time of a snapshot needs its zone: a Z at its end, or a tzinfo", as_of=moment.isoformat()
        )
    time_ms = _milliseconds(moment)
    now_ms = transactions.context.clock.shown_ms()
    if time_ms > now_ms:
        raise OffsetOutOfRangeError(
            "the time has not come yet, by the store's clock or, where nothing can be written, by this machine's; ask"
            " for an earlier one",
            as_of=moment.isoformat(),
            now_ms=now_ms,
        )
    position = version_as_of(transactions.context, TRANSACTION_LOG_ROOT, head, time_ms)
    if position is None:
        raise OffsetOutOfRangeError("the warehouse was created later", as_of=moment.isoformat())
    return position
