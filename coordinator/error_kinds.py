"""The trunk of the one tree of errors: what a caller does about each kind.

::

    TxnTableError
    ├── RetriableError            call again: nothing is wrong with the call
    ├── AbortableError            abort the transaction, then begin another
    ├── FatalError                close this producer and make a new one
    ├── InvalidCallError          mend the call: state is as it was
    └── DamagedDataError          stop: what is stored contradicts the format

A value that a call cannot take is one of these, and never any other error, but for Python's own ``TypeError`` where it
is of a kind that cannot be walked, called or be a key.  Owns the predicates and how a message is made; the errors
themselves are :mod:`txntable.coordinator.errors`' and :mod:`txntable.errors`'.  A message is lower case and ends with
its facts as ``key=value``; the remedy is part of the message.  Must not know of storage.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

LONGEST_FACT = 1_000
"""Characters of one fact in a message."""


def shown(value: object) -> str:
    """Return what a message shows of a value that was not acceptable: of anything, and never an error of its own."""
    return _told(repr, value)


def _told(tell: Callable[[object], str], value: object) -> str:
    try:
        return tell(value)
    except Exception:  # noqa: BLE001 - an integer of 5,000 digits, or an object that does not tell what it is
        return f"<a {type(value).__name__} that cannot be shown>"


class TxnTableError(Exception):
    """Base of every error that this project raises on purpose.

    Parameters
    ----------
    message : str
        Lower case; says what happened and what the caller can do.
    **facts : object
        Appended as ``key=value``; kept in :attr:`facts`.  ``None`` is left out.

    Attributes
    ----------
    code : str
        Kafka's canonical name where Kafka has one (KIP-1050), e.g. ``PRODUCER_FENCED``.
    retriable, txn_requires_abort, fatal : bool
        What the caller does: call again; abort the transaction; close the producer.
    """

    code: ClassVar[str] = "UNKNOWN_SERVER_ERROR"
    retriable: ClassVar[bool] = False
    # An instance's own where it was met in a transaction that can only be aborted since.
    txn_requires_abort: bool = False
    fatal: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        # Users import errors from `txntable`, so that is what a traceback calls them.
        if cls.__module__.startswith("txntable."):
            cls.__module__ = "txntable"

    def __init__(self, message: str, **facts: object) -> None:
        self.message = message
        self.facts = {key: value for key, value in facts.items() if value is not None}
        super().__init__(" ".join([message, *(f"{key}={_shown(value)}" for key, value in self.facts.items())]))

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.message, self.facts))


def _shown(value: object) -> str:
    """Return a fact's text, cut where it is too long to read: what is stored can be of any length."""
    text = _told(str, value)
    return text if len(text) <= LONGEST_FACT else f"{text[:LONGEST_FACT]}…"


TxnTableError.__module__ = "txntable"


def _rebuild(kind: type[TxnTableError], message: str, facts: dict[str, object]) -> TxnTableError:
    return kind(message, **facts)


class RetriableError(TxnTableError):
    """Call again; nothing is wrong with the call."""

    retriable = True


class AbortableError(TxnTableError):
    """Abort the transaction; the producer may begin another."""

    txn_requires_abort = True


class FatalError(TxnTableError):
    """Close this producer; a new one may go on."""

    fatal = True


class InvalidCallError(TxnTableError):
    """Mend the call; nothing was changed."""


class DamagedDataError(TxnTableError):
    """What is stored contradicts the format; the message names the object."""

    code = "CORRUPT_MESSAGE"
    fatal = True
