"""The offset log O: groups and their offsets, and how requests become durable in it (PROTOCOL.md §8).

Owns the fold of O, and the one way to run a request of the group coordinator's state machine: read the
rows of a group at the head, decide, write, and again on a lost slot.  There is no group
coordinator server: this runs in every client.  Must not know what a request is about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from typing import TypeAlias, TypeVar

from txntable.coordinator.assignment import TopicPartition
from txntable.coordinator.group import GroupRow
from txntable.coordinator.group_offsets import OffsetRow
from txntable.coordinator.group_request import OffsetLogTransition
from txntable.coordinator.group_state import GroupState
from txntable.coordinator.offset_upkeep import Decisions, settle
from txntable.errors import CommitStateUnknownError, DamagedDataError
from txntable.format.layout import OFFSET_LOG_ROOT
from txntable.log.actions import Action, Add, Commit, Txn
from txntable.log.delta_log import Decide, DeltaLog
from txntable.log.keyed_table import ensure_key_files, find_row, keyed_add, keyed_remove
from txntable.log.log_view import LogContext
from txntable.log.outcome import Unknown
from txntable.log.overlay import Overlay
from txntable.log.table_state import TableState
from txntable.offsets.offset_rows import GROUP_KIND, OFFSET_KIND, columns_of, row_of

DECIDED_THROUGH = "decided_through"
AnswerT = TypeVar("AnswerT")
GroupOffsets: TypeAlias = Mapping[TopicPartition, OffsetRow]
Request: TypeAlias = Callable[[GroupRow | None, GroupOffsets, int], OffsetLogTransition[AnswerT]]
Sweep: TypeAlias = Callable[[TableState], Sequence[OffsetLogTransition[None]]]
_NO_OFFSETS: GroupOffsets = {}


class OffsetLogFold:
    """All groups, and their offsets.

    Attributes
    ----------
    groups : Mapping of str to GroupRow
        By name; a group that only ever committed offsets has none.
    offsets : Mapping of str to Mapping of TopicPartition to OffsetRow
        By group.
    pending : Mapping of str to OffsetRow
        The rows with pending offsets, by key.
    """

    def __init__(self) -> None:
        self.groups: MutableMapping[str, GroupRow] = {}
        self.offsets: MutableMapping[str, MutableMapping[TopicPartition, OffsetRow]] = {}
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
        for add in table.files:
            self._take(add)

    def apply(self, commit: Commit, table: TableState) -> None:
        """Take one commit; `table` is the state before it."""
        for action in commit.actions:
            if isinstance(action, Add):
                self._take(action)
            elif (path := getattr(action, "path", None)) is not None and (old := table.files.get(path)) is not None:
                self._drop(row_of(old))

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


class OffsetLog:
    """O, and how requests become durable in it.

    Parameters
    ----------
    context : LogContext
        Of the warehouse.
    """

    def __init__(self, context: LogContext) -> None:
        self.context = context
        self.log: DeltaLog[OffsetLogFold] = DeltaLog(context, OFFSET_LOG_ROOT, OffsetLogFold())

    # -- reading ----------------------------------------------------------------------------

    def refresh(self) -> int:
        """Bring the view to the head of O and return its version.

        Raises
        ------
        DamagedDataError
            The warehouse has no offset log.
        """
        version = self.log.refresh().version
        if version is None:
            raise DamagedDataError("the warehouse has lost its offset log; restore it", log=self.log.root)
        return version

    def group(self, name: str) -> GroupRow | None:
        """Return the row of a group as the view knows it."""
        with self.log.lock:
            return self.log.fold.groups.get(name)

    def offsets(self, group: str) -> GroupOffsets:
        """Return all offset rows of a group as the view knows them."""
        with self.log.lock:
            return dict(self.log.fold.offsets.get(group, _NO_OFFSETS))

    def names(self) -> list[str]:
        """Return the names of all groups, also of those that only have offsets, as the view knows them."""
        with self.log.lock:
            return sorted({*self.log.fold.groups, *self.log.fold.offsets})

    # -- writing ----------------------------------------------------------------------------

    def commit(self, operation: str, decide: Decide, group: str | None = None) -> None:
        """Write to O at exactly the next slot.

        Parameters
        ----------
        operation : str
            For people.
        decide : callable
            See :meth:`txntable.log.delta_log.DeltaLog.commit`.
        group : str, optional
            For the message.

        Raises
        ------
        CommitStateUnknownError
            The store can not be reached; the same call finds out what became of it.
        TxnTableError
            Whatever `decide` raises.
        """
        with self.log.lock:
            outcome = self.log.commit(operation, decide)
        if isinstance(outcome, Unknown):
            raise CommitStateUnknownError(
                "the store can not be reached: the request may have been granted; make the same call again",
                operation=operation,
                group=group,
            )

    def request(self, operation: str, group: str, request: Request[AnswerT]) -> AnswerT:
        """Run one request of the state machine on a group's rows at the head, and make its transition durable.

        Parameters
        ----------
        operation : str
            For people.
        group : str
            Whose rows.
        request : callable
            (group row, offset rows, position) -> transition; pure, made again when the slot is lost.

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
            transition = request(self.group(group), self.offsets(group), table.next_version)
            answer[:] = [transition.answer]
            return self._actions(table, transition)

        self.commit(operation, decide, group)
        return answer[0]

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
            The store can not be reached; the same call finds out what became of it.
        """

        def decide(table: TableState) -> Sequence[Action]:
            return [action for transition in request(table) for action in self._actions(table, transition)]

        self.commit(operation, decide)

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

        def decide(table: TableState) -> Sequence[Action]:
            transition = settle(self.log.fold.pending_of(decisions), decisions, table.next_version)
            actions = self._actions(table, transition)
            settled_through = table.number(DECIDED_THROUGH)
            # Where nothing is pending the slot is taken, too: of a sender that was verified before the decision.
            is_owed = any(decision.position > settled_through for decision in decisions.values())
            if (actions or is_owed) and known_through > settled_through:
                actions.append(Txn(DECIDED_THROUGH, known_through))
            return actions

        self.commit("SETTLE", decide)

    def _actions(self, table: TableState, transition: OffsetLogTransition[AnswerT]) -> list[Action]:
        """Return what a transition writes, after the files of its new keys."""
        now_ms = self.context.clock.now_ms()
        row = transition.group
        written: list[OffsetRow | GroupRow] = [*transition.offsets]
        if row is not None and row.state is not GroupState.DEAD:
            written.append(row)
        adds = [keyed_add(columns_of(each), now_ms) for each in written]
        gone = [find_row(table, OFFSET_KIND, each.key) for each in transition.removed]
        if row is not None and row.state is GroupState.DEAD:
            gone.append(find_row(table, GROUP_KIND, row.key))
        ensure_key_files(self.context.store, self.log.root, table, adds)
        return [*adds, *(keyed_remove(add, now_ms) for add in gone if add is not None)]
