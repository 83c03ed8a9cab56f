"""Settings of a consumer, with Kafka's names and defaults, except the isolation level: read_committed."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypedDict, cast

from txntable.consumer.fetch_position import AutoOffsetReset
from txntable.coordinator.assignors import DEFAULT_ASSIGNORS, assignors_of
from txntable.coordinator.error_kinds import shown
from txntable.coordinator.group_request import MAX_SESSION_TIMEOUT_MS, MIN_SESSION_TIMEOUT_MS
from txntable.coordinator.row_json import LONGEST_NAME_BYTES, check_name
from txntable.errors import (
    InvalidConfigError,
    InvalidRequestError,
    InvalidSessionTimeoutError,
    UnsupportedAssignorError,
)
from txntable.format.isolation import IsolationLevel, isolation_level
from txntable.format.kafka_settings import check_known, configured, given_twice
from txntable.groups.member_config import (
    DEFAULT_HEARTBEAT_INTERVAL_MS,
    DEFAULT_MAX_POLL_INTERVAL_MS,
    DEFAULT_SESSION_TIMEOUT_MS,
    MemberConfig,
)

DEFAULT_MAX_POLL_RECORDS = 500
DEFAULT_FETCH_MAX_BYTES = 50 * 1024 * 1024
DEFAULT_MAX_PARTITION_FETCH_BYTES = 1024 * 1024
DEFAULT_AUTO_COMMIT_INTERVAL_MS = 5_000
DEFAULT_API_TIMEOUT_MS = 60_000
DEFAULT_METADATA_MAX_AGE_MS = 300_000
_LARGEST_INT = 2**31 - 1
_COUNTS = ("max_poll_records", "fetch_max_bytes", "max_partition_fetch_bytes", "heartbeat_interval_ms")
_TIMES = ("max_poll_interval_ms", "metadata_max_age_ms")
# Nobody polls more often than every second at the least: who says 300 means seconds.
_LEAST = {"max_poll_interval_ms": 1_000}
_TIMES_FROM_0 = ("auto_commit_interval_ms", "default_api_timeout_ms")


class ConsumerSettings(TypedDict, total=False):
    """The settings of :class:`ConsumerConfig` by name, as :meth:`txntable.Warehouse.consumer` takes them."""

    isolation_level: str | IsolationLevel
    auto_offset_reset: str | AutoOffsetReset
    max_poll_records: int
    fetch_max_bytes: int
    max_partition_fetch_bytes: int
    consumer_timeout_ms: int | None
    prefetch: bool | None
    group_id: str | None
    group_instance_id: str | None
    client_id: str
    enable_auto_commit: bool
    auto_commit_interval_ms: int
    session_timeout_ms: int
    heartbeat_interval_ms: int
    max_poll_interval_ms: int
    partition_assignment_strategy: Sequence[str]
    default_api_timeout_ms: int
    metadata_max_age_ms: int
    background_heartbeat: bool


_LEVELS = tuple(level.value for level in IsolationLevel if level is not IsolationLevel.SNAPSHOT)

SETTINGS: Mapping[str, type] = {
    **dict.fromkeys(ConsumerSettings.__annotations__, object),
    **dict.fromkeys((*_COUNTS, *_TIMES, *_TIMES_FROM_0, "consumer_timeout_ms", "session_timeout_ms"), int),
    **dict.fromkeys(("enable_auto_commit", "prefetch", "background_heartbeat"), bool),
    "partition_assignment_strategy": tuple,
}
"""What users set, and what text of it is read as."""


def consumer_config(
    given: Mapping[str, object] | None, named: ConsumerSettings, read_dataframe: Callable[..., Any]
) -> ConsumerConfig:
    """Return the config of one of Kafka's configuration dictionaries with the settings that are given by name.

    Parameters
    ----------
    given : Mapping of str to object, optional
        See :func:`txntable.format.kafka_settings.configured`.
    named : ConsumerSettings
        What is given by name.
    read_dataframe : callable
        See :class:`ConsumerConfig`.

    Raises
    ------
    InvalidConfigError
        A setting is unknown, out of its bounds, or given in both ways.
    """
    check_known(named, SETTINGS)
    if isinstance(given, str):
        raise InvalidConfigError("topics are named afterwards: call subscribe or assign", found=shown(given))

    def made(found: Mapping[str, object]) -> ConsumerConfig:
        if twice := found.keys() & named.keys():
            raise given_twice(twice)
        settings = cast(ConsumerSettings, {**found, **named})
        session_ms = settings.get("session_timeout_ms")
        if type(session_ms) is int and session_ms > 0 and "heartbeat_interval_ms" not in settings:
            # Whoever sets the one alone wants a heartbeat that fits: Kafka's rule of thumb is a third.
            settings["heartbeat_interval_ms"] = max(1, min(DEFAULT_HEARTBEAT_INTERVAL_MS, session_ms // 3))
        return ConsumerConfig(**settings, read_dataframe=read_dataframe)

    return made({}) if given is None else configured(given, SETTINGS, made)


def no_dataframes(*_: Any) -> NoReturn:
    """Stand in for Spark where a consumer is created without it.

    Raises
    ------
    InvalidConfigError
        Always.
    """
    raise InvalidConfigError("this consumer was created without Spark; use read_arrow", setting="read_dataframe")


@dataclass(frozen=True, slots=True)
class ConsumerConfig:
    """How a consumer behaves.

    Attributes
    ----------
    isolation_level : str or IsolationLevel
        ``"read_committed"`` or ``"read_uncommitted"``.
    auto_offset_reset : str or AutoOffsetReset
        Where to start if there is no offset or it is out of range: ``"latest"``, ``"earliest"``, or ``"none"``, an
        error.
    max_poll_records : int
        The maximum number of records that one poll returns.
    fetch_max_bytes : int
        Bytes buffered in memory for all partitions; at least one partition is always read.
    max_partition_fetch_bytes : int
        Bytes of records decoded at once from one partition; at least one record always is.  Of its segments, at most
        four times as many bytes are prefetched.
    consumer_timeout_ms : int or None
        How long iteration waits for a record before it ends, in ms; ``None``: forever.
    prefetch : bool or None
        Whether threads prefetch the next records and segments; ``None``: if the store is remote, or otherwise
        benefits from it.
    group_id : str or None
        The consumer group: offsets can be committed, and members share the partitions that they subscribe to.
    group_instance_id : str or None
        Makes this a static member: it keeps its partitions across a restart within the session timeout.
    client_id : str
        Shown when the group is described.
    enable_auto_commit : bool
        Whether poll (at intervals) and close commit positions; never those of bounded reads.
    auto_commit_interval_ms : int
        The interval of auto-commits, in ms.
    session_timeout_ms : int
        Without a heartbeat for longer than this, a member may be expelled; 6 s to 30 min.
    heartbeat_interval_ms : int
        How often a member writes a heartbeat; less than half of the session timeout, preferably a third.
    max_poll_interval_ms : int
        Without a poll for longer than this, a member leaves; processing what :meth:`Consumer.read` returned is exempt.
        At least 1,000.
    partition_assignment_strategy : sequence of str
        ``range``, ``roundrobin``, ``sticky``, ``cooperative-sticky``: the supported ones, in order of preference.
    default_api_timeout_ms : int
        How long a call waits for open transactions with offsets of the group, in ms.
    metadata_max_age_ms : int
        How often a pattern is matched against the existing topics, in ms.
    background_heartbeat : bool
        Whether a thread sends heartbeats between polls; ``False``: only poll, read and commit do, so they must
        not be further apart than the session timeout.
    read_dataframe : callable
        (Spark session, view, starts, ends, () -> the records) -> DataFrame; passed in because this package does not
        know Spark.

    Raises
    ------
    InvalidConfigError
        A setting is out of bounds, or two settings contradict each other.
    """

    isolation_level: str | IsolationLevel = IsolationLevel.READ_COMMITTED
    auto_offset_reset: str | AutoOffsetReset = AutoOffsetReset.LATEST
    max_poll_records: int = DEFAULT_MAX_POLL_RECORDS
    fetch_max_bytes: int = DEFAULT_FETCH_MAX_BYTES
    max_partition_fetch_bytes: int = DEFAULT_MAX_PARTITION_FETCH_BYTES
    consumer_timeout_ms: int | None = None
    prefetch: bool | None = None
    group_id: str | None = None

    group_instance_id: str | None = None
    client_id: str = "txntable"
    enable_auto_commit: bool = True
    auto_commit_interval_ms: int = DEFAULT_AUTO_COMMIT_INTERVAL_MS
    session_timeout_ms: int = DEFAULT_SESSION_TIMEOUT_MS
    heartbeat_interval_ms: int = DEFAULT_HEARTBEAT_INTERVAL_MS
    max_poll_interval_ms: int = DEFAULT_MAX_POLL_INTERVAL_MS
    partition_assignment_strategy: Sequence[str] = tuple(assignor.value for assignor in DEFAULT_ASSIGNORS)
    default_api_timeout_ms: int = DEFAULT_API_TIMEOUT_MS
    metadata_max_age_ms: int = DEFAULT_METADATA_MAX_AGE_MS
    background_heartbeat: bool = True
    read_dataframe: Callable[..., Any] = no_dataframes

    def __post_init__(self) -> None:
        if self.isolation_level in (IsolationLevel.SNAPSHOT, IsolationLevel.SNAPSHOT.value):
            raise InvalidConfigError(
                "a consumer cannot read at the snapshot level; use Warehouse.snapshot(), or consume read_committed",
                setting="isolation_level",
                value=IsolationLevel.SNAPSHOT.value,
            )
        if not isinstance(self.isolation_level, IsolationLevel) and self.isolation_level not in _LEVELS:
            _refuse("isolation_level", self.isolation_level, "|".join(_LEVELS))
        resets = [reset.value for reset in AutoOffsetReset]
        if not isinstance(self.auto_offset_reset, AutoOffsetReset) and self.auto_offset_reset not in resets:
            _refuse("auto_offset_reset", self.auto_offset_reset, "|".join(resets))
        for setting in (*_COUNTS, *_TIMES):
            _check_int(setting, getattr(self, setting), _LEAST.get(setting, 1))
        for setting in _TIMES_FROM_0:
            _check_int(setting, getattr(self, setting), 0)
        if self.consumer_timeout_ms is not None:
            _check_int("consumer_timeout_ms", self.consumer_timeout_ms, 0)
        if self.prefetch is not None and not isinstance(self.prefetch, bool):
            _refuse("prefetch", self.prefetch, "True|False|None")
        for setting in ("enable_auto_commit", "background_heartbeat"):
            if not isinstance(getattr(self, setting), bool):
                _refuse(setting, getattr(self, setting), "True|False")
        self._check_group()

    def _check_group(self) -> None:
        if self.group_instance_id is not None and self.group_id is None:
            raise InvalidConfigError("a static member needs a group; set group_id as well", setting="group_instance_id")
        for setting in ("group_id", "group_instance_id"):
            if (name := getattr(self, setting)) is not None:
                _check_name(setting, name)
        if self.client_id != "":
            _check_name("client_id", self.client_id)
        _check_int("session_timeout_ms", self.session_timeout_ms, 1)
        if not MIN_SESSION_TIMEOUT_MS <= self.session_timeout_ms <= MAX_SESSION_TIMEOUT_MS:
            raise InvalidSessionTimeoutError(
                "the session timeout is out of bounds: set another",
                session_timeout_ms=self.session_timeout_ms,
                smallest_ms=MIN_SESSION_TIMEOUT_MS,
                largest_ms=MAX_SESSION_TIMEOUT_MS,
            )
        if 2 * self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise InvalidConfigError(
                "one lost heartbeat must not end a session; set heartbeat_interval_ms below half of the timeout",
                heartbeat_interval_ms=self.heartbeat_interval_ms,
                session_timeout_ms=self.session_timeout_ms,
            )
        strategy = self.partition_assignment_strategy
        if isinstance(strategy, str) or not isinstance(strategy, Sequence):
            raise UnsupportedAssignorError("assignors must be a list of names", assignors=shown(strategy))
        assignors_of(strategy)

    @property
    def member(self) -> MemberConfig | None:
        """How it is a member of its group; ``None``: it has none."""
        if self.group_id is None:
            return None
        return MemberConfig(
            self.group_id,
            self.group_instance_id,
            self.client_id,
            assignors_of(self.partition_assignment_strategy),
            self.session_timeout_ms,
            self.heartbeat_interval_ms,
            self.max_poll_interval_ms,
        )

    @property
    def level(self) -> IsolationLevel:
        """The isolation level."""
        return isolation_level(self.isolation_level)

    @property
    def reset(self) -> AutoOffsetReset:
        """The reset policy."""
        return AutoOffsetReset(self.auto_offset_reset)


def _check_int(setting: str, value: object, lowest: int) -> None:
    if type(value) is not int or not lowest <= value <= _LARGEST_INT:
        _refuse(setting, value, f"int from {lowest} to {_LARGEST_INT}")


def _check_name(setting: str, name: str) -> None:
    try:
        check_name(name, setting)
    except InvalidRequestError as error:
        raise InvalidConfigError(
            "a consumer setting is not a valid name; use a string that is neither empty nor too long",
            setting=setting,
            value=reprlib.repr(name),
            most_bytes=LONGEST_NAME_BYTES,
        ) from error


def _refuse(setting: str, value: object, allowed: str) -> NoReturn:
    raise InvalidConfigError(
        "a consumer setting has an invalid value; correct it",
        setting=setting,
        value=shown(value),
        allowed=allowed,
    )
