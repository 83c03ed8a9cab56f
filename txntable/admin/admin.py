"""The admin client: topics and their settings, records, offsets, groups and transactions, in Kafka's words.

Owns no rule: every change is a decision of the layers below.  It is what users hold, and where each call is
documented; what a call does is its part's: topics, groups, transactions, the warehouse.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from operator import attrgetter

import pyarrow as pa

from txntable.admin.blocking_transactions import BlockingTransaction, BlockingTransactions
from txntable.admin.config_admin import ConfigEntry, alter_configs, config_entries
from txntable.admin.group_admin import GroupAdmin, Outcomes
from txntable.admin.group_description import GroupDescription, GroupListing
from txntable.admin.lag_listing import WarehouseLags, warehouse_lags
from txntable.admin.offset_listing import ListedOffset, OffsetSpec, list_offsets
from txntable.admin.record_admin import delete_before
from txntable.admin.topic_admin import TopicAdmin
from txntable.admin.topic_description import TopicDescription
from txntable.admin.transaction_abort import AbortedTransaction, AbortTarget, TransactionAborter
from txntable.admin.transaction_admin import TransactionAdmin, listed
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
from txntable.coordinator.group_state import GroupState
from txntable.coordinator.transaction import TransactionMetadata
from txntable.coordinator.transaction_state import TransactionState
from txntable.errors import InvalidConfigError, InvalidRequestError, TxnTableError
from txntable.format.isolation import IsolationLevel
from txntable.format.kafka_call_names import answering_admin
from txntable.format.records import TopicPartition
from txntable.format.topic import TopicSettings
from txntable.format.warehouse_settings import WarehouseSettings
from txntable.groups.group_client import DEFAULT_API_TIMEOUT_MS
from txntable.offsets.group_commit import OffsetAndMetadata
from txntable.producer.coordinator_client import CoordinatorClient
from txntable.runtime.one_process import OfOneProcess
from txntable.snapshot.topic_reader import TopicReader
from txntable.topics.topic_creation import check_partitions
from txntable.topics.topic_log import TopicLog
from txntable.topics.topic_question import asking_for_topics
from txntable.transactions.completion import Completer


@answering_admin
@asking_for_topics(attrgetter("_context"))
class Admin(OfOneProcess):
    """Made by :meth:`txntable.Warehouse.admin`."""

    def __init__(
        self,
        completer: Completer,
        topic_reader: Callable[[str], TopicReader],
        settings: WarehouseSettings,
    ) -> None:
        def topic_log(name: str) -> TopicLog:
            return topic_reader(name).topic

        self._context = completer.transactions.context
        self._completer, self._topic_reader, self._topic_log = completer, topic_reader, topic_log
        warehouse = self._warehouse = WarehouseAdmin(completer, topic_log, settings)
        # The client uses settings that it has altered itself.
        self._topics = TopicAdmin(completer, topic_log, lambda: warehouse.settings)
        self._groups = GroupAdmin(completer, topic_log)
        self._shown = TransactionAdmin(completer, topic_log)
        self._blocking = BlockingTransactions(completer, topic_log, self._shown)
        client = CoordinatorClient(completer, topic_log, settings.transaction_max_timeout_ms)
        self._aborter = TransactionAborter(completer.transactions, completer, self._shown, client)

    # -- topics -----------------------------------------------------------------------------

    def create_topic(  # noqa: PLR0913  Kafka's settings of a topic, by name
        self,
        name: str,
        *,
        partitions: int = 1,
        schema: pa.Schema | None = None,
        key: Sequence[str] | None = (),
        config: Mapping[str, object] | None = None,
        exist_ok: bool = False,
        validate_only: bool = False,
    ) -> TopicSettings:
        """Create a topic; the same call finishes an interrupted creation.

        Parameters
        ----------
        name : str
            Follows Kafka's rules; must not be reserved, nor differ from another topic's name only by case.
        partitions : int
            At least 1.
        schema : pyarrow.Schema, optional
            Default: Kafka's key, value and headers, keyed by ``key``.
        key : sequence of str
            Columns that determine the partition; ``None``, as none at all: no key.
        config : Mapping, optional
            Settings by Kafka's names.
        exist_ok : bool
            Whether to accept an existing topic with the same settings.
        validate_only : bool
            Whether to check only, without creating anything, which needs no permission to write; the settings returned
            are those that it would have.

        Raises
        ------
        TopicAlreadyExistsError
            The topic exists (with `exist_ok`: with other settings, which the message names).
        InvalidTopicError, InvalidPartitionsError, InvalidConfigError, SchemaMismatchError, InvalidRequestError
            An argument is not valid; the message names it.
        """
        if isinstance(key, str):
            raise InvalidRequestError("key must be a list of column names; wrap the name in a list", key=shown(key))
        wanted = self._topics.wanted(name, check_partitions(partitions), schema, tuple(key or ()), config or {})
        return self._topics.create(wanted, exist_ok=exist_ok, validate_only=validate_only)

    def add_columns(
        self, topic: str, columns: pa.Schema | Sequence[pa.Field], *, inside: Sequence[str] = ()
    ) -> TopicSettings:
        """Add columns to a topic, or to a struct in it; old records have null in them.  Repeating it changes nothing.

        Producers that already know the topic continue without the columns.

        Parameters
        ----------
        topic : str
            The topic's name.
        columns : pyarrow.Schema or sequence of pyarrow.Field
            Nullable columns with new names; they are added at the end.
        inside : sequence of str
            The way to the struct that gets them: ``["address"]``, or, where it is in a list, ``["lines", "element"]``;
            not in a map.  Default: the topic's own columns.

        Returns
        -------
        TopicSettings
            With the new columns.

        Raises
        ------
        UnknownTopicOrPartitionError
            There is no such topic.
        SchemaMismatchError
            A column is not nullable, exists with another type, or its name or type cannot be stored; or there is no
            struct at the end of the way.
        InvalidRequestError
            A timestamp without a time zone, for a topic that was created without any: create another topic.
        CommitStateUnknownError
            Call again.
        """
        return self._topics.add_columns(topic, columns, inside)

    def create_partitions(
        self, new_totals: Mapping[str, int], *, validate_only: bool = False
    ) -> dict[str, TopicSettings]:
        """Increase the number of partitions of topics; all are checked before the first is changed.

        Keys map to other partitions from then on; records stay where they are, so a key's order spans two
        partitions.  A transaction in which keys were mapped before the change, and not appended, must be aborted and
        repeated.  Consumers read the new partitions from the beginning.

        Parameters
        ----------
        new_totals : Mapping of str to int
            Topic -> the new total number of partitions, higher than the current one.
        validate_only : bool
            Whether to check only, without changing anything.

        Returns
        -------
        dict of str to TopicSettings
            The new settings; with `validate_only`, the current ones.

        Raises
        ------
        UnknownTopicOrPartitionError
            There is no such topic.
        InvalidPartitionsError
            A topic already has as many or more, or cannot have that many.  After a call of unknown outcome,
            ``current_partitions`` tells whether it was done.
        PolicyViolationError
            A topic is compacted and has had records: create another one, and copy the latest rows.
        InvalidRequestError
            `new_totals` is not a mapping.
        CommitStateUnknownError, StoreUnavailableError
            Describe the topics, and call again for those that have not grown.
        """
        return self._topics.create_partitions(new_totals, validate_only=validate_only)

    def delete_topic(self, name: str) -> None:
        """Delete a topic: readers of the newest version no longer see its records, and groups lose its offsets.

        Raises
        ------
        UnknownTopicOrPartitionError
            There is no such topic.
        """
        self._topics.delete(name)

    def list_topics(self, *, deleted: bool = False) -> list[str]:
        """Return the names of all topics, sorted; also of one that is damaged, or not ours to read.

        Parameters
        ----------
        deleted : bool
            Also those that were deleted, as long as something of them is stored: a snapshot of the past may show them.
        """
        return self._topics.names(deleted=deleted)

    def topic_twins(self, names: Sequence[str]) -> list[str]:
        """Return topics whose names differ from one of these by case only; none, unless two were created at once."""
        return self._topics.twins(names)

    def describe_topics(self, names: Sequence[str] | None = None) -> list[TopicDescription]:
        """Describe topics (default: all) from their partition logs.

        Raises
        ------
        UnknownTopicOrPartitionError
            One of them does not exist.
        InvalidRequestError
            `names` is a single name.
        """
        return self._topics.describe(names)

    # -- settings ---------------------------------------------------------------------------

    def alter_configs(self, topic: str, changes: Mapping[str, object], *, validate_only: bool = False) -> TopicSettings:
        """Change settings of a topic atomically; repeating the call changes nothing.

        Running producers and consumers keep what they know of the topic; compaction and retention use the new
        settings from their next round on.

        Parameters
        ----------
        topic : str
            The topic's name.
        changes : Mapping
            Settings by Kafka's names; ``None`` resets one to its default.  Others stay as they are.
        validate_only : bool
            Whether to check only, without changing anything.

        Returns
        -------
        TopicSettings
            The new settings; with `validate_only`, the current ones.

        Raises
        ------
        UnknownTopicOrPartitionError
            There is no such topic.
        InvalidConfigError
            A name is unknown, a value is not allowed, or settings contradict each other: the message says why.
        InvalidRequestError
            `changes` is not a mapping.
        CommitStateUnknownError, StoreUnavailableError
            Call again.
        """
        return alter_configs(self._topic_log(topic), changes, self._warehouse.settings, validate_only=validate_only)

    def describe_configs(self, topics: Sequence[str]) -> dict[str, dict[str, ConfigEntry]]:
        """Return the effective value of every setting, whether it was set or not.

        Parameters
        ----------
        topics : sequence of str
            Their names.

        Returns
        -------
        dict
            Topic -> Kafka's name of the setting, sorted -> its entry.

        Raises
        ------
        UnknownTopicOrPartitionError
            One of them does not exist.
        InvalidRequestError
            `topics` is a single name.
        """
        return {topic: config_entries(self._topic_log(topic).settings()) for topic in listed(topics, "topics")}

    def alter_warehouse(self, changes: Mapping[str, int | None], *, validate_only: bool = False) -> WarehouseSettings:
        """Change settings of the warehouse atomically; the same call finishes an interrupted change.

        Jobs use them from their next round on, clients if they are created afterwards;
        :data:`txntable.admin.warehouse_admin.MEANINGS` says what each change means for running clients and jobs.

        Parameters
        ----------
        changes : Mapping of str to int or None
            By the names of :class:`WarehouseSettings`, in ms; ``None`` resets one to its default.  Others stay.
        validate_only : bool
            Whether to check only, without changing anything.

        Returns
        -------
        WarehouseSettings
            The new settings; with `validate_only`, what they would be.

        Raises
        ------
        InvalidConfigError
            A name is unknown, a value out of bounds, or a topic's settings contradict it: the message says which.
        InvalidRequestError
            `changes` is not a mapping.
        CommitStateUnknownError, StoreUnavailableError
            Call again.
        """
        return self._warehouse.alter(changes, validate_only=validate_only)

    # -- records and offsets ----------------------------------------------------------------

    def delete_records(
        self, before: Mapping[TopicPartition, int | None], *, validate_only: bool = False
    ) -> dict[TopicPartition, int]:
        """Delete the records before an offset; all partitions are checked before the first is changed.

        As in Kafka, records of open and aborted transactions are deleted too; an open transaction can still commit,
        without them.  A segment that also holds later records is rewritten without the deleted ones.

        Parameters
        ----------
        before : Mapping of TopicPartition to int or None
            The first offset to keep; ``None``: delete all current records.  At or below the log start, nothing
            happens.
        validate_only : bool
            Whether to check only, without changing anything.

        Returns
        -------
        dict of TopicPartition to int
            The partition's new low watermark, its lowest offset (with `validate_only`: what it would be).

        Raises
        ------
        UnknownTopicOrPartitionError
            There is no such topic or partition.
        PolicyViolationError
            A topic is compacted only: add ``delete`` to its ``cleanup.policy``.
        OffsetOutOfRangeError
            An offset is negative, or above the high watermark.
        InvalidRequestError
            `before` is not a mapping of partitions to offsets.
        CommitStateUnknownError, StoreUnavailableError
            Call again.
        DamagedDataError
            A segment that an offset cuts cannot be read; no reader sees the deleted records, though.
        """
        return delete_before(self._topic_log, before, validate_only=validate_only)

    def list_offsets(
        self,
        wanted: Mapping[TopicPartition, OffsetSpec | str | int],
        isolation_level: str | IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    ) -> dict[TopicPartition, ListedOffset | None]:
        """Return offsets of partitions; see :class:`txntable.admin.offset_listing.OffsetSpec`.

        A time is answered with a record's offset: unlike in Kafka, never with that of a marker or an aborted record
        (under ``read_uncommitted``, aborted records count).

        Parameters
        ----------
        wanted : Mapping
            Partition -> ``"earliest"``, ``"latest"``, ``"max-timestamp"`` (or Kafka's -2, -1, -3), or a time, ms since
            1970.
        isolation_level : str
            ``"read_uncommitted"``: latest is the high watermark; ``"read_committed"``: the last stable offset.

        Returns
        -------
        dict
            Partition -> offset, and for the last two the record's timestamp; ``None`` if there is no such record.

        Raises
        ------
        UnknownTopicOrPartitionError
            A partition does not exist.
        InvalidRequestError
            A spec is unknown, or the level is ``snapshot``.
        DamagedDataError
            A segment cannot be read; the message names it.
        """
        return list_offsets(self._topic_reader, wanted, isolation_level)

    # -- groups -----------------------------------------------------------------------------

    def list_consumer_groups(self, states: Collection[str | GroupState] | None = None) -> list[GroupListing]:
        """Return all groups, including those that only have offsets, sorted by name.

        Parameters
        ----------
        states : collection of str or GroupState, optional
            Only groups in one of these states; case does not matter.

        Raises
        ------
        InvalidRequestError
            A state is unknown: the message lists the known ones.
        """
        return self._groups.listing(states)

    def describe_consumer_groups(self, ids: Sequence[str]) -> dict[str, GroupDescription]:
        """Describe groups and their members.

        Parameters
        ----------
        ids : sequence of str
            Names of groups.

        Raises
        ------
        GroupIdNotFoundError
            One of them has neither members nor offsets.
        InvalidRequestError
            One of them is not a valid name, or `ids` is not a list.
        """
        return self._groups.describe(ids)

    def delete_consumer_groups(self, ids: Sequence[str]) -> dict[str, TxnTableError | None]:
        """Delete groups with all their offsets, including those of open transactions.

        Parameters
        ----------
        ids : sequence of str
            Names of groups.

        Returns
        -------
        dict
            Group -> ``None``, :class:`NonEmptyGroupError` (it has members), or :class:`GroupIdNotFoundError`.

        Raises
        ------
        CommitStateUnknownError
            Call again.
        """
        return self._groups.delete(ids)

    def remove_members_from_consumer_group(
        self, group: str, members: Sequence[str] | None = None
    ) -> dict[str, TxnTableError | None]:
        """Remove members from a group, dead or alive; their partitions are reassigned at once.

        Parameters
        ----------
        group : str
            Its name.
        members : sequence of str, optional
            Instance ids of static members, or member ids; default: all.

        Returns
        -------
        dict
            Instance id (or member id if it has none) -> ``None``, or :class:`UnknownMemberIdError`.

        Raises
        ------
        GroupIdNotFoundError
            There is no such group.
        CommitStateUnknownError
            Call again.
        """
        return self._groups.remove_members(group, members)

    def list_consumer_group_offsets(
        self,
        group: str,
        partitions: Sequence[TopicPartition] | None = None,
        *,
        require_stable: bool = False,
        timeout_ms: int = DEFAULT_API_TIMEOUT_MS,
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return a group's committed offsets, including those of transactions decided by now.

        Parameters
        ----------
        group : str
            Its name; one that does not exist has no offsets.
        partitions : sequence of TopicPartition, optional
            Default: all with a committed offset.
        require_stable : bool
            Whether to wait for offsets that an open transaction has sent, as consumers do.
        timeout_ms : int
            The maximum wait in ms; 0: no wait, but whatever can be ended is ended.  A prepared transaction may stay
            open for days.

        Returns
        -------
        dict
            Partition -> offset; ``None`` if none is committed, or only for an earlier topic of that name.

        Raises
        ------
        UnstableOffsetCommitError
            With `require_stable`: a transaction with a pending offset has not ended in time.  Call again later.
        InvalidRequestError
            `group` is not a valid name, `partitions` not a list, or `timeout_ms` not an int of at least 0.
        """
        return self._groups.offsets(group, partitions, require_stable=require_stable, timeout_ms=timeout_ms)

    def alter_consumer_group_offsets(
        self, group: str, offsets: Mapping[TopicPartition, OffsetAndMetadata | int]
    ) -> Outcomes:
        """Commit offsets of a group without members, atomically; a group that does not exist is created.

        As in Kafka, the offsets are not checked: they may go backwards, or beyond the end.

        Parameters
        ----------
        group : str
            Its name.
        offsets : Mapping of TopicPartition to OffsetAndMetadata or int
            What to commit.

        Returns
        -------
        dict
            Partition -> ``None``, or :class:`UnknownTopicOrPartitionError` (the others are written).

        Raises
        ------
        UnknownMemberIdError
            The group has members: stop them first, or have them commit.
        InvalidRequestError, OffsetMetadataTooLargeError
            An argument is not valid.
        CommitStateUnknownError
            Call again.
        """
        return self._groups.alter_offsets(group, offsets)

    def delete_consumer_group_offsets(self, group: str, partitions: Sequence[TopicPartition]) -> Outcomes:
        """Delete offsets of a group, including those of open transactions.

        Parameters
        ----------
        group : str
            Its name.
        partitions : sequence of TopicPartition
            Those without an offset are ignored.

        Returns
        -------
        dict
            Partition -> ``None``, or :class:`GroupSubscribedToTopicError` (a member subscribes to the topic).

        Raises
        ------
        GroupIdNotFoundError
            There is no such group.
        InvalidRequestError
            `group` is not a valid name, or `partitions` not a list of partitions.
        CommitStateUnknownError
            Call again.
        """
        return self._groups.delete_offsets(group, partitions)

    # -- transactions -----------------------------------------------------------------------

    def list_transactions(
        self,
        *,
        states: Collection[str | TransactionState] | None = None,
        producer_ids: Collection[int] | None = None,
        duration_ms: int | None = None,
        pattern: str | None = None,
    ) -> list[TransactionMetadata]:
        """Return the rows of transactional ids, sorted by id; all given filters must match.

        Parameters
        ----------
        states : collection of str or TransactionState, optional
            Only ids in one of these; ``"COMPLETE_COMMIT"`` and Kafka's ``"CompleteCommit"`` are the same.
        producer_ids : collection of int, optional
            Only ids with one of these.
        duration_ms : int, optional
            Only ids whose transaction has been open for longer, in ms of the store's time since its first
            enrolment.  Unlike in Kafka, this leaves out ids without a transaction.
        pattern : str, optional
            A regular expression of Python's :mod:`re` that matches the whole id.

        Raises
        ------
        InvalidRequestError
            A filter has the wrong type, is negative, or names an unknown state: the message lists the known ones.
        InvalidRegularExpressionError
            `pattern` is not a regular expression.
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
            One of them never existed, or has expired.
        InvalidRequestError
            One of them is empty, or `ids` is not a list.
        """
        return self._shown.describe(ids)

    def describe_producers(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, list[ProducerState]]:
        """Describe the producers that partitions remember, sorted by producer id.

        Parameters
        ----------
        partitions : sequence of TopicPartition
            The partitions.

        Raises
        ------
        UnknownTopicOrPartitionError
            One of them does not exist.
        InvalidRequestError
            One of them is not a :class:`TopicPartition`.
        """
        return self._shown.producers(partitions)

    def find_hanging_transactions(
        self, topic: str | None = None, partition: int | None = None, max_transaction_timeout_ms: int | None = None
    ) -> list[HangingTransaction]:
        """Find transactions that are open in a partition and that the transaction log will never end.

        There are none unless something was damaged or restored from a backup.  A decided, incomplete transaction is
        not hanging: it waits for completion.  Nor is an open one: it waits for its producer or its timeout.

        Parameters
        ----------
        topic : str, optional
            Default: all topics.
        partition : int, optional
            A partition of `topic`; default: all of them.
        max_transaction_timeout_ms : int, optional
            Only those that have been open for longer, by the store's time; default: the warehouse's
            ``transaction_max_timeout_ms``.

        Returns
        -------
        list of HangingTransaction
            Sorted by topic, partition and offset; :meth:`abort_transaction` ends each.

        Raises
        ------
        UnknownTopicOrPartitionError
            `topic` or `partition` does not exist.
        InvalidRequestError
            A partition is given without a topic, or a number is negative or not a number.
        """
        limit_ms = self._warehouse.settings.transaction_max_timeout_ms
        limit_ms = limit_ms if max_transaction_timeout_ms is None else max_transaction_timeout_ms
        return self._shown.hanging(topic, partition, limit_ms)

    def find_blocking_transactions(self, topics: Sequence[str] | None = None) -> list[BlockingTransaction]:
        """Find the transactions that hold back a last stable offset: ``read_committed`` readers stop before them.

        And those with pending offsets of groups: whoever begins to read for such a group waits for their end.

        Most end by themselves: with their producer's commit, or once their timeout has passed.  A prepared one waits
        for its token, and a hanging one for :meth:`abort_transaction`.

        Parameters
        ----------
        topics : sequence of str, optional
            Default: all.

        Returns
        -------
        list of BlockingTransaction
            The oldest first; with the partitions, the committed records that wait behind it, the groups that have
            read all that is before it, and those that wait for their offsets.

        Raises
        ------
        UnknownTopicOrPartitionError
            One of `topics` does not exist.
        InvalidRequestError
            `topics` is a single name.
        """
        return self._blocking.find(self._checked_names(topics))

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
        """Abort an open transaction of a producer, prepared or not, and complete it.

        The abort is decided in the transaction log: a later commit of the producer is refused
        (``INVALID_TXN_STATE``), an abort succeeds.  (Kafka writes a marker in one partition only, and lets the commit
        succeed.)  A hanging transaction is ended by a marker in its topic, since the transaction log has nothing to
        decide.  If the transaction is named by topic and partition, a later transaction of the id is never touched.

        Parameters
        ----------
        transactional_id : str, optional
            Given alone: the open transaction of this id.
        topic, partition : str and int, optional
            With `start_offset`, or with `producer_id` and `producer_epoch`: the transaction that is open there.
        start_offset : int, optional
            Offset of the transaction's first record in the partition.
        producer_id, producer_epoch : int, optional
            They identify the transaction.
        validate_only : bool
            Whether to return only what would be aborted.

        Raises
        ------
        TransactionalIdNotFoundError
            There is no such id.
        InvalidTxnStateError
            No such transaction is open: there is nothing to do.
        UnknownTopicOrPartitionError
            The topic or partition does not exist.
        InvalidRequestError
            The arguments identify no transaction, or more than one.
        DamagedDataError
            The transaction log never gave out the producer id or epoch: restore it from a backup.
        CommitStateUnknownError
            Call again; :class:`InvalidTxnStateError` then says that it has ended.
        """
        target = AbortTarget(transactional_id, topic, partition, start_offset, producer_id, producer_epoch)
        return self._aborter.abort(target, validate_only=validate_only)

    def fence_producers(self, ids: Sequence[str]) -> dict[str, tuple[int, int]]:
        """Fence the producers of transactional ids: abort and complete what is open, and raise the epoch.

        As in Kafka, an id that does not exist is created.  An id keeps its transaction timeout; Kafka would
        overwrite it with the call's own.

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
            One of them is empty, or `ids` is not a list.
        ConcurrentTransactionsError, CommitStateUnknownError
            Call again.
        """
        return self._aborter.fence(ids)

    # -- upkeep -----------------------------------------------------------------------------

    def list_lags(self, topics: Sequence[str] | None = None) -> WarehouseLags:
        """Return how far readers, public tables and groups are behind: what metrics and ``txntable watch`` show.

        Parameters
        ----------
        topics : sequence of str, optional
            Default: all.

        Raises
        ------
        UnknownTopicOrPartitionError
            One of `topics` does not exist.
        InvalidRequestError
            `topics` is a single name.
        """
        return warehouse_lags(self._checked_names(topics), self._topic_log, self._completer.offsets)

    def _checked_names(self, topics: Sequence[str] | None) -> list[str]:
        """Return the names of topics that exist, each once."""
        if topics is None:
            return self._topics.names()
        for topic in listed(topics, "topics"):
            self._topic_log(topic).settings()
        return list(dict.fromkeys(topics))

    def check_upkeep(self, limits: UpkeepLimits | None = None) -> list[Finding]:
        """Return which maintenance of the warehouse is overdue; made for alarms, cheap, and read-only.

        Parameters
        ----------
        limits : UpkeepLimits, optional
            When something counts as overdue.

        Returns
        -------
        list of Finding
            Empty if nothing is overdue.  Unreadable logs are findings, too.

        Raises
        ------
        StoreUnavailableError, StorePermissionError
            The topics cannot be listed.
        """
        if not isinstance(limits, UpkeepLimits | None):
            raise InvalidConfigError("limits must be UpkeepLimits", limits=shown(limits))
        return UpkeepCheck(self._completer, self._topic_log, self._warehouse.settings, limits or UpkeepLimits()).run()
