"""A warehouse: where it is, what belongs to it, and the clients that work on it (PROTOCOL.md §1, §2).

Owns the handle that users hold; how a warehouse comes to be is :mod:`txntable.warehouse.warehouse_creation`'s, what
makes its clients :mod:`txntable.warehouse.warehouse_clients`'s.  That one is imported when the first client is asked
for: it leads to all of them, which is half of a program's start.
"""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from importlib import import_module
from importlib.metadata import version
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Unpack

import pyarrow as pa

from txntable.coordinator.error_kinds import shown
from txntable.errors import (
    DamagedDataError,
    InvalidConfigError,
    InvalidRequestError,
    WarehouseAlreadyExistsError,
)
from txntable.format.isolation import IsolationLevel, level_at
from txntable.format.kafka_call_names import OF_PRODUCERS, WAREHOUSE_ARGUMENTS
from txntable.format.layout import TRANSACTION_LOG_ROOT
from txntable.format.warehouse_settings import WarehouseSettings, settings_from
from txntable.log.damage import let_arrow_begin
from txntable.log.delta_log import DeltaLog
from txntable.log.log_view import LogContext, refresh_together
from txntable.offsets.offset_log import OffsetLog
from txntable.producer.producer_config import (
    DEFAULT_BATCH_SIZE,
    DEFAULT_MAX_REQUEST_SIZE,
    DEFAULT_TRANSACTION_TIMEOUT_MS,
    ProducerConfig,
)
from txntable.runtime.counters import Metrics, grouped
from txntable.runtime.environment import Environment, SystemEnvironment
from txntable.runtime.one_process import OfOneProcess
from txntable.runtime.other_names import answering
from txntable.segments.filter_terms import Filters
from txntable.snapshot.snapshot import Snapshot, records_of
from txntable.snapshot.snapshot_description import topics_then
from txntable.snapshot.topic_reader import TopicReader
from txntable.spark.scan.offset_bounds import Offsets
from txntable.spark.scan.views import check_view_names
from txntable.storage.object_store import ObjectStore, StoreSpec
from txntable.storage.open import open_store
from txntable.storage.store_clock import StoreClock
from txntable.topics.topic_log import TopicLog
from txntable.topics.topic_question import asking_for_topics
from txntable.transactions.completion import Completer
from txntable.transactions.transaction_log import TransactionLog
from txntable.warehouse.warehouse_creation import (
    WarehouseIdentity,
    create_missing_log,
    reading_identity,
    write_identity,
)
from txntable.warehouse.warehouse_reading import SparkReading

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from txntable.admin.admin import Admin
    from txntable.consumer.consumer import Consumer
    from txntable.consumer.consumer_config import ConsumerSettings
    from txntable.producer.partitioner import Partitioner
    from txntable.producer.producer import Producer
    from txntable.spark.writing.batch_writer import BatchWriter, Write
    from txntable.upkeep.transaction_coordinator import CoordinatorConfig, TransactionCoordinator
    from txntable.verification.damage import Progress, Verification
    from txntable.warehouse.warehouse_clients import WarehouseClients


@cache
def _engine() -> str:
    """Return the engine name of our commits; cached, since it is read from a file."""
    return f"txntable/{version('txntable')}"


