"""A disk that fails at any system call, once or from there on, and then loses what was not synced (log rule 10).

Each phase of a small life is run again for system calls that it makes, with an error that this call can meet.
Afterwards the power is cut and the disk is whole again: what was acknowledged is there, nothing else is broken, and
the next process works.  A build takes every third call, of reading ones every twentieth; ``HYPOTHESIS_PROFILE=explore``
takes each, and each with both ends of the names that were not synced.
"""

from __future__ import annotations

import copy
import errno
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import pytest

from tests.doubles.manual_environment import ManualEnvironment, StoreTime
from tests.doubles.simulated_disk import MEETS, SimulatedDisk, UnsyncedNames
from tests.simulation.site import TWO_COLUMNS
from txntable.compaction.vacuum import vacuum
from txntable.errors import TopicAlreadyExistsError, TxnTableError
from txntable.format.records import TopicPartition
from txntable.format.warehouse_settings import WarehouseSettings
from txntable.storage.local_folder import LocalFolder
from txntable.storage.object_store import StoreSpec
from txntable.warehouse.warehouse import Warehouse, create_on

DAY_MS = 86_400_000
IN = TopicPartition("t", 0)


@dataclass
class Machine:
    """One machine with a disk: its processes live in one folder."""

    disk: SimulatedDisk
    time: ManualEnvironment = field(default_factory=ManualEnvironment)
    started: int = 0
    acked: list[tuple[str, str]] = field(default_factory=list)
    """What callers were told: a transaction's account, or the group's offset."""

    def process(self) -> Warehouse:
        """The warehouse in a new process; its creation is finished where it was interrupted."""
        self.started += 1
        environment = ManualEnvironment(seed=self.started, wall_ms=self.time.instant().wall_ms)
        environment.advance_boot_ms(self.time.instant().boot_ms)
        store = LocalFolder(StoreSpec("/disk/lake"), self.disk)
        return create_on(store, environment, exist_ok=True, settings=WarehouseSettings())

    def copy(self) -> Machine:
        """Another machine with the same disk."""
        return Machine(copy.deepcopy(self.disk), self.time, self.started, list(self.acked))


def new_machine() -> Machine:
    time = ManualEnvironment()
    now = StoreTime(time)
    # A function is not copied with a disk: all of them go by one time.
    return Machine(SimulatedDisk(lambda: now()), time)  # noqa: PLW0108


# -- a small life: each phase acknowledges what it was told ---------------------------------------


def create(machine: Machine) -> None:
    warehouse = machine.process()
    machine.acked.append(("created", "warehouse"))
    warehouse.admin().create_topic("t", partitions=2, schema=TWO_COLUMNS)
    machine.acked.append(("created", "t"))


def transact(machine: Machine, account: str = "first") -> None:
    producer = machine.process().producer("etl")
    producer.init_transactions()
    producer.begin_transaction()
    for partition in (0, 1):
        producer.send("t", row={"account": account, "amount": 1}, partition=partition)
    producer.send_offsets_to_transaction({IN: 1}, "copies")
    producer.commit_transaction()
    machine.acked.append(("transaction", account))


def consume(machine: Machine) -> None:
    consumer = machine.process().consumer(group_id="copies", enable_auto_commit=False)
    consumer.assign([IN])
    consumer.seek(IN, 0)
    found = consumer.poll(timeout_ms=0)
    assert [record.row["account"] for records in found.values() for record in records] == ["first"]
    consumer.commit({IN: 2})
    machine.acked.append(("offset", "2"))


def checkpoint(machine: Machine) -> None:
    machine.process().transactions.log.write_checkpoint()


def sweep(machine: Machine) -> None:
    vacuum(machine.process(), execute=True)


PHASES: dict[str, Callable[[Machine], None]] = {
    "creation": create,
    "transaction": transact,
    "consumer": consume,
    "checkpoint": checkpoint,
    "vacuum": sweep,
}


@pytest.fixture(autouse=True)
def _short_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    """One racer: the calls have one order."""
    monkeypatch.setattr("txntable.storage.probe.RACERS", 1)
    monkeypatch.setattr("txntable.storage.probe.ROUNDS", 1)


