"""What is told of a commit when the disk cannot sync, or has not synced yet (PROTOCOL.md §4.2, log rule 10)."""

from __future__ import annotations

import copy
import errno
from collections.abc import Callable, Sequence

import pytest

from tests.doubles.manual_environment import ManualEnvironment
from tests.doubles.simulated_disk import SimulatedDisk, UnsyncedNames
from tests.unit.log.world import GUARD_MS, ROOT, Nothing, creation, slot
from txntable.errors import KafkaStorageError, StoreUnavailableError
from txntable.log.actions import Action, Txn
from txntable.log.delta_log import DeltaLog
from txntable.log.log_view import LogContext
from txntable.log.outcome import Committed, Unchanged, Unknown, unknown_error
from txntable.log.table_state import TableState
from txntable.storage.local_folder import LocalFolder
from txntable.storage.object_store import StoreSpec
from txntable.storage.store_clock import StoreClock

FOLDER = f"/disk/lake/{ROOT}/_delta_log"


class Process:
    """A process of the machine, with one view of the log."""

    def __init__(self, disk: SimulatedDisk, *, number: int = 1) -> None:
        self.environment = ManualEnvironment(seed=number)
        self.store = LocalFolder(StoreSpec("/disk/lake"), disk)
        clock = StoreClock(self.store, self.environment)
        self.log = DeltaLog(LogContext(self.store, self.environment, clock, GUARD_MS), ROOT, Nothing())

    def once(self) -> object:
        """Set a number, unless it is set: a call that may be made again."""
        return self.log.commit("SET", lambda table: [] if table.number("set") else [Txn("set", 1)])


def create(table: TableState) -> Sequence[Action]:
    return [] if table.version is not None else creation()


def entry(disk: SimulatedDisk) -> bytes:
    """The bytes with which a process sets the number."""
    other = copy.deepcopy(disk)
    process = Process(other, number=7)
    assert process.once() == Committed(1)
    found = process.store.get(slot(1))
    assert found is not None
    return found.data


@pytest.fixture
def disk() -> SimulatedDisk:
    made = SimulatedDisk()
    Process(made).log.commit("CREATE", create)
    return made


def is_set(disk: SimulatedDisk) -> bool:
    """Whether the number is set after a power cut."""
    disk.power_cut(UnsyncedNames.LOST)
    return Process(disk, number=9).log.refresh().number("set") == 1


def failing(call: str, number: int) -> Callable[[int, str, str], int | None]:
    """Every such call of the log's folder fails."""
    return lambda _, name, path: number if (name, path) == (call, FOLDER) else None


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC, errno.EDQUOT])
def test_commit_is_unknown_and_the_process_writes_no_more_when_its_folder_was_not_synced(
    disk: SimulatedDisk, error: int
) -> None:
    process = Process(disk)
    process.log.refresh()
    process.store.sync_read()
    disk.fail(failing("fsync", error))

    assert process.once() == Unknown(1)
    assert process.store.get(slot(1)) is not None, "it can be read back, which proves nothing"
    disk.fail(None)
    for _ in range(2):
        with pytest.raises(KafkaStorageError, match="check the disk"):
            process.once()
    with pytest.raises(KafkaStorageError):
        process.log.commit("OTHER", lambda _: [Txn("other", 1)])
    for write in (process.store.put, process.store.put_if_absent):
        with pytest.raises(KafkaStorageError):
            write("elsewhere/a", b"")
    assert process.store.get("elsewhere/a") is None, "refused before anybody can see it"
    assert not is_set(disk)


def test_unknown_commit_has_what_the_disk_said(disk: SimulatedDisk) -> None:
    process = Process(disk)
    process.log.refresh()
    disk.fail(lambda _, name, path: errno.ENOSPC if (name, path) == ("link", f"/disk/lake/{slot(1)}") else None)

    outcome = process.once()

    assert isinstance(outcome, Unknown)
    assert outcome.tried_for_ms == process.store.retry_timeout_ms
    assert "the disk is full; make room" in str(unknown_error(outcome, operation="SET"))
    assert f"tried_for_ms={outcome.tried_for_ms}" in str(unknown_error(outcome, operation="SET"))
    assert "the store cannot be reached" in str(unknown_error(Unknown(1), operation="SET"))


def test_next_process_tells_of_it_only_once_it_is_synced(disk: SimulatedDisk) -> None:
    process = Process(disk)
    process.log.refresh()
    process.store.sync_read()
    disk.fail(failing("fsync", errno.EIO))
    assert process.once() == Unknown(1)

    still_failing = Process(disk, number=2)
    with pytest.raises(KafkaStorageError):
        still_failing.once()
    disk.fail(None)
    assert Process(disk, number=3).once() == Unchanged(1)

    assert is_set(disk)


def test_commit_read_back_after_an_error_is_synced_before_it_is_told(disk: SimulatedDisk) -> None:
    """The folder could not be opened to be synced: nothing is lost by that, and nothing is known."""
    process = Process(disk)
    process.log.refresh()
    process.store.sync_read()
    met: list[int] = []

    def fails(asked: int, name: str, path: str) -> int | None:
        linked = "link" in disk.asked[-4:] and (name, path) == ("open", FOLDER)
        if linked and not met:
            met.append(asked)
            return errno.EMFILE
        return None

    disk.fail(fails)

    assert process.once() == Committed(1)
    assert met
    assert is_set(disk)


def test_answer_that_stands_on_anothers_unsynced_commit_is_synced_before_it_is_told(disk: SimulatedDisk) -> None:
    slow = Process(disk, number=2)
    slow.log.refresh()
    slow.store.sync_read()
    disk.fail(lambda _, name, path: errno.EMFILE if "link" in disk.asked[-4:] and path == FOLDER else None)
    disk.asked.clear()
    with pytest.raises(StoreUnavailableError):
        slow.store.put_if_absent(slot(1), entry(disk))
    disk.fail(None)

    assert Process(disk, number=3).once() == Unchanged(1)

    assert is_set(disk)


def test_own_commit_found_after_a_long_sleep_is_unknown_when_it_can_not_be_synced(disk: SimulatedDisk) -> None:
    process = Process(disk)
    process.log.refresh()

    def sleep(_: int, name: str, path: str) -> int | None:
        if name == "link" and path.endswith(slot(1)):
            process.environment.advance_ms(GUARD_MS + 1)
        synced = "link" in disk.asked and (name, path) == ("open", FOLDER)
        return errno.EMFILE if synced else None

    disk.asked.clear()
    disk.fail(sleep)

    outcome = process.once()

    assert outcome == Unknown(1)


def test_bytes_that_a_failed_sync_dropped_are_never_linked(disk: SimulatedDisk) -> None:
    """The next attempt writes another file: a second sync of the same one would succeed and bring nothing back."""
    process = Process(disk)
    process.log.refresh()
    met: list[int] = []

    def fails(asked: int, name: str, path: str) -> int | None:
        if name == "fsync" and f"{ROOT}/_delta_log/.unfinished" in path and not met:
            met.append(asked)
            return errno.EIO
        return None

    disk.fail(fails)

    assert process.once() == Committed(1)
    assert met
    assert is_set(disk)


def test_deletion_says_what_failed_when_its_folder_can_not_be_synced(disk: SimulatedDisk) -> None:
    store = Process(disk).store
    store.put("a/b", b"")
    disk.fail(lambda _, name, path: errno.EMFILE if (name, path) == ("open", "/disk/lake/a") else None)

    with pytest.raises(StoreUnavailableError):
        store.delete(["a/b"])
