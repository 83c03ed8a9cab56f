"""The errors of state machines and calls, with Kafka's names and what the caller does about each.

Owns the codes; the kinds are :mod:`txntable.coordinator.error_kinds`'.  Must not know of storage, Spark or time: the
errors of warehouses and stores are :mod:`txntable.errors`'.
"""

from __future__ import annotations

from txntable.coordinator.error_kinds import (
    LONGEST_FACT as LONGEST_FACT,
)
from txntable.coordinator.error_kinds import (
    AbortableError as AbortableError,
)
from txntable.coordinator.error_kinds import (
    DamagedDataError as DamagedDataError,
)
from txntable.coordinator.error_kinds import (
    FatalError as FatalError,
)
from txntable.coordinator.error_kinds import (
    InvalidCallError as InvalidCallError,
)
from txntable.coordinator.error_kinds import (
    RetriableError as RetriableError,
)
from txntable.coordinator.error_kinds import (
    TxnTableError as TxnTableError,
)

# -- producers and transactions -------------------------------------------------------------


class ProducerFencedError(FatalError):
    """A newer producer with the same transactional id exists."""

    code = "PRODUCER_FENCED"


class InvalidProducerEpochError(AbortableError):
    """A partition log or the enrolment refused the epoch: timed out, or fenced."""

    code = "INVALID_PRODUCER_EPOCH"


class InvalidPidMappingError(FatalError):
    """The transactional id is unknown, expired, or belongs to another producer id."""

    code = "INVALID_PRODUCER_ID_MAPPING"


class InvalidTxnStateError(FatalError):
    """The transaction is not in a state that allows the operation."""

    code = "INVALID_TXN_STATE"


class ConcurrentTransactionsError(RetriableError):
    """The previous transaction of this id is still being completed."""

    code = "CONCURRENT_TRANSACTIONS"


class InvalidTransactionTimeoutError(FatalError):
    """The transaction timeout is above ``transaction.max.timeout.ms``, or not above 0."""

    code = "INVALID_TRANSACTION_TIMEOUT"


class OutOfOrderSequenceError(AbortableError):
    """A sequence gap, or a duplicate older than the five batches remembered."""

    code = "OUT_OF_ORDER_SEQUENCE_NUMBER"


class TransactionAbortedError(AbortableError):
    """The transaction was aborted while the call was under way."""

    code = "TRANSACTION_ABORTED"


class TransactionAbortableError(AbortableError):
    """Something in this transaction failed; only abort is possible."""

    code = "TRANSACTION_ABORTABLE"


class CommitStateUnknownError(RetriableError):
    """The store could not be reached: the write may or may not have happened.

    Make the same call again; it finds out.  Never treat it as a failure: files that the
    write names must stay.
    """

    code = "COMMIT_STATE_UNKNOWN"


class TransactionOutcomeUnknownError(FatalError):
    """The transaction was decided, and how is not kept any more: look whether its records are there.

    Asking again finds out nothing.  Never treat it as an abort: what was committed must not be sent again.
    """

    code = "TRANSACTION_OUTCOME_UNKNOWN"


class TransactionCoordinatorFencedError(FatalError):
    """Another coordinator job has taken the lease over: this one stops."""

    code = "TRANSACTION_COORDINATOR_FENCED"


class TransactionalIdNotFoundError(InvalidCallError):
    """The transaction log knows no such transactional id."""

    code = "TRANSACTIONAL_ID_NOT_FOUND"


class IllegalStateError(InvalidCallError):
    """The client object is not in a state that allows the call; nothing is harmed."""

    code = "ILLEGAL_STATE"


class BatchAlreadyCommittedError(InvalidCallError):
    """The batch id was committed before: the run's work is done, skip it."""

    code = "BATCH_ALREADY_COMMITTED"


class BatchOutOfOrderError(InvalidCallError):
    """An integer batch id is lower than the last committed one.

    The last alone is remembered: skip the run if it was done before, and give it a name if it was passed over.
    """

    code = "BATCH_OUT_OF_ORDER"


# -- consumer groups ------------------------------------------------------------------------


class UnknownMemberIdError(AbortableError):
    """The group has no such member: it left, its session expired, or it never joined.  Join again under a new id."""

    code = "UNKNOWN_MEMBER_ID"


class IllegalGenerationError(AbortableError):
    """The generation is none that the group has had: take the group metadata from the consumer."""

    code = "ILLEGAL_GENERATION"


