"""A log of keyed rows that a state machine's requests become durable in: T and O (PROTOCOL.md §3.3, §4.2).

Owns the one way to run a request: look at the rows at the head, decide, write at exactly the next slot, and again on a
lost one; and the lock between reading the head and looking at it, since another thread may be reopening the view.
There is no coordinator server: this runs in every client.  Must not know what a row means, nor what a request is about.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from txntable.errors import DamagedDataError
from txntable.log.actions import Action, Add
from txntable.log.delta_log import Decide, DeltaLog
from txntable.log.keyed_table import ensure_key_files, find_row, keyed_add, keyed_remove
from txntable.log.log_view import F, LogContext, LogView
from txntable.log.outcome import Unknown, unknown_error
from txntable.log.request_queue import AnswerT, RequestQueue, RowChange, WaitingRequest, decide_together
from txntable.log.table_state import TableState

LARGEST_COMMIT_ROWS = 1_000
"""How many rows one commit completes, or removes: what is left is for the next one."""

SeenT = TypeVar("SeenT")


class KeyedLog(Generic[F]):
    """A log of keyed rows, and how requests become durable in it.

    Parameters
    ----------
    context : LogContext
        Of the warehouse.
    log : DeltaLog
        The view to work on; several may share one.
    name : str
        What people call it.
    """

    def __init__(self, context: LogContext, log: DeltaLog[F], name: str) -> None:
        self.context = context
        self.log = log
        self._name = name
        self._queue = RequestQueue(log.lock, self._write_together)

    # -- reading ----------------------------------------------------------------------------

    def refresh(self) -> int:
        """Bring the view to the head of the log and return its version.

        Raises
        ------
        DamagedDataError
            The warehouse has no such log.
        """
        version = self.log.refresh().version
        if version is None:
            raise DamagedDataError(f"the warehouse has lost its {self._name}; restore it", log=self.log.root)
        return version

    def look(self, see: Callable[[], SeenT], after: LogView[Any] | None = None) -> SeenT:
        """Return what is seen at the head of the log, under one lock over reading and looking.

        Parameters
        ----------
        see : callable
            Looks at the view.
        after : LogView, optional
            Where the head was asked for after this view had its answer, that reading is enough; by default it is read.

        Raises
        ------
        DamagedDataError
            The warehouse has no such log.
        """
        with self.log.lock:
            if after is None or not self.log.was_read_after(after):
                self.refresh()
            return see()

    def find(self, kind: str, key: str) -> Add | None:
        """Return the live row of a key as the view knows it."""
        with self.log.lock:
            return find_row(self.log.table, kind, key)

    # -- writing ----------------------------------------------------------------------------

    def commit(self, operation: str, decide: Decide, **whose: str) -> None:
        """Write to the log at exactly the next slot.

        Parameters
        ----------
        operation : str
            For people.
        decide : callable
            See :meth:`txntable.log.delta_log.DeltaLog.commit`.
        **whose : str
            Whose row it is, for the message.

        Raises
        ------
        CommitStateUnknownError
            The store cannot be reached; the same call finds out what became of it.
        TxnTableError
            Whatever `decide` raises.
        """
        outcome = self.log.commit(operation, decide)
        if isinstance(outcome, Unknown):
            raise unknown_error(outcome, operation=operation, **whose)

    def run(self, operation: str, request: Callable[[TableState], RowChange[AnswerT]], **whose: str) -> AnswerT:
        """Run one request on the rows at the head, make what it decides durable, and return its answer.

        Parameters
        ----------
        operation : str
            For people.
        request : callable
            The log's state -> what changes; pure, made again when the slot is lost.
        **whose : str
            Whose row it is, for the message.

        Raises
        ------
        CommitStateUnknownError
            The store cannot be reached; the same call finds out what became of it.
        TxnTableError
            Whatever the request raises.
        """
        answer: list[AnswerT] = []

        def decide(table: TableState) -> Sequence[Action]:
            change = request(table)
            answer[:] = [change.answer]
            return self._actions(table, change)

        self.commit(operation, decide, **whose)
        return answer[0]

    def share(self, operation: str, request: Callable[[TableState], RowChange[AnswerT]], **whose: str) -> AnswerT:
        """Run one request on the rows of one key as :meth:`run`, in an entry with those of other threads that wait.

        Parameters
        ----------
        operation : str
            For people; requests of other operations wait for an entry of their own.
        request : callable
            See :meth:`run`; it looks at the key's rows alone, and writes no others.
        **whose : str
            The key, and what it is.

        Raises
        ------
        CommitStateUnknownError
            The store cannot be reached; the same call finds out what became of it.
        TxnTableError
            Whatever the request raises.
        """
        return self._queue.run(WaitingRequest(operation, request, whose))

    def _write_together(self, operation: str, requests: Sequence[WaitingRequest[Any]]) -> None:
        """Decide requests on the same state, and write what they change to one slot."""

        def decide(table: TableState) -> Sequence[Action]:
            return self._actions(table, decide_together(requests, table))

        self.commit(operation, decide)

    def _actions(self, table: TableState, change: RowChange[AnswerT]) -> list[Action]:
        """Return what a change writes, after the files of its new keys."""
        if not (change.rows or change.removed):
            # Who may not write has no time of the store.
            return [*change.numbers]
        now_ms = self.context.clock.now_ms()
        adds = [keyed_add(columns, now_ms) for columns in change.rows]
        gone = [add for kind, key in change.removed if (add := find_row(table, kind, key)) is not None]
        ensure_key_files(self.context.store, self.log.root, table, adds)
        return [*adds, *(keyed_remove(add, now_ms) for add in gone), *change.numbers]
