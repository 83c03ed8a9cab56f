"""The transaction log T: the brain's requests made durable at exactly the next slot (PROTOCOL.md §6).

Owns the columns of T's rows, the fold that knows which transactions are open or decided and not
complete, and the one way to run a request of ``coordinator.transaction_shard``: read the row
at the head, decide, write, and again on a lost slot.  There is no coordinator server: this runs in
every client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from coordinator.batch_memory import BatchId, BatchMemory, BatchRow, batch_key
from coordinator.producer_ids import allocate_producer_ids
from coordinator.transaction import TransactionMetadata, transaction_key
from coordinator.transaction_request import Transition
from coordinator.transaction_state import TransactionState
from txntable.errors import CommitStateUnknownError, DamagedDataError, UnsupportedFormatError
from txntable.layout import TRANSACTION_LOG_ROOT
from txntable.log.actions import Action, Add, Commit, Remove, Txn
from txntable.log.delta_log import DeltaLog, LogContext
from txntable.log.keyed_table import (
    KEY,
    KIND,
    POSITION,
    ROW,
    Columns,
    check_copies,
    ensure_key_files,
    find_row,
    keyed_add,
    keyed_remove,
    row_text,
)
from txntable.log.outcome import Committed, Unknown
from txntable.log.table_state import TableState

ID_KIND = "id"
BATCH_KIND = "batch"
STATE = "_state"
NEXT_PRODUCER_ID = "next_producer_id"
TRANSACTION_LOG_COLUMNS = pa.schema(
    [
        pa.field(KIND, pa.string()),
        pa.field(KEY, pa.string()),
        pa.field(STATE, pa.string()),
        pa.field("_producer_id", pa.int64()),
        pa.field("_producer_epoch", pa.int64()),
        pa.field("_decision", pa.int64()),
        pa.field(POSITION, pa.int64()),
        pa.field(ROW, pa.string()),
    ]
)
_UNDER_WAY = [state.value for state in TransactionState if state.is_open or state.is_decided]

AnswerT = TypeVar("AnswerT")


def id_columns(row: TransactionMetadata) -> Columns:
    """Return the columns of an id's row."""
    return {
        KIND: ID_KIND,
        KEY: row.key,
        STATE: row.state.value,
        "_producer_id": str(row.producer_id),
        "_producer_epoch": str(row.producer_epoch),
        "_decision": None if row.decision is None else str(row.decision.position),
        POSITION: str(row.position),
        ROW: row.to_json(),
    }


