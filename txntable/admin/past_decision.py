"""How a transaction was decided that its id has left behind, by the entries of the transaction log that are there.

For who would end what a partition log shows as open: of what was committed there the marker is lost, and an abort
would take its records away (PROTOCOL.md §6.5).  Reads only, entry by entry from the head: for a repair, never on the
way of a writer.
"""

from __future__ import annotations

from collections.abc import Iterator

from txntable.coordinator.transaction import TransactionMetadata
from txntable.format.layout import TRANSACTION_LOG_ROOT, commit_path
from txntable.log.actions import Add, decode_commit
from txntable.log.keyed_table import KIND
from txntable.storage.object_store import ObjectStore
from txntable.transactions.transaction_rows import ID_KIND, id_row_of
from txntable.verification.decision_record import RecordedDecision

_WINDOW = 64


def past_decision(store: ObjectStore, head: int, producer_id: int, epoch: int) -> RecordedDecision | None:
    """Return how a transaction was decided.

    Parameters
    ----------
    store : ObjectStore
        The warehouse's.
    head : int
        The version of the transaction log to begin with.
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
    for row in _rows(store, head):
        if row.producer_id != producer_id:
            continue
        decided = RecordedDecision.of(row)
        if decided is not None and decided.epoch == epoch:
            return decided
        if row.producer_epoch <= epoch:
            # What is further down is of an earlier epoch: it was never decided.
            return None
    return None


def _rows(store: ObjectStore, head: int) -> Iterator[TransactionMetadata]:
    """Yield the rows of ids that the entries have written, the newest first, until one is cleaned up."""
    for top in range(head, -1, -_WINDOW):
        versions = range(top, max(-1, top - _WINDOW), -1)
        paths = [commit_path(TRANSACTION_LOG_ROOT, version) for version in versions]
        for version, path, entry in zip(versions, paths, store.get_many(paths), strict=True):
            if entry is None:
                return
            for action in decode_commit(version, entry.data, path).actions:
                if isinstance(action, Add) and action.partition_values.get(KIND) == ID_KIND:
                    yield id_row_of(action)
