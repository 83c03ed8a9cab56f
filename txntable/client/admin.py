"""The admin client: topics and transactions, in Kafka's words.

Owns no rule: every change is a decision of the layers below.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import pyarrow as pa

from coordinator.transaction import TransactionMetadata
from coordinator.transaction_state import TransactionState
from txntable.client.coordinator_client import CoordinatorClient
from txntable.client.records import TopicPartition
from txntable.client.topic_description import PartitionDescription, TopicDescription, count_live
from txntable.client.transaction_abort import AbortedTransaction, AbortTarget, TransactionAborter
from txntable.client.transaction_admin import TransactionAdmin
from txntable.client.transaction_listing import (
    HangingTransaction,
    ProducerState,
    TransactionDescription,
    transaction_filter,
)
from txntable.completion import Completer
from txntable.errors import InvalidRequestError, TopicAlreadyExistsError, UnknownTopicOrPartitionError
from txntable.key import check_key
from txntable.layout import TOPICS_FOLDER, check_topic_name
from txntable.log.actions import Action
from txntable.log.delta_log import LogContext
from txntable.log.table_state import TableState
from txntable.partition.append import live_settings
from txntable.partition.offsets import decided_through, log_start
from txntable.partition.stable_offset import high_watermark, last_stable_offset
from txntable.schema import KAFKA_SCHEMA, check_topic_schema
from txntable.topic import TopicSettings
from txntable.topic_config import validate
from txntable.topic_creation import check_partitions, decide_creation, decide_deletion, differences
from txntable.topic_log import TopicLog, known
from txntable.transaction_log import TransactionLog
from txntable.warehouse_settings import WarehouseSettings


class Admin:
    """Made by :meth:`txntable.Warehouse.admin`."""

    def __init__(
        self,
        context: LogContext,
        transactions: TransactionLog,
        completer: Completer,
        topic_log: Callable[[str], TopicLog],
        settings: WarehouseSettings,
    ) -> None:
        self._context = context
        self._topic_log, self._settings = topic_log, settings
        self._shown = TransactionAdmin(transactions, topic_log)
        client = CoordinatorClient(transactions, completer, topic_log, settings.transaction_max_timeout_ms)
        self._aborter = TransactionAborter(transactions, completer, self._shown, client)

    # -- topics -----------------------------------------------------------------------------

    def create_topic(  # noqa: PLR0913  Kafka's settings of a topic, by name
        self,
        name: str,
        *,
        partitions: int = 1,
        schema: pa.Schema | None = None,
        key: Sequence[str] = (),
        config: Mapping[str, object] | None = None,
        exist_ok: bool = False,
    ) -> TopicSettings:
        """Create a topic; a creation that was interrupted is finished by the same call.

        Parameters
        ----------
        name : str
            Kafka's rule for names.
        partitions : int
            At least 1.
        schema : pyarrow.Schema, optional
            Default: Kafka's key, value and headers, keyed by ``key``.
        key : sequence of str
            Columns that choose the partition.
        config : Mapping, optional
            Kafka's names.
        exist_ok : bool
            Whether a topic with the same settings is fine.

        Raises
        ------
        TopicAlreadyExistsError
            It exists (with `exist_ok`: with other settings, which are named).
        InvalidTopicError, InvalidPartitionsError, InvalidConfigError, SchemaMismatchError, InvalidRequestError
            The argument named can not be used.
        """
        if isinstance(key, str):
            raise InvalidRequestError("key is a list of column names; put the name into one", key=repr(key))
        wanted = self._wanted(name, check_partitions(partitions), schema, tuple(key), config or {})
        topic = self._topic_log(name)
        table_id = self._context.environment.new_id()
        times = (self._context.clock.now_ms(), self._settings.vacuum_retention_ms)

        def decide(table: TableState) -> Sequence[Action]:
            found = topic.segments.fold.settings
            if found is not None and found.topic_id == wanted.topic_id:
                return []
            if exist_ok and found is not None and not found.deleted and not differences(found, wanted):
                return []
            return decide_creation(topic.segments.fold, table, wanted, table_id, times)

        try:
            known(topic.segments.commit("CREATE TOPIC", decide), name)
        except TopicAlreadyExistsError:
            topic.catch_up()
            raise
        topic.catch_up()
        return live_settings(topic.segments.fold)

    def _wanted(
        self, name: str, partitions: int, schema: pa.Schema | None, key: tuple[str, ...], config: Mapping[str, object]
    ) -> TopicSettings:
        if schema is None:
            schema, key = KAFKA_SCHEMA, key or ("key",)
        schema = check_topic_schema(schema)
        check_key(schema, list(key))
        topic_id = self._context.environment.new_id()
        return TopicSettings(check_topic_name(name), topic_id, partitions, schema, key, validate(config))

    def delete_topic(self, name: str) -> None:
        """Delete a topic: its records are gone for every reader of the newest version.

        Raises
        ------
        UnknownTopicOrPartitionError
            There is no such topic.
        """
        topic = self._topic_log(name)
        now_ms = self._context.clock.now_ms()

        def decide(table: TableState) -> Sequence[Action]:
            return decide_deletion(topic.segments.fold, table, now_ms, self._settings.vacuum_retention_ms)

        known(topic.segments.commit("DELETE TOPIC", decide), name)
        topic.catch_up()

    def list_topics(self) -> list[str]:
        """Return the names of all topics, sorted."""
        return [name for name in self._context.store.folders(TOPICS_FOLDER) if self._exists(name)]

    def _exists(self, name: str) -> bool:
        try:
            self._topic_log(name).settings()
        except UnknownTopicOrPartitionError:
            return False
        return True

    def describe_topics(self, names: Sequence[str] | None = None) -> list[TopicDescription]:
        """Return what the partition logs say of topics (default: of all).

        Raises
        ------
        UnknownTopicOrPartitionError
            One of them does not exist.
        InvalidRequestError
            `names` is a single name.
        """
        if isinstance(names, str):
            raise InvalidRequestError("names is a list of topics; put the name into one", names=repr(names))
        return [self._describe(self._topic_log(name)) for name in (self.list_topics() if names is None else names)]

    def _describe(self, topic: TopicLog) -> TopicDescription:
        with topic.segments.lock:
            settings, logs, table = topic.settings(), topic.segments.fold, topic.segments.table
            live = count_live(table)
            partitions = tuple(
                PartitionDescription(
                    partition,
                    log_start(table.numbers, settings.topic_id, partition),
                    last_stable_offset(logs, table, settings.topic_id, partition),
                    high_watermark(table, settings.topic_id, partition),
                    *live.get(partition, (0, 0, 0)),
                )
                for partition in range(settings.partitions)
            )
            return TopicDescription(
                settings,
                table.next_version - 1,
                decided_through(table.numbers, settings.topic_id),
                topic.public.refresh().version,
                partitions,
            )

    # -- transactions -----------------------------------------------------------------------

    def list_transactions(
        self,
        *,
        states: Collection[str | TransactionState] | None = None,
        producer_ids: Collection[int] | None = None,
        duration_ms: int | None = None,
        pattern: str | None = None,
    ) -> list[TransactionMetadata]:
        """Return the rows of transactional ids, sorted by id; every filter that is given must hold.

        Parameters
        ----------
        states : collection of str or TransactionState, optional
            In one of these; ``"COMPLETE_COMMIT"`` and Kafka's ``"CompleteCommit"`` are the same.
        producer_ids : collection of int, optional
            With one of these.
        duration_ms : int, optional
            With a transaction under way for longer, milliseconds of the store's time since its first enrolment.
            Unlike Kafka's, this leaves out the ids that have no transaction.
        pattern : str, optional
            A regular expression of Python's :mod:`re` that matches the whole id.

        Raises
        ------
        InvalidRequestError
            A filter is of another type or negative, or names a state that there is not: the message names those known.
        InvalidRegularExpressionError
            `pattern` is none.
        """
        return self._shown.listing(transaction_filter(states, producer_ids, duration_ms, pattern))

    def describe_transactions(self, ids: Sequence[str]) -> dict[str, TransactionDescription]:
        """Describe transactional ids and their transactions.

        Parameters
        ----------
        ids : sequence of str
            Transactional ids.

        Raises
        ------
        TransactionalIdNotFoundError
            One of them never was, or has expired.
        InvalidRequestError
            One of them is empty, or `ids` is no list.
        """
        return self._shown.describe(ids)

    def describe_producers(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, list[ProducerState]]:
        """Describe what partitions remember of their producers, sorted by producer id.

        Parameters
        ----------
        partitions : sequence of TopicPartition
            Where to look.

        Raises
        ------
        UnknownTopicOrPartitionError
            One of them does not exist.
        InvalidRequestError
            One of them is no :class:`TopicPartition`.
        """
        return self._shown.producers(partitions)

    def find_hanging_transactions(
        self, topic: str | None = None, partition: int | None = None, max_transaction_timeout_ms: int | None = None
    ) -> list[HangingTransaction]:
        """Find transactions that are open in a partition and that nothing in the transaction log will end.

        There are none unless something was damaged or restored from a backup.  What is decided and not complete
        does not hang: it waits for completion.  What is open does not hang: it waits for its producer or timeout.

        Parameters
        ----------
        topic : str, optional
            Default: all topics.
        partition : int, optional
            Of `topic`; default: all of them.
        max_transaction_timeout_ms : int, optional
            Only what has been open for longer, by the store's time; default: the warehouse's
            ``transaction.max.timeout.ms``.

        Returns
        -------
        list of HangingTransaction
            By topic, partition and offset; :meth:`abort_transaction` ends each.

        Raises
        ------
        UnknownTopicOrPartitionError
            `topic` or `partition` does not exist.
        InvalidRequestError
            A partition without a topic, or a number that is negative or none.
        """
        limit_ms = self._settings.transaction_max_timeout_ms
        limit_ms = limit_ms if max_transaction_timeout_ms is None else max_transaction_timeout_ms
        return self._shown.hanging(topic, partition, limit_ms)

    def abort_transaction(  # noqa: PLR0913  Kafka's two ways to name a transaction, and by its id
        self,
        transactional_id: str | None = None,
        *,
        topic: str | None = None,
        partition: int | None = None,
        start_offset: int | None = None,
        producer_id: int | None = None,
        producer_epoch: int | None = None,
        validate_only: bool = False,
    ) -> AbortedTransaction:
        """Abort an open transaction over its producer's head, prepared or not, and complete it.

        It is decided in the transaction log: the producer's later commit is refused (``INVALID_TXN_STATE``), its
        abort succeeds.  Kafka writes a marker in one partition only, and lets the commit succeed.  A transaction
        that hangs is ended by a marker in its topic, since the transaction log has nothing to decide.  A later
        transaction of the id is never touched when the transaction is named by its place.

        Parameters
        ----------
        transactional_id : str, optional
            Alone: what the id has open.
        topic, partition : str and int, optional
            With `start_offset`, or with `producer_id` and `producer_epoch`: what is open there.
        start_offset : int, optional
            Of the transaction's first record in the partition.
        producer_id, producer_epoch : int, optional
            They name the transaction.
        validate_only : bool
            Whether only to say what would be aborted.

        Raises
        ------
        TransactionalIdNotFoundError
            There is no such id.
        InvalidTxnStateError
            No such transaction is open: there is nothing to do.
        UnknownTopicOrPartitionError
            The topic or partition does not exist.
        InvalidRequestError
            The arguments name no transaction, or two.
        DamagedDataError
            The transaction log never gave the producer id or epoch: restore it from a backup.
        CommitStateUnknownError
            Call again; :class:`InvalidTxnStateError` then says that it has ended.
        """
        target = AbortTarget(transactional_id, topic, partition, start_offset, producer_id, producer_epoch)
        return self._aborter.abort(target, validate_only=validate_only)

    def fence_producers(self, ids: Sequence[str]) -> dict[str, tuple[int, int]]:
        """Take transactional ids from their producers: what is open is aborted and completed, the epoch rises.

        An id that does not exist is created, as Kafka does.  An id keeps its transaction timeout; Kafka would
        overwrite it with one of the call's own.

        Parameters
        ----------
        ids : sequence of str
            Transactional ids; fenced one after the other.

        Returns
        -------
        dict of str to tuple of int
            Transactional id -> its producer id and new epoch.

        Raises
        ------
        InvalidTxnStateError
            One of them is prepared: abort it first, or end it with its token.
        InvalidRequestError
            One of them is empty, or `ids` is no list.
        ConcurrentTransactionsError, CommitStateUnknownError
            Call again.
        """
        return self._aborter.fence(ids)
