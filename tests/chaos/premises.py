"""What all processes of a chaos run go by: where the warehouse is, its topics, groups, ids and timeouts.

Timeouts are as short as the product takes them, so that a pause is longer than each of them.  Where it takes none
short enough for a run of a minute, ``limits`` lowers the bound, in every process alike.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType

from txntable.format.warehouse_settings import WarehouseSettings
from txntable.warehouse.warehouse import Warehouse

ACCOUNTS, EVENTS, MIRROR, PARTITIONS = ("checking", "savings"), "events", "mirror", 2
TOPICS = (*ACCOUNTS, EVENTS, MIRROR)
SCRATCH = "scratch"
"""The topic that comes and goes."""
BALANCES, KEPT, HAPPENINGS = "balances", "kept", "happenings"
KEYS = ("a", "b", "c", "d", "e")
KEEP_MS = 10_000
_COMPACTED = {"segment.bytes": "20000", "min.cleanable.dirty.ratio": "0"}
KEYED_CONFIG: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        BALANCES: {"cleanup.policy": "compact", **_COMPACTED, "delete.retention.ms": "4000"},
        KEPT: {"cleanup.policy": "compact,delete", "retention.ms": "-1", **_COMPACTED, "delete.retention.ms": "0"},
        HAPPENINGS: {"cleanup.policy": "delete", "segment.bytes": "20000", "retention.ms": str(KEEP_MS)},
    }
)
CREW = "crew"
CREW_IDS = ("crew-ann", "crew-bob", "crew-cid")
"""A process of tellers, each in a thread of its own: they share a handle, and entries of the transaction log."""
MERCHANTS = ("v", "w")
COPIERS, FOLLOWERS = "copiers", "followers"
TRANSACTION_TIMEOUT_MS, SESSION_TIMEOUT_MS = 3_000, 6_000
# Longer than the first, and than both.
PAUSES_MS = (20, 300, TRANSACTION_TIMEOUT_MS + 1_000, SESSION_TIMEOUT_MS + 2_000)
# A scheduler fires one run of a batch in each of these.
BATCH_MS = 2_000
SETTINGS = {
    "transaction_max_timeout_ms": 10_000,
    "transactional_id_expiration_ms": 15_000,
    "snapshot_retention_ms": 2_000,
}


@dataclass(frozen=True, slots=True)
class Site:
    """Where a run takes place.

    Attributes
    ----------
    url : str
        The warehouse's.
    folder : str
        For histories, and what the processes say in the end.
    seed : int
        Of everything that is left to chance and is not the machine's.
    options : mapping of str to str
        The store's.
    scenario : str
        What happens there, of ``scenarios``.
    """

    url: str
    folder: str
    seed: int
    options: Mapping[str, str] = field(default_factory=dict)
    scenario: str = "everyday"

    def save(self) -> Path:
        """Write it down for the processes."""
        path = Path(self.folder) / "site.json"
        path.write_text(json.dumps({**asdict(self), "options": dict(self.options)}))
        return path

    def open(self) -> Warehouse:
        """Open the warehouse as every process here does."""
        return Warehouse.open(self.url, self.options, durability=self.durability)

    @property
    def durability(self) -> str:
        """What dies here is processes, not the machine."""
        return "full" if "://" in self.url else "page-cache"

    def create(self, settings: WarehouseSettings) -> Warehouse:
        """Create the warehouse."""
        return Warehouse.create(self.url, self.options, settings=settings, durability=self.durability)


def site_at(path: str) -> Site:
    """Return what was saved."""
    return Site(**json.loads(Path(path).read_text()))


def forget_accounts() -> None:
    """Take from this process what would lead it to a real store."""
    for name in list(os.environ):
        if name.startswith(("AWS_", "TXNTABLE_")):
            del os.environ[name]
    os.environ["AWS_EC2_METADATA_DISABLED"] = "true"
    os.environ["AWS_CONFIG_FILE"] = os.environ["AWS_SHARED_CREDENTIALS_FILE"] = os.devnull
