"""The offset log O: groups and their offsets, and the requests on them (PROTOCOL.md §8).

Owns the fold of O, and which rows a request of the group coordinator's state machine is decided on and writes.  How
these become durable is :mod:`txntable.log.keyed_log`'s.  Must not know what a request is about.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from txntable.coordinator.assignment import NamedPartition
from txntable.coordinator.group import GroupRow
from txntable.coordinator.group_offsets import OffsetRow
from txntable.coordinator.group_request import OffsetLogTransition
from txntable.coordinator.group_state import GroupState
from txntable.coordinator.offset_upkeep import Decisions, settle
from txntable.errors import DamagedDataError
from txntable.format.layout import OFFSET_LOG_ROOT, TRANSACTION_LOG_ROOT
from txntable.log.action_fields import check_number_names
from txntable.log.actions import Action, Add, Commit, Remove, Txn
from txntable.log.delta_log import Decide, DeltaLog
from txntable.log.keyed_log import KeyedLog
from txntable.log.log_view import LogContext, prove_now
from txntable.log.overlay import Overlay
from txntable.log.request_queue import AnswerT, RowChange
from txntable.log.table_state import TableState
from txntable.offsets.offset_rows import GROUP_KIND, OFFSET_KIND, columns_of, row_of

DECIDED_THROUGH = "decided_through"
SETTLED_THROUGH = "settled_through"
"""Of the transaction log: O's `decided_through` is at least this (PROTOCOL.md §6.4)."""
_NUMBERS = re.compile(DECIDED_THROUGH)
GroupOffsets: TypeAlias = Mapping[NamedPartition, OffsetRow]
Request: TypeAlias = Callable[[GroupRow | None, GroupOffsets, int], OffsetLogTransition[AnswerT]]
Sweep: TypeAlias = Callable[[TableState], Sequence[OffsetLogTransition[None]]]
_NO_OFFSETS: GroupOffsets = {}


class OffsetLogFold:
    """All groups, and their offsets.

    Attributes
    ----------
    groups : Mapping of str to GroupRow
        By name; a group that only ever committed offsets has none.
    offsets : Mapping of str to Mapping of NamedPartition to OffsetRow
        By group.
    pending : Mapping of str to OffsetRow
        The rows with pending offsets, by key.
    """

    def __init__(self) -> None:
        self.groups: MutableMapping[str, GroupRow] = {}
        self.offsets: MutableMapping[str, MutableMapping[NamedPartition, OffsetRow]] = {}
        self.pending: MutableMapping[str, OffsetRow] = {}
        # (producer id, epoch) -> rows with an offset of that transaction, by key: a decision settles its own only.
        self._waiting: MutableMapping[tuple[int, int], MutableMapping[str, OffsetRow]] = {}

    def overlay(self) -> OffsetLogFold:
        """Return a fold that stands where this one does and keeps to itself what it takes."""
        over = OffsetLogFold()
        over.groups, over.offsets = Overlay(self.groups), Overlay(self.offsets, Overlay)
        over.pending, over._waiting = Overlay(self.pending), Overlay(self._waiting, Overlay)
        return over

    def restore(self, table: TableState) -> None:
        """Take everything from a state just loaded."""
        self.groups, self.offsets, self.pending, self._waiting = {}, {}, {}, {}
        check_number_names(table.numbers, _NUMBERS)
        for add in table.files:
            self._take(add)

    def apply(self, commit: Commit, table: TableState) -> None:
        """Take one commit; `table` is the state before it."""
        for action in commit.actions:
            match action:
                case Add():
                    self._take(action)
                case Remove() if (old := table.files.get(action.path)) is not None:
                    self._drop(row_of(old))
                case Txn():
                    check_number_names((action.app_id,), _NUMBERS)

    def _take(self, add: Add) -> None:
        row = row_of(add)
        if isinstance(row, GroupRow):
            self.groups[row.group] = row
            return
        self.offsets.setdefault(row.group, {})[row.topic, row.partition] = row
        self._settled(row.key)
        if row.pending:
            self.pending[row.key] = row
        for each in row.pending:
            self._waiting.setdefault((each.producer_id, each.epoch), {})[row.key] = row

    def _drop(self, row: OffsetRow | GroupRow) -> None:
        if isinstance(row, GroupRow):
            self.groups.pop(row.group, None)
            return
        self._settled(row.key)
        rows = self.offsets.get(row.group, {})
        rows.pop((row.topic, row.partition), None)
        if not rows:
            self.offsets.pop(row.group, None)

    def _settled(self, key: str) -> None:
        """Forget what the row of a key was waiting for."""
        before = self.pending.pop(key, None)
        for transaction in {(each.producer_id, each.epoch) for each in before.pending} if before else ():
            rows = self._waiting[transaction]
            del rows[key]
            if not rows:
                del self._waiting[transaction]

    def pending_of(self, transactions: Iterable[tuple[int, int]]) -> list[OffsetRow]:
        """Return the rows with pending offsets of some transactions, each once.

        Parameters
        ----------
        transactions : iterable of (int, int)
            Producer ids and epochs.
        """
        found = {key: row for each in transactions for key, row in self._waiting.get(each, {}).items()}
        return list(found.values())


