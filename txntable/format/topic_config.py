"""A topic's settings by Kafka's names: what there is, what each may be, what holds by default (PROTOCOL.md §3.2).

Owns the table.  Values are kept as the text that the user gave, as Kafka keeps them.  Pure; must
not know what a setting does: which of them contradict each other is :mod:`txntable.format.topic_policy`'s.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import NoReturn

from txntable.errors import InvalidConfigError
from txntable.format.kafka_setting_names import TOPIC_SETTINGS_ELSEWHERE
from txntable.format.kafka_settings import together
from txntable.format.near_names import about_nearest

LARGEST_LONG = 2**63 - 1
LARGEST_INT = 2**31 - 1
DAY_MS = 86_400_000
# Python refuses to read very long ones, by an error of its own.
_INTEGER = re.compile(r"[+-]?[0-9]{1,1000}")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]{1,1000}\.?[0-9]{0,1000}|\.[0-9]{1,1000})(?:[eE][+-]?[0-9]{1,9})?")

ConfigValue = int | float | str | tuple[str, ...]


class ConfigType(Enum):
    """How the text of a setting is read, in Kafka's words."""

    INT = "int"
    LONG = "long"
    DOUBLE = "double"
    STRING = "string"
    LIST = "list"


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """One setting.

    Attributes
    ----------
    type : ConfigType
        How its text is read.
    default : str
        What holds where it is not set.
    lowest, highest : float or None
        Of numbers, inclusive.
    choices : tuple of str
        Of texts; a list may hold any of them, once.
    about : str
        One line for ``topics describe``.
    """

    type: ConfigType
    default: str
    about: str
    lowest: float | None = None
    highest: float | None = None
    choices: tuple[str, ...] = ()

    @property
    def allowed(self) -> str:
        """What a value may be, in words."""
        if self.choices:
            return ("any of " if self.type is ConfigType.LIST else "") + "|".join(self.choices)
        return f"{self.type.value} from {self.lowest} to {self.highest}"


def _long(default: int, about: str, lowest: int = 0) -> ConfigKey:
    return ConfigKey(ConfigType.LONG, str(default), about, lowest, LARGEST_LONG)


def _int(default: int, about: str, lowest: int = 0) -> ConfigKey:
    return ConfigKey(ConfigType.INT, str(default), about, lowest, LARGEST_INT)


TOPIC_CONFIG: Mapping[str, ConfigKey] = MappingProxyType(
    {
        "cleanup.policy": ConfigKey(
            ConfigType.LIST,
            "delete",
            "what happens to old records: deleted, or compacted to the latest of each key",
            choices=("compact", "delete"),
        ),
        "compression.type": ConfigKey(
            ConfigType.STRING,
            "producer",
            "codec of segments; producer means the producer's compression_type, by default zstd",
            choices=("producer", "zstd", "lz4", "snappy", "gzip", "uncompressed"),
        ),
        "delete.retention.ms": _long(DAY_MS, "how long tombstones stay after compaction"),
        "max.compaction.lag.ms": _long(
            LARGEST_LONG,
            "a record is compacted at the latest after this time; at least the warehouse's `snapshot_retention_ms`",
            lowest=1,
        ),
        "max.message.bytes": _int(1_048_588, "largest record of a single send"),
        "message.timestamp.type": ConfigKey(
            ConfigType.STRING,
            "CreateTime",
            "whether a record keeps the producer's time or gets that of its upload",
            choices=("CreateTime", "LogAppendTime"),
        ),
        "min.cleanable.dirty.ratio": ConfigKey(
            ConfigType.DOUBLE, "0.5", "share of uncompacted bytes at which a partition is compacted", 0, 1
        ),
        "min.compaction.lag.ms": _long(0, "a record is not compacted before this time"),
        "retention.bytes": _long(-1, "size of a partition beyond which old segments go; -1: no limit", lowest=-1),
        "retention.ms": _long(
            -1,
            "age beyond which old segments go; -1: no limit; at least the warehouse's `transaction_max_timeout_ms`",
            lowest=-1,
        ),
        "segment.bytes": _int(134_217_728, "size of a segment at which the next one is begun", lowest=1024 * 1024),
    }
)


