"""What was decided of one transaction: the value that retries are answered with (PROTOCOL.md §6.1).

Must not know of rows or states.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from txntable.coordinator.batch_memory import BatchId
from txntable.coordinator.errors import DamagedDataError
from txntable.coordinator.row_json import decode_object


class Outcome(Enum):
    """How a transaction ends; the value is the stored name."""

    COMMIT = "COMMIT"
    ABORT = "ABORT"


@dataclass(frozen=True, slots=True)
class Decision:
    """One decided transaction of a producer id.

    Attributes
    ----------
    epoch : int
        The producer epoch of the transaction: of its records, and what its markers end.
    outcome : Outcome
        Commit or abort.
    position : int
        The decision position: the version of the transaction log that decided.
    batch_id : str or int, optional
        The batch id that it carried.
    """

    epoch: int
    outcome: Outcome
    position: int
    batch_id: BatchId | None = None

    @property
    def next_epoch(self) -> int:
        """The epoch with which the same producer goes on, and which the markers raise to."""
        return self.epoch + 1


@dataclass(frozen=True, slots=True)
class PastDecision:
    """A transaction that was decided before the last decision of its row: its position is not kept.

    Attributes
    ----------
    epoch : int
        The producer epoch of the transaction.
    outcome : Outcome
        Commit or abort.
    """

    epoch: int
    outcome: Outcome

    @property
    def next_epoch(self) -> int:
        """As :attr:`Decision.next_epoch`; a newer producer has taken it, or gone past it."""
        return self.epoch + 1


def encode_decision(decision: Decision) -> dict[str, object]:
    """Return the JSON form of `decision`."""
    batch = {} if decision.batch_id is None else {"batch_id": decision.batch_id}
    return {"epoch": decision.epoch, "outcome": decision.outcome.value, "position": decision.position, **batch}


def decode_decision(document: object, what: str) -> Decision:
    """Return the decision of a stored row; `what` is what messages call the row.

    Raises
    ------
    DamagedDataError, UnsupportedFormatError
        See :func:`txntable.coordinator.row_json.decode_object`.
    """
    required = {"epoch": int, "outcome": str, "position": int}
    fields = decode_object(document, what, required, {"batch_id": (str, int)})
    outcome = fields.pop("outcome")
    if outcome not in Outcome.__members__:
        raise DamagedDataError("a stored row has an unknown outcome", row=what, outcome=outcome)
    return Decision(outcome=Outcome[outcome], **fields)
