"""The consumer: Kafka's, over a warehouse without a broker (PROTOCOL.md §10).

Owns Kafka's contract towards the caller: the records of a partition in offset order, each once, only those that the
isolation level shows; a position that moves over gaps, and by what is returned only.  Not for two
threads at once, save :meth:`Consumer.wakeup`.  What a call does is its parts' to know: the partitions, the group's
offsets, the place in the group, bounded reads, polls.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Concatenate, Never, ParamSpec, TypeVar, overload

import pyarrow as pa

from txntable.consumer.assigned_partitions import AssignedPartitions
from txntable.consumer.bounded_reads import BoundedRange, BoundedReads, check_timeout, refuse_unnamed
from txntable.consumer.consumer_config import ConsumerConfig
from txntable.consumer.consumer_record import JOINED_BYTES, ConsumerRecord, OffsetAndTimestamp, one_batch
from txntable.consumer.fetch_position import AutoOffsetReset
from txntable.consumer.group_place import GroupPlace
from txntable.consumer.group_session import GroupSession
from txntable.consumer.offset_commits import OffsetCommits, OnCommit
from txntable.consumer.offset_queries import OffsetQueries
from txntable.consumer.polls import EVERYTHING, Polls
from txntable.consumer.rebalance_listener import Callables, ConsumerRebalanceListener, OnPartitions
from txntable.coordinator.group_request import GroupMetadata
from txntable.errors import IllegalStateError, TxnTableError
from txntable.format.kafka_call_names import answering_consumer
from txntable.format.records import TopicPartition, named_partitions, one_or_all
from txntable.groups.group_client import GroupClient
from txntable.offsets.group_commit import GroupCommit, OffsetAndMetadata
from txntable.runtime.counters import Metrics, grouped
from txntable.runtime.one_process import OfOneProcess
from txntable.snapshot.topic_reader import TopicReader
from txntable.topics.topic_question import asking_for_topics
from txntable.transactions.transaction_log import TransactionLog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

P = ParamSpec("P")
T = TypeVar("T")


def alone(call: Callable[Concatenate[Consumer, P], T]) -> Callable[Concatenate[Consumer, P], T]:
    """Refuse a call while another thread is in one, and after close."""

    @functools.wraps(call)
    def run(consumer: Consumer, /, *args: P.args, **kwargs: P.kwargs) -> T:
        if not consumer.in_use.acquire(blocking=False):
            raise IllegalStateError(
                "another thread uses this consumer; give each thread its own", call=getattr(call, "__name__", None)
            )
        try:
            if consumer.is_closed:
                raise IllegalStateError("the consumer is closed; create a new one")
            return call(consumer, *args, **kwargs)
        finally:
            consumer.in_use.release()

    return run


@answering_consumer
@asking_for_topics(attrgetter("_context"))
class Consumer(OfOneProcess):
    """Reads the records of partitions; created by :meth:`txntable.Warehouse.consumer`.

    Attributes
    ----------
    config : ConsumerConfig
        Isolation level, where to start, memory limits.
    in_use : threading.RLock
        Held by the thread that is in a call.
    is_closed : bool
        Whether the consumer is closed.
    """

    def __init__(
        self,
        config: ConsumerConfig,
        topic_reader: Callable[[str], TopicReader],
        transactions: TransactionLog,
        groups: GroupClient,
    ) -> None:
        self.config, self._context = config, transactions.context
        self.in_use = threading.RLock()
        self.is_closed = False
        place = GroupPlace(config.member, groups, transactions.context.environment)
        self._partitions = AssignedPartitions(config, topic_reader, transactions)
        self._queries = OffsetQueries(self._partitions)
        self._commits = OffsetCommits(self._partitions, groups, place)
        self._session = GroupSession(self._partitions, self._commits, place)
        self._reads = BoundedReads(self._partitions, self._commits, self._session, place)
        self._polls = Polls(self._partitions, self._session, place)

    # -- which partitions -------------------------------------------------------------------

    @alone
    def assign(self, partitions: Sequence[TopicPartition]) -> None:
        """Read these partitions, instead of those that were assigned before.

        Parameters
        ----------
        partitions : sequence of TopicPartition
            All partitions to read; those that were already assigned keep their positions.

        Raises
        ------
        UnknownTopicOrPartitionError
            There is no such topic or partition.
        IllegalStateError
            Topics are subscribed to: unsubscribe first.
        InvalidRequestError
            The argument is not a list of partitions.
        """
        self._partitions.assign(partitions)

    @alone
    def subscribe(  # noqa: PLR0913  Kafka's listener, and its callbacks one by one
        self,
        topics: Sequence[str] = (),
        *,
        pattern: str | None = None,
        listener: ConsumerRebalanceListener | None = None,
        on_assign: OnPartitions | None = None,
        on_revoke: OnPartitions | None = None,
        on_lost: OnPartitions | None = None,
    ) -> None:
        """Subscribe to these topics, including partitions added later; replaces the current subscription.

        With a group, the members share the partitions; the first poll joins.

        Parameters
        ----------
        topics : sequence of str
            Their names; with neither names nor a pattern, the call is :meth:`unsubscribe`.
        pattern : str, optional
            A regular expression of Python's :mod:`re` that matches whole names; new topics are found within
            ``metadata_max_age_ms``.
        listener : ConsumerRebalanceListener, optional
            Is told which partitions are assigned and revoked.
        on_assign, on_revoke, on_lost : callable, optional
            Instead of a listener: (consumer, list of partitions).  A listener of a later call is told by the next poll
            what the member has kept.  Without `on_lost`, `on_revoke` is told of lost
            partitions too.

        Raises
        ------
        UnknownTopicOrPartitionError
            There is no such topic.
        IllegalStateError
            Partitions are assigned: unsubscribe first.
        InvalidRequestError, InvalidTopicError, InvalidRegularExpressionError
            The topics are not a list of topic names, the pattern is not valid, or both are given; a listener and
            callables are.
        """
        calls = Callables(on_assign, on_revoke, on_lost)
        self._session.subscribe(topics, pattern, calls.listener(self, listener))

    @alone
    def unsubscribe(self) -> None:
        """Stop reading and leave the group; afterwards either assign or subscribe is possible."""
        self._session.unsubscribe()

    def assignment(self) -> set[TopicPartition]:
        """Return the partitions that are assigned to this consumer."""
        return set(self._partitions.subscription.positions)

    def subscription(self) -> set[str]:
        """Return the subscribed topics; empty if partitions were assigned by :meth:`assign`."""
        return set(self._partitions.subscription.topics)

    @alone
    def topics(self) -> set[str]:
        """Return the names of all topics of the warehouse."""
        return self._queries.topics()

    @alone
    def partitions_for_topic(self, topic: str) -> set[int]:
        """Return the partitions of a topic, which need not be assigned.

        Raises
        ------
        UnknownTopicOrPartitionError
            There is no such topic.
        """
        return self._queries.partitions_for_topic(topic)

    # -- reading ----------------------------------------------------------------------------

    @alone
    def poll(
        self, *unnamed: Never, timeout_ms: float = 0, max_records: int | None = None, min_records: int = 1
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Return the next records of each partition, in offset order.

        Parameters
        ----------
        *unnamed
            Refused: to some of Kafka's Python clients ``poll(1)`` is a second, to others a millisecond.
        timeout_ms : float
            How long to wait for records if there are none, in ms; 0: check once.
        max_records : int, optional
            The maximum number of records; default: ``max_poll_records``.
        min_records : int
            How many records to wait for, at most `max_records`.  After the timeout, :meth:`wakeup`, a rebalance or an
            error, which the next call raises, what there is by then is returned.

        Returns
        -------
        dict of TopicPartition to list of ConsumerRecord
            Only partitions with records; empty after the timeout, or after :meth:`wakeup`.

        Raises
        ------
        InvalidRequestError
            An argument is not named, or no number that fits.
        IllegalStateError
            Nothing is assigned or subscribed to; the consumer is closed, or in use by another thread.
        OffsetOutOfRangeError
            A partition has no offset to read from, and ``auto_offset_reset`` is ``none``: seek.
        UnknownTopicOrPartitionError
            A topic was deleted, or one was created again of which partitions are assigned: assign or subscribe again.
            A subscribed one that was created again is read as ``auto_offset_reset`` says, with a warning.
        DamagedDataError
            A segment cannot be read; the next call raises this again.  Seek past it, or pause the partition.
        FencedInstanceIdError
            A newer consumer has the instance id of this static member: close this one.
        InconsistentGroupProtocolError, GroupMaxSizeReachedError
            The group does not accept this consumer: change its configuration.
        StoreUnavailableError, CommitStateUnknownError
            Only with a timeout of 0: call again; no record is lost.  With a longer timeout the call retries, as
            Kafka's consumer does; at its end nothing is returned and a warning is logged.
        """
        refuse_unnamed(unnamed)
        limit = self.config.max_poll_records if max_records is None else max_records
        self._partitions.give_back()
        return self._polls.poll_records(timeout_ms, limit, min_records)

    @alone
    def poll_batches(
        self, *unnamed: Never, timeout_ms: float = 0, max_records: int | None = None
    ) -> dict[TopicPartition, pa.RecordBatch]:
        """Return the next records of each partition as columns.

        The topic's columns, then ``_partition``, ``_offset``, ``_timestamp`` and ``_commit``.  Moves the
        same positions and raises the same errors as :meth:`poll`.

        Parameters
        ----------
        *unnamed, timeout_ms
            See :meth:`poll`.
        max_records : int, optional
            The maximum number of records; default: as many as fit into ``fetch_max_bytes``, of each partition as many
            as come without a copy: a large batch as it is, small ones joined to one of about a mebibyte.
        """
        refuse_unnamed(unnamed)
        self._partitions.give_back()
        limit = EVERYTHING if max_records is None else max_records
        return self._polls.poll(timeout_ms, limit, one_batch, JOINED_BYTES)

    def wakeup(self) -> None:
        """Make a waiting poll, or else the next one that would wait, return without records; iteration ends.

        The only method that another thread may call.  A waiting poll returns within a second.
        """
        self._polls.wakeup()

    def __iter__(self) -> Consumer:
        return self

    @alone
    def __next__(self) -> ConsumerRecord:
        """Return the next record; stops after ``consumer_timeout_ms`` without one, or after :meth:`wakeup`."""
        return self._polls.next_record()

    @alone
    def read(
        self,
        spark: SparkSession,
        topic: str | None = None,
        *,
        max_offsets_per_partition: int | None = None,
        timeout_ms: float | None = None,
    ) -> DataFrame:
        """Return everything from the group's committed offsets to the end as a DataFrame.

        The call fixes a range for each partition of this consumer, however long processing takes, and moves the
        positions to the ends of the ranges.  A few small segments are read by the call itself; more are scanned by
        Spark when the DataFrame is used.  Commit the ranges together with the results:
        ``transaction.send_offsets(consumer)``, or :meth:`commit`; until then the next call reads them again.
        Without a group, reading starts at the positions.

        Parameters
        ----------
        spark : SparkSession
            A session with Delta; Spark Connect works too.
        topic : str, optional
            Which topic to read; required if there are several.
        max_offsets_per_partition : int, optional
            The maximum length of a partition's range, in offsets.
        timeout_ms : float, optional
            How long to wait for partitions that another member, possibly a dead one, still owns, in ms; default:
            until a dead one has been expelled, ``session_timeout_ms`` and two ``heartbeat_interval_ms``.  What is read
            after that is without them, and the log says so.

        Returns
        -------
        DataFrame
            With the columns of :meth:`txntable.Warehouse.read`; empty when there is nothing new.

        Raises
        ------
        IllegalStateError
            Nothing is assigned or subscribed to, several topics are and none is named, or the consumer is closed.
        OffsetOutOfRangeError
            A partition has no offset to read from, and ``auto_offset_reset`` is ``none``.
        UnstableOffsetCommitError
            A transaction with offsets of the group has not ended within ``default_api_timeout_ms``: call again.
        UnknownTopicOrPartitionError
            The topic was deleted or created again: subscribe again.
        StoreUnavailableError, CommitStateUnknownError
            Call again.
        """
        return self._frame(spark, self._reads.pin(topic, max_offsets_per_partition, timeout_ms))

    @alone
    def read_together(
        self, spark: SparkSession, *, max_offsets_per_partition: int | None = None, timeout_ms: float | None = None
    ) -> dict[str, DataFrame]:
        """Return the same of all topics, by their names, without a transaction in part.

        What one transaction wrote to partitions of this consumer is in the DataFrames of one call, all of it: what
        has another part that cannot be read yet, because an older transaction is open there, waits with it.  So these
        topics may be joined.  A bound is stretched to whole transactions where it would let nothing be read.

        Parameters
        ----------
        spark, max_offsets_per_partition, timeout_ms
            See :meth:`read`, which raises the same errors.
        """
        return {
            bounded.view.settings.name: self._frame(spark, bounded)
            for bounded in self._reads.pin_together(max_offsets_per_partition, timeout_ms)
        }

    def _frame(self, spark: SparkSession, bounded: BoundedRange) -> DataFrame:
        records = partial(self._records, bounded, None)
        frame: DataFrame = self.config.read_dataframe(spark, bounded.view, bounded.starts, bounded.ends, records)
        return frame

    @alone
    def read_arrow(
        self,
        topic: str | None = None,
        *,
        columns: Sequence[str] | None = None,
        max_offsets_per_partition: int | None = None,
        timeout_ms: float | None = None,
    ) -> pa.RecordBatchReader:
        """Return the same without Spark: record batches in offset order, read lazily.

        Positions are at the ends of the ranges at once, however many batches are taken: take all of them, or bound the
        range, before its offsets are committed.

        Parameters
        ----------
        columns : sequence of str, optional
            The topic's, ``_partition``, ``_offset``, ``_timestamp``, ``_commit``; default: all.
        topic, max_offsets_per_partition, timeout_ms
            See :meth:`read`, which raises the same errors.
        """
        return self._records(self._reads.pin(topic, max_offsets_per_partition, timeout_ms), columns)

    def _records(self, bounded: BoundedRange, columns: Sequence[str] | None) -> pa.RecordBatchReader:
        reader = self._partitions.topics[bounded.view.settings.name].reader
        return reader.batches(bounded.view, columns, (bounded.starts, bounded.ends))

    def ranges(self) -> dict[TopicPartition, tuple[int, int]]:
        """Return the ranges that :meth:`read` has returned and that are not committed, as (start, end) without the end.

        Leaves out partitions whose group is already at the end; includes ranges that hold offsets but no records.
        """
        return {each: (reading.start, reading.end) for each, reading in self._partitions.readings.ranges.items()}

    # -- positions --------------------------------------------------------------------------

    @alone
    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Read a partition from an offset; the next poll checks whether the offset exists.

        Who seeks all assigned partitions back to what is committed, between an abort and the next transaction, gives up
        what was read of partitions that are lost since, as by :meth:`seek_to_committed`.

        Raises
        ------
        IllegalStateError
            The partition is not assigned.
        InvalidRequestError
            The offset is not valid.
        """
        self._partitions.seek(partition, offset)

    @alone
    def seek_to_beginning(self, *partitions: TopicPartition | Iterable[TopicPartition]) -> None:
        """Read partitions from the log start; default: all assigned ones.  Raises as :meth:`seek`."""
        self._partitions.seek_to(AutoOffsetReset.EARLIEST, named_partitions(partitions))

    @alone
    def seek_to_end(self, *partitions: TopicPartition | Iterable[TopicPartition]) -> None:
        """Read partitions from the end, which the next poll or :meth:`position` determines.

        The end is the last stable offset, or at ``read_uncommitted`` the high watermark.  Default: all assigned
        partitions.  Raises as :meth:`seek`.
        """
        self._partitions.seek_to(AutoOffsetReset.LATEST, named_partitions(partitions))

    @alone
    def seek_to_committed(self, *partitions: TopicPartition | Iterable[TopicPartition]) -> None:
        """Read partitions from the group's committed offsets, so that what an aborted transaction had read comes again.

        Default: all assigned partitions; what was read of those that are lost since is given up, too.  The next poll or
        :meth:`position` looks up the offsets.

        Raises
        ------
        IllegalStateError
            A partition is not assigned, or the consumer has no group.
        """
        self._commits.seek_to_committed(named_partitions(partitions))

    @overload
    @alone
    def position(self, partitions: TopicPartition, /) -> int: ...

    @overload
    @alone
    def position(self, partitions: Iterable[TopicPartition], /) -> dict[TopicPartition, int]: ...

    @overload
    @alone
    def position(
        self, first: TopicPartition, second: TopicPartition, /, *others: TopicPartition
    ) -> dict[TopicPartition, int]: ...

    @alone
    def position(self, *partitions: TopicPartition | Iterable[TopicPartition]) -> int | dict[TopicPartition, int]:
        """Return the offset of the next record to read, looking it up if necessary.

        Parameters
        ----------
        *partitions : TopicPartition or iterable of TopicPartition
            One, or several, one by one or in lists; they must be assigned.

        Returns
        -------
        int or dict of TopicPartition to int
            Of one partition its offset; of several a dict, in their order.

        Raises
        ------
        IllegalStateError
            The partition is not assigned.
        UnstableOffsetCommitError
            A transaction with an offset of the group has not ended within ``default_api_timeout_ms``: call again.
        OffsetOutOfRangeError
            There is no offset yet, and ``auto_offset_reset`` is ``none``: seek.
        """
        return one_or_all(partitions, {each: self._session.position(each) for each in named_partitions(partitions)})

    def positions(self) -> dict[TopicPartition, int]:
        """Return the next offset of each assigned partition, as far as it is known; makes no request.

        After a poll the position of every partition is known, except where a transaction has a pending offset of the
        group, or where there is no offset and ``auto_offset_reset`` is ``none``.
        """
        return self._partitions.positions()

    @alone
    def pause(self, *partitions: TopicPartition | Iterable[TopicPartition]) -> None:
        """Return no records from these partitions until they are resumed; raises as :meth:`seek`."""
        self._partitions.pause(named_partitions(partitions), paused=True)

    @alone
    def resume(self, *partitions: TopicPartition | Iterable[TopicPartition]) -> None:
        """Return records from these partitions again; raises as :meth:`seek`."""
        self._partitions.pause(named_partitions(partitions), paused=False)

    def paused(self) -> set[TopicPartition]:
        """Return the partitions that are paused."""
        return {each for each, position in self._partitions.subscription.positions.items() if position.paused}

    # -- offsets ----------------------------------------------------------------------------

    @alone
    def beginning_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the log start offsets; the partitions need not be assigned.

        Raises
        ------
        UnknownTopicOrPartitionError
            There is no such topic or partition.
        """
        return {partition: bounds.start for partition, bounds in self._queries.bounds(partitions).items()}

    @alone
    def end_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Return where reading ends now: the last stable offsets, or at ``read_uncommitted`` the high watermarks.

        Raises as :meth:`beginning_offsets`.
        """
        return {partition: bounds.end for partition, bounds in self._queries.bounds(partitions).items()}

    @alone
    def get_watermark_offsets(self, partition: TopicPartition) -> tuple[int, int]:
        """Return the log start offset and the high watermark of a partition, as they are now, at either level.

        Committed reading ends at :meth:`last_stable_offset`.  Raises as :meth:`beginning_offsets`.
        """
        (bounds,) = self._queries.bounds([partition]).values()
        return bounds.start, bounds.high_watermark

    def highwater(self, partition: TopicPartition) -> int:
        """Return the high watermark of an assigned partition as of the last poll; makes no request.

        Raises
        ------
        IllegalStateError
            The partition is not assigned.
        """
        return self._queries.known_bounds(partition).high_watermark

    @alone
    def last_stable_offset(self, partition: TopicPartition) -> int:
        """Return the last stable offset of a partition, at either level; raises as :meth:`beginning_offsets`."""
        (bounds,) = self._queries.bounds([partition]).values()
        return bounds.last_stable_offset

    @alone
    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return for each partition its first record, by offset, at or after a time.

        Parameters
        ----------
        timestamps : Mapping of TopicPartition to int
            ms since 1970; the partitions need not be assigned.

        Returns
        -------
        dict of TopicPartition to OffsetAndTimestamp or None
            ``None`` if every record that the isolation level shows is older.

        Raises
        ------
        InvalidRequestError
            A time is not an int of at least 0.
        UnknownTopicOrPartitionError
            There is no such topic or partition.
        """
        return self._queries.offsets_for_times(timestamps)

    def current_lag(self, partition: TopicPartition) -> int | None:
        """Return the number of offsets between the position and the end, as of the last poll.

        Offsets, not records: markers and aborted records count until the position has passed them.  ``None`` if the
        position is not known yet.  Raises :class:`IllegalStateError` if the partition is not assigned.
        """
        return self._queries.current_lag(partition)

    @alone
    def metrics(self) -> Metrics:
        """Return what the consumer has counted: group -> name -> value, under the names that Kafka has for them.

        ``consumer-fetch-manager-metrics`` has ``records-consumed-total``, ``bytes-consumed-total`` (of records in
        memory), ``records-lag-max`` and, by partition, ``<topic>-<partition>.records-lag`` as of the last poll;
        ``consumer-coordinator-metrics`` has ``commit-total``, ``rebalance-total`` and ``assigned-partitions``;
        ``consumer-metrics`` ``commit-sync-time-ns-total``.  :meth:`read` hands out ranges, and counts nothing.  Cheap:
        no request.
        """
        lags = {each: self._queries.current_lag(each) for each in sorted(self._partitions.subscription.positions)}
        known = {each: lag for each, lag in lags.items() if lag is not None}
        group = "consumer-fetch-manager-metrics"
        gauges = {f"{group}/{each.topic}-{each.partition}.records-lag": lag for each, lag in known.items()}
        if known:
            gauges[f"{group}/records-lag-max"] = max(known.values())
        gauges["consumer-coordinator-metrics/assigned-partitions"] = len(lags)
        return grouped({**self._partitions.counters.totals(), **gauges})

    # -- the group --------------------------------------------------------------------------

    @alone
    def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None) -> None:
        """Commit offsets of the group, at once and durably.

        Parameters
        ----------
        offsets : Mapping of TopicPartition to OffsetAndMetadata or int, optional
            The next record to read of each partition; default: the positions, and the ends of what :meth:`read`
            returned.

        Raises
        ------
        UnknownMemberIdError, StaleMemberEpochError, FencedMemberEpochError, GroupIdNotFoundError
            Partitions belong to another member by now; nothing was committed: poll, and continue from there.
        CommitFailedError
            The group's offset is no longer where a range began: read again.
        FencedInstanceIdError
            A newer consumer has the instance id: close this one.
        OffsetMetadataTooLargeError, InvalidRequestError, UnknownTopicOrPartitionError
            Correct the offsets.
        UnstableOffsetCommitError, CommitStateUnknownError, StoreUnavailableError
            Call again.
        IllegalStateError
            The consumer has no group, or is closed.
        """
        self._commits.commit(offsets)

    @alone
    def commit_async(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        callback: OnCommit | None = None,
    ) -> None:
        """Commit as :meth:`commit` does, and tell the outcome to a callback: it is called before this returns.

        Nothing is left for later: when this returns, the offsets are durable or the callback has the error.

        Parameters
        ----------
        offsets : Mapping of TopicPartition to OffsetAndMetadata or int, optional
            See :meth:`commit`.
        callback : callable, optional
            (offsets, error or ``None``): those that were given, else the positions that were committed, ``None`` if
            they were not; without a callback, an error is logged.

        Raises
        ------
        IllegalStateError, OffsetMetadataTooLargeError, InvalidRequestError, UnknownTopicOrPartitionError
            As :meth:`commit`: the call itself is wrong.
        """
        self._commits.commit_told(offsets, callback)

    @overload
    @alone
    def committed(
        self, partitions: TopicPartition, /, *, timeout_ms: float | None = None
    ) -> OffsetAndMetadata | None: ...

    @overload
    @alone
    def committed(
        self, partitions: Iterable[TopicPartition], /, *, timeout_ms: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]: ...

    @overload
    @alone
    def committed(
        self, first: TopicPartition, second: TopicPartition, /, *others: TopicPartition, timeout_ms: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]: ...

    @alone
    def committed(
        self, *partitions: TopicPartition | Iterable[TopicPartition], timeout_ms: float | None = None
    ) -> OffsetAndMetadata | dict[TopicPartition, OffsetAndMetadata | None] | None:
        """Return the group's committed offsets; waits for transactions with pending offsets.

        Also for one of this program, which does not end meanwhile: ask before its offsets are sent, or after its end.

        Parameters
        ----------
        *partitions : TopicPartition or iterable of TopicPartition
            One, or several, one by one or in lists; they need not be assigned.
        timeout_ms : float, optional
            How long to wait, in ms; default: ``default_api_timeout_ms``.

        Returns
        -------
        OffsetAndMetadata or None, or dict of TopicPartition to these
            ``None`` if nothing is committed.  Of one partition its own; of several a dict.

        Raises
        ------
        UnstableOffsetCommitError
            A transaction with such an offset has not ended by then: call again.
        UnknownTopicOrPartitionError
            There is no such topic.
        InvalidRequestError
            `timeout_ms` is no time to wait.
        IllegalStateError
            The consumer has no group, or is closed.
        """
        if timeout_ms is not None:
            check_timeout(timeout_ms)
        return one_or_all(partitions, self._commits.committed(named_partitions(partitions), timeout_ms))

    @alone
    def group_metadata(self) -> GroupMetadata:
        """Return the group metadata of what was read, for :meth:`txntable.Producer.send_offsets_to_transaction`.

        It records which partitions the member owned when it read them: offsets of a partition that was lost since
        cannot be committed, even if the member has regained it.  Without membership it names only the group.

        Raises
        ------
        IllegalStateError
            The consumer has no group, or is closed.
        """
        return self._commits.group_metadata()

    consumer_group_metadata = group_metadata

    @alone
    def offsets_to_send(self) -> GroupCommit:
        """Return the offsets of everything that was returned and not yet committed, with the ownership at that time.

        Raises
        ------
        IllegalStateError
            The consumer has no group, or auto-commits what the transaction may still abort.
        """
        return self._commits.offsets_to_send()

    @alone
    def offsets_sent(self, sent: GroupCommit) -> None:
        """Note that a transaction has these offsets: what is read from now on belongs to the next one."""
        self._commits.offsets_sent(sent)

    def offsets_decided(self, sent: GroupCommit, *, committed: bool) -> None:
        """Note how the transaction ended that had these offsets: what it aborted is sent to the next one, too."""
        self._commits.offsets_decided(sent, committed=committed)

    def refused(self, error: TxnTableError, commit: GroupCommit) -> None:
        """Note that the group refused a commit, so that what was lost is refused only once."""
        self._commits.refused(error, commit)

    # -- closing ----------------------------------------------------------------------------

    def close(self) -> None:
        """Close the consumer; closing twice has no effect.

        A member of a group commits if auto-commit is on, calls its listener, and leaves; a static member stays.

        Raises
        ------
        IllegalStateError
            Another thread is in a call: call :meth:`wakeup`, then close.
        """
        if not self.is_closed:
            self._close()

    @alone
    def _close(self) -> None:
        self._partitions.give_back()
        try:
            self._session.leave()
        finally:
            self.is_closed = True
            self._session.stop()
            self._partitions.close()

    def __enter__(self) -> Consumer:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.close()
