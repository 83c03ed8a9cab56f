"""How the transaction log stands to a transaction that a partition log shows as open: will it end, and by whom.

The rules are those of PROTOCOL.md §6.5.

A transaction *hangs* when it is open in a partition log and nothing in the transaction log will ever
write its marker: the id is gone or has moved on.  Writers that keep the rules never leave one; damage,
or a transaction log restored from a backup, does.  Whatever is said of an epoch that is *past* is
true for ever: epochs and producer ids are given once.  Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from txntable.coordinator.decision import Decision
from txntable.coordinator.transaction import TransactionMetadata
from txntable.coordinator.transaction_request import Transition
from txntable.coordinator.transaction_state import Operation
from txntable.coordinator.transaction_upkeep import abort_open


class OpenEpochStatus(Enum):
    """What the transaction log knows of a (producer id, epoch) with open data in a topic."""

    OPEN = "OPEN"
    """It is under way, and has enrolled the topic: its producer, its timeout or an admin ends it."""
    DECIDED = "DECIDED"
    """It is decided, and the topic is owed its marker: whoever completes ends it."""
    UNENROLLED = "UNENROLLED"
    """It is under way and has not enrolled the topic: its decision will not reach the topic."""
    IDLE = "IDLE"
    """The id has this epoch and no transaction."""
    PAST = "PAST"
    """The epoch is over, or no id has the producer id any more."""
    AHEAD = "AHEAD"
    """The producer id or the epoch was never given: the transaction log has lost what it knew."""

    @property
    def hangs(self) -> bool:
        """Whether nothing that is under way will end the transaction in the topic."""
        return self not in (OpenEpochStatus.OPEN, OpenEpochStatus.DECIDED)


@dataclass(frozen=True, slots=True)
class OpenEpoch:
    """A transaction with open data in a topic, by what names it.

    Attributes
    ----------
    producer_id, epoch : int
        They name one transaction.
    topic_id : str
        32 hex digits.
    """

    producer_id: int
    epoch: int
    topic_id: str


def open_epoch_status(row: TransactionMetadata | None, open_epoch: OpenEpoch, next_producer_id: int) -> OpenEpochStatus:
    """Return how the transaction log stands to an open transaction.

    Parameters
    ----------
    row : TransactionMetadata, optional
        The row of the id that has the producer id; ``None`` when no id has it.
    open_epoch : OpenEpoch
        What the partition log shows.
    next_producer_id : int
        The first producer id that no one owns.

    Returns
    -------
    OpenEpochStatus
        A topic counts as a whole: one marker ends the transaction in all its partitions.
    """
    if row is None:
        return OpenEpochStatus.PAST if open_epoch.producer_id < next_producer_id else OpenEpochStatus.AHEAD
    if open_epoch.epoch > row.producer_epoch:
        return OpenEpochStatus.AHEAD
    enrolled = open_epoch.topic_id in row.topics
    if open_epoch.epoch == row.producer_epoch:
        if not row.state.is_open:
            return OpenEpochStatus.IDLE
        return OpenEpochStatus.OPEN if enrolled else OpenEpochStatus.UNENROLLED
    # A decided row has enrolments of the epoch just below its own.
    owed = row.state.is_decided and enrolled and open_epoch.epoch == row.producer_epoch - 1
    return OpenEpochStatus.DECIDED if owed else OpenEpochStatus.PAST


def terminate_epoch(
    row: TransactionMetadata | None, producer_id: int, epoch: int, position: int
) -> Transition[Decision | None]:
    """Abort exactly the transaction that (producer id, epoch) names; a later one of the id is not touched.

    Parameters
    ----------
    row : TransactionMetadata, optional
        The row of the id.
    producer_id, epoch : int
        Of the transaction.
    position : int
        The slot decided on.

    Returns
    -------
    Transition
        With the decision; with ``None``, and nothing to write, when the id is past that epoch.  An id that has
        the epoch and no transaction gives it up: no later transaction can get it.
    """
    if row is None or (row.producer_id, row.producer_epoch) != (producer_id, epoch) or row.state.is_decided:
        return Transition(None, None)
    decided = abort_open(row, Operation.FENCE if row.state.is_open else Operation.ABORT, position)
    return Transition(decided.row, decided.answer)
