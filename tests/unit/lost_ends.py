"""A topic whose logs, or the transaction log, lose their newest entries."""

from __future__ import annotations

from tests.simulation.site import Site, published
from tests.unit.reading import (
    TOPIC,
    commit,
    plain,
    site_with_topic,
    transactional,
)
from txntable.format.layout import TRANSACTION_LOG_ROOT, commit_path
from txntable.storage.object_store import StoredObject
from txntable.warehouse.warehouse import Warehouse

LOST_TEXT = "the partition log has lost its newest entries"
LOST_DECISIONS = f"the transaction log has lost its newest entries.* topic={TOPIC} "
LOST = f"{LOST_TEXT}.* topic={TOPIC} "
SENT = ["ann", "bob", "cid", "dan"]


def site_with_records() -> Site:
    """A topic whose newest entries are of a transaction and of a plain append, all published."""
    made, warehouse = site_with_topic(partitions=1)
    producer = transactional(warehouse)
    for account in SENT[:3]:
        commit(producer, account)
    plain(warehouse, SENT[3])
    return made


def entries_of(site: Site, root: str = f"topics/{TOPIC}/_segments") -> list[str]:
    folder = f"{root}/_delta_log/"
    return sorted(path for path in site.objects.snapshot() if path.startswith(folder) and path.endswith(".json"))


def lose(site: Site, count: int) -> dict[str, StoredObject]:
    """Delete the newest entries; return what they were."""
    before = site.objects.snapshot()
    lost = entries_of(site)[-count:]
    for path in lost:
        site.objects.delete(path)
    return {path: before[path] for path in lost}


def shown(site: Site) -> list[str]:
    """What the public table shows as it stands, without bringing it up."""
    return [row["account"] for row in published(site.open(), TOPIC)]


def send_plain(warehouse: Warehouse) -> None:
    plain(warehouse, "eve")


def send_in_transaction(warehouse: Warehouse) -> None:
    commit(transactional(warehouse), "eve")


def lose_decisions(site: Site, count: int) -> None:
    """Delete the entries of the transaction log from one of its last decisions on."""
    decisions = [one.position for one in site.open().transactions.rows()]
    first = max(decisions) - count + 1
    for path in entries_of(site, TRANSACTION_LOG_ROOT):
        if path >= commit_path(TRANSACTION_LOG_ROOT, first):
            site.objects.delete(path)
