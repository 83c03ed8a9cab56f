"""Names of errors of Kafka's clients that are called something else here.

Owns the words for who catches what they know of the Java client or kafka-python.  Must not know when each is raised.
"""

from __future__ import annotations

from collections.abc import Mapping

from txntable import errors

# Without the word that ends them: Java's clients say Exception, Python's Error.
_STEMS = {
    "TxnTableError": ("Kafka", "Api"),
    "StoreUnavailableError": (
        *("BrokerNotAvailable", "BrokerResponse", "CoordinatorLoadInProgress", "CoordinatorNotAvailable", "Disconnect"),
        *("GroupCoordinatorNotAvailable", "KafkaConnection", "LeaderNotAvailable", "Network", "NodeNotReady"),
        *("NotCoordinator", "NotEnoughReplicas", "NotLeaderForPartition", "NotLeaderOrFollower", "RequestTimedOut"),
    ),
    "StorePermissionError": (
        *("Authentication", "Authorization", "SaslAuthentication", "SaslAuthenticationFailed"),
        *(f"{what}Authorization{how}" for what in ("Cluster", "Group", "Topic") for how in ("", "Failed")),
        *(f"TransactionalIdAuthorization{how}" for how in ("", "Failed")),
    ),
    "DamagedDataError": ("CorruptRecord",),
    "IllegalStateError": ("IllegalState", "ConcurrentModification"),
    "InvalidConfigError": ("Config", "KafkaConfiguration", "InvalidConfiguration"),
    "InvalidPidMappingError": ("InvalidProducerIdMapping", "UnknownProducerId"),
    "InvalidRequestError": ("IllegalArgument", "InvalidTimestamp"),
    "OffsetOutOfRangeError": ("NoOffsetForPartition",),
    "OutOfOrderSequenceError": ("OutOfOrderSequenceNumber",),
    "RecordTooLargeError": ("MessageSizeTooLarge", "RecordBatchTooLarge"),
    "SchemaMismatchError": ("Serialization",),
    "TopicAlreadyExistsError": ("TopicExists",),
}
_SENTENCES = {
    **dict.fromkeys(
        ("KafkaTimeout", "Timeout"),
        "txntable.StoreUnavailableError is raised, or CommitStateUnknownError: make the same call again",
    ),
    "RebalanceInProgress": "a member that lost partitions is refused as StaleMemberEpochError or UnknownMemberIdError",
    **dict.fromkeys(("Wakeup", "Interrupt"), "none is raised: poll returns at once after wakeup"),
}


_CALLED = {
    **{name.removesuffix("Error"): name for name in errors.__all__},
    **{stem: here for here, stems in _STEMS.items() for stem in stems},
}
_TOLD = {**{stem: f"it is txntable.{here}" for stem, here in _CALLED.items()}, **_SENTENCES}

ERRORS: Mapping[str, str] = {
    "NoBrokersAvailable": _TOLD["BrokerNotAvailable"],
    **{f"{stem}{end}": said for stem, said in _TOLD.items() for end in ("Error", "Exception")},
}
"""Name of an error -> what is raised here; of errors that are here, too: nobody asks for those."""
