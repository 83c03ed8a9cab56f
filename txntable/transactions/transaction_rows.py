"""The rows of the transaction log T as Delta's columns: ids, batch ids, the lease (PROTOCOL.md §3.3, §6.1).

Owns which kinds of row there are, and the translation between a row and its columns; ``_row`` is
the truth and the others are copies.  Pure.  Must not know what a row allows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import pyarrow as pa

from txntable.coordinator.batch_memory import BatchRow
from txntable.coordinator.lease import LEASE_KEY, LeaseRow
from txntable.coordinator.transaction import TransactionMetadata
from txntable.coordinator.transaction_state import TransactionState
from txntable.errors import DamagedDataError
from txntable.format.partition_values import whole_number
from txntable.log.actions import Add
from txntable.log.damage import reading
from txntable.log.keyed_table import KEY, KIND, POSITION, ROW, Columns, check_copies, row_text

ID_KIND = "id"
BATCH_KIND = "batch"
LEASE_KIND = "lease"
KINDS = (ID_KIND, BATCH_KIND, LEASE_KIND)
STATE = "_state"
_DECIDED = frozenset(state.value for state in TransactionState if state.is_decided)
_OPEN = frozenset(state.value for state in TransactionState if state.is_open)
_AT_REST = frozenset(state.value for state in TransactionState if state is not TransactionState.DEAD) - _DECIDED - _OPEN
PRODUCER_ID, _PRODUCER_EPOCH, _DECISION = "_producer_id", "_producer_epoch", "_decision"
TRANSACTION_LOG_COLUMNS = pa.schema(
    [
        pa.field(KIND, pa.string()),
        pa.field(KEY, pa.string()),
        pa.field(STATE, pa.string()),
        pa.field(PRODUCER_ID, pa.int64()),
        pa.field(_PRODUCER_EPOCH, pa.int64()),
        pa.field(_DECISION, pa.int64()),
        pa.field(POSITION, pa.int64()),
        pa.field(ROW, pa.string()),
    ]
)


def id_columns(row: TransactionMetadata) -> Columns:
    """Return the columns of an id's row."""
    return {
        KIND: ID_KIND,
        KEY: row.key,
        STATE: row.state.value,
        PRODUCER_ID: str(row.producer_id),
        _PRODUCER_EPOCH: str(row.producer_epoch),
        _DECISION: None if row.decision is None else str(row.decision.position),
        POSITION: str(row.position),
        ROW: row.to_json(),
    }


def batch_columns(row: BatchRow) -> Columns:
    """Return the columns of a batch id's row."""
    return {
        KIND: BATCH_KIND,
        KEY: row.key,
        STATE: None,
        PRODUCER_ID: str(row.producer_id),
        _PRODUCER_EPOCH: str(row.epoch),
        _DECISION: str(row.position),
        POSITION: str(row.position),
        ROW: row.to_json(),
    }


def lease_columns(row: LeaseRow) -> Columns:
    """Return the columns of the lease's row."""
    return {
        KIND: LEASE_KIND,
        KEY: LEASE_KEY,
        STATE: None,
        PRODUCER_ID: None,
        _PRODUCER_EPOCH: str(row.coordinator_epoch),
        _DECISION: None,
        POSITION: str(row.position),
        ROW: row.to_json(),
    }


def id_row_of(add: Add) -> TransactionMetadata:
    """Return the row of a transactional id.

    Raises
    ------
    DamagedDataError
        Its columns contradict its content.
    UnsupportedFormatError
        It is of a newer format.
    """
    return _id_row(add.path, tuple(add.partition_values.items()))


# An entry is proved and then folded: a row that carries a hundred segments is read once for both.
@lru_cache(maxsize=16)
def _id_row(path: str, columns: tuple[tuple[str, str | None], ...]) -> TransactionMetadata:
    with reading(path):
        values = dict(columns)
        row = TransactionMetadata.from_json(row_text(path, values))
        check_copies(path, values, id_columns(row))
        return row


def batch_row_of(add: Add) -> BatchRow:
    """Return the row of a batch id; raises as :func:`id_row_of`."""
    with reading(add.path):
        row = BatchRow.from_json(row_text(add.path, add.partition_values))
        check_copies(add.path, add.partition_values, batch_columns(row))
        return row


def lease_row_of(add: Add) -> LeaseRow:
    """Return the lease's row; raises as :func:`id_row_of`."""
    with reading(add.path):
        row = LeaseRow.from_json(row_text(add.path, add.partition_values))
        check_copies(add.path, add.partition_values, lease_columns(row))
        return row


def check_row(add: Add) -> None:
    """Refuse a row that is none; raises as :func:`id_row_of`."""
    kind = add.partition_values.get(KIND)
    if kind == BATCH_KIND:
        batch_row_of(add)
    elif kind == LEASE_KIND:
        lease_row_of(add)
    elif kind == ID_KIND:
        id_row_of(add)


@dataclass(slots=True)
class RowUnderWay:
    """The row of an id whose transaction is under way, which is read when it is first asked for.

    Attributes
    ----------
    add : Add
        The row.
    since_ms : int
        The in-commit time of the entry that wrote it.
    is_decided : bool
        Whether it is in PREPARE_*.
    """

    add: Add
    since_ms: int
    is_decided: bool
    _read: TransactionMetadata | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(cls, add: Add, since_ms: int) -> RowUnderWay | None:
        """Return the row of an id, unless no transaction of it is under way.

        Raises
        ------
        DamagedDataError
            It has no state.
        """
        state = add.partition_values.get(STATE)
        if state in _DECIDED or state in _OPEN:
            return cls(add, since_ms, state in _DECIDED)
        if state not in _AT_REST:
            raise DamagedDataError("a row of an id has no state; restore the log from a backup", path=add.path)
        return None

    def read(self) -> TransactionMetadata:
        """Return the row; raises as :func:`id_row_of`."""
        if self._read is None:
            self._read = id_row_of(self.add)
        return self._read

    @property
    def is_read(self) -> bool:
        """Whether it was asked for."""
        return self._read is not None

    @property
    def position(self) -> int:
        """The version that wrote it; of a decided one that of the decision."""
        return whole_number(self.add.partition_values.get(POSITION))

    def may_enrol(self, topic: str) -> bool:
        """Return whether it may have enrolled a topic, without reading it.

        Parameters
        ----------
        topic : str
            Its id or its name: letters that JSON spells in one way but for escapes.
        """
        text = self.add.partition_values.get(ROW) or ""
        return topic in text or "\\u" in text