class OffsetLog(KeyedLog[OffsetLogFold]):
    """O, and how requests become durable in it.

    Parameters
    ----------
    context : LogContext
        Of the warehouse.

    Attributes
    ----------
    settling : Lock
        Who has it settles what is decided; the others wait, and find it done.
    """

    def __init__(self, context: LogContext) -> None:
        super().__init__(context, DeltaLog(context, OFFSET_LOG_ROOT, OffsetLogFold()), "offset log")
        self.settling = context.environment.lock()

    # -- reading ----------------------------------------------------------------------------

    def group(self, name: str) -> GroupRow | None:
        """Return the row of a group as the view knows it."""
        with self.log.lock:
            return self.log.fold.groups.get(name)

    def offsets(self, group: str) -> GroupOffsets:
        """Return all offset rows of a group as the view knows them."""
        with self.log.lock:
            return dict(self.log.fold.offsets.get(group, _NO_OFFSETS))

    def pending(self) -> list[OffsetRow]:
        """Return all rows with pending offsets as the view knows them."""
        with self.log.lock:
            return list(self.log.fold.pending.values())

    def names(self) -> list[str]:
        """Return the names of all groups, also of those that only have offsets, as the view knows them."""
        with self.log.lock:
            return sorted({*self.log.fold.groups, *self.log.fold.offsets})

    def require_whole(self) -> None:
        """Return if the log does not end below what the transaction log, as it was read, has seen of it.

        For who is about to go on from what it says: what is lost would be processed again.

        Raises
        ------
        DamagedDataError
            It does: its newest entries are lost.
        """
        # Before the log is asked: others settle, and another thread may read of that.
        seen = self._seen()
        if self.log.table.number(DECIDED_THROUGH) < seen:
            self._check_end(self.log.refresh(), seen)

    def _check_end(self, table: TableState, seen: int) -> None:
        settled, transactions = table.number(DECIDED_THROUGH), self.context.shared.get(TRANSACTION_LOG_ROOT)
        if settled >= seen or transactions is None:
            return
        # What it has seen may be of a warehouse that was restored since.
        prove_now(transactions, self.log)
        raise DamagedDataError(
            "the offset log has lost its newest entries, and groups would process again what they have: stop every"
            " consumer, run `txntable warehouse verify`, and do what it says",
            settled=settled,
            seen=seen,
        )

    def _seen(self) -> int:
        transactions = self.context.shared.get(TRANSACTION_LOG_ROOT)
        return 0 if transactions is None else transactions.table.number(SETTLED_THROUGH)

    # -- writing ----------------------------------------------------------------------------

    def commit(self, operation: str, decide: Decide, **whose: str) -> None:
        """Write to O at exactly the next slot, where its end is there; raises as :meth:`require_whole`, too."""
        seen = self._seen()

        def decide_on_whole(table: TableState) -> Sequence[Action] | None:
            self._check_end(table, seen)
            return decide(table)

        super().commit(operation, decide_on_whole, **whose)

    @property
    def has_lost_its_end(self) -> bool:
        """Whether it ends below what the transaction log has seen of it, both as they were read."""
        return self.log.table.number(DECIDED_THROUGH) < self._seen()

    def take_as_it_is(self, decisions: Decisions) -> None:
        """Let what is there be all that there was, for who restores a warehouse (PROTOCOL.md §6.7).

        Parameters
        ----------
        decisions : Mapping of (int, int) to Decision
            As for :meth:`settle`: of all pending offsets but those of transactions that are open.
        """
        seen = self._seen()

        def decide(table: TableState) -> Sequence[Action]:
            transition = settle(self.log.fold.pending_of(decisions), decisions, table.next_version)
            raised = [Txn(DECIDED_THROUGH, seen)] if table.number(DECIDED_THROUGH) < seen else []
            return self._actions(table, replace(_change([transition], None), numbers=raised))

        super().commit("TAKE AS IT IS", decide)

    def request(self, operation: str, group: str, request: Request[AnswerT]) -> AnswerT:
        """Run one request of the state machine on a group's rows at the head, and make its transition durable.

        Parameters
        ----------
        operation : str
            For people.
        group : str
            Whose rows.
        request : callable
            (group row, offset rows, position) -> transition; pure, made again when the slot is lost, and maybe by
            another thread.

        Returns
        -------
        object
            The transition's answer, once it is durable.

        Raises
        ------
        CommitStateUnknownError
            The store cannot be reached; the same call finds out what became of it.
        TxnTableError
            Whatever the request raises.
        """

        def decide(table: TableState) -> RowChange[AnswerT]:
            transition = request(self.group(group), self.offsets(group), table.next_version)
            return _change([transition], transition.answer)

        return self.share(operation, decide, group=group)

    def sweep(self, operation: str, request: Sweep) -> None:
        """Run one request on all groups at the head, and make its transitions durable in one commit.

        Parameters
        ----------
        operation : str
            For people.
        request : callable
            O's state -> transitions, of one group each; pure, made again when the slot is lost.

        Raises
        ------
        CommitStateUnknownError
            The store cannot be reached; the same call finds out what became of it.
        """
        self.run(operation, lambda table: _change(request(table), None))

    def settle(self, decisions: Decisions, known_through: int) -> None:
        """Let the pending offsets of decided transactions count, or drop them, in all groups (PROTOCOL.md §8.1).

        Parameters
        ----------
        decisions : Mapping of (int, int) to Decision
            By producer id and epoch: all that have enrolled groups, are decided and not complete at `known_through`.
        known_through : int
            The version of T that says so.

        Raises
        ------
        CommitStateUnknownError, StoreUnavailableError
            Call again.
        """

        def decide(table: TableState) -> RowChange[None]:
            transition = settle(self.log.fold.pending_of(decisions), decisions, table.next_version)
            settled_through = table.number(DECIDED_THROUGH)
            # Where nothing is pending the slot is taken, too: of a sender that was verified before the decision.
            is_owed = any(decision.position > settled_through for decision in decisions.values())
            is_due = bool(transition.offsets or transition.removed) or is_owed
            raised = [Txn(DECIDED_THROUGH, known_through)] if is_due and known_through > settled_through else []
            return replace(_change([transition], None), numbers=raised)

        self.run("SETTLE", decide)


def _change(transitions: Sequence[OffsetLogTransition[Any]], answer: AnswerT) -> RowChange[AnswerT]:
    """Return what transitions write and remove: a group that is dead has no row."""
    rows = [columns_of(row) for each in transitions for row in each.offsets]
    removed = [(OFFSET_KIND, row.key) for each in transitions for row in each.removed]
    for group in (each.group for each in transitions if each.group is not None):
        if group.state is GroupState.DEAD:
            removed.append((GROUP_KIND, group.key))
        else:
            rows.append(columns_of(group))
    return RowChange(answer, rows, removed)
