"""Transactions over time, by the newest entries of the transaction log, and how many ids are in each state.

Owns how far down is read, and from when to when the history goes.  Reads only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from txntable.admin.blocking_transactions import BlockingTransaction
from txntable.coordinator.transaction import TransactionMetadata
from txntable.coordinator.transaction_state import TransactionState
from txntable.log.keyed_table import KIND
from txntable.report.transaction_lanes import lanes_of
from txntable.report.warehouse_report import ReportLimits, TransactionHistory
from txntable.transactions.counted_commits import counted_commits
from txntable.transactions.transaction_log import TransactionLog
from txntable.transactions.transaction_rows import ID_KIND, STATE


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
    lowest = max(0, head + 1 - limits.entries)
    commits = list(counted_commits(transactions.context.store, head, newest, lowest))
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
