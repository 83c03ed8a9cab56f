"""Isolation levels: what a reader sees (PROTOCOL.md §10)."""

from __future__ import annotations

from enum import Enum

from txntable.errors import InvalidRequestError
from txntable.format.enum_option import member_of


class IsolationLevel(Enum):
    """What a reader sees; the value is what users write."""

    SNAPSHOT = "snapshot"
    """Everything committed as of one position, in all topics at once; open transactions hold nothing back."""
    READ_COMMITTED = "read_committed"
    """Kafka's contract: committed records below the last stable offset, in offset order."""
    READ_UNCOMMITTED = "read_uncommitted"
    """Every appended record, whatever becomes of it; markers never."""


def isolation_level(text: str | IsolationLevel) -> IsolationLevel:
    """Return the level of that name.

    Parameters
    ----------
    text : str or IsolationLevel
        The name.

    Raises
    ------
    InvalidRequestError
        There is none: the message names all.
    """
    return member_of(IsolationLevel, text, "isolation_level")


def level_at(given: str | IsolationLevel, as_of: object) -> IsolationLevel:
    """Return the level of a read that may ask for the past.

    Parameters
    ----------
    given : str or IsolationLevel
        The level.
    as_of : object
        ``None``: now.

    Raises
    ------
    InvalidRequestError
        There is no such level, or it knows no past.
    """
    level = isolation_level(given)
    if as_of is not None and level is not IsolationLevel.SNAPSHOT:
        raise InvalidRequestError("only a snapshot has a position; leave as_of out", isolation_level=level.value)
    return level
