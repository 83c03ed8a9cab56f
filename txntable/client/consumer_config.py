"""Settings of a consumer, with Kafka's names and Kafka's defaults, save for the isolation level: read_committed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from txntable.client.fetch_position import OffsetReset
from txntable.errors import InvalidConfigError
from txntable.isolation import IsolationLevel, isolation_level

DEFAULT_MAX_POLL_RECORDS = 500
DEFAULT_FETCH_MAX_BYTES = 50 * 1024 * 1024
DEFAULT_MAX_PARTITION_FETCH_BYTES = 1024 * 1024
_LARGEST_INT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class ConsumerConfig:
    """How a consumer behaves.

    Attributes
    ----------
    isolation_level : str or IsolationLevel
        ``"read_committed"`` or ``"read_uncommitted"``.
    auto_offset_reset : str or OffsetReset
        Where it begins, and where an offset can not be read: ``"latest"``, ``"earliest"``, or ``"none"``: an error.
    max_poll_records : int
        The most records that one poll returns.
    fetch_max_bytes : int
        Bytes that wait in memory, of all partitions; at least one partition is always read.
    max_partition_fetch_bytes : int
        Bytes of records that are decoded at once from one partition; at least one record always is.
    consumer_timeout_ms : int or None
        How long iteration waits for a record before it ends, ms; ``None``: for ever.
    prefetch : bool or None
        Whether the next records are read by a thread meanwhile; ``None``: where the store is remote, or otherwise
        gains from it.
    group_id : None
        Groups are not built yet.

    Raises
    ------
    InvalidConfigError
        A setting is out of its bounds, or not there yet.
    InvalidRequestError
        There is no such isolation level.
    """

    isolation_level: str | IsolationLevel = IsolationLevel.READ_COMMITTED
    auto_offset_reset: str | OffsetReset = OffsetReset.LATEST
    max_poll_records: int = DEFAULT_MAX_POLL_RECORDS
    fetch_max_bytes: int = DEFAULT_FETCH_MAX_BYTES
    max_partition_fetch_bytes: int = DEFAULT_MAX_PARTITION_FETCH_BYTES
    consumer_timeout_ms: int | None = None
    prefetch: bool | None = None
    group_id: str | None = None

    def __post_init__(self) -> None:
        if self.group_id is not None:
            raise InvalidConfigError(
                "consumer groups are not built yet; leave group_id out, and assign partitions or subscribe without it",
                setting="group_id",
                value=repr(self.group_id),
            )
        if self.level is IsolationLevel.SNAPSHOT:
            raise InvalidConfigError(
                "a snapshot has no position that moves; read it with Warehouse.snapshot(), or consume read_committed",
                setting="isolation_level",
                value=self.level.value,
            )
        resets = [reset.value for reset in OffsetReset]
        if not isinstance(self.auto_offset_reset, OffsetReset) and self.auto_offset_reset not in resets:
            _refuse("auto_offset_reset", self.auto_offset_reset, "|".join(resets))
        for setting in ("max_poll_records", "fetch_max_bytes", "max_partition_fetch_bytes"):
            _check_int(setting, getattr(self, setting), 1)
        if self.consumer_timeout_ms is not None:
            _check_int("consumer_timeout_ms", self.consumer_timeout_ms, 0)
        if self.prefetch is not None and not isinstance(self.prefetch, bool):
            _refuse("prefetch", self.prefetch, "True|False|None")

    @property
    def level(self) -> IsolationLevel:
        """The isolation level."""
        return isolation_level(self.isolation_level)

    @property
    def reset(self) -> OffsetReset:
        """The reset policy."""
        return OffsetReset(self.auto_offset_reset)


def _check_int(setting: str, value: object, lowest: int) -> None:
    if type(value) is not int or not lowest <= value <= _LARGEST_INT:
        _refuse(setting, value, f"int from {lowest} to {_LARGEST_INT}")


def _refuse(setting: str, value: object, allowed: str) -> NoReturn:
    raise InvalidConfigError(
        "a consumer's setting has a value that is not allowed; give one that is",
        setting=setting,
        value=repr(value),
        allowed=allowed,
    )
