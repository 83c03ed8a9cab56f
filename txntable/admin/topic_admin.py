"""Topics: creating, describing, changing and deleting them, in Kafka's words (PROTOCOL.md §3.2).

Owns no rule: every change is a decision of the layers below, followed by its projection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from txntable.admin.config_admin import changed
from txntable.admin.topic_description import PartitionDescription, TopicDescription, count_live
from txntable.admin.transaction_admin import listed
from txntable.coordinator.error_kinds import shown
from txntable.errors import (
    DamagedDataError,
    InvalidRequestError,
    InvalidTopicError,
    StorePermissionError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
    UnsupportedFormatError,
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
from txntable.partition.append import live_settings
from txntable.partition.offsets import decided_through, log_start
from txntable.partition.stable_offset import high_watermark, last_stable_offset
from txntable.topics.topic_creation import decide_creation, decide_deletion, differences
from txntable.topics.topic_evolution import decide_more_partitions, decide_new_columns
from txntable.topics.topic_log import TopicLog
from txntable.transactions.completion import Completer
from txntable.transactions.named_topics import require_unnamed
from txntable.upkeep.offset_expiration import forget_topic_part


class TopicAdmin:
    """The part of :class:`txntable.admin.admin.Admin` that is about topics.

    Parameters
    ----------
    completer : Completer
        Knows T and O: a topic that is deleted takes the offsets of groups along, and one that they name was there.
    topic_log : callable
        A topic's name -> its logs.
    settings : callable
        Returns the warehouse's settings.
    """

    def __init__(
        self, completer: Completer, topic_log: Callable[[str], TopicLog], settings: Callable[[], WarehouseSettings]
    ) -> None:
        self._transactions, self._offsets = completer.transactions, completer.offsets
        self._context = self._offsets.context
        self._topic_log, self._settings = topic_log, settings

    def wanted(
        self, name: str, partitions: int, schema: pa.Schema | None, key: tuple[str, ...], config: Mapping[str, object]
    ) -> TopicSettings:
        """Return the settings of a new topic, with a new id; refuse what a topic cannot be."""
        if schema is None:
            schema, key = KAFKA_SCHEMA, key or ("key",)
        schema = check_topic_schema(schema)
        check_key(schema, list(key))
        topic_id = self._context.environment.new_id()
        wanted = TopicSettings(check_new_topic_name(name), topic_id, partitions, schema, key, validate(config))
        check_policy(wanted, self._settings())
        return wanted

    def create(self, wanted: TopicSettings, *, exist_ok: bool, validate_only: bool) -> TopicSettings:
        """Create a topic, finish its creation, or only look; with `exist_ok` one with the same settings is fine."""
        name = wanted.name
        topic = self._topic_log(name)
        table_id = self._context.environment.new_id()
        if topic.segments.refresh().version is None:
            topic.require_unborn()
            require_unnamed(topic, self._transactions, self._offsets)
        others = self.twins([name])
        clock = self._context.clock
        # Who may not write may look.
        times = (clock.shown_ms() if validate_only else clock.now_ms(), self._settings().vacuum_retention_ms)

        def decide(table: TableState) -> Sequence[Action]:
            found = topic.segments.fold.settings
            if found is not None and found.topic_id == wanted.topic_id:
                return []
            if exist_ok and found is not None and not found.deleted and not differences(found, wanted):
                return []
            if others:
                raise InvalidTopicError(
                    "another topic's name differs from this one by case only, which SQL ignores; use another name",
                    topic=name,
                    existing=",".join(others),
                )
            return decide_creation(topic.segments.fold, table, wanted, table_id, times)

        if validate_only:
            with topic.segments.lock:
                decide(topic.segments.refresh())
            return wanted
        try:
            topic.commit_segments("CREATE TOPIC", decide)
        except TopicAlreadyExistsError:
            topic.catch_up()
            raise
        topic.catch_up()
        return live_settings(topic.segments.fold)

    def add_columns(self, topic: str, columns: pa.Schema | Sequence[pa.Field], inside: Sequence[str]) -> TopicSettings:
        """Add columns to a topic, or to a struct in it; those that are there already are left."""
        way = tuple(listed(inside, "inside"))
        if not all(isinstance(name, str) for name in way):
            raise InvalidRequestError("inside is a list of names", inside=shown(inside))
        log = self._topic_log(topic)
        return changed(log, "ADD COLUMNS", lambda table: decide_new_columns(log.segments.fold, table, columns, way))

    def create_partitions(
        self, new_totals: Mapping[str, int], *, validate_only: bool = False
    ) -> dict[str, TopicSettings]:
        """Let topics have more partitions; all are checked before the first is changed."""
        if not isinstance(new_totals, Mapping):
            raise InvalidRequestError("new totals must be a mapping of topics to numbers", new_totals=shown(new_totals))
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
        return changed(
            log, "CREATE PARTITIONS", lambda table: decide_more_partitions(log.segments.fold, table, partitions)
        )

    def delete(self, name: str) -> None:
        """Delete a topic, and with it the offsets that groups have there."""
        topic = self._topic_log(name)
        now_ms = self._context.clock.now_ms()

        deleted: list[str] = []

        def decide(table: TableState) -> Sequence[Action]:
            actions = decide_deletion(topic.segments.fold, table, now_ms, self._settings().vacuum_retention_ms)
            deleted[:] = [live_settings(topic.segments.fold).topic_id]
            return actions

        topic.commit_segments("DELETE TOPIC", decide)
        topic.catch_up()
        while forget_topic_part(self._offsets, name, deleted[0]).something:
            pass

    def names(self, *, deleted: bool = False) -> list[str]:
        """Return the names of all topics, sorted; `deleted`: also of those that were, and of what else looks so."""
        return [name for name in self._folders() if deleted or self._exists(name)]

    def twins(self, names: Sequence[str]) -> list[str]:
        """Return the topics whose names differ from one of these by case only."""
        folders = self._folders()
        wanted = [check_topic_name(name) for name in listed(names, "names")]
        return sorted({each for name in wanted for each in twins(name, folders) if self._exists(each)})

    def _folders(self) -> list[str]:
        return topic_names(self._context.store.folders(TOPICS_FOLDER))

    def _exists(self, name: str) -> bool:
        try:
            self._topic_log(name).found_settings()
        except UnknownTopicOrPartitionError:
            return False
        except (DamagedDataError, UnsupportedFormatError, StorePermissionError):
            # Something is there: whoever reads it is told what is wrong with it.
            return True
        return True

    def describe(self, names: Sequence[str] | None = None) -> list[TopicDescription]:
        """Return what the partition logs say of topics (default: of all)."""
        if names is not None:
            listed(names, "names: a list of topics")
        return [describe_topic(self._topic_log(name)) for name in (self.names() if names is None else names)]


def describe_topic(topic: TopicLog) -> TopicDescription:
    """Return what the partition logs say of a topic.

    Raises
    ------
    UnknownTopicOrPartitionError
        There is no such topic.
    """
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
