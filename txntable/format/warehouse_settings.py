"""A warehouse's settings: retentions and limits, kept in the transaction log's metadata (PROTOCOL.md §3.1).

Owns their names on storage.  Pure.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace

from txntable.coordinator.error_kinds import shown
from txntable.coordinator.row_json import LARGEST_NUMBER
from txntable.errors import DamagedDataError, InvalidConfigError, UnsupportedFormatError
from txntable.format.near_names import about_nearest
from txntable.format.partition_values import whole_number

PREFIX = "txntable.warehouse."
_NOT_SETTINGS = {f"{PREFIX}id"}
_DAY_MS = 86_400_000
_MINUTE_MS = 60_000
_NUMBER = re.compile(r"[0-9]{1,19}")


@dataclass(frozen=True, slots=True)
class WarehouseSettings:
    """Settings that hold for the whole warehouse.

    Attributes
    ----------
    vacuum_retention_ms : int
        How long removed files and old versions stay readable; at least a day.
    transaction_max_timeout_ms : int
        The longest transaction timeout that a producer may ask for.
    transactional_id_expiration_ms : int
        How long a transactional id stays that no one uses; at least `transaction_max_timeout_ms`.
    producer_id_expiration_ms : int
        How long a partition remembers an idle producer; at least `transaction_max_timeout_ms`.
    batch_retention_ms : int
        How long a committed batch name is refused; at least a day.
    offsets_retention_ms : int
        How long the offsets of a group without members stay, and those of topics that no member subscribes to.
    snapshot_retention_ms : int
        How long each decision can be told from the next, so that a snapshot as of it can be read: nothing younger
        is merged.  At least a minute, since a snapshot is read one topic after the other; at most
        `vacuum_retention_ms`, which keeps the files.

    Raises
    ------
    InvalidConfigError
        A value is out of bounds.
    """

    vacuum_retention_ms: int = 30 * _DAY_MS
    transaction_max_timeout_ms: int = 15 * 60_000
    transactional_id_expiration_ms: int = 7 * _DAY_MS
    producer_id_expiration_ms: int = _DAY_MS
    batch_retention_ms: int = 400 * _DAY_MS
    offsets_retention_ms: int = 7 * _DAY_MS
    snapshot_retention_ms: int = 60 * _MINUTE_MS

    def __post_init__(self) -> None:
        for setting in fields(self):
            value = getattr(self, setting.name)
            if type(value) is not int or value > LARGEST_NUMBER:
                raise InvalidConfigError(
                    f"{setting.name} is an integer of milliseconds, which has 64 bits", found=shown(value)
                )
        if self.transaction_max_timeout_ms < 1:
            raise InvalidConfigError(
                "transaction_max_timeout_ms is at least 1", transaction_max_timeout_ms=self.transaction_max_timeout_ms
            )
        for name, value in (
            ("transactional_id_expiration_ms", self.transactional_id_expiration_ms),
            ("producer_id_expiration_ms", self.producer_id_expiration_ms),
        ):
            if value < self.transaction_max_timeout_ms:
                raise InvalidConfigError(
                    f"{name} is at least transaction_max_timeout_ms",
                    found=value,
                    transaction_max_timeout_ms=self.transaction_max_timeout_ms,
                )
        self._check_retentions()

    def _check_retentions(self) -> None:
        if self.vacuum_retention_ms < max(_DAY_MS, 2 * self.transaction_max_timeout_ms):
            raise InvalidConfigError(
                "vacuum_retention_ms is at least a day and twice transaction_max_timeout_ms",
                vacuum_retention_ms=self.vacuum_retention_ms,
            )
        if self.batch_retention_ms < _DAY_MS:
            raise InvalidConfigError("batch_retention_ms is at least a day", batch_retention_ms=self.batch_retention_ms)
        if self.offsets_retention_ms < 1:
            raise InvalidConfigError(
                "offsets_retention_ms is at least 1", offsets_retention_ms=self.offsets_retention_ms
            )
        if not _MINUTE_MS <= self.snapshot_retention_ms <= self.vacuum_retention_ms:
            raise InvalidConfigError(
                "snapshot_retention_ms is at least a minute and at most vacuum_retention_ms",
                snapshot_retention_ms=self.snapshot_retention_ms,
                vacuum_retention_ms=self.vacuum_retention_ms,
            )


def settings_from_text(values: Mapping[str, str]) -> WarehouseSettings:
    """Return the settings that a user gave as text; the others have their defaults.

    Parameters
    ----------
    values : Mapping[str, str]
        Names of :class:`WarehouseSettings` -> milliseconds in decimal.

    Raises
    ------
    InvalidConfigError
        A name is unknown, or a value no number or out of bounds: the message says what is known.
    """
    return altered_settings(WarehouseSettings(), numbers_from_text(values))


def numbers_from_text(values: Mapping[str, str]) -> dict[str, int | None]:
    """Return what a user gave as text; names are not looked at.

    Raises
    ------
    InvalidConfigError
        A value is no number.
    """
    for name, value in values.items():
        if not _NUMBER.fullmatch(value):
            raise InvalidConfigError("a setting of a warehouse is a number of milliseconds", name=name, value=value)
    return {name: int(value) for name, value in values.items()}


def altered_settings(settings: WarehouseSettings, changes: Mapping[str, int | None]) -> WarehouseSettings:
    """Return settings with changes.

    Parameters
    ----------
    settings : WarehouseSettings
        As they are.
    changes : Mapping of str to int or None
        By name; ``None``: the default.

    Raises
    ------
    InvalidConfigError
        A name is unknown, or a value no integer or out of bounds.
    """
    defaults = asdict(WarehouseSettings())
    for name, value in changes.items():
        if name not in defaults:
            meant = about_nearest(str(name).replace(".", "_"), defaults)
            raise InvalidConfigError(
                f"there is no such setting of a warehouse; {meant or 'use one of the known ones'}",
                name=name,
                known=None if meant else ",".join(defaults),
            )
        if value is not None and type(value) is not int:
            raise InvalidConfigError("a setting of a warehouse is an int of ms", name=name, value=repr(value))
    return replace(settings, **{name: defaults[name] if value is None else value for name, value in changes.items()})


def settings_properties(settings: WarehouseSettings) -> dict[str, str]:
    """Return the settings as table properties."""
    return {f"{PREFIX}{f.name}": str(getattr(settings, f.name)) for f in fields(settings)}


def settings_from(configuration: Mapping[str, str]) -> WarehouseSettings:
    """Return the settings that table properties say.

    Raises
    ------
    UnsupportedFormatError
        A setting that this version does not know: upgrade.
    DamagedDataError
        A setting is no number.
    """
    known = {f"{PREFIX}{f.name}": f.name for f in fields(WarehouseSettings)}
    found = {name: value for name, value in configuration.items() if name.startswith(PREFIX)}
    unknown = set(found) - set(known) - _NOT_SETTINGS
    if unknown:
        raise UnsupportedFormatError(
            "the warehouse has settings of a newer format; upgrade txntable", unknown=sorted(unknown)
        )
    try:
        return WarehouseSettings(**{known[name]: whole_number(found[name]) for name in found.keys() & known.keys()})
    except (ValueError, InvalidConfigError) as error:
        raise DamagedDataError("the warehouse's settings cannot be read", settings=reprlib.repr(found)) from error
