"""Offsets of groups as they were at a position of T: what a snapshot says of them (PROTOCOL.md §10).

Owns which version of O shows a position: the newest one in which nothing is settled that was decided above it; what
was decided at or below and is pending there counts as its decision says.  A plain commit has no position: it counts
as it is at the first look, and in the past as it was when the position was written, or at the time that was asked for.
"""

from __future__ import annotations

from collections.abc import Mapping

from txntable.coordinator.assignment import NamedPartition
from txntable.coordinator.decision import Decision
from txntable.coordinator.group_offsets import OffsetRow
from txntable.coordinator.offset_upkeep import settle
from txntable.coordinator.transaction import TransactionMetadata
from txntable.errors import OffsetOutOfRangeError
from txntable.format.layout import OFFSET_LOG_ROOT, TRANSACTION_LOG_ROOT, commit_path
from txntable.log.actions import Txn, decode_commit
from txntable.log.entry_time import version_as_of
from txntable.log.keyed_table import KIND
from txntable.log.log_view import LogContext
from txntable.log.table_state import TableState
from txntable.log.time_travel import load_version
from txntable.offsets.offset_log import DECIDED_THROUGH, OffsetLog, OffsetLogFold
from txntable.snapshot.retained import cleaned_up
from txntable.transactions.transaction_log import TransactionLog
from txntable.transactions.transaction_rows import ID_KIND, id_row_of

Decisions = Mapping[tuple[int, int], Decision]
Rows = Mapping[NamedPartition, OffsetRow]


class OffsetHistory:
    """O as one snapshot sees it; the version is chosen at the first call.

    Parameters
    ----------
    transactions : TransactionLog
        T, known to the position at least.
    offsets : OffsetLog
        O.
    position : int
        Of the snapshot.
    decided : sequence of TransactionMetadata, optional
        What was decided and not complete at the head of T, when that is the position; ``None``: it is of the past.
    moment_ms : int, optional
        The time that was asked for, ms since 1970, in place of the position.
    """

    def __init__(
        self,
        transactions: TransactionLog,
        offsets: OffsetLog,
        position: int,
        decided: list[TransactionMetadata] | None,
        moment_ms: int | None = None,
    ) -> None:
        self._transactions, self._offsets = transactions, offsets
        self.context: LogContext = offsets.context
        self._position, self._decided, self._moment_ms = position, decided, moment_ms
        self._seen: dict[str, Rows] | None = None

    def of_group(self, group: str) -> Rows:
        """Return a group's rows at the position, with nothing pending that counts.

        Raises
        ------
        OffsetOutOfRangeError
            Cleanup has deleted the log entries of that time: ask for a later position.
        StoreUnavailableError
            Call again.
        """
        if self._seen is None:
            self._seen = self._load()
        return self._seen.get(group, {})

    def _load(self) -> dict[str, Rows]:
        head = self._offsets.refresh()
        if self._decided is None:
            return self._past(head)
        with self._offsets.log.lock:
            shown = self._offsets.log.table.number(DECIDED_THROUGH) <= self._position
            found = {group: dict(rows) for group, rows in self._offsets.log.fold.offsets.items()}
        return _settled(found if shown else self._rows_at(head), _decisions_of(self._decided), self._position)

    def _past(self, head: int) -> dict[str, Rows]:
        try:
            return _settled(self._rows_at(self._written_by(head)), self._decisions_then(), self._position)
        except OffsetOutOfRangeError as error:
            raise cleaned_up(self.context, OFFSET_LOG_ROOT, position=self._position) from error

    def _written_by(self, head: int) -> int:
        """Return the version of O that was the newest when the position was written, or at the time asked for."""
        entry = self.context.store.head(commit_path(TRANSACTION_LOG_ROOT, self._position))
        if entry is None:
            raise self._gone()
        # Creation writes T first: O may begin later than T's first entry.
        time_ms = entry.last_modified_ms if self._moment_ms is None else self._moment_ms
        return version_as_of(self.context, OFFSET_LOG_ROOT, head, time_ms) or 0

    def _rows_at(self, version: int) -> Mapping[str, Mapping[NamedPartition, OffsetRow]]:
        """Return the rows of the newest version, `version` at most, in which nothing is settled that came later."""
        table = load_version(self.context.store, OFFSET_LOG_ROOT, version)
        while table.number(DECIDED_THROUGH) > self._position:
            version = self._last_settling(version) - 1
            table = load_version(self.context.store, OFFSET_LOG_ROOT, version)
        fold = OffsetLogFold()
        fold.restore(table)
        return fold.offsets

    def _last_settling(self, version: int) -> int:
        """Return the newest version, `version` at most, that raised the number of what is settled; there is one."""
        while True:
            path = commit_path(OFFSET_LOG_ROOT, version)
            entry = self.context.store.get(path)
            if entry is None:
                raise self._gone()
            actions = decode_commit(version, entry.data, path).actions
            if any(isinstance(action, Txn) and action.app_id == DECIDED_THROUGH for action in actions):
                return version
            version -= 1

    def _decisions_then(self) -> Decisions:
        table = load_version(self.context.store, TRANSACTION_LOG_ROOT, self._position)
        return _decisions_of(_ids(table))

    def _gone(self) -> OffsetOutOfRangeError:
        return OffsetOutOfRangeError("an entry of that time is cleaned up", position=self._position)


def _ids(table: TableState) -> list[TransactionMetadata]:
    return [id_row_of(add) for add in table.files if add.partition_values.get(KIND) == ID_KIND]


def _decisions_of(rows: list[TransactionMetadata]) -> Decisions:
    return {(row.producer_id, row.decision.epoch): row.decision for row in rows if row.decision is not None}


def _settled(
    groups: Mapping[str, Mapping[NamedPartition, OffsetRow]], decisions: Decisions, position: int
) -> dict[str, Rows]:
    """Return the rows with what was decided and is pending settled as anyone would."""
    found: dict[str, Rows] = {}
    for group, rows in groups.items():
        settled = settle(rows.values(), decisions, position)
        gone = {(row.topic, row.partition) for row in settled.removed}
        changed = {(row.topic, row.partition): row for row in settled.offsets}
        found[group] = {key: row for key, row in {**rows, **changed}.items() if key not in gone}
    return found
