"""How a transaction was decided that its id has left behind, by the entries of the transaction log that are there.

For who would end what a partition log shows as open: of what was committed there the marker is lost, and an abort
would take its records away (PROTOCOL.md §6.5).  Reads only.
"""

from __future__ import annotations

from txntable.log.actions import Add
from txntable.log.keyed_table import KIND
from txntable.transactions.counted_commits import counted_commits
from txntable.transactions.transaction_log import TransactionLog
from txntable.transactions.transaction_rows import ID_KIND, id_row_of
from txntable.verification.decision_record import RecordedDecision


def past_decision(transactions: TransactionLog, producer_id: int, epoch: int) -> RecordedDecision | None:
    """Return how a transaction was decided.

    Parameters
    ----------
    transactions : TransactionLog
        T.
    producer_id, epoch : int
        They name the transaction.

    Returns
    -------
    RecordedDecision or None
        ``None``: it was not, or its entry is cleaned up.

    Raises
    ------
    DamagedDataError
        An entry cannot be read.
    StoreUnavailableError
        Call again.
    """
    log = transactions.log
    with log.lock:
        table = log.ensure_fresh()
        head, newest = table.next_version - 1, table.commit_id
    for commit in counted_commits(transactions.context.store, head, newest):
        adds = [one for one in commit.actions if isinstance(one, Add) and one.partition_values.get(KIND) == ID_KIND]
        for decided in map(RecordedDecision.of, map(id_row_of, adds)):
            if decided is not None and (decided.producer_id, decided.epoch) == (producer_id, epoch):
                return decided
    return None
