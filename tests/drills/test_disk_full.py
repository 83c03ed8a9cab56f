"""The disk of a local folder becomes full: in a commit, an upload, an append to a log; then it has room again.

Lost: nothing that was told committed.  A call that meets a full disk says so, or that its outcome is unknown; the same
call can be made again once there is room, by the same process, unless a folder could not be synced: that process writes
no more, and the next one finds out.  Readers go on meanwhile.
"""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from tests.doubles.simulated_disk import MEETS
from tests.drills.runbook import Shell
from tests.drills.small_disk import free_bytes, small_disk
from tests.drills.stage import Stage, Writer
from tests.simulation.test_disk_faults import Machine, create, new_machine, transact
from txntable.errors import (
    CommitStateUnknownError,
    KafkaStorageError,
    StoreUnavailableError,
    TransactionAbortableError,
    TxnTableError,
)
from txntable.format.isolation import IsolationLevel
from txntable.producer.producer import Producer


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", kilobytes=1_000) as found:
        yield found


def until_full(writer: Writer) -> TxnTableError:
    """Commit until the disk has no room, and return what the producer is told then."""
    while True:
        try:
            writer.transact()
        except TxnTableError as error:
            return error


def test_nothing_is_lost_and_the_runbook_goes_on_when_a_full_disk_has_room_again(tmp_path: Path, place: Path) -> None:
    stage = Stage({}, None, Shell(tmp_path, {"TXNTABLE_WAREHOUSE": f"{place}/lake"}, {"/data": str(place)}))
    stage.create(f"{place}/lake")
    writer = stage.writer("etl", f"{place}/lake")
    ballast = place / "of others"
    ballast.write_bytes(bytes(free_bytes(place) - 60_000))

    refused = until_full(writer)

    assert isinstance(refused, StoreUnavailableError)
    assert "the disk is full; make room" in str(refused)
    assert stage.seen(f"{place}/lake") == writer.told
    ballast.unlink()
    with suppress(TxnTableError):
        writer.producer.abort_transaction()
    stage.shell.follow("A full disk")
    writer.transact()
    again = stage.writer("other", f"{place}/lake")
    again.transact()
    assert stage.seen(f"{place}/lake") == [*writer.told, *again.told]
    assert stage.offsets("etl", f"{place}/lake") == writer.tried


def send(producer: Producer, account: str) -> None:
    """Begin a transaction, and append to both partitions."""
    producer.begin_transaction()
    for partition in (0, 1):
        producer.send("t", row={"account": account, "amount": 1}, partition=partition)
    producer.flush()


def goes_on(machine: Machine, producer: Producer, number: int) -> bool:
    """Do a transaction on a disk that is full from a call on, and one when it has room; return whether that can be."""
    begun = len(machine.disk.asked)
    machine.disk.fail(
        lambda asked, name, _: errno.ENOSPC if asked >= begun + number and errno.ENOSPC in MEETS[name] else None
    )
    try:
        try:
            send(producer, "first")
        except (TransactionAbortableError, StoreUnavailableError):
            machine.disk.fail(None)
            producer.abort_transaction()
        else:
            commit(machine, producer)
            machine.acked.append(("transaction", "first"))
        machine.disk.fail(None)
        send(producer, "second")
        producer.commit_transaction()
    except KafkaStorageError:
        machine.disk.fail(None)
        return False
    return True


def commit(machine: Machine, producer: Producer) -> None:
    """Commit; make the call again once there is room, where it may or may not have been granted."""
    try:
        producer.commit_transaction()
    except CommitStateUnknownError:
        machine.disk.fail(None)
        producer.commit_transaction()


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine with a topic; its disk is asked in one order."""
    monkeypatch.setattr("txntable.storage.probe.RACERS", 1)
    monkeypatch.setattr("txntable.storage.probe.ROUNDS", 1)
    made = new_machine()
    create(made)
    return made


def started(machine: Machine) -> Producer:
    producer = machine.process().producer("etl")
    producer.init_transactions()
    return producer


def calls_of_a_transaction(machine: Machine) -> int:
    producer, before = started(machine), len(machine.disk.asked)
    send(producer, "first")
    producer.commit_transaction()
    return len(machine.disk.asked) - before


def test_commit_whose_outcome_is_unknown_says_that_the_disk_is_full(machine: Machine) -> None:
    producer = started(machine)
    send(producer, "first")
    machine.disk.fail(lambda _, name, path: errno.ENOSPC if name == "link" and "transaction_log" in path else None)

    with pytest.raises(CommitStateUnknownError, match=r"the disk is full; make room.*reason=No space left on device"):
        producer.commit_transaction()

    machine.disk.fail(None)
    producer.commit_transaction()


def test_transaction_is_whole_or_not_there_when_the_disk_is_full_from_any_call_on_and_has_room_again(
    machine: Machine,
) -> None:
    gone_on, told = Counter[bool](), 0
    for number in range(0, calls_of_a_transaction(machine.copy()), 4):
        lived = machine.copy()
        alive = goes_on(lived, started(lived), number)

        transact(lived, "next")

        rows = Counter(lived.process().read_arrow("t").read_all()["account"].to_pylist())
        is_told = ("transaction", "first") in lived.acked
        assert rows["first"] in ({2} if is_told else {0, 2}), number
        assert (rows["second"], rows["next"]) == (2 if alive else 0, 2), number
        gone_on[alive] += 1
        told += is_told
    assert told >= 2
    assert min(gone_on[True], gone_on[False]) > 0


def test_readers_go_on_with_what_is_published_while_the_disk_is_full_from_any_call_on(machine: Machine) -> None:
    transact(machine, "before")
    seen = Counter[tuple[IsolationLevel, int]]()
    for number in range(0, calls_of_a_transaction(machine.copy()), 4):
        lived = machine.copy()
        producer, begun = started(lived), len(lived.disk.asked)
        is_full = partial(_is_full, begun + number)
        lived.disk.fail(is_full)
        with suppress(TxnTableError):
            send(producer, "first")
            producer.commit_transaction()

        for level in IsolationLevel:
            rows = Counter(lived.process().read_arrow("t", isolation_level=level).read_all()["account"].to_pylist())

            assert rows["before"] == 2, (number, level)
            assert rows["first"] in {0, 2}, (number, level)
            seen[level, rows["first"]] += 1
    assert seen[IsolationLevel.SNAPSHOT, 0] > seen[IsolationLevel.SNAPSHOT, 2] > 0


def test_who_keeps_the_warehouse_is_told_of_the_full_disk_that_readers_pass_over(machine: Machine) -> None:
    transact(machine, "before")
    producer = machine.process().producer()
    producer.send("t", row={"account": "plain", "amount": 1}, partition=0)
    machine.disk.fail(lambda _, name, path: errno.ENOSPC if name == "link" and "topics/t/_delta_log" in path else None)
    with suppress(TxnTableError):
        producer.flush()
    keeper = machine.process()

    assert "plain" not in keeper.read_arrow("t").read_all()["account"].to_pylist()
    with pytest.raises(TxnTableError, match="the disk is full"):
        keeper.complete()
    assert keeper.coordinator().run_once().failures
    with pytest.raises(TxnTableError, match="the disk is full"):
        keeper.admin().alter_configs("t", {"retention.ms": "86400000"})


def _is_full(since: int, asked: int, name: str, _: str) -> int | None:
    # A process that could not sync a folder is done, also for reading.
    return errno.ENOSPC if asked >= since and name != "fsync" and errno.ENOSPC in MEETS[name] else None
