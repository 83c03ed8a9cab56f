"""Letting go of transactional ids and batch names that no one uses (PROTOCOL.md §6.6).

Owns which rows of T may go.  An id's age counts from the store's time of the entry that wrote its
row, a batch name's from its decision.  What is planned on a view is decided again at the slot, row
by row: whoever was used meanwhile stays.  An id's expiry never takes its batch rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from txntable.coordinator.batch_memory import is_batch_forgotten
from txntable.coordinator.transaction import TransactionMetadata
from txntable.coordinator.transaction_shard import expire
from txntable.format.warehouse_settings import WarehouseSettings
from txntable.log.actions import Action, Add, Remove
from txntable.log.entry_time import version_as_of
from txntable.log.keyed_log import LARGEST_COMMIT_ROWS
from txntable.log.keyed_table import KIND, keyed_remove
from txntable.log.table_state import LiveFiles, TableState
from txntable.transactions.transaction_log import TransactionLog
from txntable.transactions.transaction_rows import BATCH_KIND, ID_KIND, batch_row_of, id_row_of


@dataclass(frozen=True, slots=True)
class ExpirySpec:
    """What is old enough to go.

    Attributes
    ----------
    now_ms : int
        The store's time, milliseconds since 1970.
    idle_through : int, optional
        Ids whose row was written at or below this version of T are idle long enough; ``None``: none is.
    settings : WarehouseSettings
        How long what is kept.
    """

    now_ms: int
    idle_through: int | None
    settings: WarehouseSettings


def plan_expiry(transactions: TransactionLog, settings: WarehouseSettings) -> tuple[ExpirySpec, list[str]]:
    """Plan what may go, on the view as it is; asks the store only when an id looks old enough.

    Returns
    -------
    tuple
        What is old enough, and the paths of the rows that may go.

    Raises
    ------
    StoreUnavailableError
        Call again.
    """
    context, log = transactions.context, transactions.log
    now_ms = context.clock.now_ms()
    idle_since_ms = now_ms - settings.transactional_id_expiration_ms
    with log.lock:
        position, files = log.table.next_version, log.table.files
        idle = _written_until(files, ID_KIND, idle_since_ms)
        batches = _written_until(files, BATCH_KIND, now_ms - settings.batch_retention_ms)
    # A row is decoded once: there may be very many.
    ids = [(add.path, row) for add in idle if not _keeps_a_token(row := id_row_of(add), add, now_ms, settings)]
    idle_through = version_as_of(context, log.root, position - 1, idle_since_ms) if ids else None
    spec = ExpirySpec(now_ms, idle_through, settings)
    going = [path for path, row in ids if _is_expired(row, spec, position)]
    return spec, going + [add.path for add in batches if _may_go(add, spec, position)]


def decide_expiry(table: TableState, paths: Sequence[str], spec: ExpirySpec) -> list[Remove]:
    """Decide the removal of rows, each as it stands below the slot.

    Parameters
    ----------
    table : TableState
        T's state.
    paths : sequence of str
        At most :data:`LARGEST_COMMIT_ROWS` of what was planned.
    spec : ExpirySpec
        What is old enough.
    """
    found = (table.files.get(path) for path in paths)
    return [
        keyed_remove(add, spec.now_ms) for add in found if add is not None and _may_go(add, spec, table.next_version)
    ]


def expire_part(transactions: TransactionLog, paths: Sequence[str], spec: ExpirySpec) -> tuple[int, int]:
    """Remove rows in one commit; return how many ids and how many batch names that were.

    Raises
    ------
    CommitStateUnknownError, StoreUnavailableError
        Plan again: what is gone is not planned any more.
    """
    removed: list[Remove] = []

    def decide(table: TableState) -> Sequence[Action]:
        removed[:] = decide_expiry(table, paths, spec)
        return removed

    transactions.commit("EXPIRE", decide)
    names = sum(remove.partition_values[KIND] == BATCH_KIND for remove in removed)
    return len(removed) - names, names


def parts_of(paths: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield `paths` in parts that one commit each may remove."""
    return (paths[start : start + LARGEST_COMMIT_ROWS] for start in range(0, len(paths), LARGEST_COMMIT_ROWS))


def _may_go(add: Add, spec: ExpirySpec, position: int) -> bool:
    if add.partition_values[KIND] == BATCH_KIND:
        return is_batch_forgotten(batch_row_of(add), spec.now_ms, spec.settings.batch_retention_ms)
    row = id_row_of(add)
    return not _keeps_a_token(row, add, spec.now_ms, spec.settings) and _is_expired(row, spec, position)


def _is_expired(row: TransactionMetadata, spec: ExpirySpec, position: int) -> bool:
    if spec.idle_through is None or row.position > spec.idle_through:
        return False
    # How long exactly was not asked of the store: so long at least.
    expiration_ms = spec.settings.transactional_id_expiration_ms
    return expire(row, expiration_ms, expiration_ms, position).row is not None


def _keeps_a_token(row: TransactionMetadata, add: Add, now_ms: int, settings: WarehouseSettings) -> bool:
    """Return whether an id stays for its tokens; by its row's own time, since entries are gone long before."""
    age_ms = now_ms - add.modification_time
    return age_ms < settings.batch_retention_ms and row.prepared_epoch is not None


def _written_until(files: LiveFiles, kind: str, time_ms: int) -> list[Add]:
    """Return the rows that may be that old: a row's modification time is its writer's estimate, never ahead."""
    rows = files.to_table()
    kinds = pc.map_lookup(rows["partitionValues"], query_key=pa.scalar(KIND), occurrence="first")
    old = pc.and_(pc.equal(kinds, kind), pc.less_equal(rows["modificationTime"], time_ms))
    found = (files.get(path) for path in rows.filter(old)["path"].to_pylist())
    return [add for add in found if add is not None]