@answering(OF_PRODUCERS, WAREHOUSE_ARGUMENTS)
@asking_for_topics(attrgetter("context"))
class Warehouse(OfOneProcess):
    """A handle on a warehouse, from :meth:`create` or :meth:`open`.  May be shared by threads, not by processes."""

    def __init__(self, identity: WarehouseIdentity, transactions: TransactionLog, offsets: OffsetLog) -> None:
        self.context = transactions.context
        self.store = self.context.store
        self.identity = identity
        self.url = self.store.spec.url
        self.transactions = transactions
        self.offsets = offsets
        self.completer = Completer(self.transactions, self.topic_log, self.offsets)
        self._spark = SparkReading(self.url, self.transactions, self.topic_reader)
        self._topics: dict[str, TopicLog] = {}
        self._readers: dict[str, TopicReader] = {}
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Warehouse({self.url!r})"

    @cached_property
    def _clients(self) -> WarehouseClients:
        made: WarehouseClients = import_module("txntable.warehouse.warehouse_clients").WarehouseClients(self)
        return made

    # -- creating and opening ---------------------------------------------------------------

    @classmethod
    def create(
        cls,
        url: str,
        storage_options: Mapping[str, str] | None = None,
        *,
        exist_ok: bool = False,
        settings: WarehouseSettings | None = None,
        durability: str = "full",
    ) -> Warehouse:
        """Create a warehouse, or finish a creation that was interrupted.

        Parameters
        ----------
        url : str
            ``s3://bucket/prefix``, ``gs://…``, ``az://…``, or a folder.
        storage_options : Mapping[str, str], optional
            The options of the store's client, by their usual names; see ``infra/STORES.md``.
        exist_ok : bool
            Whether to open the warehouse if it already exists.
        settings : WarehouseSettings, optional
            Retentions and limits.
        durability : str
            Local folders: ``"full"`` survives a power cut; ``"page-cache"`` only the death of a
            process: a power cut may tear transactions.

        Raises
        ------
        WarehouseAlreadyExistsError
            A warehouse exists, or the folder is not empty: choose another location.
        DamagedDataError
            A warehouse is there whose ``_warehouse.json`` is gone: restore that.
        StoreUnsuitableError
            The store's put-if-absent does not work as promised.
        """
        if not isinstance(settings, WarehouseSettings | None):
            raise InvalidConfigError(
                "settings must be WarehouseSettings, whose values are milliseconds; make one", settings=shown(settings)
            )
        environment = SystemEnvironment()
        store = open_store(_spec(url, storage_options, durability))
        return create_on(store, environment, exist_ok=exist_ok, settings=settings or WarehouseSettings())

    @classmethod
    def open(
        cls,
        url: str,
        storage_options: Mapping[str, str] | None = None,
        *,
        durability: str = "full",
        recovering: bool = False,
    ) -> Warehouse:
        """Open a warehouse; parameters as for :meth:`create`.

        Parameters
        ----------
        recovering : bool
            To fence everyone after a restore (:class:`~txntable.admin.restoration.Restoration`): entries that
            old processes have put above the restored logs are skipped instead of refused.

        Raises
        ------
        WarehouseNotFoundError
            There is no warehouse at `url`.
        DamagedDataError
            What is stored of it contradicts the format, or a part of it is gone: the message says what to restore.
        UnsupportedFormatError
            The warehouse has a newer format: upgrade.
        """
        environment = SystemEnvironment()
        return open_on(open_store(_spec(url, storage_options, durability)), environment, recovering=recovering)

    # -- what belongs to it -----------------------------------------------------------------

    def topic_log(self, name: str) -> TopicLog:
        """Return the logs of a topic, one shared view for all clients of this handle."""
        with self._lock:
            if name not in self._topics:
                self._topics[name] = TopicLog(self.context, name)
            return self._topics[name]

    def settings(self) -> WarehouseSettings:
        """Return the warehouse's settings."""
        metadata = self.transactions.log.ensure_fresh().metadata
        if metadata is None:
            raise DamagedDataError("the warehouse has lost its transaction log", log=TRANSACTION_LOG_ROOT)
        return settings_from(metadata.configuration)

    def admin(self) -> Admin:
        """Return the admin client."""
        return self._clients.admin()

    def producer(  # noqa: PLR0913  Kafka's settings, by name
        self,
        transactional_id: str | Mapping[str, object] | None = None,
        *,
        transaction_timeout_ms: int = DEFAULT_TRANSACTION_TIMEOUT_MS,
        enable_idempotence: bool = True,
        linger_ms: int | None = None,
        batch_size: int = DEFAULT_BATCH_SIZE,
        max_request_size: int = DEFAULT_MAX_REQUEST_SIZE,
        partitioner: Partitioner = "default",
        partitioner_ignore_keys: bool = False,
        compression_type: str = "zstd",
        **others: object,
    ) -> Producer:
        """Return a new producer.

        Parameters
        ----------
        transactional_id : str or Mapping, optional
            For transactions; without it the producer is idempotent.  In its place, one of Kafka's configuration
            dictionaries: ``{"transactional.id": "etl", "compression.type": "zstd"}``, names with dots or underscores.
        transaction_timeout_ms : int
            Counted from the first enrolment of a transaction, by the store's time.
        enable_idempotence : bool
            ``False``: at least once.
        linger_ms : int, optional
            The maximum time in ms that a record is buffered before a thread of the producer flushes.  Without
            it, only flush, close and full batches send.  Not allowed with a transactional id.
        batch_size : int
            Bytes of buffered values of one partition at which they become a segment.  A segment is a file:
            Kafka's 16 KiB would make very small ones.
        max_request_size : int
            Maximum size of a record in bytes (the topic has its own limit, ``max.message.bytes``); see
            :mod:`txntable.producer.record_size`.
        partitioner : str or callable
            ``"default"``: by key as in Kafka, without a key to one partition after the other; ``"round_robin"``: each
            record to the next partition; or (topic, key bytes or None, partitions) -> partition, called for every
            record.  Only the default guarantees "same key, same partition".  DataFrames are always partitioned by
            key.
        partitioner_ignore_keys : bool
            Whether the default partitioner treats every record as one without a key.
        compression_type : str
            ``zstd``, ``lz4``, ``snappy``, ``gzip`` or ``none``; applies if the topic's ``compression.type`` is
            ``producer``.
        **others
            Settings of Kafka's that mean nothing here, as in its dictionaries: ``acks="all"`` is what every producer
            does, and what has no counterpart is refused with what to do instead.

        Raises
        ------
        InvalidConfigError
            A setting is out of bounds, or two settings contradict each other.  A setting of Kafka's that has no
            counterpart here: the message says what to do instead.
        """
        named = None if isinstance(transactional_id, Mapping) else transactional_id
        given = {**transactional_id, **others} if isinstance(transactional_id, Mapping) else others
        config = ProducerConfig(
            named,
            transaction_timeout_ms,
            enable_idempotence,
            self._clients.write_dataframes,
            linger_ms=linger_ms,
            batch_size=batch_size,
            max_request_size=max_request_size,
            partitioner=partitioner,
            partitioner_ignore_keys=partitioner_ignore_keys,
            compression_type=compression_type,
        )
        return self._clients.producer(config, given or None)

    def consumer(self, config: Mapping[str, object] | None = None, /, **settings: Unpack[ConsumerSettings]) -> Consumer:
        """Return a new consumer.

        Parameters
        ----------
        config : Mapping, optional
            One of Kafka's configuration dictionaries: ``{"group.id": "reports", "auto.offset.reset": "earliest"}``.
        **settings
            Kafka's, by name: ``group_id``, ``auto_offset_reset``, ``isolation_level``, ``enable_auto_commit``, …;
            :class:`~txntable.consumer.consumer_config.ConsumerConfig` lists them all with their defaults.

        Raises
        ------
        InvalidConfigError, InvalidSessionTimeoutError, UnsupportedAssignorError
            A setting is out of bounds, or has no counterpart here: the message says what to do instead.
        """
        return self._clients.consumer(config, settings)

    def coordinator(self, config: CoordinatorConfig | None = None) -> TransactionCoordinator:
        """Return a new coordinator job; it takes over the lease in its first round."""
        return self._clients.coordinator(config)

    def complete(self) -> int:
        """Abort timed-out transactions, complete and project decided ones; return how many transactions that were."""
        return self.completer.abort_timed_out() + self.completer.complete_all()

    def metrics(self) -> Metrics:
        """Return what the handle, its store and its clients have counted since it was opened: group -> name -> value.

        ``log-metrics`` has commits of all logs, conflicts (a slot was lost, and everything decided again), retries and
        commits without an answer; ``store-metrics`` calls by kind and bytes, of everything in this process that uses
        the same store; ``producer-metrics`` and ``consumer-…-metrics`` the sums of the clients' own
        (:meth:`Producer.metrics <txntable.producer.producer.Producer.metrics>`); ``transaction-metrics`` what was timed
        out here.  What never happened is not there.  Cheap: no request.  How far everything is behind says
        :meth:`Admin.list_lags <txntable.admin.admin.Admin.list_lags>`.
        """
        of_store = {} if self.store.counters is None else self.store.counters.totals()
        return grouped({**self.context.counters.totals(), **of_store})

    def verify(self, topics: Sequence[str] | None = None, *, progress: Progress | None = None) -> Verification:
        """Read all logs and every segment, and check every rule of the format that can be checked from outside.

        Finds entries that were lost or changed, logs that contradict each other, segments that were replaced or cannot
        be read, statistics that would make a filter miss records.  Segments that only older versions and deleted topics
        name are read as long as ``vacuum_retention_ms`` keeps them.  Costs as much as reading everything; writes
        nothing, and other processes may write meanwhile.

        Parameters
        ----------
        topics : sequence of str, optional
            Read the logs and files of these only, beside the warehouse's own two logs; default: all.
        progress : callable, optional
            Is told in words how far it is, often; default: nobody is.

        Returns
        -------
        Verification
            How much was read, and each damage with its remedy.

        Raises
        ------
        UnknownTopicOrPartitionError
            There is no such topic.
        StoreUnavailableError
            Call again; nothing is said of what was not read.
        StorePermissionError
            The warehouse's own two logs may not be read.  A topic that may not be read is told among the damages.
        """
        return self._clients.verify(topics, progress)

    # -- reading ----------------------------------------------------------------------------

    def topic_reader(self, name: str) -> TopicReader:
        """Return the reader of a topic, shared by all clients of this handle."""
        topic = self.topic_log(name)
        with self._lock:
            if name not in self._readers:
                self._readers[name] = TopicReader(topic, self.transactions, self.completer)
            return self._readers[name]

    def snapshot(self, as_of: int | dt.datetime | None = None) -> Snapshot:
        """Pin a consistent state of all topics at one decision position.

        Parameters
        ----------
        as_of : int or datetime, optional
            A position, or a time with a time zone; default: now.

        Raises
        ------
        OffsetOutOfRangeError
            `as_of` is in the future, or before the warehouse was created.
        """
        return Snapshot.pin(self.transactions, self.completer, self.topic_reader, as_of)

    def snapshot_of(self, topic: str, as_of: int | dt.datetime | None = None) -> Snapshot:
        """Pin a consistent state of one topic: what other topics are owed is not waited for.

        Parameters and errors as of :meth:`snapshot`.

        Parameters
        ----------
        topic : str
            What alone is read.
        """
        return Snapshot.pin(self.transactions, self.completer, self.topic_reader, as_of, topic)

    def read_arrow(  # noqa: PLR0913  what to read, by name
        self,
        topic: str,
        *,
        isolation_level: str | IsolationLevel = IsolationLevel.SNAPSHOT,
        as_of: int | dt.datetime | None = None,
        columns: Sequence[str] | None = None,
        filters: Filters | None = None,
        starting_offsets: Offsets | None = None,
        ending_offsets: Offsets | None = None,
    ) -> pa.RecordBatchReader:
        """Return a topic's records without Spark, partition by partition in offset order, read lazily.

        Large files are decoded ahead of who takes the batches, by as many threads as pyarrow has (``pa.cpu_count()``,
        which ``pa.set_cpu_count`` changes), 64 MiB ahead at most; with one thread nothing is.  Other parameters and
        errors as of :meth:`read`.

        Parameters
        ----------
        columns : sequence of str, optional
            The topic's, ``_partition``, ``_offset``, ``_timestamp``, ``_commit``; default: all.
        filters : Filters, optional
            As pyarrow writes them, ``[("delay", ">", 15), ("carrier", "in", ["UA"])]``: only records that pass all
            terms, or all of one list in a list of lists; a null passes none.  What cannot hold one is not read.

        Raises
        ------
        SchemaMismatchError
            There is no such column.
        InvalidRequestError
            A filter cannot be read, or its value is not exactly one of the column's type.
        """
        offsets = (starting_offsets, ending_offsets)
        level = level_at(isolation_level, as_of)
        if level is IsolationLevel.SNAPSHOT:
            snapshot = self.snapshot_of(topic, as_of)
            return records_of(self.topic_reader(topic), snapshot.view(topic), (columns, filters), offsets)
        reader = self.topic_reader(topic)
        reader.catch_up()
        return records_of(reader, reader.view(level), (columns, filters), offsets)

    # -- with Spark --------------------------------------------------------------------------

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

        The call pins what the DataFrame shows.  Spark skips whole files by the bounds given here, and by predicates
        on ``_partition``, ``_commit``, ``_timestamp`` and the topic's columns; a predicate on ``_offset`` skips no
        file: bound the offsets here.

        Parameters
        ----------
        spark : SparkSession
            A session with Delta; Spark Connect works too.
        topic : str
            The topic's name.
        isolation_level : str
            ``"snapshot"``: everything committed as of one position; ``"read_committed"``: everything committed below
            the last stable offset; ``"read_uncommitted"``: everything appended, with a null ``_commit``.
        as_of : int or datetime, optional
            For a snapshot: a decision position, or a time with a time zone.
        starting_offsets, ending_offsets : mapping or str, optional
            By partition: the first offset to read, and the offset to stop before; ``"earliest"`` and ``"latest"``
            are the ends of what can be read.  Default: everything.

        Raises
        ------
        InvalidRequestError
            The level is unknown, `as_of` is given with a level that has no position, or an offset is not valid.
        OffsetOutOfRangeError
            An offset, position or time is out of range.
        UnknownTopicOrPartitionError
            There is no such topic or partition.
        """
        level = level_at(isolation_level, as_of)
        if level is IsolationLevel.SNAPSHOT:
            snapshot = self.snapshot_of(topic, as_of)
            return snapshot.read(spark, topic, starting_offsets=starting_offsets, ending_offsets=ending_offsets)
        return self._spark.read(spark, topic, level, (starting_offsets, ending_offsets))

    def read_stream(self, spark: SparkSession, topic: str, options: Mapping[str, str] | None = None) -> DataFrame:
        """Return a topic's committed records as a stream, with the columns of :meth:`read`.

        The stream follows the public Delta table: records arrive in decision order, not in offset order, and a
        micro-batch may end in the middle of a transaction; each record arrives once.

        Parameters
        ----------
        spark : SparkSession
            A session with Delta.
        topic : str
            The topic's name.
        options : Mapping[str, str], optional
            Options of Delta streams: ``startingVersion`` (``"latest"``: only new records), ``maxFilesPerTrigger``, …

        Raises
        ------
        UnknownTopicOrPartitionError
            There is no such topic.
        InvalidRequestError
            Delta's streams have no such option, and would pass over it.
        """
        return self._spark.read_stream(spark, topic, options or {})

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

        They take the place of those that the last call with the same `prefix` has made.
        The latter has a row for each topic: ``topic``, ``version`` (of its public table), ``position``,
        ``published_position``, ``merged_through``; see :mod:`txntable.spark.scan.views`.

        Parameters
        ----------
        spark : SparkSession
            The session in which the views are registered.
        topics : sequence of str, optional
            Default: all that there were then.  For each of them Delta reads its log.
        as_of : int or datetime, optional
            As of which position or time; see :meth:`read`.
        prefix : str
            Prefix of the views' names; the rest is the topic's name.
        isolation_level : str
            The views' level; only snapshots are at one position.

        Returns
        -------
        Snapshot
            The snapshot that the views show.

        Raises
        ------
        InvalidRequestError, OffsetOutOfRangeError, UnknownTopicOrPartitionError
            As :meth:`read`; or topics' names differ only by case, which SQL ignores.
        """
        level = level_at(isolation_level, as_of)
        snapshot, admin = self.snapshot(as_of), self.admin()
        named = topics
        if named is None:
            named = [name for name, _ in topics_then(snapshot, admin.list_topics(deleted=as_of is not None))]
        check_view_names(named, [*named, *admin.topic_twins(named)])
        self._spark.register(spark, snapshot, named, level, prefix)
        return snapshot

    def batch_writer(
        self,
        transactional_id: str,
        write: Write,
        *,
        transaction_timeout_ms: int = DEFAULT_TRANSACTION_TIMEOUT_MS,
    ) -> BatchWriter:
        """Return a function for ``foreachBatch`` that writes each micro-batch in one transaction, exactly once.

        After a restart from the checkpoint, a committed batch is skipped; an exception aborts.  ``write`` may write to
        several topics.  Each ``transaction.write`` runs the batch's query again: persist the DataFrame if that is
        expensive, or if the query is not deterministic.

        Parameters
        ----------
        transactional_id : str
            The stream's id, one for each checkpoint.  A new checkpoint starts at batch 0 again, and is refused under
            an id that has committed later batches.
        write : callable
            (transaction, DataFrame) -> anything: writes the records of a micro-batch.  With Spark Connect it runs in
            another process: everything it refers to must be picklable.
        transaction_timeout_ms : int
            Counted from the first enrolment of a transaction, by the store's time, in ms.

        Raises
        ------
        InvalidConfigError
            A setting is out of bounds.

        Examples
        --------
        >>> def write(transaction, flights):
        ...     transaction.write("flights", flights)
        ...     transaction.write("delays", flights.where("delay > 0").select("carrier", "delay"))
        >>> stream.writeStream.foreachBatch(warehouse.batch_writer("flights", write)).start()  # doctest: +SKIP
        """
        # Created now and discarded, so that wrong settings are refused here and not by the first batch.
        self.producer(transactional_id, transaction_timeout_ms=transaction_timeout_ms)
        return self._clients.batch_writer(transactional_id, write, transaction_timeout_ms)


