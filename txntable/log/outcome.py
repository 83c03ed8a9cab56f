"""What became of a commit, as values (PROTOCOL.md §4.2).

An outcome is never a bare bool: *unknown* is neither success nor failure.
"""

from __future__ import annotations

from dataclasses import dataclass

from txntable.errors import (
    InvalidConfigError,
    KafkaStorageError,
    StorePermissionError,
    StoreUnavailableError,
    StoreUnsuitableError,
    WarehouseNotFoundError,
)


@dataclass(frozen=True, slots=True)
class Committed:
    """The actions are durable at `version`."""

    version: int


@dataclass(frozen=True, slots=True)
class Conflicted:
    """Another commit has the slot `version`: fold it and decide again."""

    version: int


@dataclass(frozen=True, slots=True)
class Unknown:
    """The store could not be reached: the commit may be at `version`, now or later."""

    version: int


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The decision needed no write; it holds for `version`."""

    version: int | None


# What a store raises where it has no answer to a request: of a put that an earlier attempt may have done, none.
NO_ANSWER = (
    InvalidConfigError,
    KafkaStorageError,
    StorePermissionError,
    StoreUnavailableError,
    StoreUnsuitableError,
    WarehouseNotFoundError,
)
Attempt = Committed | Conflicted | Unknown
CommitOutcome = Committed | Unchanged | Unknown
