"""The admin client: topics and their settings, records, offsets, groups and transactions, in Kafka's words.

Owns no rule: every change is a decision of the layers below.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from txntable.admin.config_admin import ConfigAdmin
from txntable.admin.group_admin import GroupAdmin
from txntable.admin.offset_listing import ListedOffset, OffsetSpec, list_offsets
from txntable.admin.record_admin import RecordAdmin
from txntable.admin.segment_verification import SegmentVerification, verify_topic
from txntable.admin.topic_admin import TopicAdmin
from txntable.admin.transaction_abort import AbortedTransaction, AbortTarget, TransactionAborter
from txntable.admin.transaction_admin import TransactionAdmin
from txntable.admin.transaction_listing import (
    HangingTransaction,
    ProducerState,
    TransactionDescription,
    transaction_filter,
)
from txntable.admin.upkeep import Finding, UpkeepLimits
from txntable.admin.upkeep_check import UpkeepCheck
from txntable.admin.warehouse_admin import WarehouseAdmin
from txntable.coordinator.error_kinds import shown
from txntable.coordinator.transaction import TransactionMetadata
from txntable.coordinator.transaction_state import TransactionState
from txntable.errors import InvalidConfigError
from txntable.format.isolation import IsolationLevel
from txntable.format.records import TopicPartition
from txntable.format.warehouse_settings import WarehouseSettings
from txntable.producer.coordinator_client import CoordinatorClient
from txntable.runtime.one_process import OfOneProcess
from txntable.snapshot.topic_reader import TopicReader
from txntable.topics.topic_log import TopicLog
from txntable.transactions.completion import Completer


class Admin(OfOneProcess, TopicAdmin, ConfigAdmin, RecordAdmin, GroupAdmin, WarehouseAdmin):
    """Made by :meth:`txntable.Warehouse.admin`."""

    def __init__(
        self,
        completer: Completer,
        topic_reader: Callable[[str], TopicReader],
        settings: WarehouseSettings,
    ) -> None:
        def topic_log(name: str) -> TopicLog:
            return topic_reader(name).topic

        TopicAdmin.__init__(self, completer.offsets, topic_log, settings)
        ConfigAdmin.__init__(self, topic_log, settings)
        RecordAdmin.__init__(self, topic_log)
        GroupAdmin.__init__(self, completer, topic_log)
        WarehouseAdmin.__init__(self, completer, topic_log, settings)
        self._topic_reader = topic_reader
        self._shown = TransactionAdmin(completer.transactions, topic_log)
        client = CoordinatorClient(completer, topic_log, settings.transaction_max_timeout_ms)
        self._aborter = TransactionAborter(completer.transactions, completer, self._shown, client)

    # -- offsets ----------------------------------------------------------------------------

    def list_offsets(
        self,
        wanted: Mapping[TopicPartition, OffsetSpec | str | int],
        isolation_level: str | IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    ) -> dict[TopicPartition, ListedOffset | None]:
        """Return offsets of partitions; see :class:`txntable.admin.offset_listing.OffsetSpec`.

        A time is answered by a record's offset: unlike Kafka's, never by that of a marker or of an aborted record
        (under ``read_uncommitted`` an aborted record counts).

        Parameters
        ----------
        wanted : Mapping
            Partition -> ``"earliest"``, ``"latest"``, ``"max-timestamp"``, or a time, ms since 1970.
        isolation_level : str
            ``"read_uncommitted"``: latest is the high watermark; ``"read_committed"``: the last stable offset.

        Returns
        -------
        dict
            Partition -> offset, and for the last two the record's timestamp; ``None``: there is no such record.

        Raises
        ------
        UnknownTopicOrPartitionError
            A partition does not exist.
        InvalidRequestError
            A spec that there is not, or the level ``snapshot``.
        DamagedDataError
            A segment can not be read; the message names it.
        """
        return list_offsets(self._topic_reader, wanted, isolation_level)

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

    # -- upkeep -----------------------------------------------------------------------------

    def check_upkeep(self, limits: UpkeepLimits | None = None) -> list[Finding]:
        """Return what nobody has done for the warehouse in time: made for alarms, and cheap; writes nothing.

        Parameters
        ----------
        limits : UpkeepLimits, optional
            From when on something is late.

        Returns
        -------
        list of Finding
            Empty: all is well.  What can not be read is a finding, too.

        Raises
        ------
        StoreUnavailableError, StorePermissionError
            The topics can not be listed.
        """
        if not isinstance(limits, UpkeepLimits | None):
            raise InvalidConfigError("limits are UpkeepLimits", limits=shown(limits))
        return UpkeepCheck(self._completer, self._topic_log, self._settings, limits or UpkeepLimits()).run()

    def verify_segments(self, topics: Sequence[str] | None = None) -> dict[str, SegmentVerification]:
        """Read every segment that the logs name, whole, and compare it with its row: size, and digest of its bytes.

        So a file that was replaced by another valid one is found.  Costs what reading everything costs; writes nothing.

        Parameters
        ----------
        topics : sequence of str, optional
            Default: all.

        Returns
        -------
        dict of str to SegmentVerification
            By topic.  No findings: every file is the one that was written.

        Raises
        ------
        UnknownTopicOrPartitionError
            There is no such topic.
        DamagedDataError
            A log can not be read.
        StoreUnavailableError, StorePermissionError
            Call again; nothing is said of what was not read.
        """
        store = self._completer.transactions.context.store
        names = self.list_topics() if topics is None else topics
        return {name: verify_topic(store, self._topic_log(name)) for name in names}
