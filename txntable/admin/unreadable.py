"""What cannot be read of a warehouse while the rest is looked at.

Owns how a look goes on beyond it: who looks asks before each part for a place to read it in, which raises what is
raised there (:func:`raising`), or keeps it and lets the rest be read.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from txntable.admin.upkeep import Duty, Finding
from txntable.errors import TxnTableError

_TOPIC = "topic "
Within = Callable[[str], AbstractContextManager[None]]
"""Takes what is read in a block, and returns the block's context."""


def raising(_where: str) -> AbstractContextManager[None]:
    """Return a context that lets every error through."""
    return nullcontext()


def topic_place(name: str) -> str:
    """Return what a topic is called where it is told what cannot be read."""
    return f"{_TOPIC}{name}"


def topic_at(where: str) -> str | None:
    """Return the topic that is called so there; ``None``: it is no topic."""
    return where.removeprefix(_TOPIC) if where.startswith(_TOPIC) else None


def unreadable(where: str, error: TxnTableError) -> Finding:
    """Return the finding that something cannot be read.

    Parameters
    ----------
    where : str
        The topic or log.
    error : TxnTableError
        Why.
    """
    return Finding(Duty.READ, where, note=f"{error.code} {error}")
