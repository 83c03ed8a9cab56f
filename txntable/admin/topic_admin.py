"""Topics: creating, describing, changing and deleting them, in Kafka's words (PROTOCOL.md §3.2).

Owns no rule: every change is a decision of the layers below, followed by its projection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from txntable.admin.topic_description import PartitionDescription, TopicDescription, count_live
from txntable.admin.transaction_admin import listed
from txntable.coordinator.error_kinds import shown
from txntable.errors import (
    InvalidRequestError,
    InvalidTopicError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)
from txntable.format.key import check_key
from txntable.format.layout import TOPICS_FOLDER, check_new_topic_name, check_topic_name, topic_names, twins
from txntable.format.schema import KAFKA_SCHEMA, check_topic_schema
from txntable.format.topic import TopicSettings
from txntable.format.topic_config import validate
from txntable.format.topic_policy import check_policy
from txntable.format.warehouse_settings import WarehouseSettings
from txntable.log.actions import Action
from txntable.log.table_state import TableState
from txntable.offsets.offset_log import OffsetLog
from txntable.partition.append import live_settings
from txntable.partition.offsets import decided_through, log_start
from txntable.partition.stable_offset import high_watermark, last_stable_offset
from txntable.topics.topic_creation import check_partitions, decide_creation, decide_deletion, differences
from txntable.topics.topic_evolution import decide_more_partitions, decide_new_columns
from txntable.topics.topic_log import TopicLog, known
from txntable.upkeep.offset_expiration import forget_topic_part


class TopicAdmin:
    """The part of :class:`txntable.admin.admin.Admin` that is about topics.

    Parameters
    ----------
    offsets : OffsetLog
        O: a topic that is deleted takes the offsets of groups along.
    topic_log : callable
        A topic's name -> its logs.
    settings : WarehouseSettings
        Of the warehouse.
    """

    def __init__(self, offsets: OffsetLog, topic_log: Callable[[str], TopicLog], settings: WarehouseSettings) -> None:
        self._offsets, self._context = offsets, offsets.context
        self._topic_log, self._settings = topic_log, settings

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
            The argument named can not be used.
        """
        if isinstance(key, str):
            raise InvalidRequestError("key is a list of column names; put the name into one", key=shown(key))
        wanted = self._wanted(name, check_partitions(partitions), schema, tuple(key), config or {})
        topic = self._topic_log(name)
        table_id = self._context.environment.new_id()
        others = self.topic_twins([name])
        times = (self._context.clock.now_ms(), self._settings.vacuum_retention_ms)

        def decide(table: TableState) -> Sequence[Action]:
            found = topic.segments.fold.settings
            if found is not None and found.topic_id == wanted.topic_id:
                return []
            if exist_ok and found is not None and not found.deleted and not differences(found, wanted):
                return []
            if others:
                raise InvalidTopicError(
                    "a topic's name differs from this by case only, which SQL does not see; take another name",
                    topic=name,
                    existing=",".join(others),
                )
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
        wanted = TopicSettings(check_new_topic_name(name), topic_id, partitions, schema, key, validate(config))
        check_policy(wanted, self._settings)
        return wanted

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
            A column is not nullable, is there with another type, or its name or type can not be stored.
        InvalidRequestError
            A zone-less timestamp, in a topic that was created without any: create another topic.
        CommitStateUnknownError
            Call again.
        """
        log = self._topic_log(topic)

        def decide(table: TableState) -> Sequence[Action]:
            return decide_new_columns(log.segments.fold, table, columns)

        known(log.segments.commit("ADD COLUMNS", decide), topic)
        log.catch_up()
        return log.settings()

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
            A topic has as many or more already, or can not have that many.  After a call of unknown outcome,
            ``current_partitions`` tells whether it was done.
        InvalidRequestError
            `new_totals` is no mapping.
        CommitStateUnknownError, StoreUnavailableError
            Describe the topics, and call again for those that have not grown.
        """
        if not isinstance(new_totals, Mapping):
            raise InvalidRequestError("new totals are a mapping of topics to numbers", new_totals=shown(new_totals))
        settings = {name: self._check_more_partitions(name, total) for name, total in new_totals.items()}
        return settings if validate_only else {name: self._grow(name, total) for name, total in new_totals.items()}

    def _check_more_partitions(self, topic: str, partitions: int) -> TopicSettings:
        log = self._topic_log(topic)
        with log.segments.lock:
            settings = log.settings()
            decide_more_partitions(log.segments.fold, log.segments.table, partitions)
        return settings

    def _grow(self, topic: str, partitions: int) -> TopicSettings:
        log = self._topic_log(topic)

        def decide(table: TableState) -> Sequence[Action]:
            return decide_more_partitions(log.segments.fold, table, partitions)

        known(log.segments.commit("CREATE PARTITIONS", decide), topic)
        log.catch_up()
        return log.settings()

    def delete_topic(self, name: str) -> None:
        """Delete a topic: its records are gone for every reader of the newest version, and groups forget its offsets.

        Raises
        ------
        UnknownTopicOrPartitionError
            There is no such topic.
        """
        topic = self._topic_log(name)
        now_ms = self._context.clock.now_ms()

        deleted: list[str] = []

        def decide(table: TableState) -> Sequence[Action]:
            deleted[:] = [live_settings(topic.segments.fold).topic_id]
            return decide_deletion(topic.segments.fold, table, now_ms, self._settings.vacuum_retention_ms)

        known(topic.segments.commit("DELETE TOPIC", decide), name)
        topic.catch_up()
        while forget_topic_part(self._offsets, name, deleted[0]).something:
            pass

    def list_topics(self) -> list[str]:
        """Return the names of all topics, sorted."""
        return [name for name in self._folders() if self._exists(name)]

    def topic_twins(self, names: Sequence[str]) -> list[str]:
        """Return the topics whose names differ from one of these by case only: none, unless two were made at once."""
        folders = self._folders()
        wanted = [check_topic_name(name) for name in listed(names, "names")]
        return sorted({each for name in wanted for each in twins(name, folders) if self._exists(each)})

    def _folders(self) -> list[str]:
        return topic_names(self._context.store.folders(TOPICS_FOLDER))

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
        if names is not None:
            listed(names, "names: a list of topics")
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
