"""Errors as confluent-kafka has them: a KafkaException that holds a KafkaError, which has a number.

Owns which of confluent-kafka's errors each of ours is; librdkafka's own, below -1, are what no broker answers.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from txntable.compat.confluent.kafka_error_codes import KafkaErrorCodes
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
    "STORE_UNAVAILABLE": "_TRANSPORT",
    "COMMIT_STATE_UNKNOWN": "_TIMED_OUT",
    "WAREHOUSE_NOT_FOUND": "_RESOLVE",
}


class KafkaError(KafkaErrorCodes):
    """What went wrong, as callbacks and :class:`KafkaException` have it.

    Parameters
    ----------
    error : TxnTableError
        Its message says what to do.
    """

    def __init__(self, error: TxnTableError) -> None:
        self._error = error

    def code(self) -> int:
        """Return the number; compare it with the class's attributes."""
        found: int = getattr(KafkaErrorCodes, self.name())
        return found

    def name(self) -> builtins.str:
        """Return confluent-kafka's name of the number: the attribute's.

        ``UNKNOWN``: it has none for what went wrong; the exception's cause has our code.
        """
        name = _RENAMED.get(self._error.code, self._error.code)
        return name if hasattr(KafkaErrorCodes, name) else "UNKNOWN"

    def str(self) -> builtins.str:
        """Return what happened, what to do, the facts, and which name may have been meant."""
        return " ".join([builtins.str(self._error), *getattr(self._error, "__notes__", ())])

    def retriable(self) -> bool:
        """Return whether the same call may be made again."""
        return self._error.retriable

    def fatal(self) -> bool:
        """Return whether the client is of no use any more: close it."""
        return self._error.fatal

    def txn_requires_abort(self) -> bool:
        """Return whether the transaction must be aborted."""
        return self._error.txn_requires_abort

    def __str__(self) -> builtins.str:
        return f'KafkaError{{code={self.name()},val={self.code()},str="{self.str()}"}}'

    __repr__ = __str__


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
        raise KafkaException(KafkaError(error if typed is None else _as_typed(error, typed))) from error


def _as_typed(error: TxnTableError, typed: str) -> TxnTableError:
    """Return an error that names a call as one that names what was typed instead."""
    call = error.facts.get("call")
    if not isinstance(error, IllegalStateError) or not isinstance(call, str):
        return error
    return IllegalStateError(error.message.replace(call, typed, 1), **{**error.facts, "call": typed})
