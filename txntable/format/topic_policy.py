"""What a topic's settings mean together: what becomes of its old records, and which settings cannot be kept.

The rules are those of PROTOCOL.md §3.2.

Owns the rules between settings, and between a topic's settings and its warehouse's.  What is unwise but can
be kept is not refused.  Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

from txntable.errors import InvalidConfigError
from txntable.format.topic import TopicSettings
from txntable.format.topic_config import config_value
from txntable.format.warehouse_settings import WarehouseSettings


def is_compacted(config: Mapping[str, str]) -> bool:
    """Return whether old records of a key go (``compact`` in ``cleanup.policy``).

    Parameters
    ----------
    config : Mapping[str, str]
        What was set (``TopicSettings.config``).
    """
    return _has_policy(config, "compact")


def is_retained(config: Mapping[str, str]) -> bool:
    """Return whether old segments go by age and size (``delete`` in ``cleanup.policy``).

    Parameters
    ----------
    config : Mapping[str, str]
        What was set (``TopicSettings.config``).
    """
    return _has_policy(config, "delete")


def _has_policy(config: Mapping[str, str], policy: str) -> bool:
    policies = config_value("cleanup.policy", config)
    return isinstance(policies, tuple) and policy in policies


def config_number(name: str, config: Mapping[str, str]) -> int:
    """Return what holds of an integer setting; see :func:`txntable.format.topic_config.config_value`."""
    return int(str(config_value(name, config)))


def required_key_column(settings: TopicSettings) -> str | None:
    """Return the column that no record of the topic may have null; ``None``: there is none.

    A compacted topic takes no record without a key, as Kafka.  Of several key columns any may be null: together
    they are a key all the same.
    """
    return settings.key[0] if len(settings.key) == 1 and is_compacted(settings.config) else None


def check_policy(topic: TopicSettings, warehouse: WarehouseSettings) -> None:
    """Refuse settings that cannot be kept together.

    Parameters
    ----------
    topic : TopicSettings
        As it is to be.
    warehouse : WarehouseSettings
        Of its warehouse.

    Raises
    ------
    InvalidConfigError
        Two of them contradict each other: the message says which, and why.
    """
    config = topic.config
    lowest, highest = (config_number(f"{bound}.compaction.lag.ms", config) for bound in ("min", "max"))
    if lowest > highest:
        raise InvalidConfigError(
            "the least compaction lag is above the greatest; lower it",
            topic=topic.name,
            min_compaction_lag_ms=lowest,
            max_compaction_lag_ms=highest,
        )
    if is_compacted(config):
        _check_compaction(topic, warehouse)
    if is_retained(config):
        _check_retention(topic, warehouse)


def _check_compaction(topic: TopicSettings, warehouse: WarehouseSettings) -> None:
    if not topic.key:
        raise InvalidConfigError(
            "cleanup.policy=compact keeps the latest record of each key, and the topic has no key columns; create it"
            " with some, or leave compact out",
            topic=topic.name,
            cleanup_policy=topic.config.get("cleanup.policy"),
        )
    lag_ms = config_number("max.compaction.lag.ms", topic.config)
    if lag_ms < warehouse.snapshot_retention_ms:
        raise InvalidConfigError(
            "what is younger than the warehouse's snapshot retention is never compacted, so that no lower greatest"
            " compaction lag can be kept; raise it, or lower snapshot_retention_ms of the warehouse",
            topic=topic.name,
            max_compaction_lag_ms=lag_ms,
            snapshot_retention_ms=warehouse.snapshot_retention_ms,
        )


def _check_retention(topic: TopicSettings, warehouse: WarehouseSettings) -> None:
    retention_ms = config_number("retention.ms", topic.config)
    if 0 <= retention_ms < warehouse.transaction_max_timeout_ms:
        raise InvalidConfigError(
            "a transaction may stay open for longer than its records would be retained, and commit what is gone;"
            " raise retention.ms, or leave delete out of cleanup.policy",
            topic=topic.name,
            retention_ms=retention_ms,
            transaction_max_timeout_ms=warehouse.transaction_max_timeout_ms,
        )
