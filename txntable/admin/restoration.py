"""Making a warehouse that was restored from a backup safe from who worked on it before (PROTOCOL.md §6.7).

What was given out after the backup was made is unknown to the restored logs: they would give the same producer ids and
epochs again, and then nothing would tell a zombie from the one who has them now.  So everyone gets new ones.

Owns the order: every log has a new incarnation first, so that what processes of before still put into it is void, and
what they have put already is left behind; then producer ids leap, so that whatever follows, and whoever comes
meanwhile, takes none that was ever given; then what is open is ended, the ids are forgotten, and members leave their
groups.  Every step made twice harms nothing; only processes that began after the restore are ended once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from txntable.admin.admin import Admin
from txntable.admin.past_decision import past_decision
from txntable.coordinator.decision import Decision, Outcome
from txntable.coordinator.producer_ids import leap
from txntable.coordinator.transaction_shard import expire
from txntable.coordinator.transaction_state import TransactionState
from txntable.format.layout import key_path
from txntable.log.actions import Action, Txn
from txntable.log.keyed_table import keyed_remove
from txntable.log.table_state import TableState
from txntable.runtime.one_process import OfOneProcess
from txntable.transactions.completion import Completer
from txntable.transactions.transaction_expiration import parts_of
from txntable.transactions.transaction_log import NEXT_PRODUCER_ID
from txntable.transactions.transaction_rows import ID_KIND, id_row_of


@dataclass(frozen=True, slots=True)
class RestorationReport:
    """What was fenced, or would be.

    Attributes
    ----------
    next_producer_id : int
        The first producer id that is given from now on.
    aborted_transactions : int
        They were open.
    forgotten_transactional_ids : int
        Their next producers get producer ids of their own.
    expelled_members : int
        Of all groups.
    prepared : tuple of str
        Transactional ids whose transaction is prepared: they stay.  End each with its token, or abort it; then fence
        once more.
    lost_offsets : bool
        The offset log has lost its newest entries, and is taken as it is: what groups committed in them is lost.  Set
        the offsets of the groups that a verification names before, and no consumer goes on until then.
    """

    next_producer_id: int
    aborted_transactions: int
    forgotten_transactional_ids: int
    expelled_members: int
    prepared: tuple[str, ...]
    lost_offsets: bool


class Restoration(OfOneProcess):
    """Fences everyone who worked on the warehouse before it was restored.

    Parameters
    ----------
    completer : Completer
        The warehouse's.
    admin : Admin
        Ends transactions and memberships.
    """

    def __init__(self, completer: Completer, admin: Admin) -> None:
        self._completer, self._transactions, self._admin = completer, completer.transactions, admin

    def plan(self) -> RestorationReport:
        """Return what :meth:`fence_all` would do; nothing is written."""
        rows = self._admin.list_transactions()
        prepared = tuple(row.transactional_id for row in rows if row.state is TransactionState.PREPARED)
        return RestorationReport(
            leap(self._next_producer_id()),
            sum(row.state is TransactionState.ONGOING for row in rows),
            len(rows) - len(prepared),
            sum(len(members) for members in self._members().values()),
            prepared,
            self._has_lost_offsets(),
        )

    def fence_all(self) -> RestorationReport:
        """Fence every producer, forget every transactional id, and expel every member.

        Raises
        ------
        CommitStateUnknownError, StoreUnavailableError
            Call again.
        """
        self._completer.fence_logs()
        lost_offsets = self._has_lost_offsets()
        if lost_offsets:
            self._take_offsets()
        self._leap()
        # A coordinator job of before stops at its next write.
        self._transactions.claim_lease(self._transactions.context.environment.new_id())
        open_now = self._in_state(TransactionState.ONGOING)
        for transactional_id in open_now:
            self._admin.abort_transaction(transactional_id)
        self._completer.complete_all()
        forgotten = self._forget()
        members = self._members()
        for group in members:
            self._admin.remove_members_from_consumer_group(group)
        return RestorationReport(
            self._next_producer_id(),
            len(open_now),
            forgotten,
            sum(len(each) for each in members.values()),
            tuple(self._in_state(TransactionState.PREPARED)),
            lost_offsets,
        )

    def _has_lost_offsets(self) -> bool:
        offsets = self._completer.offsets
        offsets.refresh()
        return offsets.has_lost_its_end

    def _take_offsets(self) -> None:
        """Take an offset log that has lost its end as it is: what is pending counts as it was decided, or goes."""
        offsets = self._completer.offsets
        decisions: dict[tuple[int, int], Decision] = {}
        for producer_id, epoch in {(each.producer_id, each.epoch) for row in offsets.pending() for each in row.pending}:
            row = self._transactions.row_of_producer(producer_id)
            if row is not None and row.state.is_open and epoch in (row.producer_epoch, row.prepared_epoch):
                continue
            found = past_decision(self._transactions, producer_id, epoch)
            outcome, position = (Outcome.ABORT, 0) if found is None else (found.outcome, found.position)
            decisions[producer_id, epoch] = Decision(epoch, outcome, position)
        offsets.take_as_it_is(decisions)

    def _leap(self) -> None:
        def decide(table: TableState) -> Sequence[Action]:
            return [Txn(NEXT_PRODUCER_ID, leap(table.numbers.get(NEXT_PRODUCER_ID)))]

        self._transactions.commit("LEAP PRODUCER IDS", decide)

    def _forget(self) -> int:
        """Remove the rows of ids that have nothing open or decided; return how many."""
        paths = [key_path(ID_KIND, row.key) for row in self._admin.list_transactions()]
        return sum(self._forget_part(part) for part in parts_of(paths))

    def _forget_part(self, paths: Sequence[str]) -> int:
        now_ms = self._transactions.context.clock.now_ms()
        removed: list[Action] = []

        def decide(table: TableState) -> Sequence[Action]:
            adds = [add for path in paths if (add := table.files.get(path)) is not None]
            # Idle since ever: age is no condition here.
            gone = (add for add in adds if expire(id_row_of(add), None, 0, table.next_version).row is not None)
            removed[:] = [keyed_remove(add, now_ms) for add in gone]
            return removed

        self._transactions.commit("EXPIRE", decide)
        return len(removed)

    def _in_state(self, state: TransactionState) -> list[str]:
        return [row.transactional_id for row in self._admin.list_transactions() if row.state is state]

    def _members(self) -> dict[str, list[str]]:
        groups = [group.group_id for group in self._admin.list_consumer_groups()]
        described = self._admin.describe_consumer_groups(groups)
        return {
            name: [member.member_id for member in (*group.members, *group.silent_members)]
            for name, group in described.items()
        }

    def _next_producer_id(self) -> int:
        with self._transactions.log.lock:
            self._transactions.refresh()
            return self._transactions.log.table.numbers.get(NEXT_PRODUCER_ID, 0)