class FencedMemberEpochError(AbortableError):
    """The member claims a generation that the group has not reached: forget the assignment and join again."""

    code = "FENCED_MEMBER_EPOCH"


class StaleMemberEpochError(AbortableError):
    """The member has not owned the partition without a break since it read: read again from what is committed."""

    code = "STALE_MEMBER_EPOCH"


class FencedInstanceIdError(AbortableError):
    """A newer consumer has the static member's instance id: close this one."""

    code = "FENCED_INSTANCE_ID"


class GroupIdNotFoundError(AbortableError):
    """There is no such group."""

    code = "GROUP_ID_NOT_FOUND"


class CommitFailedError(AbortableError):
    """The committed offset is no longer where the range that was read begins: read again from what is committed."""

    code = "COMMIT_FAILED"


class UnstableOffsetCommitError(RetriableError):
    """A transaction that is not decided, or not settled, has an offset for the partition."""

    code = "UNSTABLE_OFFSET_COMMIT"


class NonEmptyGroupError(InvalidCallError):
    """The group has members: let them leave first."""

    code = "NON_EMPTY_GROUP"


class GroupSubscribedToTopicError(InvalidCallError):
    """A member of the group subscribes to the topic: its offsets stay until none does."""

    code = "GROUP_SUBSCRIBED_TO_TOPIC"


class GroupMaxSizeReachedError(InvalidCallError):
    """The group has as many members as it may have, or its row is as large as it may be."""

    code = "GROUP_MAX_SIZE_REACHED"


class InconsistentGroupProtocolError(InvalidCallError):
    """The members of the group support no assignor in common."""

    code = "INCONSISTENT_GROUP_PROTOCOL"


class UnsupportedAssignorError(InvalidCallError):
    """There is no assignor of that name."""

    code = "UNSUPPORTED_ASSIGNOR"


class InvalidSessionTimeoutError(InvalidCallError):
    """The session timeout is not between the group's smallest and largest."""

    code = "INVALID_SESSION_TIMEOUT"


class OffsetMetadataTooLargeError(InvalidCallError):
    """The text beside an offset is longer than 4096 bytes."""

    code = "OFFSET_METADATA_TOO_LARGE"


# -- calls, topics, schemas -----------------------------------------------------------------


class InvalidRequestError(InvalidCallError):
    """An argument is not acceptable; the message names it."""

    code = "INVALID_REQUEST"


class InvalidRegularExpressionError(InvalidCallError):
    """A pattern is no regular expression."""

    code = "INVALID_REGULAR_EXPRESSION"


class UnknownTopicOrPartitionError(InvalidCallError):
    """No such topic, partition, or no longer the same topic id."""

    code = "UNKNOWN_TOPIC_OR_PARTITION"


class TopicAlreadyExistsError(InvalidCallError):
    """A topic of that name exists; with ``exist_ok``: one with other settings."""

    code = "TOPIC_ALREADY_EXISTS"


class InvalidTopicError(InvalidCallError):
    """The topic's name is not acceptable."""

    code = "INVALID_TOPIC_EXCEPTION"


class InvalidPartitionsError(InvalidCallError):
    """The number of partitions is not acceptable."""

    code = "INVALID_PARTITIONS"


class InvalidConfigError(InvalidCallError):
    """A setting is unknown or its value is not acceptable."""

    code = "INVALID_CONFIG"


class PolicyViolationError(InvalidCallError):
    """The topic's ``cleanup.policy`` does not allow it."""

    code = "POLICY_VIOLATION"


class SchemaMismatchError(InvalidCallError):
    """Columns, types or nullability differ from the topic's schema, or it cannot be stored."""

    code = "INVALID_RECORD"


class MissingKeyError(SchemaMismatchError):
    """The topic is compacted and takes no record without a key.  In a transaction: abort, as Kafka's answer means."""


class RecordTooLargeError(AbortableError):
    """A record or batch is larger than allowed."""

    code = "MESSAGE_TOO_LARGE"


class OffsetOutOfRangeError(InvalidCallError):
    """The offset, position or time is outside what the log still holds."""

    code = "OFFSET_OUT_OF_RANGE"


class UnsupportedFormatError(InvalidCallError):
    """The warehouse or a log was written under a format that this version does not know."""

    code = "UNSUPPORTED_VERSION"
    fatal = True
