"""Whether ``_warehouse.json``, T and O are of one warehouse (PROTOCOL.md §2, §3.1).

Owns which of them is told where they differ: two that agree are right about the third.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from txntable.format.layout import OFFSET_LOG_ROOT, TRANSACTION_LOG_ROOT, WAREHOUSE_FILE, commit_path
from txntable.log.actions import Metadata
from txntable.verification.damage import Damage, DamageKind

Shown = Sequence[tuple[int, Metadata]]
"""The metadata that a log has shown, each with the version that did."""

_ID_ENDS = {TRANSACTION_LOG_ROOT: "0", OFFSET_LOG_ROOT: "1"}
_WAREHOUSE_ID = "txntable.warehouse.id"


def damages_of_identity(warehouse_id: str, logs: Mapping[str, Shown]) -> Iterator[Damage]:
    """Hold the identity and both logs against each other.

    Parameters
    ----------
    warehouse_id : str
        As ``_warehouse.json`` says.
    logs : Mapping of str to Shown
        By root: T's metadata, and O's.
    """
    named = {root: {one.configuration.get(_WAREHOUSE_ID) for _, one in shown} for root, shown in logs.items()}
    of_both = set[str | None]().union(*named.values())
    theirs = next(iter(of_both)) if len(of_both) == 1 and all(named.values()) else None
    if theirs is not None and theirs != warehouse_id:
        problem = f"it is of the warehouse {warehouse_id}, and both system logs are of {theirs}"
        yield Damage(DamageKind.IDENTITY, WAREHOUSE_FILE, problem)
        warehouse_id = theirs
    for root, shown in logs.items():
        for version, metadata in shown:
            path = commit_path(root, version)
            if metadata.configuration.get(_WAREHOUSE_ID) != warehouse_id:
                yield Damage(DamageKind.GUARD, path, f"the table is not of the warehouse {warehouse_id}")
            if metadata.table_id != warehouse_id[:31] + _ID_ENDS[root]:
                yield Damage(DamageKind.GUARD, path, f"the table's id is {metadata.table_id}")
