"""The errors that users catch, known to them as ``txntable.<Name>``.

Owns those of warehouses, stores and the machine; those of state machines and calls are
:mod:`txntable.coordinator.errors`'.  Each says what to do.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from txntable.coordinator.errors import (
    AbortableError,
    BatchAlreadyCommittedError,
    BatchOutOfOrderError,
    CommitFailedError,
    CommitStateUnknownError,
    ConcurrentTransactionsError,
    DamagedDataError,
    FatalError,
    FencedInstanceIdError,
    FencedMemberEpochError,
    GroupIdNotFoundError,
    GroupMaxSizeReachedError,
    GroupSubscribedToTopicError,
    IllegalGenerationError,
    IllegalStateError,
    InconsistentGroupProtocolError,
    InvalidCallError,
    InvalidConfigError,
    InvalidPartitionsError,
    InvalidPidMappingError,
    InvalidProducerEpochError,
    InvalidRegularExpressionError,
    InvalidRequestError,
    InvalidSessionTimeoutError,
    InvalidTopicError,
    InvalidTransactionTimeoutError,
    InvalidTxnStateError,
    MissingKeyError,
    NonEmptyGroupError,
    OffsetMetadataTooLargeError,
    OffsetOutOfRangeError,
    OutOfOrderSequenceError,
    PolicyViolationError,
    ProducerFencedError,
    RecordTooLargeError,
    RetriableError,
    SchemaMismatchError,
    StaleMemberEpochError,
    TopicAlreadyExistsError,
    TransactionAbortableError,
    TransactionAbortedError,
    TransactionalIdNotFoundError,
    TransactionCoordinatorFencedError,
    TransactionOutcomeUnknownError,
    TxnTableError,
    UnknownMemberIdError,
    UnknownTopicOrPartitionError,
    UnstableOffsetCommitError,
    UnsupportedAssignorError,
    UnsupportedFormatError,
)

__all__ = [
    "AbortableError",
    "BatchAlreadyCommittedError",
    "BatchOutOfOrderError",
    "CommitFailedError",
    "CommitStateUnknownError",
    "ConcurrentTransactionsError",
    "DamagedDataError",
    "FatalError",
    "FencedInstanceIdError",
    "FencedMemberEpochError",
    "GroupIdNotFoundError",
    "GroupMaxSizeReachedError",
    "GroupSubscribedToTopicError",
    "IllegalGenerationError",
    "IllegalStateError",
    "InconsistentGroupProtocolError",
    "InvalidCallError",
    "InvalidConfigError",
    "InvalidPartitionsError",
    "InvalidPidMappingError",
    "InvalidProducerEpochError",
    "InvalidRegularExpressionError",
    "InvalidRequestError",
    "InvalidSessionTimeoutError",
    "InvalidTopicError",
    "InvalidTransactionTimeoutError",
    "InvalidTxnStateError",
    "KafkaStorageError",
    "MissingDependencyError",
    "MissingKeyError",
    "NonEmptyGroupError",
    "OffsetMetadataTooLargeError",
    "OffsetOutOfRangeError",
    "OutOfOrderSequenceError",
    "PolicyViolationError",
    "ProducerFencedError",
    "RecordTooLargeError",
    "RetriableError",
    "SchemaMismatchError",
    "StaleMemberEpochError",
    "StoreFullError",
    "StorePermissionError",
    "StoreUnavailableError",
    "StoreUnsuitableError",
    "TopicAlreadyExistsError",
    "TransactionAbortableError",
    "TransactionAbortedError",
    "TransactionCoordinatorFencedError",
    "TransactionOutcomeUnknownError",
    "TransactionalIdNotFoundError",
    "TxnTableError",
    "UnknownMemberIdError",
    "UnknownTopicOrPartitionError",
    "UnstableOffsetCommitError",
    "UnsupportedAssignorError",
    "UnsupportedFormatError",
    "WarehouseAlreadyExistsError",
    "WarehouseNotFoundError",
    "WarehouseReplacedError",
]

# -- warehouses, stores and the machine -----------------------------------------------------


class WarehouseNotFoundError(InvalidCallError):
    """There is no warehouse at that place."""

    code = "WAREHOUSE_NOT_FOUND"


class WarehouseReplacedError(FatalError):
    """What this process opened is not there any more: moved, deleted, restored from a backup, or created again.

    Or the newest entry of a log was lost.  Nothing was acknowledged; what was under way may have been put above what is
    lost, and counts if that comes back.  Every further call of the handle fails the same way: stop, find out what
    happened to the warehouse, open it anew, and look what is there before you send it again (a batch id does that).
    """

    code = "INCONSISTENT_CLUSTER_ID"


class WarehouseAlreadyExistsError(InvalidCallError):
    """There is a warehouse at that place already, or something that is none."""

    code = "WAREHOUSE_ALREADY_EXISTS"


class StoreUnsuitableError(InvalidCallError):
    """The store does not do what a warehouse needs: it failed the probe, or said so.  Choose another store."""

    code = "STORE_UNSUITABLE"


class StoreUnavailableError(RetriableError):
    """The store did not answer; of a write it is not known whether it happened."""

    code = "STORE_UNAVAILABLE"


class StoreFullError(StoreUnavailableError):
    """The disk, or the quota of the store, has no room.  Make room, and try again; readers go on meanwhile."""

    code = "STORE_FULL"


class KafkaStorageError(FatalError):
    """The disk failed to sync a folder: what this process wrote last may be lost with the next power cut.

    Nothing that is read back proves it, and no later sync does: this process writes no more.  Check the disk and the
    system's log, then begin anew in a new process, and ask there what became of the call.
    """

    code = "KAFKA_STORAGE_ERROR"


class StorePermissionError(TxnTableError):
    """The store refused the request for these credentials."""

    code = "CLUSTER_AUTHORIZATION_FAILED"


class MissingDependencyError(TxnTableError):
    """Something that must be installed is not; the message says how to get it."""

    code = "MISSING_DEPENDENCY"


if not TYPE_CHECKING:
    # To type checkers any name would be there.

    def __getattr__(name: str) -> object:
        told_of_module = import_module("txntable.runtime.other_names").told_of_module
        raise told_of_module(__name__, name, import_module("txntable.format.kafka_error_names").ERRORS)
