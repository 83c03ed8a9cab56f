"""A warehouse on a store in memory, with any number of processes that can be killed at any call."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq

from tests.doubles.fault_plan import Rule
from tests.doubles.manual_environment import ManualEnvironment, StoreTime
from tests.doubles.memory_store import MemoryObjects, MemoryStore
from tests.doubles.stepping_store import SteppingStore
from txntable.format.warehouse_settings import WarehouseSettings
from txntable.storage.object_store import StoredObject
from txntable.warehouse.warehouse import Warehouse, create_on, open_on

TWO_COLUMNS = pa.schema([pa.field("account", pa.string(), nullable=False), pa.field("amount", pa.int64())])


@dataclass
class Site:
    """One store, and the processes that use it."""

    time: ManualEnvironment = field(default_factory=ManualEnvironment)
    started: int = 0

    def __post_init__(self) -> None:
        self.objects = MemoryObjects(StoreTime(self.time))
        self.environments: list[ManualEnvironment] = []

    def copy(self) -> Site:
        """A site with the same objects, whose future is its own."""
        other = Site(started=self.started)
        other.time.advance_ms(self.time.instant().boot_ms)
        other.objects.restore(self.objects.snapshot())
        return other

    def store(self, *plan: Rule) -> SteppingStore:
        """Access to the store."""
        return SteppingStore(MemoryStore(self.objects), plan)

    def environment(self) -> ManualEnvironment:
        """The clocks and ids of one more process."""
        self.started += 1
        environment = ManualEnvironment(seed=self.started)
        self.environments.append(environment)
        return environment

    def create(self, *plan: Rule) -> Warehouse:
        """Create the warehouse in a new process."""
        return create_on(self.store(*plan), self.environment(), exist_ok=True, settings=WarehouseSettings())

    def open(self, *plan: Rule) -> Warehouse:
        """Open the warehouse in a new process."""
        return open_on(self.store(*plan), self.environment())

    def advance_ms(self, milliseconds: int) -> None:
        """Let time pass everywhere."""
        self.time.advance_ms(milliseconds)
        for environment in self.environments:
            environment.advance_ms(milliseconds)

    def objects_below(self, folder: str) -> dict[str, StoredObject]:
        """All objects in a folder."""
        return {path: found for path, found in self.objects.snapshot().items() if path.startswith(f"{folder}/")}


def published(warehouse: Warehouse, topic: str) -> list[dict]:
    """The records of the public table, read from the log and the files, in offset order."""
    log = warehouse.topic_log(topic).public
    rows = []
    for add in log.refresh().files:
        values = add.partition_values
        data = warehouse.store.get(f"{log.root}/{add.path}")
        assert data is not None, f"dangling reference: {add.path}"
        assert len(data.data) == add.size
        assert add.stats is not None
        table = pq.read_table(pa.BufferReader(data.data))
        assert json.loads(add.stats)["numRecords"] == table.num_rows
        for row in table.to_pylist():
            offset = int(values["_base_offset"] or "") + row.pop("_offset_delta")
            row.pop("_timestamp")
            rows.append({"_partition": int(values["_partition"] or ""), "_offset": offset, **row})
    return sorted(rows, key=lambda row: (row["_partition"], row["_offset"]))


Operation = Callable[[Warehouse], object]
