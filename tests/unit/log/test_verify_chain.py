"""Entries are looked at for their chain alone (PROTOCOL.md §4.1)."""

from __future__ import annotations

import pytest

from tests.doubles.memory_store import MemoryStore
from tests.unit.log.world import ROOT, World, slot
from txntable.errors import DamagedDataError
from txntable.log.chain import verify_chain
from txntable.log.cleanup import LogFile, readable_entries
from txntable.storage.object_store import ObjectMeta

NO_OBJECT = ObjectMeta("", 0, 0)


def world_with_entries(entries: int) -> World:
    world = World()
    process = world.process()
    process.create()
    for _ in range(entries - 1):
        process.count()
    return world


def verify(world: World, versions: list[int]) -> None:
    verify_chain(MemoryStore(world.objects), ROOT, versions)


def test_chain_of_untouched_entries_holds_across_windows() -> None:
    verify(world_with_entries(40), list(range(40)))


@pytest.mark.parametrize("changed", [0, 15, 16, 38])
def test_changed_entry_is_refused_by_the_one_above_it(changed: int) -> None:
    world = world_with_entries(40)
    data = world.objects.snapshot()[slot(changed)].data
    world.objects.put(slot(changed), data.replace(b'"engineInfo":"', b'"engineInfo":"x'))

    with pytest.raises(DamagedDataError, match=slot(changed + 1)):
        verify(world, list(range(40)))


def test_hole_in_what_was_listed_is_refused() -> None:
    world = world_with_entries(5)

    with pytest.raises(DamagedDataError, match="does not continue"):
        verify(world, [0, 1, 3, 4])


def test_entries_that_a_cleanup_takes_meanwhile_are_left_out() -> None:
    world = world_with_entries(5)
    for gone in (0, 1, 2):
        MemoryStore(world.objects).delete([slot(gone)])

    verify(world, [0, 1, 2, 3, 4])


@pytest.mark.parametrize(
    ("entries", "checkpoints", "expected"),
    [
        ([0, 1, 2, 3], [], [0, 1, 2, 3]),
        ([0, 1, 2, 3], [2], [0, 1, 2, 3]),
        ([200, 201, 202], [200], [200, 201, 202]),
        ([1, 200, 201], [200], [200, 201]),
        ([1, 200, 201, 300], [1, 100, 200], [1, 200, 201, 300]),
        ([1, 200, 201, 300], [100, 200], [200, 201, 300]),
    ],
)
def test_slot_that_was_freed_and_created_again_is_no_part_of_the_log(
    entries: list[int], checkpoints: list[int], expected: list[int]
) -> None:
    files = [LogFile(version, False, NO_OBJECT) for version in entries]
    files += [LogFile(version, True, NO_OBJECT) for version in checkpoints]

    assert readable_entries(files) == expected
