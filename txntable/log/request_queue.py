"""Requests of one process that wait for a log at the same time, and share an entry (PROTOCOL.md §4.2, log rule 14).

Who gets the log first leads: it takes the others along, each is decided on the state below the slot as if it were
alone, and all are told what became of theirs.  Nobody waits for company, and one that is refused holds up nobody.

Invariants
----------
* No two requests of an entry are of one key, nor set one number: so none sees what another one changes.
* Nobody is told what was decided for a slot that was lost; a refusal stands like a change, on the state below the slot.
* Who leaves before it is taken along is not written.

Must not know what a request is about, nor how an entry becomes durable.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from txntable.errors import CommitStateUnknownError, TxnTableError
from txntable.log.actions import Txn
from txntable.log.keyed_table import ROW, Columns
from txntable.log.outcome import MAY_HAVE_HAPPENED
from txntable.log.table_state import TableState
from txntable.runtime.environment import Lock
from txntable.runtime.one_process import OfOneProcess

MOST_TOGETHER = 500
LARGEST_TOGETHER_BYTES = 1024 * 1024
"""Of rows, in UTF-8: what an entry of T decides at its position is one commit of each S (PROTOCOL.md §6.4)."""

AnswerT = TypeVar("AnswerT")


@dataclass(frozen=True, slots=True)
class RowChange(Generic[AnswerT]):
    """What a request decided.

    Attributes
    ----------
    answer : object
        For who asked, once the change is durable.
    rows : sequence of Columns
        What is written, each with every column of the table.
    removed : sequence of (str, str)
        Kind and key of what goes; one that is not live is nothing to remove.
    numbers : sequence of Txn
        The named numbers that are set.
    """

    answer: AnswerT
    rows: Sequence[Columns] = ()
    removed: Sequence[tuple[str, str]] = ()
    numbers: Sequence[Txn] = ()

    @property
    def writes(self) -> bool:
        """Whether there is anything to write."""
        return bool(self.rows or self.removed or self.numbers)


@dataclass(slots=True, eq=False)
class WaitingRequest(Generic[AnswerT]):
    """A request, and what became of it.

    Attributes
    ----------
    operation : str
        For people; only requests of one operation share an entry.
    decide : callable
        The log's state -> what changes; pure, made again when the slot is lost.
    whose : Mapping of str to str
        The key, and what it is.
    alone : bool
        Whether it takes no others along any more.
    change : RowChange, optional
        As decided for the slot that is tried; ``None``: it was refused, or waits for the next entry.
    refusal : Exception, optional
        As decided for the same slot.
    is_answered : bool
        Whether one of these two is the answer.
    has_left : bool
        Whether nobody waits for it any more.
    """

    operation: str
    decide: Callable[[TableState], RowChange[AnswerT]]
    whose: Mapping[str, str]
    alone: bool = False
    change: RowChange[AnswerT] | None = None
    refusal: Exception | None = None
    is_answered: bool = False
    has_left: bool = False

    @property
    def is_decided(self) -> bool:
        """Whether it had room in the entry."""
        return self.change is not None or self.refusal is not None

    def forget(self) -> None:
        """Forget what was decided for a slot that was lost."""
        self.change = self.refusal = None

    def decide_on(self, table: TableState) -> None:
        """Decide on a state."""
        try:
            self.change = self.decide(table)
        except Exception as error:  # noqa: BLE001  it is raised in the thread that it belongs to
            self.refusal = error

    def refuse(self, error: Exception) -> None:
        """Answer with an error."""
        self.change, self.refusal, self.is_answered = None, error, True

    def told(self) -> AnswerT:
        """Return the answer, or raise it."""
        if self.refusal is not None:
            raise self.refusal
        assert self.change is not None
        return self.change.answer


def decide_together(requests: Sequence[WaitingRequest[Any]], table: TableState) -> RowChange[None]:
    """Decide requests on one state, and return what they change; what has no room is left undecided.

    Parameters
    ----------
    requests : sequence of WaitingRequest
        Of different keys.
    table : TableState
        The state below the slot.
    """
    taken: list[RowChange[Any]] = []
    names: set[str] = set()
    size = 0
    for request in requests:
        request.forget()
    for request in requests:
        request.decide_on(table)
        change = request.change
        if change is None:
            continue
        numbers = {number.app_id for number in change.numbers}
        size += sum(len((row[ROW] or "").encode()) for row in change.rows)
        if taken and (size > LARGEST_TOGETHER_BYTES or names & numbers):
            request.forget()
            break
        names |= numbers
        taken.append(change)
    return RowChange(
        None,
        [row for change in taken for row in change.rows],
        [key for change in taken for key in change.removed],
        [number for change in taken for number in change.numbers],
    )


class RequestQueue(OfOneProcess):
    """The requests that wait for one log in this process.

    Parameters
    ----------
    lock : Lock
        The log's: who has it leads.
    write : callable
        (operation, requests) -> decides them with :func:`decide_together` on the state below the slot, and returns when
        that is durable, or when nothing was to be written on the newest state.
    """

    def __init__(self, lock: Lock, write: Callable[[str, Sequence[WaitingRequest[Any]]], None]) -> None:
        self._lock = lock
        self._write = write
        self._changing = threading.Lock()
        self._waiting: list[WaitingRequest[Any]] = []

    def run(self, request: WaitingRequest[AnswerT]) -> AnswerT:
        """Wait for the log, unless another one takes the request along meanwhile; return its answer.

        Raises
        ------
        CommitStateUnknownError
            The store cannot be reached; the same call finds out what became of it.
        TxnTableError
            Whatever the request raises.
        """
        with self._changing:
            self._waiting.append(request)
        try:
            with self._lock:
                while not request.is_answered:
                    self._lead(request)
        finally:
            self._leave(request)
        return request.told()

    def _lead(self, request: WaitingRequest[Any]) -> None:
        together = self._take_along(request)
        try:
            self._write(request.operation, together)
        except CommitStateUnknownError as error:
            self._leave_unknown(together, error)
        except TxnTableError as error:
            if len(together) == 1 or error.retriable or error.fatal:
                for each in together:
                    each.refuse(error if each is request else _another(error))
            else:
                # It may be about what one of them writes: each finds out for itself.
                for each in together:
                    each.alone = True
        except BaseException as error:
            # An interrupt of the thread that leads: what it has put may be there.
            self._leave_unknown(together, error)
            raise
        else:
            for each in together:
                each.is_answered = each.is_decided
        self._put_back([each for each in together if not each.is_answered and each is not request])

    def _take_along(self, leader: WaitingRequest[Any]) -> list[WaitingRequest[Any]]:
        keys, together = {*leader.whose.values()}, [leader]
        with self._changing:
            for each in () if leader.alone else self._waiting:
                fits = each.operation == leader.operation and not each.alone and keys.isdisjoint(each.whose.values())
                if fits and len(together) < MOST_TOGETHER:
                    keys.update(each.whose.values())
                    together.append(each)
            self._waiting = [each for each in self._waiting if each not in together]
        return together

    def _leave_unknown(self, together: Sequence[WaitingRequest[Any]], error: BaseException) -> None:
        """Tell those whose change may have become durable; the others make theirs again."""
        for each in together:
            if each.change is not None and each.change.writes:
                each.refuse(_unknown(each, error))

    def _put_back(self, requests: Sequence[WaitingRequest[Any]]) -> None:
        with self._changing:
            self._waiting = [*(each for each in requests if not each.has_left), *self._waiting]

    def _leave(self, request: WaitingRequest[Any]) -> None:
        with self._changing:
            request.has_left = True
            self._waiting = [each for each in self._waiting if each is not request]


def _unknown(request: WaitingRequest[Any], cause: BaseException) -> CommitStateUnknownError:
    if isinstance(cause, CommitStateUnknownError):
        message, facts = cause.message, cause.facts
    else:
        message, facts = f"the call was interrupted{MAY_HAVE_HAPPENED}", {}
    unknown = CommitStateUnknownError(message, **{**facts, "operation": request.operation, **request.whose})
    unknown.__cause__ = cause
    return unknown


def _another(error: TxnTableError) -> TxnTableError:
    """Return the same error for another thread: whoever catches one may add to it."""
    other = copy(error)
    other.__cause__ = error
    return other
