"""Errors as confluent-kafka has them: a KafkaException that holds a KafkaError, which has a number.

Owns which of confluent-kafka's errors each of ours is; librdkafka's own, below -1, are what no broker answers.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import total_ordering
from operator import index

from txntable.compat.confluent.kafka_error_codes import KafkaErrorCodes
from txntable.compat.confluent.setting_names import with_dots
from txntable.errors import IllegalStateError, TxnTableError

# Where confluent-kafka's name is another one, and for errors that only a warehouse has.
_RENAMED: Mapping[str, str] = {
    "CORRUPT_MESSAGE": "INVALID_MSG",
    "UNKNOWN_TOPIC_OR_PARTITION": "UNKNOWN_TOPIC_OR_PART",
    "MESSAGE_TOO_LARGE": "MSG_SIZE_TOO_LARGE",
    "INVALID_TOPIC_EXCEPTION": "TOPIC_EXCEPTION",
    "TRANSACTION_ABORTED": "TRANSACTION_ABORTABLE",
    "TRANSACTION_OUTCOME_UNKNOWN": "_FATAL",
    "ILLEGAL_STATE": "_STATE",
    # What librdkafka says in the place of the brokers' own: programs ask for these.
    "PRODUCER_FENCED": "_FENCED",
    "OFFSET_OUT_OF_RANGE": "_AUTO_OFFSET_RESET",
    "STORE_FULL": "_TRANSPORT",
    "STORE_UNAVAILABLE": "_TRANSPORT",
    "COMMIT_STATE_UNKNOWN": "_TIMED_OUT",
    "WAREHOUSE_NOT_FOUND": "_RESOLVE",
}


_NAMES: Mapping[int, str] = {number: name for name, number in vars(KafkaErrorCodes).items() if type(number) is int}


@total_ordering
class KafkaError(KafkaErrorCodes):
    """What went wrong, as callbacks and :class:`KafkaException` have it; equal to its number, and to others with it.

    Parameters
    ----------
    error : int
        The number: one of the class's attributes.
    reason : str, optional
        What happened; without it, the number's name.
    fatal, retriable, txn_requires_abort : bool
        What a program does about it.

    Raises
    ------
    TypeError
        `error` is no int, or `reason` no text.
    """

    def __init__(
        self,
        error: int,
        reason: builtins.str | None = None,
        fatal: bool = False,
        retriable: bool = False,
        txn_requires_abort: bool = False,
    ) -> None:
        self._code = index(error)
        if reason is not None and not isinstance(reason, str):
            raise TypeError(f"reason must be str or None, not {type(reason).__name__}")
        self._reason = self.name() if reason is None else reason
        self._fatal, self._retriable, self._aborts = bool(fatal), bool(retriable), bool(txn_requires_abort)

    def code(self) -> int:
        """Return the number; compare it with the class's attributes."""
        return self._code

    def name(self) -> builtins.str:
        """Return confluent-kafka's name of the number: the attribute's.

        ``UNKNOWN``: it has none for what went wrong; the exception's cause has our code.
        """
        return _NAMES.get(self._code, f"ERR_{self._code}?")

    def str(self) -> builtins.str:
        """Return what happened, what to do, the facts, and which name may have been meant."""
        return self._reason

    def retriable(self) -> bool:
        """Return whether the same call may be made again."""
        return self._retriable

    def fatal(self) -> bool:
        """Return whether the client is of no use any more: close it."""
        return self._fatal

    def txn_requires_abort(self) -> bool:
        """Return whether the transaction must be aborted."""
        return self._aborts

    def __eq__(self, other: object) -> bool:
        number = _number(other)
        return NotImplemented if number is None else self._code == number

    def __lt__(self, other: KafkaError | int) -> bool:
        number = _number(other)
        return NotImplemented if number is None else self._code < number

    def __hash__(self) -> int:
        return hash(self._code)

    def __str__(self) -> builtins.str:
        fatal = "FATAL," if self._fatal else ""
        return f'KafkaError{{{fatal}code={self.name()},val={self._code},str="{self._reason}"}}'

    __repr__ = __str__


def _number(other: object) -> int | None:
    """Return what an error is compared by; ``None``: it is neither an error nor a number."""
    if isinstance(other, KafkaError):
        return other.code()
    return other if isinstance(other, int) else None


def kafka_error(error: TxnTableError) -> KafkaError:
    """Return an error of txntable as confluent-kafka's; its text says what to do."""
    name = _RENAMED.get(error.code, error.code)
    number: int = getattr(KafkaErrorCodes, name, KafkaErrorCodes.UNKNOWN)
    reason = " ".join([str(error), *getattr(error, "__notes__", ())])
    return KafkaError(number, reason, error.fatal, error.retriable, error.txn_requires_abort)


class KafkaException(Exception):
    """Raised by every client here; ``args[0]`` is a :class:`KafkaError`, and the cause the error of txntable."""


@contextmanager
def kafka_errors(typed: str | None = None) -> Iterator[None]:
    """Raise errors of txntable as confluent-kafka's.

    Parameters
    ----------
    typed : str, optional
        What the user's call is named here, where ours has another name: messages say what was typed.

    Raises
    ------
    KafkaException
        Something went wrong in the block.
    """
    try:
        yield
    except TxnTableError as error:
        said = error if typed is None else _as_typed(error, typed)
        # Of a call that does not fit the settings: a state's message names no other words of ours.
        raise KafkaException(kafka_error(with_dots(said) if type(said) is IllegalStateError else said)) from error


def _as_typed(error: TxnTableError, typed: str) -> TxnTableError:
    """Return an error that names a call as one that names what was typed instead."""
    call = error.facts.get("call")
    if not isinstance(error, IllegalStateError) or not isinstance(call, str):
        return error
    return IllegalStateError(error.message.replace(call, typed, 1), **{**error.facts, "call": typed})
