"""Filters and descriptions of transactions for admins: values, in Kafka's terms.

Owns how a filter is checked.  Must not know of storage.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from txntable.coordinator.decision import Decision
from txntable.coordinator.error_kinds import shown
from txntable.coordinator.open_epoch_status import OpenEpochStatus
from txntable.coordinator.row_json import check_number
from txntable.coordinator.transaction import TransactionMetadata
from txntable.coordinator.transaction_state import TransactionState
from txntable.errors import InvalidRegularExpressionError, InvalidRequestError
from txntable.format.records import TopicPartition

_STATES = {
    state.value.replace("_", "").casefold(): state for state in TransactionState if state is not TransactionState.DEAD
}


@dataclass(frozen=True, slots=True)
class TransactionFilter:
    """Which transactional ids to list; filters that are ``None`` do not apply.

    Attributes
    ----------
    states : frozenset of TransactionState, optional
        Ids in one of these.
    producer_ids : frozenset of int, optional
        Ids with one of these.
    duration_ms : int, optional
        Ids whose transaction has been open for longer, in ms of the store's time.
    pattern : re.Pattern, optional
        Ids that it matches from the first to the last character.
    """

    states: frozenset[TransactionState] | None = None
    producer_ids: frozenset[int] | None = None
    duration_ms: int | None = None
    pattern: re.Pattern[str] | None = None

    def takes(self, row: TransactionMetadata) -> bool:
        """Return whether `row` passes everything but the duration, for which the store must be asked."""
        return (
            (self.states is None or row.state in self.states)
            and (self.producer_ids is None or row.producer_id in self.producer_ids)
            and (self.duration_ms is None or row.started_position is not None)
            and (self.pattern is None or self.pattern.fullmatch(row.transactional_id) is not None)
        )


def transaction_filter(
    states: Collection[str | TransactionState] | None,
    producer_ids: Collection[int] | None,
    duration_ms: int | None,
    pattern: str | None,
) -> TransactionFilter:
    """Return the filter of a call's arguments; as in Kafka, an empty argument filters nothing.

    Raises
    ------
    InvalidRequestError
        An argument has the wrong type, is negative, or names an unknown state.
    InvalidRegularExpressionError
        `pattern` is not a regular expression.
    """
    if duration_ms is not None:
        check_number(duration_ms, "duration_ms")
    wanted = [_state(state) for state in _collection(states, "states")]
    ids = [check_number(producer_id, "a producer id") for producer_id in _collection(producer_ids, "producer_ids")]
    return TransactionFilter(frozenset(wanted) or None, frozenset(ids) or None, duration_ms, _compiled(pattern))


def _collection(values: object, name: str) -> Collection[object]:
    if values is None:
        return ()
    if isinstance(values, str | bytes) or not isinstance(values, Collection):
        raise InvalidRequestError(f"{name} must be a list; wrap the value in a list", found=shown(values))
    return values


def _state(state: object) -> TransactionState:
    if isinstance(state, TransactionState):
        return state
    # Kafka's tools write CompleteCommit, its log and ours COMPLETE_COMMIT.
    found = _STATES.get(state.replace("_", "").casefold()) if isinstance(state, str) else None
    if found is None:
        known = ",".join(known_state.value for known_state in _STATES.values())
        raise InvalidRequestError(
            "unknown transaction state; use one of the known ones", state=shown(state), known=known
        )
    return found


def _compiled(pattern: object) -> re.Pattern[str] | None:
    if pattern is None or pattern == "":
        return None
    if not isinstance(pattern, str):
        raise InvalidRequestError("pattern must be a string with a regular expression", found=shown(pattern))
    try:
        return re.compile(pattern)
    except re.error as error:
        raise InvalidRegularExpressionError(
            f"the pattern is not a valid regular expression: {error}; correct it", pattern=shown(pattern)
        ) from error


@dataclass(frozen=True, slots=True)
class TransactionDescription:
    """A transactional id and its transaction.

    Attributes
    ----------
    transactional_id : str
        The id.
    state : TransactionState
        Where it stands.
    producer_id, producer_epoch : int
        Who may act now; of a decided transaction the epoch is already the raised one.
    timeout_ms : int
        The transaction timeout.
    start_time_ms : int or None
        The store's time of the first enrolment, ms since 1970; ``None``: no transaction, or one so old that its
        log entry was cleaned away.
    duration_ms : int or None
        Since then, by the store's time.
    started_position : int or None
        The version of T with the first enrolment; ``None``: no transaction.
    topic_partitions : tuple of TopicPartition
        What is enrolled, ascending.
    groups : tuple of str
        Consumer groups whose offsets are part of it.
    decision : Decision or None
        The last decision of the id.
    token : str or None
        While PREPARED: who holds it decides; write access to the transaction log decides as well.
    coordinator_epoch : int
        How many coordinator jobs have taken this warehouse over so far; 0: none.
    """

    transactional_id: str
    state: TransactionState
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_time_ms: int | None
    duration_ms: int | None
    started_position: int | None
    topic_partitions: tuple[TopicPartition, ...]
    groups: tuple[str, ...]
    decision: Decision | None
    token: str | None
    coordinator_epoch: int


@dataclass(frozen=True, slots=True)
class ProducerState:
    """What a partition remembers of a producer.

    Attributes
    ----------
    producer_id, producer_epoch : int
        The epoch is the highest seen.
    coordinator_epoch : int or None
        Of its last marker here; ``None``: there was none.
    last_sequence : int or None
        Of its last record under this epoch; ``None``: only a marker is known.
    last_timestamp_ms : int
        Of its last batch or marker, ms since 1970.
    current_transaction_start_offset : int or None
        First offset of its open transaction here; ``None``: none is open.
    """

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int | None
    last_sequence: int | None
    last_timestamp_ms: int
    current_transaction_start_offset: int | None


@dataclass(frozen=True, slots=True)
class HangingTransaction:
    """A transaction that is open in a partition and that nothing in the transaction log will end.

    Attributes
    ----------
    topic_partition : TopicPartition
        Where it is open.
    producer_id, producer_epoch : int
        They name the transaction.
    coordinator_epoch : int or None
        Of the producer's last marker here.
    start_offset : int
        Of its first record here: no ``read_committed`` reader gets beyond.
    last_timestamp_ms : int
        Of the producer's last batch or marker here, ms since 1970.
    duration_ms : int
        Since its first segment here was appended, by the store's time.
    transactional_id : str or None
        The id that has the producer id, if there is one.
    status : OpenEpochStatus
        Why nothing ends it.
    """

    topic_partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int | None
    start_offset: int
    last_timestamp_ms: int
    duration_ms: int
    transactional_id: str | None
    status: OpenEpochStatus
