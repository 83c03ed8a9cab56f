"""A local folder loses nothing that returned when the power is cut (PROTOCOL.md, log rule 10)."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Any

import pytest

from tests.doubles.simulated_disk import PowerCut, SimulatedDisk, UnsyncedNames
from txntable.errors import DamagedDataError, KafkaStorageError
from txntable.storage.local_folder import LocalFolder
from txntable.storage.object_store import ObjectStore, PutOutcome, StoreSpec

ROOT = "/disk/data/warehouse"
PATH = "topics/flights/_delta_log/00.json"
DATA = b"a commit"


def local(disk: SimulatedDisk, durability: str = "full") -> Any:
    return LocalFolder(StoreSpec(ROOT, durability=durability), disk)


def write(store: ObjectStore, path: str = PATH) -> None:
    with store.writer(path) as file:
        file.write(DATA)


def put_if_absent(store: ObjectStore, path: str = PATH) -> None:
    store.put_if_absent(path, DATA)


def put(store: ObjectStore, path: str = PATH) -> None:
    store.put(path, DATA)


def create_all(store: ObjectStore, path: str = PATH) -> None:
    store.create_all([(path, DATA), (f"{path}.2", DATA)])


def sync_written(store: Any, path: str = PATH) -> None:
    folder = path.rpartition("/")[0]
    store.sync_written(folder)
    # Other software, which syncs nothing.
    calls = store._calls
    file = calls.open(f"{ROOT}/{path}", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    calls.write(file, DATA)
    calls.close(file)
    store.sync_written(folder, [path])


WHOLE = [put_if_absent, put, write]
"""Of these nothing is ever seen in part."""
OPERATIONS = [*WHOLE, create_all, sync_written]


def syncs_of(operation: Callable[[ObjectStore], None]) -> int:
    disk = SimulatedDisk()
    operation(local(disk))
    return disk.syncs


def calls_of(operation: Callable[[ObjectStore], None]) -> int:
    disk = SimulatedDisk()
    operation(local(disk))
    return len(disk.calls)


@pytest.mark.parametrize("unsynced", UnsyncedNames)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_object_survives_power_cut_when_the_write_returned(operation, unsynced):
    disk = SimulatedDisk()
    operation(local(disk))

    disk.power_cut(unsynced)

    assert local(disk).get(PATH).data == DATA


@pytest.mark.parametrize(("operation", "number"), [(op, number) for op in OPERATIONS for number in range(syncs_of(op))])
def test_object_is_lost_or_torn_when_any_one_sync_is_left_out(operation, number):
    survivors = []
    whole = local(SimulatedDisk())
    operation(whole)
    made = list(whole.list(""))
    for unsynced in UnsyncedNames:
        disk = SimulatedDisk()
        disk.ignore_sync(number)
        operation(local(disk))
        disk.power_cut(unsynced)
        found = [local(disk).get(meta.path) for meta in made]
        survivors.append(all(one is not None and one.data == DATA for one in found))

    assert not all(survivors)


@pytest.mark.parametrize("unsynced", UnsyncedNames)
@pytest.mark.parametrize(("operation", "number"), [(op, number) for op in WHOLE for number in range(calls_of(op))])
def test_object_is_whole_or_absent_when_power_is_cut_inside_the_write(operation, number, unsynced):
    disk = SimulatedDisk()
    disk.cut_before(number)
    with pytest.raises(PowerCut):
        operation(local(disk))

    disk.power_cut(unsynced)

    found = local(disk).get(PATH)
    assert found is None or found.data == DATA
    assert [meta.size for meta in local(disk).list("")] in ([], [len(DATA)])
    if operation is write and found is not None:
        # What is streamed is new: who tries again takes another name.
        with pytest.raises(DamagedDataError):
            operation(local(disk))
    else:
        operation(local(disk))
    assert local(disk).get(PATH).data == DATA


@pytest.mark.parametrize("unsynced", UnsyncedNames)
@pytest.mark.parametrize("number", range(calls_of(create_all)))
def test_objects_are_created_under_other_names_when_power_was_cut_inside_the_first_try(number, unsynced):
    disk = SimulatedDisk()
    disk.cut_before(number)
    with pytest.raises(PowerCut):
        create_all(local(disk))
    disk.power_cut(unsynced)

    store = local(disk)
    store.create_all([(f"{PATH}-again", DATA)])

    assert store.get(f"{PATH}-again").data == DATA
    assert store.put_if_absent("topics/flights/_delta_log/01.json", DATA) is PutOutcome.CREATED


@pytest.mark.parametrize("unsynced", UnsyncedNames)
@pytest.mark.parametrize("number", range(4))
def test_put_keeps_the_old_object_or_the_new_one_when_power_is_cut_inside_it(number, unsynced):
    disk = SimulatedDisk()
    store = local(disk)
    store.put(PATH, b"old")
    disk.cut_before(len(disk.calls) + number)
    with pytest.raises(PowerCut):
        store.put(PATH, b"new")

    disk.power_cut(unsynced)

    assert local(disk).get(PATH).data in {b"old", b"new"}


FIRST, SECOND = "topics/t/_segments/_delta_log/00.json", "topics/t/_delta_log/00.json"


def put_series(store: ObjectStore) -> None:
    with store.series():
        store.put_if_absent(FIRST, DATA)
        store.sync_read()
        store.put_if_absent(SECOND, DATA)


@pytest.mark.parametrize("unsynced", UnsyncedNames)
def test_all_of_a_series_survives_when_it_has_ended(unsynced):
    disk = SimulatedDisk()
    put_series(local(disk))

    disk.power_cut(unsynced)

    assert [local(disk).get(path).data for path in (FIRST, SECOND)] == [DATA, DATA]


@pytest.mark.parametrize("number", range(calls_of(put_series)))
@pytest.mark.parametrize("unsynced", UnsyncedNames)
def test_the_second_of_a_series_is_nowhere_without_the_first_when_the_power_is_cut_inside(number, unsynced):
    disk = SimulatedDisk()
    disk.cut_before(number)
    with pytest.raises(PowerCut):
        put_series(local(disk))
    was_seen = disk.calls.count("link") == 2

    disk.power_cut(unsynced)

    first, second = (local(disk).get(path) for path in (FIRST, SECOND))
    assert first is not None or (second is None and not was_seen)
    assert {found.data for found in (first, second) if found is not None} <= {DATA}


def test_a_series_ends_with_an_error_when_a_sync_in_it_has_failed():
    disk = SimulatedDisk()
    store = local(disk)
    put_series(store)
    disk.fail(lambda asked, name, path: errno.EIO if name == "fsync" and path.endswith("/_delta_log") else None)

    with pytest.raises(KafkaStorageError), store.series():
        assert store.put_if_absent(f"{FIRST}.2", DATA) is PutOutcome.CREATED

    with pytest.raises(KafkaStorageError):
        store.put_if_absent("topics/t/other", DATA)


def test_write_survives_when_another_process_made_its_folder_and_died_before_syncing():
    disk = SimulatedDisk()
    put_if_absent(local(disk), "topics/first")
    put_if_absent(local(disk, "page-cache"), "topics/flights/_delta_log/none.json")
    store = local(disk)

    store.put_if_absent(PATH, DATA)
    disk.power_cut()

    assert local(disk).get(PATH).data == DATA


@pytest.mark.parametrize("look", ["get", "head", "list"])
def test_write_never_survives_without_what_was_read_before_it(look):
    disk = SimulatedDisk()
    put_if_absent(local(disk), "log/00")
    local(disk, "page-cache").put_if_absent("log/01", b"")  # linked by another, not synced
    reader = local(disk)
    seen = list(reader.list("log")) if look == "list" else getattr(reader, look)("log/01")

    assert seen
    reader.put_if_absent("elsewhere/decided-on-it", DATA)
    disk.power_cut()

    assert local(disk).get("elsewhere/decided-on-it") is not None
    assert local(disk).get("log/01") is not None


def test_second_read_of_synced_folder_costs_no_sync():
    disk = SimulatedDisk()
    store = local(disk)
    store.put_if_absent("log/00", DATA)
    store.get("log/00")
    store.put_if_absent("log/01", DATA)
    before = disk.syncs

    store.put_if_absent("log/02", DATA)

    assert disk.syncs - before == 2  # the file, its folder


def test_nothing_is_synced_when_durability_is_page_cache():
    disk = SimulatedDisk()
    store = local(disk, "page-cache")

    for operation in OPERATIONS:
        operation(store, operation.__name__)
    store.get("put")
    store.delete(["put"])

    assert disk.syncs == 0
    assert store.put_if_absent("write", b"") is PutOutcome.EXISTS


def test_commit_in_page_cache_makes_four_changing_calls():
    disk = SimulatedDisk()
    store = local(disk, "page-cache")
    store.put_if_absent("log/00", DATA)
    before = len(disk.calls)

    store.put_if_absent("log/01", DATA)

    assert disk.calls[before:] == ["create", "write", "link", "unlink"]


def test_deletion_survives_power_cut_when_it_returned():
    disk = SimulatedDisk()
    store = local(disk)
    put(store)

    store.delete([PATH])
    disk.power_cut()

    assert local(disk).get(PATH) is None
