"""What the entries of both keyed tables must keep, and those of O (PROTOCOL.md §3.3, §8).

Owns the shape of constant rows, that the tables' metadata can be read, and that a row of O stands at the version that
wrote it.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from txntable.coordinator.group_offsets import OffsetRow
from txntable.format.layout import OFFSET_LOG_ROOT
from txntable.format.warehouse_settings import settings_from
from txntable.log.actions import Add, Commit, Metadata
from txntable.log.constant_file import CONSTANT_FILE, CONSTANT_STATS
from txntable.log.table_state import TableState
from txntable.offsets.offset_log import DECIDED_THROUGH, OffsetLogFold
from txntable.offsets.offset_rows import row_of
from txntable.verification.damage import Damage, DamageKind
from txntable.verification.decision_record import DecisionRecord
from txntable.verification.log_replay import Problem
from txntable.verification.lost_ends import PendingOf


def metadata_of(commit: Commit) -> Iterator[tuple[int, Metadata]]:
    """Yield an entry's metadata of T or O, with the version of the entry.

    Raises
    ------
    DamagedDataError
        Its settings cannot be read.
    """
    for action in commit.actions:
        if isinstance(action, Metadata):
            settings_from(action.configuration)
            yield commit.version, action


def check_constant_rows(adds: Iterable[Add]) -> Iterator[Problem]:
    """Judge rows that live in the log only."""
    for add in adds:
        if add.size != len(CONSTANT_FILE) or add.stats != CONSTANT_STATS:
            yield DamageKind.ROW, f"{add.path} has another size or other statistics than the constant file's"


class OffsetRules:
    """The rules of O, which also record what its entries show.

    Attributes
    ----------
    metadata : list of (int, Metadata)
        All that was there, each with the version that showed it.
    pending : set
        What has waited for a decision at any time.
    """

    def __init__(self) -> None:
        self.metadata: list[tuple[int, Metadata]] = []
        self.pending: set[PendingOf] = set()

    def begin(self, table: TableState, fold: OffsetLogFold) -> Iterable[Problem]:
        """Take what the entries begin with; the fold reads each row of the checkpoint."""
        if table.version is not None and table.metadata is not None:
            self.metadata.append((table.version, table.metadata))
        for row in fold.pending.values():
            self._record(row)
        return ()

    def observe(self, commit: Commit, table: TableState, fold: OffsetLogFold) -> Iterable[Problem]:
        """Judge the rows of an entry."""
        self.metadata += metadata_of(commit)
        adds = [one for one in commit.actions if isinstance(one, Add)]
        yield from check_constant_rows(adds)
        for add in adds:
            row = row_of(add)
            if row.position != commit.version:
                yield DamageKind.ROW, f"{add.path} says that version {row.position} wrote it"
            if isinstance(row, OffsetRow):
                self._record(row)
                requests = [one.request for one in (row.committed, *row.pending) if one is not None]
                if max(requests, default=0) > commit.version:
                    yield DamageKind.ROW, f"{add.path} has an offset that a later version asked for"

    def stand(self, table: TableState, fold: OffsetLogFold) -> Iterable[Problem]:
        """Ask nothing: what rests on T is asked once T is read (:func:`offsets_against_decisions`)."""
        return ()

    def _record(self, row: OffsetRow) -> None:
        self.pending |= {(one.producer_id, one.epoch, row.group) for one in row.pending}


def offsets_against_decisions(
    table: TableState, fold: OffsetLogFold, decisions: DecisionRecord, head: int | None
) -> Iterator[Damage]:
    """Hold the offsets of O against what T has decided.

    Parameters
    ----------
    table, fold
        O, read before `head`.
    decisions : DecisionRecord
        Of T, read after O.
    head : int, optional
        T's version.
    """
    settled = table.number(DECIDED_THROUGH)
    for group, rows in sorted(fold.offsets.items()):
        for (topic, partition), row in sorted(rows.items()):
            where = f"group {group}, partition {topic}-{partition}"
            position = 0 if row.committed is None else row.committed.position
            if decisions.knows(position, head) and position:
                found = decisions.by_position.get(position, ())
                if not any(one.outcome.value == "COMMIT" and group in one.groups for one in found):
                    yield Damage(
                        DamageKind.COMMITTED_OFFSET,
                        OFFSET_LOG_ROOT,
                        f"{where}: no transaction of the group was committed at position {position}",
                    )
            for pending in row.pending:
                decided = decisions.of_epoch(pending.producer_id, pending.epoch)
                if decided is not None and decided.position <= settled:
                    yield Damage(
                        DamageKind.PENDING_OFFSET,
                        OFFSET_LOG_ROOT,
                        f"{where}: pending of a transaction that was decided at {decided.position}, and all through"
                        f" {settled} is settled",
                    )
