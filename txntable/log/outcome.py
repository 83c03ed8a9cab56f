"""What became of a commit, as values (PROTOCOL.md §4.2).

An outcome is never a bare bool: *unknown* is neither success nor failure.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from txntable.errors import (
    CommitStateUnknownError,
    InvalidConfigError,
    KafkaStorageError,
    StoreFullError,
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
    tried_for_ms : int or None
        For how long it was tried.
    """

    version: int
    cause: TxnTableError | None = field(default=None, compare=False)
    tried_for_ms: int | None = field(default=None, compare=False)


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


def is_unwritable(error: TxnTableError) -> bool:
    """Return whether an error says that nothing can be written here: readers go on with what others have published.

    Parameters
    ----------
    error : TxnTableError
        Of a write: these credentials may not, or there is no room; then its outcome may be unknown, too.
    """
    cause = error.__cause__ if isinstance(error, CommitStateUnknownError) else error
    return isinstance(cause, StorePermissionError | StoreFullError)


@contextmanager
def unless_unwritable() -> Iterator[None]:
    """Leave the block, and go on behind it, where nothing can be written: see :func:`is_unwritable`."""
    try:
        yield
    except TxnTableError as error:
        if not is_unwritable(error):
            raise


MAY_HAVE_HAPPENED = "; the write may have happened all the same: make the same call again"
"""What the message of :func:`unknown_error` ends with, behind what the store said."""


def unknown_error(outcome: Unknown, **facts: object) -> CommitStateUnknownError:
    """Return the error about a commit of which nobody knows whether it is there: why, for how long it was tried.

    Parameters
    ----------
    outcome : Unknown
        What the store said last, in words of its own, and when it was given up.
    **facts : object
        Whose commit it is.
    """
    cause, tried_for_ms = outcome.cause, outcome.tried_for_ms
    said = "the store cannot be reached" if cause is None else cause.message
    known = {} if cause is None else cause.facts
    tried = {} if tried_for_ms is None else {"tried_for_ms": tried_for_ms}
    error = CommitStateUnknownError(f"{said}{MAY_HAVE_HAPPENED}", **{**known, **tried, **facts})
    error.__cause__ = cause
    return error
