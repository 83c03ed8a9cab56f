"""Batch ids: which runs of a transactional id have committed (PROTOCOL.md §6.1).

The memory is rows of their own, so it outlives the id's expiry.  An integer is a sequence (one row
per transactional id holds the last, for ever); a string is a name (a row each, kept ``batch.retention``).
A row is written by the very commit that decides the transaction.  Must not know of states.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from txntable.coordinator.error_kinds import shown
from txntable.coordinator.errors import (
    BatchAlreadyCommittedError,
    BatchOutOfOrderError,
    DamagedDataError,
    InvalidRequestError,
)
from txntable.coordinator.row_json import (
    LARGEST_NUMBER,
    Fields,
    check_name,
    check_stored_name,
    decode_row,
    encode_key,
    encode_row,
)

BatchId: TypeAlias = str | int
DIGITS_ALONE = (
    "a batch id of digits alone could be a number, which must rise, or a name, which need not; write a name with"
    " another character, as 2026-11-20 or run-20261120"
)
"""What whoever gives such a text is told; where there are numbers, too, that may be added."""


def check_batch_id(batch_id: BatchId) -> BatchId:
    """Return `batch_id` when it may be given.

    Raises
    ------
    InvalidRequestError
        Neither an integer from 0 to 2^63 - 1 nor a non-empty string that is not digits alone: give another.
    """
    if is_digits_alone(batch_id):
        raise InvalidRequestError(f"{DIGITS_ALONE}, or pass an int", batch_id=shown(batch_id))
    return check_stored_batch_id(batch_id)


def check_stored_batch_id(batch_id: BatchId) -> BatchId:
    """Return `batch_id` when it may stand in the log: names of digits alone were given once, and are read.

    Raises
    ------
    InvalidRequestError
        Neither an integer from 0 to 2^63 - 1 nor a non-empty string.
    """
    if isinstance(batch_id, str):
        return check_name(batch_id, "a batch name")
    if type(batch_id) is not int or not 0 <= batch_id <= LARGEST_NUMBER:
        # A time such as 20260101123456789012 has 20 digits.
        raise InvalidRequestError(
            "a batch id is a string or an integer from 0 to 2^63 - 1; give a longer one as a string with another"
            " character, as run-20260101123456789012",
            batch_id=shown(batch_id),
        )
    return batch_id


def is_digits_alone(batch_id: object) -> bool:
    """Return whether a batch id is a text of ASCII digits alone, which where all is text is a number."""
    return isinstance(batch_id, str) and batch_id.isascii() and batch_id.isdigit()


def batch_key(transactional_id: str, batch_id: BatchId) -> str:
    """Return the key of the row that remembers `batch_id`: integers of one id share one row."""
    return encode_key(transactional_id) if isinstance(batch_id, int) else encode_key(transactional_id, batch_id)


_REQUIRED: Fields = {
    "transactional_id": str,
    "batch_id": (str, int),
    "producer_id": int,
    "epoch": int,
    "position": int,
}
_OPTIONAL: Fields = {"decided_at_ms": int}


@dataclass(frozen=True, slots=True)
class BatchRow:
    """One committed batch id.

    Attributes
    ----------
    transactional_id : str
        The scope of the batch id.
    batch_id : str or int
        The name, or the last committed integer.
    producer_id, epoch : int
        The transaction that committed it.
    position : int
        Its decision position.
    decided_at_ms : int, optional
        The store's time of the decision, milliseconds since 1970; ``None``: unknown, never forgotten.
    """

    transactional_id: str
    batch_id: BatchId
    producer_id: int
    epoch: int
    position: int
    decided_at_ms: int | None = None

    @property
    def key(self) -> str:
        """The row's key in the transaction log."""
        return batch_key(self.transactional_id, self.batch_id)

    def to_json(self) -> str:
        """Return the stored form."""
        return encode_row(
            {
                "transactional_id": self.transactional_id,
                "batch_id": self.batch_id,
                "producer_id": self.producer_id,
                "epoch": self.epoch,
                "position": self.position,
                "decided_at_ms": self.decided_at_ms,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> BatchRow:
        """Return the row that `text` stores.

        Raises
        ------
        DamagedDataError
            It contradicts the format.
        UnsupportedFormatError
            It is of a format that this version does not know.
        """
        row = cls(**decode_row(text, "batch", _REQUIRED, _OPTIONAL))
        try:
            check_stored_name(row.transactional_id, "a transactional id")
            check_stored_batch_id(row.batch_id)
        except InvalidRequestError as error:
            raise DamagedDataError("a stored batch row has no valid key", row="batch", key=row.key) from error
        return row


@dataclass(frozen=True, slots=True)
class BatchMemory:
    """What the log remembers that matters to one batch id, at the version that is decided on.

    Attributes
    ----------
    last_integer : int, optional
        The last committed integer of the transactional id.
    name_known : bool
        Whether the name has a row.
    committed_by : tuple of (int, int), optional
        The producer id and epoch of the transaction that wrote that row.
    """

    last_integer: int | None = None
    name_known: bool = False
    committed_by: tuple[int, int] | None = None

    def has(self, batch_id: BatchId) -> bool:
        """Return whether `batch_id`, or a later integer, was committed."""
        if isinstance(batch_id, str):
            return self.name_known
        return self.last_integer is not None and batch_id <= self.last_integer

    def tells_of(self, batch_id: BatchId, producer_id: int, epoch: int) -> bool | None:
        """Return whether that transaction committed `batch_id`; ``None``: a later integer took its place."""
        if isinstance(batch_id, int) and self.last_integer is not None and batch_id < self.last_integer:
            return None
        known = self.name_known if isinstance(batch_id, str) else self.last_integer == batch_id
        return known and self.committed_by == (producer_id, epoch)


@dataclass(frozen=True, slots=True)
class CommittedBatches:
    """All that the log remembers of the batches of one transactional id.

    Attributes
    ----------
    last_integer : int, optional
        The last committed integer.
    names : frozenset of str
        The names that were committed and are not forgotten.
    """

    last_integer: int | None = None
    names: frozenset[str] = frozenset()


def check_batch(last_integer: int | None, name_known: bool, batch_id: BatchId) -> None:
    """Return when `batch_id` may still be committed; asked at begin, and again when deciding.

    Parameters
    ----------
    last_integer, name_known
        See :class:`BatchMemory`.
    batch_id : str or int
        What the transaction carries.

    Raises
    ------
    BatchAlreadyCommittedError
        It was committed: skip the run.
    BatchOutOfOrderError
        An integer below the last committed one.  Of integers the last alone is remembered, so a run that was done and
        one that was passed over are the same: skip the one, give the other a name.
    InvalidRequestError
        It is no batch id.  A name of digits alone is one here: a transaction may be prepared with it since before.
    """
    check_stored_batch_id(batch_id)
    if isinstance(batch_id, str):
        if name_known:
            raise BatchAlreadyCommittedError("this batch was committed before: skip the run", batch_id=shown(batch_id))
    elif last_integer is not None and batch_id == last_integer:
        raise BatchAlreadyCommittedError("this batch was committed before: skip the run", batch_id=batch_id)
    elif last_integer is not None and batch_id < last_integer:
        raise BatchOutOfOrderError(
            "a later number was committed before, and whether this one was is not remembered: skip the run if it was"
            f" done; if it was passed over, run it under a name, as run-{batch_id}, which may come in any order",
            batch_id=batch_id,
            last=last_integer,
        )


def is_batch_forgotten(row: BatchRow, now_ms: int, retention_ms: int) -> bool:
    """Return whether the row may be removed.

    Parameters
    ----------
    row : BatchRow
        What is remembered.
    now_ms : int
        The store's time, milliseconds since 1970.
    retention_ms : int
        ``batch.retention`` in milliseconds.

    Returns
    -------
    bool
        Only a name is ever forgotten: without the last integer a stream would commit all over again.
    """
    if isinstance(row.batch_id, int) or row.decided_at_ms is None:
        return False
    return now_ms - row.decided_at_ms >= retention_ms