def validate(config: Mapping[str, object]) -> dict[str, str]:
    """Return settings as they are stored, sorted by name, or refuse them.

    Parameters
    ----------
    config : Mapping
        By Kafka's names; numbers may be given as numbers.

    Raises
    ------
    InvalidConfigError
        Names are unknown or values not allowed: the message says of all of them what is.
    """
    stored, wrong = {}, []
    for name in sorted(config, key=str):
        try:
            stored[name] = _stored(name, config[name])
        except InvalidConfigError as error:
            wrong.append((str(name), error))
    if wrong:
        raise together(wrong)
    return stored


def _stored(name: str, value: object) -> str:
    text = ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
    # A boolean would be read as a text that happens to be refused, or as a number.
    if isinstance(value, bool) or value is None:
        _refuse(_key(name), name, repr(value))
    config_value(name, {name: text})
    return text


def altered(config: Mapping[str, str], changes: Mapping[str, object]) -> dict[str, str]:
    """Return settings as they are stored once some of them were changed, sorted by name.

    Parameters
    ----------
    config : Mapping[str, str]
        What was set.
    changes : Mapping
        By Kafka's names; ``None``: back to the default.

    Raises
    ------
    InvalidConfigError
        A name is unknown, also one that is not set, or a value not allowed: the message says what is.
    """
    kept = {name: text for name, text in config.items() if name not in changes}
    # Unknown names are refused also where they are to be reset.
    new = validate({name: value for name, value in changes.items() if value is not None or name not in TOPIC_CONFIG})
    return dict(sorted({**kept, **new}.items()))


def config_value(name: str, config: Mapping[str, str]) -> ConfigValue:
    """Return what holds for a topic: the setting's value, or its default.

    Parameters
    ----------
    name : str
        Kafka's name.
    config : Mapping[str, str]
        What was set (``TopicSettings.config``).

    Raises
    ------
    InvalidConfigError
        The name is unknown, or its text cannot be read.
    """
    key = _key(name)
    text = config.get(name, key.default)
    value = _READERS[key.type](text)
    if value is None or not _is_allowed(key, value):
        _refuse(key, name, text)
    return value


def _key(name: str) -> ConfigKey:
    key = TOPIC_CONFIG.get(name)
    if key is None:
        instead = TOPIC_SETTINGS_ELSEWHERE.get(str(name).lower().replace("_", "."))
        if instead is not None:
            raise InvalidConfigError(f"this setting of Kafka's has no counterpart; {instead}", name=name)
        meant = about_nearest(str(name).lower().replace("_", "."), TOPIC_CONFIG)
        raise InvalidConfigError(
            f"there is no such topic setting; {meant or 'use one of the known ones'}",
            name=name,
            known=None if meant else ",".join(TOPIC_CONFIG),
        )
    return key


def _refuse(key: ConfigKey, name: str, text: str) -> NoReturn:
    raise InvalidConfigError(
        "a setting has a value that is not allowed; give one that is", name=name, value=text, allowed=key.allowed
    )


def _is_allowed(key: ConfigKey, value: ConfigValue) -> bool:
    if isinstance(value, tuple):
        return bool(value) and len(set(value)) == len(value) and set(value) <= set(key.choices)
    if isinstance(value, str):
        return value in key.choices
    return (key.lowest is None or value >= key.lowest) and (key.highest is None or value <= key.highest)


def _read_integer(text: str) -> int | None:
    # Python's int() reads more than Kafka does: 1_000, other scripts' digits.
    return int(text) if _INTEGER.fullmatch(text) else None


def _read_double(text: str) -> float | None:
    # As is Python's float().
    value = float(text) if _DECIMAL.fullmatch(text) else math.inf
    return value if math.isfinite(value) else None


_READERS: Mapping[ConfigType, Callable[[str], ConfigValue | None]] = {
    ConfigType.INT: _read_integer,
    ConfigType.LONG: _read_integer,
    ConfigType.DOUBLE: _read_double,
    ConfigType.STRING: str,
    ConfigType.LIST: lambda text: tuple(part.strip(" ") for part in text.split(",")),
}