def before(phase: str) -> Machine:
    """A machine that has lived until a phase."""
    machine = new_machine()
    for name, live in PHASES.items():
        if name == phase:
            break
        live(machine)
    if phase == "vacuum":
        producer = machine.process().producer("left")
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("t", row={"account": "never", "amount": 0}, partition=0)
        producer.abort_transaction()
        machine.time.advance_ms(31 * DAY_MS)
    machine.disk.asked.clear()
    return machine


THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "explore"
READING = {"open", "read", "pread", "fstat", "stat", "entries", "close"}
Fails = Callable[[int, str, str], int | None]


def faults(calls: list[str], *, ever: bool) -> Iterator[tuple[str, Fails]]:
    """Each call of a phase with one of the errors that it can meet; the errors take turns."""
    met = Counter[bool]()
    for number, call in enumerate(calls):
        met[call in READING] += 1
        if not THOROUGH and (met[call in READING] + ever) % (20 if call in READING else 3):
            continue
        error = MEETS[call][number % len(MEETS[call])]

        def fails(asked: int, name: str, _: str, *, number: int = number, error: int = error) -> int | None:
            meant = asked >= number if ever else asked == number
            return error if meant and error in MEETS[name] else None

        yield f"{errno.errorcode[error]} at call {number}, {call}", fails


def check(machine: Machine, where: str) -> None:
    """What was told is there, nothing is there in part, and the next process works."""
    told = dict(machine.acked)
    warehouse = machine.process()
    try:
        warehouse.admin().create_topic("t", partitions=2, schema=TWO_COLUMNS)
        assert ("created", "t") not in machine.acked, where
    except TopicAlreadyExistsError:
        pass
    warehouse.producer("etl").init_transactions()
    groups = warehouse.consumer(group_id="copies")
    committed = groups.committed([IN])[IN]
    offset = None if committed is None else committed.offset
    assert offset in ({2} if "offset" in told else {1, 2} if "transaction" in told else {None, 1}), where
    after = Machine(machine.disk, machine.time, machine.started)
    transact(after, "next")
    rows = after.process().read_arrow("t", isolation_level="read_committed").read_all()["account"].to_pylist()
    assert rows.count("next") == 2, where
    assert rows.count("first") in ({2} if "transaction" in told else {0, 2}), where
    assert (offset is None) is (rows.count("first") == 0), where
    assert "never" not in rows, where


def run(phase: str, *, ever: bool) -> int:
    """Run a phase under each fault; how many there were."""
    start = before(phase)
    whole = start.copy()
    PHASES[phase](whole)
    count = 0
    for where, fails in faults(whole.disk.asked, ever=ever):
        machine = start.copy()
        machine.disk.fail(fails)
        # Whatever else is raised than an error of ours fails the test.
        with suppress(TxnTableError):
            PHASES[phase](machine)
        ends = list(UnsyncedNames) if THOROUGH else [list(UnsyncedNames)[(count + ever) % 2]]
        for unsynced in ends:
            survivor = machine.copy()
            survivor.disk.power_cut(unsynced)
            check(survivor, f"{phase}: {where}, names {unsynced.value}")
        count += 1
    return count


def test_a_commit_stands_and_its_offsets_are_not_told_when_the_entry_that_gives_them_cannot_be_synced() -> None:
    machine = before("transaction")
    producer = machine.process().producer("etl")
    producer.init_transactions()
    producer.begin_transaction()
    sent = [producer.send("t", row={"account": "first", "amount": 1}, partition=partition) for partition in (0, 1)]
    folder, linked = "/t/_segments/_delta_log", []

    def fails(_: int, call: str, path: str) -> int | None:
        if call == "link" and folder in path:
            linked.append(path)
        return errno.EIO if linked and call == "fsync" and path.endswith(folder) else None

    machine.disk.fail(fails)

    producer.commit_transaction()

    assert [metadata.is_delivered for metadata in sent] == [False, False]
    machine.disk.power_cut(UnsyncedNames.LOST)
    transact(machine, "next")
    rows = machine.process().read_arrow("t", isolation_level="read_committed").read_all()["account"].to_pylist()
    assert sorted(rows) == ["first", "first", "next", "next"]


@pytest.mark.parametrize("ever", [False, True], ids=["once", "from there on"])
@pytest.mark.parametrize("phase", PHASES)
def test_what_was_acknowledged_is_there_when_any_system_call_fails_and_the_power_is_cut(phase: str, ever: bool) -> None:
    assert run(phase, ever=ever) >= 6
