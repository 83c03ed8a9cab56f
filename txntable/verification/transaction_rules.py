"""What the entries of T must keep (PROTOCOL.md §6.1, §6.2).

Owns that every row says what its columns say, stands at the version that wrote it, and follows the id's row before it;
that producer ids are below the first that is free, and of one id each; that a batch id is remembered by the decision
that took it.  Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from txntable.coordinator.batch_memory import BatchRow
from txntable.coordinator.decision import Outcome
from txntable.coordinator.lease import LeaseRow
from txntable.coordinator.transaction import TransactionMetadata
from txntable.coordinator.transaction_state import VALID_TRANSITIONS, Operation, TransactionState, next_state
from txntable.log.actions import Add, Commit, Metadata, Remove, Txn
from txntable.log.keyed_table import KIND
from txntable.log.table_state import TableState
from txntable.transactions.transaction_log import NEXT_PRODUCER_ID, TransactionLogFold
from txntable.transactions.transaction_rows import (
    BATCH_KIND,
    ID_KIND,
    LEASE_KIND,
    batch_row_of,
    id_row_of,
    lease_row_of,
)
from txntable.verification.damage import DamageKind
from txntable.verification.decision_record import DecisionRecord, RecordedDecision
from txntable.verification.keyed_rules import check_constant_rows, metadata_of
from txntable.verification.log_replay import Problem


def _followers() -> dict[TransactionState, frozenset[TransactionState]]:
    """Return what may stand in T after a state: a decided row that is known complete counts as COMPLETE (§6.2)."""
    direct: dict[TransactionState, set[TransactionState]] = {}
    for (state, _), following in VALID_TRANSITIONS.items():
        direct.setdefault(state, set()).add(following)
    for state in list(direct):
        if state.is_decided:
            direct[state] |= direct[next_state(state, Operation.COMPLETE)]
    return {state: frozenset(found) for state, found in direct.items()}


_FOLLOWERS = _followers()
_READINGS: Mapping[str, Callable[[Add], TransactionMetadata | BatchRow | LeaseRow]] = {
    ID_KIND: id_row_of,
    BATCH_KIND: batch_row_of,
    LEASE_KIND: lease_row_of,
}


class TransactionRules:
    """The rules of T, which also record what it decides.

    Attributes
    ----------
    decisions : DecisionRecord
        All that the entries show.
    metadata : list of (int, Metadata)
        All that was there, each with the version that showed it.
    """

    def __init__(self) -> None:
        self.decisions = DecisionRecord()
        self.metadata: list[tuple[int, Metadata]] = []
        # Producer id -> the transactional id that has it.
        self._owners: dict[int, str] = {}

    def begin(self, table: TableState, fold: TransactionLogFold) -> Iterable[Problem]:
        """Take the rows of the checkpoint that the entries begin with."""
        self.decisions.began_at = table.version
        if table.version is not None and table.metadata is not None:
            self.metadata.append((table.version, table.metadata))
        for add in table.files:
            yield from self._row(add, table.version)
            if add.partition_values.get(KIND) == ID_KIND:
                row = id_row_of(add)
                self._owners[row.producer_id] = row.transactional_id
                self._record(row)

    def observe(self, commit: Commit, table: TableState, fold: TransactionLogFold) -> Iterable[Problem]:
        """Judge the rows of an entry."""
        self.metadata += metadata_of(commit)
        numbers = [one.version for one in commit.actions if isinstance(one, Txn) and one.app_id == NEXT_PRODUCER_ID]
        free = max([table.number(NEXT_PRODUCER_ID), *numbers])
        adds = [one for one in commit.actions if isinstance(one, Add)]
        yield from check_constant_rows(adds)
        ids = [id_row_of(add) for add in adds if add.partition_values.get(KIND) == ID_KIND]
        for row in ids:
            self._record(row)
        for add in adds:
            yield from self._row(add, commit.version, exactly=True)
            if add.partition_values.get(KIND) == ID_KIND:
                before = table.files.get(add.path)
                yield from self._follows(id_row_of(add), None if before is None else id_row_of(before), free)
        for gone in (one for one in commit.actions if isinstance(one, Remove)):
            before = table.files.get(gone.path)
            if before is not None and before.partition_values.get(KIND) == ID_KIND:
                yield from self._expires(id_row_of(before))

    def stand(self, table: TableState, fold: TransactionLogFold) -> Iterable[Problem]:
        """Ask nothing: T's rows are judged as they come."""
        return ()

    def _record(self, row: TransactionMetadata) -> None:
        decided = RecordedDecision.of(row)
        if decided is not None:
            self.decisions.add(decided)

    def _row(self, add: Add, version: int | None, *, exactly: bool = False) -> Iterator[Problem]:
        kind = add.partition_values.get(KIND)
        position = _READINGS[kind or ""](add).position
        if position != version if exactly else position > (version or 0):
            yield DamageKind.ROW, f"{add.path} says that version {position} wrote it"
        if exactly and kind == BATCH_KIND:
            batch = batch_row_of(add)
            taken = self.decisions.of_epoch(batch.producer_id, batch.epoch)
            if taken is None or taken.position != version or taken.outcome is not Outcome.COMMIT:
                yield DamageKind.ROW, f"{add.path} remembers a batch id of a decision that is not in its entry"

    def _follows(self, row: TransactionMetadata, before: TransactionMetadata | None, free: int) -> Iterator[Problem]:
        whose = f"transactional id {row.transactional_id}"
        owner = self._owners.setdefault(row.producer_id, row.transactional_id)
        if row.producer_id >= free or owner != row.transactional_id:
            yield DamageKind.ROW, f"{whose} has producer id {row.producer_id}, which is another's or nobody's yet"
        if before is None:
            if row.producer_epoch or row.state is not TransactionState.EMPTY:
                yield DamageKind.TRANSITION, f"{whose} begins in {row.state.value} at epoch {row.producer_epoch}"
            return
        steps = row.producer_epoch - before.producer_epoch
        allowed = row.state in _FOLLOWERS[before.state] and steps in (0, 1) and row.producer_id == before.producer_id
        if not allowed:
            was = f"{before.state.value} of ({before.producer_id}, {before.producer_epoch})"
            becomes = f"{row.state.value} of ({row.producer_id}, {row.producer_epoch})"
            yield DamageKind.TRANSITION, f"{whose} goes from {was} to {becomes}"

    def _expires(self, row: TransactionMetadata) -> Iterator[Problem]:
        if row.state.is_open or row.state.is_decided:
            yield DamageKind.TRANSITION, f"transactional id {row.transactional_id} expires in {row.state.value}"
