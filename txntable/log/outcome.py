"""What became of a commit, as values (PROTOCOL.md §4.2).

An outcome is never a bare bool: *unknown* is neither success nor failure.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from txntable.errors import (
    CommitStateUnknownError,
    InvalidConfigError,
    KafkaStorageError,
    StorePermissionError,
    StoreUnavailableError,
    StoreUnsuitableError,
    TxnTableError,
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
    """The store could not be reached: the commit may be at `version`, now or later.

    Attributes
    ----------
    version : int
        The slot.
    cause : TxnTableError or None
        What the store said last.
    """

    version: int
    cause: TxnTableError | None = field(default=None, compare=False)


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


def unknown_error(cause: TxnTableError | None, **facts: object) -> CommitStateUnknownError:
    """Return the error that tells of a commit of which nobody knows whether it is there, and why.

    Parameters
    ----------
    cause : TxnTableError, optional
        What the store said last, in words of its own: that the disk is full, for one.
    **facts : object
        Whose commit it is.
    """
    said = "the store cannot be reached" if cause is None else cause.message
    known = {} if cause is None else {name: fact for name, fact in cause.facts.items() if name not in facts}
    error = CommitStateUnknownError(
        f"{said}; the write may have happened all the same: make the same call again", **facts, **known
    )
    error.__cause__ = cause
    return error
