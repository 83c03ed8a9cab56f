"""What producers, admins and the coordinator job ask of a transactional id, and what they get (PROTOCOL.md §6.3).

Values only.  Every request that may write carries `position`: the slot of the transaction log that
is decided on (the version read, plus one).  When the slot is lost, the whole request is made
again on the new row with the new position: nothing of an earlier try is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from txntable.coordinator.batch_memory import BatchId, BatchMemory, BatchRow, check_batch_id, check_stored_batch_id
from txntable.coordinator.decision import Outcome
from txntable.coordinator.enrolment import EnrolledTopic
from txntable.coordinator.errors import InvalidRequestError, InvalidTransactionTimeoutError
from txntable.coordinator.manifest import NOTHING_CARRIED, Manifest
from txntable.coordinator.row_json import check_name
from txntable.coordinator.transaction import TransactionMetadata

DEFAULT_MAX_TIMEOUT_MS = 15 * 60 * 1000

AnswerT_co = TypeVar("AnswerT_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Transition(Generic[AnswerT_co]):
    """What to write, and what to answer once that is durable.

    Attributes
    ----------
    row : TransactionMetadata, optional
        The row to write at its position; when DEAD, the key to remove; ``None``: nothing to write, the
        answer holds at the version that was read.
    answer : AnswerT_co
        For the caller, after the write.
    batch_row : BatchRow, optional
        To be written by the same commit: the batch id that it commits.
    next_producer_id : int, optional
        To be written by the same commit: an id was taken, this is the next one.
    """

    row: TransactionMetadata | None
    answer: AnswerT_co
    batch_row: BatchRow | None = None
    next_producer_id: int | None = None


@dataclass(frozen=True, slots=True)
class ProducerIdentity:
    """Who a producer is after init.

    Attributes
    ----------
    producer_id, producer_epoch : int
        To be sent with every request of the next transaction.
    token : str, optional
        There is a prepared transaction under this epoch: complete it with this token.
    """

    producer_id: int
    producer_epoch: int
    token: str | None = None


@dataclass(frozen=True, slots=True)
class InitRequest:
    """A producer takes the id (``init_transactions``, and an admin's ``fence_producers``).

    Attributes
    ----------
    transactional_id : str
        Not empty.
    next_producer_id : int
        What the log says; an unknown id takes it.
    timeout_ms : int
        Transaction timeout in milliseconds, 1 to `max_timeout_ms`.
    position : int
        The slot decided on.
    max_timeout_ms : int
        ``transaction.max.timeout.ms``.
    keep_prepared : bool
        Whether a prepared transaction is taken over instead of refused.
    expected : tuple of int, optional
        The producer id and epoch that the caller has; when it is no longer the row's, it is fenced (KIP-360).

    Raises
    ------
    InvalidRequestError
        The id is no valid name.
    InvalidTransactionTimeoutError
        The timeout is out of bounds: configure another.
    """

    transactional_id: str
    next_producer_id: int
    timeout_ms: int
    position: int
    max_timeout_ms: int = DEFAULT_MAX_TIMEOUT_MS
    keep_prepared: bool = False
    expected: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        check_name(self.transactional_id, "a transactional id")
        if not 1 <= self.timeout_ms <= self.max_timeout_ms:
            raise InvalidTransactionTimeoutError(
                "the transaction timeout is at most the warehouse's transaction_max_timeout_ms, and a producer's not "
                "below a second; set another",
                timeout_ms=self.timeout_ms,
                max_timeout_ms=self.max_timeout_ms,
            )


@dataclass(frozen=True, slots=True)
class EnrolRequest:
    """Partitions or groups join the transaction, before the first append to each.

    Attributes
    ----------
    producer_id, epoch : int
        Who asks.
    position : int
        The slot decided on.
    topics : Mapping[str, EnrolledTopic]
        By topic id.
    groups : tuple of str
        Consumer groups whose offsets will be sent.

    Raises
    ------
    InvalidRequestError
        It names neither a topic nor a group, or a group that is no valid name.
    """

    producer_id: int
    epoch: int
    position: int
    topics: Mapping[str, EnrolledTopic] = field(default_factory=dict)
    groups: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for group in self.groups:
            check_name(group, "a group")
        if not self.topics and not self.groups:
            raise InvalidRequestError("an enrolment names at least one topic or group", producer_id=self.producer_id)


@dataclass(frozen=True, slots=True)
class EndRequest:
    """The producer, or the holder of a token, decides the transaction.

    Attributes
    ----------
    producer_id, epoch : int
        The transaction: an epoch names one.
    outcome : Outcome
        Commit or abort.
    position : int
        The slot decided on: the decision position.
    token : str, optional
        Of a prepared transaction.
    batch_id : str or int, optional
        What a commit remembers; of a prepared transaction, the one that it carries.
    memory : BatchMemory
        What the log remembers of `batch_id` at the version that `position` follows.
    decided_at_ms : int, optional
        The store's time of the commit, milliseconds since 1970: how long a batch name is kept counts from it, and how
        old what `manifest` carries is.
    manifest : Manifest
        What a commit carries; a prepared transaction has appended everything.
    repeated : bool
        Whether the same was asked before, and its outcome is not known: then "fenced" may be no answer.

    Raises
    ------
    InvalidRequestError
        `batch_id` is none; or something is carried by an abort, beside a token, or without the time.
    """

    producer_id: int
    epoch: int
    outcome: Outcome
    position: int
    token: str | None = None
    batch_id: BatchId | None = None
    memory: BatchMemory = field(default_factory=BatchMemory)
    decided_at_ms: int | None = None
    manifest: Manifest = NOTHING_CARRIED
    repeated: bool = False

    def __post_init__(self) -> None:
        if self.batch_id is not None:
            check_stored_batch_id(self.batch_id)
        if self.manifest and (self.outcome is Outcome.ABORT or self.token is not None):
            raise InvalidRequestError(
                "only a commit without a token carries segments: append them before", producer_id=self.producer_id
            )
        if self.manifest and self.decided_at_ms is None:
            raise InvalidRequestError(
                "a commit that carries segments says when it is decided: their age counts", producer_id=self.producer_id
            )


@dataclass(frozen=True, slots=True)
class PrepareRequest:
    """The first phase of a two-phase commit.

    Attributes
    ----------
    producer_id, epoch : int
        Who asks.
    token : str
        Not empty; who holds it decides.
    position : int
        The slot decided on.
    batch_id : str or int, optional
        What the commit will remember.
    memory : BatchMemory
        What the log remembers of `batch_id` at the version that `position` follows.

    Raises
    ------
    InvalidRequestError
        The token is no valid name, or `batch_id` is none.
    """

    producer_id: int
    epoch: int
    token: str
    position: int
    batch_id: BatchId | None = None
    memory: BatchMemory = field(default_factory=BatchMemory)

    def __post_init__(self) -> None:
        check_name(self.token, "a token")
        if self.batch_id is not None:
            check_batch_id(self.batch_id)
