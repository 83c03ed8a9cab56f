"""Settings of topics: describing and altering them, in Kafka's words (PROTOCOL.md §3.2).

Owns no rule: what a setting may be is :mod:`txntable.format.topic_config`'s, and what settings mean together
:mod:`txntable.format.topic_policy`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from txntable.coordinator.error_kinds import shown
from txntable.errors import InvalidRequestError
from txntable.format.topic import TopicSettings
from txntable.format.topic_config import TOPIC_CONFIG, ConfigType
from txntable.format.warehouse_settings import WarehouseSettings
from txntable.log.actions import Action
from txntable.log.table_state import TableState
from txntable.topics.topic_evolution import decide_new_configs
from txntable.topics.topic_log import TopicLog


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


def alter_configs(
    log: TopicLog, changes: Mapping[str, object], settings: WarehouseSettings, *, validate_only: bool
) -> TopicSettings:
    """Change settings of a topic, all at once, where the warehouse's allow it."""
    if not isinstance(changes, Mapping):
        raise InvalidRequestError("changes must be a mapping of settings to values", changes=shown(changes))

    def decide(table: TableState) -> Sequence[Action]:
        return decide_new_configs(log.segments.fold, table, changes, settings)

    if validate_only:
        with log.segments.lock:
            now = log.settings()
            decide(log.segments.table)
        return now
    return changed(log, "ALTER CONFIGS", decide)


def changed(log: TopicLog, operation: str, decide: Callable[[TableState], Sequence[Action]]) -> TopicSettings:
    """Change a topic by one commit of its segment log; return its settings then."""
    log.commit_segments(operation, decide)
    log.catch_up()
    return log.settings()


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