def batch_columns(row: BatchRow) -> Columns:
    """Return the columns of a batch id's row."""
    return {
        KIND: BATCH_KIND,
        KEY: row.key,
        STATE: None,
        "_producer_id": str(row.producer_id),
        "_producer_epoch": str(row.epoch),
        "_decision": str(row.position),
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
    row = TransactionMetadata.from_json(row_text(add))
    check_copies(add, id_columns(row))
    return row


def batch_row_of(add: Add) -> BatchRow:
    """Return the row of a batch id; raises as :func:`id_row_of`."""
    row = BatchRow.from_json(row_text(add))
    check_copies(add, batch_columns(row))
    return row


class TransactionLogFold:
    """Which transactions are under way; all other rows are looked up by their path.

    Attributes
    ----------
    under_way : dict of str to TransactionMetadata
        Transactional id -> its row, in the states ONGOING, PREPARED and PREPARE_*.
    decided_at_ms : dict of int to int
        Decision position -> its in-commit time, for the rows in PREPARE_*.
    """

    def __init__(self) -> None:
        self.under_way: dict[str, TransactionMetadata] = {}
        self.decided_at_ms: dict[int, int] = {}

    def restore(self, table: TableState) -> None:
        """Take everything from a state just loaded."""
        self.under_way, self.decided_at_ms = {}, {}
        rows = table.files.to_table()
        state = pc.map_lookup(rows["partitionValues"], query_key=pa.scalar(STATE), occurrence="first")
        for path in rows.filter(pc.is_in(state, pa.array(_UNDER_WAY)))["path"].to_pylist():
            add = table.files.get(path)
            if add is not None:
                # The entry that decided may be gone: the checkpoint's time is the best upper bound.
                self._take(add, table.timestamp_ms)

    def apply(self, commit: Commit, table: TableState) -> None:
        """Take one commit; `table` is the state before it."""
        for action in commit.actions:
            if isinstance(action, Add):
                self._take(action, commit.info.timestamp_ms)
            elif isinstance(action, Remove):
                old = table.files.get(action.path)
                if old is not None and old.partition_values[KIND] == ID_KIND:
                    self._drop(id_row_of(old).transactional_id)

    def _take(self, add: Add, timestamp_ms: int) -> None:
        kind = add.partition_values.get(KIND)
        if kind == BATCH_KIND:
            batch_row_of(add)
            return
        if kind != ID_KIND:
            raise UnsupportedFormatError("the transaction log has rows of a newer format; upgrade txntable", kind=kind)
        row = id_row_of(add)
        self._drop(row.transactional_id)
        if row.state.is_open or row.state.is_decided:
            self.under_way[row.transactional_id] = row
        if row.state.is_decided:
            self.decided_at_ms[row.position] = timestamp_ms

    def _drop(self, transactional_id: str) -> None:
        row = self.under_way.pop(transactional_id, None)
        if row is not None:
            self.decided_at_ms.pop(row.position, None)

    def decided(self) -> list[TransactionMetadata]:
        """Return the transactions that are decided and not complete, in decision order."""
        return sorted((row for row in self.under_way.values() if row.state.is_decided), key=lambda row: row.position)


Request = Callable[[TransactionMetadata | None, int], Transition[AnswerT]]


class TransactionLog:
    """T, and how requests become durable in it.

    Parameters
    ----------
    context : LogContext
        Of the warehouse.
    """

    def __init__(self, context: LogContext) -> None:
        self.context = context
        self.log: DeltaLog[TransactionLogFold] = DeltaLog(context, TRANSACTION_LOG_ROOT, TransactionLogFold())

    # -- reading ----------------------------------------------------------------------------

    def refresh(self) -> int:
        """Bring the view to the head of T and return its version.

        Raises
        ------
        DamagedDataError
            The warehouse has no transaction log.
        """
        version = self.log.refresh().version
        if version is None:
            raise DamagedDataError("the warehouse has lost its transaction log; restore it", log=self.log.root)
        return version

    def row(self, transactional_id: str) -> TransactionMetadata | None:
        """Return the row of an id as the view knows it."""
        with self.log.lock:
            add = find_row(self.log.table, ID_KIND, transaction_key(transactional_id))
        return None if add is None else id_row_of(add)

    def rows(self) -> Iterator[TransactionMetadata]:
        """Yield the rows of all transactional ids as the view knows them."""
        with self.log.lock:
            adds = list(self.log.table.files)
        for add in adds:
            if add.partition_values[KIND] == ID_KIND:
                yield id_row_of(add)

    def memory(self, transactional_id: str, batch_id: BatchId | None) -> BatchMemory:
        """Return what the view remembers of a batch id."""
        if batch_id is None:
            return BatchMemory()
        add = find_row(self.log.table, BATCH_KIND, batch_key(transactional_id, batch_id))
        if isinstance(batch_id, str):
            return BatchMemory(name_known=add is not None)
        last = None if add is None else batch_row_of(add).batch_id
        return BatchMemory(last_integer=last if isinstance(last, int) else None)

    # -- writing ----------------------------------------------------------------------------

    def request(self, operation: str, transactional_id: str, request: Request[AnswerT]) -> AnswerT:
        """Run one request of the brain on the row at the head, and make its transition durable.

        Parameters
        ----------
        operation : str
            For people.
        transactional_id : str
            Whose row.
        request : callable
            (row, position) -> Transition; pure, made again when the slot is lost.

        Returns
        -------
        object
            The transition's answer, once it is durable.

        Raises
        ------
        CommitStateUnknownError
            The store can not be reached; the same call finds out what became of it.
        TxnTableError
            Whatever the request raises.
        """
        answer: list[AnswerT] = []

        def decide(table: TableState) -> Sequence[Action]:
            transition = request(self.row(transactional_id), table.next_version)
            answer[:] = [transition.answer]
            return self._actions(table, transition)

        with self.log.lock:
            outcome = self.log.commit(operation, decide)
        if isinstance(outcome, Unknown):
            raise CommitStateUnknownError(
                "the store can not be reached: the request may have been granted; make the same call again",
                operation=operation,
                transactional_id=transactional_id,
            )
        return answer[0]

    def _actions(self, table: TableState, transition: Transition[AnswerT]) -> list[Action]:
        now_ms = self.context.clock.now_ms()
        actions: list[Action] = []
        adds: list[Add] = []
        row = transition.row
        if row is not None and row.state is TransactionState.DEAD:
            old = find_row(table, ID_KIND, row.key)
            if old is not None:
                actions.append(keyed_remove(old, now_ms))
        elif row is not None:
            adds.append(keyed_add(id_columns(row), now_ms))
        if transition.batch_row is not None:
            adds.append(keyed_add(batch_columns(transition.batch_row), now_ms))
        if transition.next_producer_id is not None:
            actions.append(Txn(NEXT_PRODUCER_ID, transition.next_producer_id))
        ensure_key_files(self.context.store, self.log.root, table, adds)
        return [*adds, *actions]

    def allocate_producer_ids(self) -> range:
        """Take a block of producer ids for producers without a transactional id.

        Raises
        ------
        CommitStateUnknownError
            Call again; a block may be lost, which harms nothing.
        """
        taken: list[range] = []

        def decide(table: TableState) -> Sequence[Action]:
            block = allocate_producer_ids(table.numbers.get(NEXT_PRODUCER_ID))
            taken[:] = [block.ids]
            return [Txn(NEXT_PRODUCER_ID, block.next_producer_id)]

        outcome = self.log.commit("ALLOCATE_PRODUCER_IDS", decide)
        if not isinstance(outcome, Committed):
            raise CommitStateUnknownError("the store can not be reached; make the same call again", log=self.log.root)
        return taken[0]
