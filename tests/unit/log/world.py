"""A world of several processes over one store, each with its own view of one log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tests.doubles.fault_plan import Rule
from tests.doubles.manual_environment import ManualEnvironment, StoreTime
from tests.doubles.memory_store import MemoryObjects, MemoryStore
from tests.doubles.stepping_store import SteppingStore
from txntable.format.layout import checkpoint_path, commit_path, last_checkpoint_path
from txntable.log.actions import Action, Add, Commit, CommitInfo, Metadata, Txn, guard_protocol
from txntable.log.checkpoint import encode_checkpoint, encode_hint
from txntable.log.cleanup import clean_up
from txntable.log.delta_log import DeltaLog
from txntable.log.entry_encoding import encode_commit
from txntable.log.log_view import LogContext
from txntable.log.outcome import CommitOutcome, Committed
from txntable.log.table_state import TableState
from txntable.storage.object_store import ObjectStore, PutOutcome
from txntable.storage.store_clock import StoreClock

ROOT = "table"
GUARD_MS = 300_000
DAY_MS = 86_400_000


class Nothing:
    """A fold that keeps nothing."""

    def restore(self, table: TableState) -> None:
        """Keep nothing."""

    def apply(self, commit: Commit, table: TableState) -> None:
        """Keep nothing."""

    def overlay(self) -> Nothing:
        """Return itself: it keeps nothing."""
        return self


def of_other_software(checkpoint: bytes) -> bytes:
    """Return a checkpoint as other software writes it: it names no entry, and says more of what was removed."""
    found = pq.read_table(pa.BufferReader(checkpoint)).replace_schema_metadata(None)
    removed = found["remove"].combine_chunks()
    said = pa.array(["{}"] * len(removed), pa.string())
    fields = [*removed.type, pa.field("stats", pa.string())]
    more = pa.StructArray.from_arrays([*removed.flatten(), said], fields=fields, mask=pc.is_null(removed))
    out = pa.BufferOutputStream()
    pq.write_table(found.set_column(found.schema.get_field_index("remove"), "remove", more), out)
    written: bytes = out.getvalue().to_pybytes()
    return written


@dataclass
class World:
    """One store and its time; every process has clocks of its own that run with it."""

    time: ManualEnvironment = field(default_factory=ManualEnvironment)
    processes: list[Process] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store_time = StoreTime(self.time)
        self.objects = MemoryObjects(self.store_time)

    def process(self, *plan: Rule) -> Process:
        """Start a process whose store follows `plan`."""
        process = Process(self, SteppingStore(MemoryStore(self.objects), plan), len(self.processes) + 1)
        self.processes.append(process)
        return process

    def advance_ms(self, milliseconds: int) -> None:
        """Let time pass for the store and for every process."""
        self.time.advance_ms(milliseconds)
        for process in self.processes:
            process.environment.advance_ms(milliseconds)

    def paths(self) -> set[str]:
        """The paths of all objects."""
        return set(self.objects.snapshot())


@dataclass
class Process:
    """A process with one view of the log."""

    world: World
    store: SteppingStore
    number: int

    def __post_init__(self) -> None:
        self.environment = ManualEnvironment(seed=self.number)
        self.log = self.open_log(self.store)

    def open_log(self, store: ObjectStore) -> DeltaLog[Nothing]:
        """Open another view."""
        self.context = LogContext(store, self.environment, StoreClock(store, self.environment), GUARD_MS)
        return DeltaLog(self.context, ROOT, Nothing())

    def create(self) -> None:
        """Write version 0."""
        outcome = self.log.commit("CREATE", lambda table: [] if table.version is not None else creation())
        assert isinstance(outcome, Committed)

    def count(self) -> CommitOutcome:
        """Raise the number ``counter`` by one: lost updates show."""
        return self.log.commit("COUNT", lambda table: [Txn("counter", table.number("counter") + 1)])

    def add_file(self, path: str) -> CommitOutcome:
        """Make a file live."""
        return self.log.commit("ADD", lambda table: [file(path)])

    def counter(self) -> int:
        """The number as a fresh reader sees it."""
        return DeltaLog(self.context, ROOT, Nothing()).refresh().number("counter")


def creation() -> Sequence[Action]:
    """The actions of version 0."""
    schema = '{"type":"struct","fields":[{"name":"x","type":"long","nullable":true,"metadata":{}}]}'
    return [guard_protocol(), Metadata("id", "table", schema, (), {"delta.enableInCommitTimestamps": "true"}, 0)]


def file(path: str, size: int = 1) -> Add:
    """A live file."""
    return Add(path, {}, size, 0, True, '{"numRecords":1}', '{"v":1}')


def info_above(table: TableState, commit_id: str, operation: str = "X") -> CommitInfo:
    """What an entry that is written on a state says first."""
    assert table.log is not None
    return CommitInfo(commit_id, table.commit_id, table.timestamp_ms + 1, operation, table.log, table.chain)


def plant(log: DeltaLog[Any], *actions: Action) -> None:
    """Put actions at the next slot as a foreign hand does: what our own writers would not write."""
    table = log.refresh()
    info = info_above(table, "f" * 32, "PLANT")
    data = encode_commit(Commit(table.next_version, info, actions), "foreign")
    assert log.context.store.put_if_absent(commit_path(log.root, table.next_version), data) is PutOutcome.CREATED


def plant_checkpoint(log: DeltaLog[Any], *adds: Add) -> None:
    """Put a checkpoint of the newest version with files in it that no entry has."""
    table = log.refresh().overlay()
    for add in adds:
        table.files.put(add)
    version = table.next_version - 1
    log.context.store.put(checkpoint_path(log.root, version), encode_checkpoint(table))
    log.context.store.put(last_checkpoint_path(log.root), encode_hint(version, len(table.files)))


def slot(version: int) -> str:
    """The path of a version's entry."""
    return f"{ROOT}/_delta_log/{version:020d}.json"


def others_go_on_and_clean_up(world: World, other: Process) -> None:
    """200 commits, two checkpoints, and everything that may go is gone."""
    for _ in range(200):
        other.count()
    world.time.advance_ms(3 * DAY_MS)
    other.environment.advance_ms(3 * DAY_MS)
    other.count()
    spec = clean_up(other.context, "table", DAY_MS)
    assert slot(1) in spec.paths