def _spec(url: str, storage_options: Mapping[str, str] | None, durability: str) -> StoreSpec:
    if storage_options is not None and not isinstance(storage_options, Mapping):
        raise InvalidRequestError("storage options must be a mapping of names to values", options=type(storage_options))
    return StoreSpec(url, dict(storage_options or {}), durability)


def open_warehouse(spec: StoreSpec) -> Warehouse:
    """Open the warehouse in a store, as its spec says; see :meth:`Warehouse.open`."""
    return open_on(open_store(spec), SystemEnvironment())


def create_on(
    store: ObjectStore, environment: Environment, *, exist_ok: bool, settings: WarehouseSettings
) -> Warehouse:
    """Create a warehouse on an open store; see :meth:`Warehouse.create`."""
    created = write_identity(store, environment)
    # Finishes a creation that was killed, in any case.
    warehouse = open_on(store, environment, settings)
    if not created and not exist_ok:
        raise WarehouseAlreadyExistsError(
            "a warehouse already exists here; open it with Warehouse.open, or create it with exist_ok=True",
            url=store.spec.url,
        )
    return warehouse


def open_on(
    store: ObjectStore,
    environment: Environment,
    settings: WarehouseSettings | None = None,
    *,
    recovering: bool = False,
) -> Warehouse:
    """Open a warehouse on an open store, and make what an interrupted creation left out.

    Raises
    ------
    WarehouseNotFoundError
        There is none.
    UnsupportedFormatError
        It has a newer format: upgrade.
    DamagedDataError
        Its identity cannot be read or is gone, or a log is gone although there are topics.
    MissingDependencyError
        What is installed beside this package is broken.
    """
    let_arrow_begin()
    clock = StoreClock(store, environment)
    context = LogContext(store, environment, clock, engine=_engine(), recovering=recovering)
    transactions, offsets = TransactionLog(context), OffsetLog(context)
    logs: tuple[DeltaLog[Any], ...] = (transactions.log, offsets.log)
    identity: WarehouseIdentity = refresh_together(*logs, beside=reading_identity(store))
    for log in logs:
        create_missing_log(log, identity, settings or WarehouseSettings())
    return Warehouse(identity, transactions, offsets)
