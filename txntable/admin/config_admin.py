"""Settings of topics: describing and altering them, in Kafka's words (PROTOCOL.md §3.2).

Owns no rule: what a setting may be is :mod:`txntable.format.topic_config`'s, and what settings mean together
:mod:`txntable.format.topic_policy`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from txntable.admin.transaction_admin import listed
from txntable.coordinator.error_kinds import shown
from txntable.errors import InvalidRequestError
from txntable.format.topic import TopicSettings
from txntable.format.topic_config import TOPIC_CONFIG, ConfigType
from txntable.format.warehouse_settings import WarehouseSettings
from txntable.log.actions import Action
from txntable.log.table_state import TableState
from txntable.topics.topic_evolution import decide_new_configs
from txntable.topics.topic_log import TopicLog, known


class ConfigSource(Enum):
    """Where a setting's value comes from, in Kafka's words."""

    DYNAMIC_TOPIC_CONFIG = "DYNAMIC_TOPIC_CONFIG"
    DEFAULT_CONFIG = "DEFAULT_CONFIG"


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One setting of a topic.

    Attributes
    ----------
    name : str
        Kafka's.
    value : str
        What holds.
    source : ConfigSource
        Whether it was set for the topic.
    default : str
        What holds where it is not set.
    type : ConfigType
        How the value is read.
    documentation : str
        What it does, in a line.
    """

    name: str
    value: str
    source: ConfigSource
    default: str
    type: ConfigType
    documentation: str

    @property
    def is_default(self) -> bool:
        """Whether it was not set for the topic."""
        return self.source is ConfigSource.DEFAULT_CONFIG


class ConfigAdmin:
    """The part of :class:`txntable.admin.admin.Admin` that is about settings of topics.

    Parameters
    ----------
    topic_log : callable
        A topic's name -> its logs.
    settings : WarehouseSettings
        Of the warehouse.
    """

    def __init__(self, topic_log: Callable[[str], TopicLog], settings: WarehouseSettings) -> None:
        self._topic_log, self._settings = topic_log, settings

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
            A name is unknown, a value not allowed, or the settings can not be kept together: the message says why.
        InvalidRequestError
            `changes` is no mapping.
        CommitStateUnknownError, StoreUnavailableError
            Call again.
        """
        if not isinstance(changes, Mapping):
            raise InvalidRequestError("changes are a mapping of settings to values", changes=shown(changes))
        log = self._topic_log(topic)

        def decide(table: TableState) -> Sequence[Action]:
            return decide_new_configs(log.segments.fold, table, changes, self._settings)

        if validate_only:
            with log.segments.lock:
                settings = log.settings()
                decide(log.segments.table)
            return settings
        known(log.segments.commit("ALTER CONFIGS", decide), topic)
        log.catch_up()
        return log.settings()

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


def config_entries(settings: TopicSettings) -> dict[str, ConfigEntry]:
    """Return what holds of every setting of a topic, sorted by name."""
    return {
        name: ConfigEntry(
            name,
            settings.config.get(name, key.default),
            ConfigSource.DYNAMIC_TOPIC_CONFIG if name in settings.config else ConfigSource.DEFAULT_CONFIG,
            key.default,
            key.type,
            key.about,
        )
        for name, key in sorted(TOPIC_CONFIG.items())
    }
