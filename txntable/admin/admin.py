"""The admin client: topics and their settings, records, offsets, groups and transactions, in Kafka's words.

Owns no rule: every change is a decision of the layers below.  It is what users hold, and where each call is
documented; what a call does is its part's: topics, groups, transactions, the warehouse.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import pyarrow as pa

from txntable.admin.config_admin import ConfigEntry, alter_configs, config_entries
from txntable.admin.group_admin import GroupAdmin, Outcomes
from txntable.admin.group_description import GroupDescription, GroupListing
from txntable.admin.offset_listing import ListedOffset, OffsetSpec, list_offsets
from txntable.admin.record_admin import delete_before
from txntable.admin.segment_verification import SegmentVerification, verify_topic
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
from txntable.transactions.completion import Completer


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

        self._completer, self._topic_reader, self._topic_log = completer, topic_reader, topic_log
        warehouse = self._warehouse = WarehouseAdmin(completer, topic_log, settings)
        # What the client has altered itself, it goes by.
        self._topics = TopicAdmin(completer.offsets, topic_log, lambda: warehouse.settings)
        self._groups = GroupAdmin(completer, topic_log)
        self._shown = TransactionAdmin(completer.transactions, topic_log)
        client = CoordinatorClient(completer, topic_log, settings.transaction_max_timeout_ms)
        self._aborter = TransactionAborter(completer.transactions, completer, self._shown, client)

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
            Kafka's rule for names; it differs from those of all other topics by more than case, and is not reserved.
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
            The argument named cannot be used.
        """
        if isinstance(key, str):
            raise InvalidRequestError("key is a list of column names; put the name into one", key=shown(key))
        wanted = self._topics.wanted(name, check_partitions(partitions), schema, tuple(key), config or {})
        return self._topics.create(wanted, exist_ok=exist_ok)

    def add_columns(self, topic: str, columns: pa.Schema | Sequence[pa.Field]) -> TopicSettings:
        """Add columns to a topic: its old records have null there; the same call again changes nothing.

        Producers that know the topic from before go on without the columns.

        Parameters
        ----------
        topic : str
            The topic's name.
        columns : pyarrow.Schema or sequence of pyarrow.Field
            Nullable ones, with names that the topic does not have; they come last.

        Returns
        -------
        TopicSettings
            With the new columns.

        Raises
        ------
        UnknownTopicOrPartitionError
            There is no such topic.
        SchemaMismatchError
            A column is not nullable, is there with another type, or its name or type cannot be stored.
        InvalidRequestError
            A zone-less timestamp, in a topic that was created without any: create another topic.
        CommitStateUnknownError
            Call again.
        """
        return self._topics.add_columns(topic, columns)

    def create_partitions(
        self, new_totals: Mapping[str, int], *, validate_only: bool = False
    ) -> dict[str, TopicSettings]:
        """Let topics have more partitions; all are checked before the first is changed.

        Keys map to other partitions from then on; records stay where they are, so that a key's order spans two
        partitions.  A transaction in which keys were mapped before, and not appended, has to be aborted and made
        again.  Consumers read the new partitions from the beginning.

        Parameters
        ----------
        new_totals : Mapping of str to int
            Topic -> how many partitions it has then, in all; more than it has now.
        validate_only : bool
            Whether only to check; nothing is changed.

        Returns
        -------
        dict of str to TopicSettings
            As they are then; with `validate_only` as they are now.

        Raises
        ------
        UnknownTopicOrPartitionError
            There is no such topic.
        InvalidPartitionsError
            A topic has as many or more already, or cannot have that many.  After a call of unknown outcome,
            ``current_partitions`` tells whether it was done.
        InvalidRequestError
            `new_totals` is no mapping.
        CommitStateUnknownError, StoreUnavailableError
            Describe the topics, and call again for those that have not grown.
        """
        return self._topics.create_partitions(new_totals, validate_only=validate_only)

    def delete_topic(self, name: str) -> None:
        """Delete a topic: its records are gone for every reader of the newest version, and groups forget its offsets.

        Raises
        ------
        UnknownTopicOrPartitionError
            There is no such topic.
        """
        self._topics.delete(name)

    def list_topics(self) -> list[str]:
        """Return the names of all topics, sorted."""
        return self._topics.names()

    def topic_twins(self, names: Sequence[str]) -> list[str]:
        """Return the topics whose names differ from one of these by case only: none, unless two were made at once."""
        return self._topics.twins(names)

    def describe_topics(self, names: Sequence[str] | None = None) -> list[TopicDescription]:
        """Return what the partition logs say of topics (default: of all).

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
        """Change settings of a topic, all at once; the same call again changes nothing.

        Producers and consumers that have begun keep what they know of the topic; compaction and retention go by
        the new settings with their next round.

        Parameters
        ----------
        topic : str
            The topic's name.
        changes : Mapping
            By Kafka's names; ``None``: back to the default.  What is not named stays.
        validate_only : bool
            Whether only to check; nothing is changed.

        Returns
        -------
        TopicSettings
            As they are then; with `validate_only` as they are now.

        Raises
        ------
        UnknownTopicOrPartitionError
            There is no such topic.
        InvalidConfigError
            A name is unknown, a value not allowed, or the settings cannot be kept together: the message says why.
        InvalidRequestError
            `changes` is no mapping.
        CommitStateUnknownError, StoreUnavailableError
            Call again.
        """
        return alter_configs(self._topic_log(topic), changes, self._warehouse.settings, validate_only=validate_only)

    def describe_configs(self, topics: Sequence[str]) -> dict[str, dict[str, ConfigEntry]]:
        """Return what holds of every setting, whether it was set or not.

        Parameters
        ----------
        topics : sequence of str
            Their names.

        Returns
        -------
        dict
            Topic -> Kafka's name, sorted -> the setting.

        Raises
        ------
        UnknownTopicOrPartitionError
            One of them does not exist.
        InvalidRequestError
            `topics` is a single name.
        """
        return {topic: config_entries(self._topic_log(topic).settings()) for topic in listed(topics, "topics")}

    def alter_warehouse(self, changes: Mapping[str, int | None], *, validate_only: bool = False) -> WarehouseSettings:
        """Change settings of the warehouse, all at once; the same call again finishes what was interrupted.

        Jobs go by them from their next round on, clients from when they are made;
        :data:`txntable.admin.warehouse_admin.MEANINGS` says what each means for what is running.

        Parameters
        ----------
        changes : Mapping of str to int or None
            By the names of :class:`WarehouseSettings`, ms; ``None``: back to the default.  What is not named stays.
        validate_only : bool
            Whether only to check; nothing is changed.

        Returns
        -------
        WarehouseSettings
            As they are then; with `validate_only` as they would be.

        Raises
        ------
        InvalidConfigError
            A name is unknown, a value out of bounds, or a topic's settings contradict it: the message says which.
        InvalidRequestError
            `changes` is no mapping.
        CommitStateUnknownError, StoreUnavailableError
            Call again.
        """
        return self._warehouse.alter(changes, validate_only=validate_only)

    # -- records and offsets ----------------------------------------------------------------

    def delete_records(
        self, before: Mapping[TopicPartition, int | None], *, validate_only: bool = False
    ) -> dict[TopicPartition, int]:
        """Delete the records before an offset; all partitions are checked before the first is changed.

        Records of open and aborted transactions go as well, as in Kafka: such a transaction can commit, without them.
        A segment that holds later records too is written again without those before.

        Parameters
        ----------
        before : Mapping of TopicPartition to int or None
            The first offset that stays; ``None``: nothing that there is now.  At or below the log start: nothing
            happens.
        validate_only : bool
            Whether only to check; nothing is changed.

        Returns
        -------
        dict of TopicPartition to int
            The partition's low watermark: the lowest offset that it has then (with `validate_only`: would have).

        Raises
        ------
        UnknownTopicOrPartitionError
            There is no such topic or partition.
        PolicyViolationError
            A topic is only compacted: add ``delete`` to its ``cleanup.policy``.
        OffsetOutOfRangeError
            An offset is negative, or above the high watermark.
        InvalidRequestError
            `before` is no mapping of partitions to offsets.
        CommitStateUnknownError, StoreUnavailableError
            Call again.
        DamagedDataError
            A segment that an offset cuts cannot be read; no reader sees the records any more.
        """
        return delete_before(self._topic_log, before, validate_only=validate_only)

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
            A segment cannot be read; the message names it.
        """
        return list_offsets(self._topic_reader, wanted, isolation_level)

    # -- groups -----------------------------------------------------------------------------

    def list_consumer_groups(self, states: Collection[str | GroupState] | None = None) -> list[GroupListing]:
        """Return all groups, also those that only have offsets, by name.

        Parameters
        ----------
        states : collection of str or GroupState, optional
            Only in one of these; upper and lower case are the same.

        Raises
        ------
        InvalidRequestError
            There is no such state: the message names those known.
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
            One of them is no name, or `ids` is no list.
        """
        return self._groups.describe(ids)

    def delete_consumer_groups(self, ids: Sequence[str]) -> dict[str, TxnTableError | None]:
        """Delete groups with all their offsets, those of open transactions too.

        Parameters
        ----------
        ids : sequence of str
            Names of groups.

        Returns
        -------
        dict
            Group -> ``None``, :class:`NonEmptyGroupError`: it has members, or :class:`GroupIdNotFoundError`.

        Raises
        ------
        CommitStateUnknownError
            Call again.
        """
        return self._groups.delete(ids)

    def remove_members_from_consumer_group(
        self, group: str, members: Sequence[str] | None = None
    ) -> dict[str, TxnTableError | None]:
        """Let members leave a group, dead or alive; what they own goes to the others at once.

        Parameters
        ----------
        group : str
            Its name.
        members : sequence of str, optional
            Instance ids of static members, or member ids; default: all.

        Returns
        -------
        dict
            Instance id, or member id of one that has none -> ``None``, or :class:`UnknownMemberIdError`.

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
        """Return the offsets that a group has committed; what is decided by now counts.

        Parameters
        ----------
        group : str
            Its name; one that does not exist has no offsets.
        partitions : sequence of TopicPartition, optional
            Default: all that have one.
        require_stable : bool
            Whether an offset that an open transaction has sent is waited for, as consumers do.
        timeout_ms : int
            How long at most, ms; 0: not at all, what can be ended is ended.  A prepared transaction may stay for days.

        Returns
        -------
        dict
            Partition -> offset; ``None``: nothing is committed, or only in an earlier topic of the name.

        Raises
        ------
        UnstableOffsetCommitError
            With `require_stable`: a transaction with an offset there has not ended in time.  Call again later.
        InvalidRequestError
            `group` is no name, `partitions` no list, or `timeout_ms` no int from 0.
        """
        return self._groups.offsets(group, partitions, require_stable=require_stable, timeout_ms=timeout_ms)

    def alter_consumer_group_offsets(
        self, group: str, offsets: Mapping[TopicPartition, OffsetAndMetadata | int]
    ) -> Outcomes:
        """Commit offsets of a group that has no members, all at once; a group that does not exist is made.

        Nothing checks the offsets, as in Kafka: backwards, or beyond the end.

        Parameters
        ----------
        group : str
            Its name.
        offsets : Mapping of TopicPartition to OffsetAndMetadata or int
            What to commit.

        Returns
        -------
        dict
            Partition -> ``None``, or :class:`UnknownTopicOrPartitionError`: there is none, and the others are written.

        Raises
        ------
        UnknownMemberIdError
            The group has members: stop them first, or let them commit.
        InvalidRequestError, OffsetMetadataTooLargeError
            An argument cannot be used.
        CommitStateUnknownError
            Call again.
        """
        return self._groups.alter_offsets(group, offsets)

    def delete_consumer_group_offsets(self, group: str, partitions: Sequence[TopicPartition]) -> Outcomes:
        """Delete offsets of a group, those of open transactions too.

        Parameters
        ----------
        group : str
            Its name.
        partitions : sequence of TopicPartition
            Those without an offset are passed over.

        Returns
        -------
        dict
            Partition -> ``None``, or :class:`GroupSubscribedToTopicError`: a member subscribes to the topic.

        Raises
        ------
        GroupIdNotFoundError
            There is no such group.
        InvalidRequestError
            `group` is no name, or `partitions` no list of them.
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
        limit_ms = self._warehouse.settings.transaction_max_timeout_ms
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
            Empty: all is well.  What cannot be read is a finding, too.

        Raises
        ------
        StoreUnavailableError, StorePermissionError
            The topics cannot be listed.
        """
        if not isinstance(limits, UpkeepLimits | None):
            raise InvalidConfigError("limits are UpkeepLimits", limits=shown(limits))
        return UpkeepCheck(self._completer, self._topic_log, self._warehouse.settings, limits or UpkeepLimits()).run()

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
            A log cannot be read.
        StoreUnavailableError, StorePermissionError
            Call again; nothing is said of what was not read.
        """
        store = self._completer.transactions.context.store
        names = self._topics.names() if topics is None else topics
        return {name: verify_topic(store, self._topic_log(name)) for name in names}
