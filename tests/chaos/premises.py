"""What all processes of a chaos run go by: where the warehouse is, its topics, groups, ids and timeouts.

Timeouts are as short as the product takes them, so that a pause is longer than each of them.  Where it takes none
short enough for a run of a minute, :func:`shortened` lowers the bound, in every process alike: what is decided two
seconds ago may be merged, a segment of a few records is large, and what a vacuum finds without a name four seconds
after its upload may go.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from unittest.mock import patch

from tests.checker.operations import Topics
from txntable.topic_config import TOPIC_CONFIG
from txntable.warehouse import Warehouse
from txntable.warehouse_settings import WarehouseSettings

ACCOUNTS, EVENTS, MIRROR, PARTITIONS = ("checking", "savings"), "events", "mirror", 2
TOPICS = (*ACCOUNTS, EVENTS, MIRROR)
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
CHECKED = Topics(accounts=frozenset(ACCOUNTS), copies={MIRROR: (EVENTS, COPIERS)})


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
    """

    url: str
    folder: str
    seed: int
    options: Mapping[str, str] = field(default_factory=dict)

    def save(self) -> Path:
        """Write it down for the processes."""
        path = Path(self.folder) / "site.json"
        path.write_text(
            json.dumps({"url": self.url, "folder": self.folder, "seed": self.seed, "options": self.options})
        )
        return path

    def open(self) -> Warehouse:
        """Open the warehouse as every process here does."""
        return Warehouse.open(self.url, self.options, durability=self.durability)

    @property
    def durability(self) -> str:
        """What dies here is processes, not the machine."""
        return "full" if "://" in self.url else "page-cache"

    def create(self) -> Warehouse:
        """Create the warehouse and its topics."""
        settings = WarehouseSettings(**SETTINGS)
        warehouse = Warehouse.create(self.url, self.options, settings=settings, durability=self.durability)
        for topic in TOPICS:
            warehouse.admin().create_topic(topic, partitions=PARTITIONS, config={"segment.bytes": "20000"})
        return warehouse


def site_at(path: str) -> Site:
    """Return what was saved."""
    return Site(**json.loads(Path(path).read_text()))


@contextmanager
def shortened() -> Iterator[None]:
    """Let this process take short retentions and small segments."""
    small = replace(TOPIC_CONFIG["segment.bytes"], lowest=1)
    with ExitStack() as stack:
        for name, value in (
            ("txntable.topic_config.TOPIC_CONFIG", MappingProxyType({**TOPIC_CONFIG, "segment.bytes": small})),
            ("txntable.warehouse_settings._MINUTE_MS", 1_000),
            ("compaction.vacuum.SMALLEST_AGE_MS", 4_000),
        ):
            stack.enter_context(patch(name, value))
        yield


def forget_accounts() -> None:
    """Take from this process what would lead it to a real store."""
    for name in list(os.environ):
        if name.startswith(("AWS_", "TXNTABLE_")):
            del os.environ[name]
    os.environ["AWS_EC2_METADATA_DISABLED"] = "true"
    os.environ["AWS_CONFIG_FILE"] = os.environ["AWS_SHARED_CREDENTIALS_FILE"] = os.devnull
