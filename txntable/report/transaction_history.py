"""Reading the newest entries of the transaction log, and counting its ids.

Owns that void entries are passed over (PROTOCOL.md §4.6): from the head on, each entry names the commit below it that
counts.  What cleanup has taken ends the history, and is no error.  Reads only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from txntable.admin.blocking_transactions import BlockingTransaction
from txntable.coordinator.transaction import TransactionMetadata
from txntable.coordinator.transaction_state import TransactionState
from txntable.format.layout import TRANSACTION_LOG_ROOT, commit_path
from txntable.log.actions import Commit, decode_commit
from txntable.log.keyed_table import KIND
from txntable.report.transaction_lanes import lanes_of
from txntable.report.warehouse_report import ReportLimits, TransactionHistory
from txntable.transactions.transaction_log import TransactionLog
from txntable.transactions.transaction_rows import ID_KIND, STATE

# Entries that are asked for at once.
_WINDOW = 96


def read_history(
    transactions: TransactionLog, blocking: Sequence[BlockingTransaction], limits: ReportLimits, now_ms: int
) -> TransactionHistory:
    """Return transactions over time, as the newest entries of the transaction log tell them.

    Parameters
    ----------
    transactions : TransactionLog
        T, read just now.
    blocking : sequence of BlockingTransaction
        What holds readers back.
    limits : ReportLimits
        How many entries, and lanes.
    now_ms : int
        The store's time.

    Raises
    ------
    DamagedDataError
        An entry cannot be read.
    StoreUnavailableError
        Call again.
    """
    log = transactions.log
    with log.lock:
        table = log.table
        head, newest, rows = table.next_version - 1, table.commit_id, table.files.to_table()
        under_way = [log.fold.as_known(row) for row in log.fold.under_way.values()]
    commits = _newest_commits(transactions, head, newest, limits.entries)
    lanes = lanes_of(reversed(commits), {row.transactional_id: row for row in under_way}, blocking, limits.lanes)
    times = [
        at_ms
        for lane in lanes.shown
        for span in lane.spans
        for at_ms in (span.started_ms, span.ended_ms)
        if at_ms is not None
    ]
    times += [each.at_ms for lane in lanes.shown for each in lane.takeovers]
    since_ms = min(times, default=now_ms - 1)
    until_ms = max([now_ms, since_ms + 1, *times])
    return TransactionHistory(since_ms, until_ms, len(commits), head + 1, lanes, _ids_by_state(rows, under_way))


def _newest_commits(transactions: TransactionLog, head: int, newest: str | None, most: int) -> list[Commit]:
    """Return the newest entries that count, the newest first."""
    found: list[Commit] = []
    wanted, lowest = newest, max(0, head + 1 - most)
    for top in range(head, lowest - 1, -_WINDOW):
        versions = range(top, max(top - _WINDOW, lowest - 1), -1)
        paths = [commit_path(TRANSACTION_LOG_ROOT, version) for version in versions]
        for version, path, entry in zip(versions, paths, transactions.context.store.get_many(paths), strict=True):
            if entry is None:
                return found
            commit = decode_commit(version, entry.data, path)
            if commit.info.commit_id == wanted:
                wanted = commit.info.previous
                found.append(commit)
    return found


def _ids_by_state(rows: pa.Table, under_way: Iterable[TransactionMetadata]) -> Mapping[str, int]:
    """Count the ids in each state: those under way as this process knows them, all others as their rows say."""
    kinds = pc.map_lookup(rows["partitionValues"], query_key=pa.scalar(KIND), occurrence="first")
    states = pc.map_lookup(rows["partitionValues"], query_key=pa.scalar(STATE), occurrence="first")
    counts = Counter(row.state.value for row in under_way)
    for each in pc.value_counts(states.filter(pc.equal(kinds, ID_KIND))).to_pylist():
        state = TransactionState(each["values"])
        if not (state.is_open or state.is_decided):
            counts[state.value] += each["counts"]
    return dict(counts)
