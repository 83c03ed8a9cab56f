"""Errors as confluent-kafka has them: a KafkaException that holds a KafkaError, which has a number.

Owns the numbers: those of Kafka's protocol, and librdkafka's own, below -1, for what no broker answers.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from txntable.errors import TxnTableError


class KafkaErrorCodes:
    """The numbers by confluent-kafka's names."""

    _TRANSPORT = -195
    _RESOLVE = -193
    _PARTITION_EOF = -191
    _ALL_BROKERS_DOWN = -187
    _INVALID_ARG = -186
    _TIMED_OUT = -185
    _STATE = -172
    _FATAL = -150
    _FENCED = -144
    UNKNOWN = -1
    NO_ERROR = 0
    OFFSET_OUT_OF_RANGE = 1
    INVALID_MSG = 2
    UNKNOWN_TOPIC_OR_PART = 3
    MSG_SIZE_TOO_LARGE = 10
    OFFSET_METADATA_TOO_LARGE = 12
    TOPIC_EXCEPTION = 17
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    CLUSTER_AUTHORIZATION_FAILED = 31
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_CONFIG = 40
    INVALID_REQUEST = 42
    POLICY_VIOLATION = 44
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    TRANSACTION_COORDINATOR_FENCED = 52
    KAFKA_STORAGE_ERROR = 56
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    INVALID_RECORD = 87
    UNSTABLE_OFFSET_COMMIT = 88
    PRODUCER_FENCED = 90
    FENCED_MEMBER_EPOCH = 110
    UNSUPPORTED_ASSIGNOR = 112
    STALE_MEMBER_EPOCH = 113
    TRANSACTION_ABORTABLE = 120
    INVALID_REGULAR_EXPRESSION = 128


# Where confluent-kafka's name is another one, and for errors that only a warehouse has.
_RENAMED: Mapping[str, str] = {
    "CORRUPT_MESSAGE": "INVALID_MSG",
    "UNKNOWN_TOPIC_OR_PARTITION": "UNKNOWN_TOPIC_OR_PART",
    "MESSAGE_TOO_LARGE": "MSG_SIZE_TOO_LARGE",
    "INVALID_TOPIC_EXCEPTION": "TOPIC_EXCEPTION",
    "TRANSACTION_ABORTED": "TRANSACTION_ABORTABLE",
    "TRANSACTION_OUTCOME_UNKNOWN": "_FATAL",
    "ILLEGAL_STATE": "_STATE",
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
        name = _RENAMED.get(self._error.code, self._error.code)
        found: int = getattr(KafkaErrorCodes, name, KafkaErrorCodes.UNKNOWN)
        return found

    def name(self) -> builtins.str:
        """Return Kafka's name of the error."""
        return self._error.code

    def str(self) -> builtins.str:
        """Return what happened, what to do, and the facts."""
        return builtins.str(self._error)

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
        return f'KafkaError{{code={self.name()},val={self.code()},str="{self._error}"}}'

    __repr__ = __str__


class KafkaException(Exception):
    """Raised by every client here; ``args[0]`` is a :class:`KafkaError`, and the cause the error of txntable."""


@contextmanager
def kafka_errors() -> Iterator[None]:
    """Raise errors of txntable as confluent-kafka's.

    Raises
    ------
    KafkaException
        Something went wrong in the block.
    """
    try:
        yield
    except TxnTableError as error:
        raise KafkaException(KafkaError(error)) from error
