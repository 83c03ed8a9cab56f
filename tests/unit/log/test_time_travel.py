"""Older versions of a table: equal to the fold from zero, and told when they are gone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.doubles.fault_plan import Fault, Operation, on
from tests.unit.log.test_state import picture
from tests.unit.log.world import DAY_MS, ROOT, World, of_other_software, slot
from txntable.errors import DamagedDataError, OffsetOutOfRangeError, StoreUnavailableError
from txntable.format.layout import checkpoint_path
from txntable.log.actions import Action, Commit, Remove, Txn
from txntable.log.checkpoint import entry_of
from txntable.log.cleanup import clean_up
from txntable.log.table_state import TableState
from txntable.log.time_travel import first_version_where, load_version


def history(moves: list[tuple[str, int]], checkpoints: set[int]) -> tuple[World, list[tuple]]:
    """A log, and what its state was at each version."""
    world = World()
    writer = world.process()
    writer.create()
    pictures = [picture(writer.log.table)]
    for move, number in moves:
        match move:
            case "add":
                writer.add_file(f"f{number}")
            case "remove" if f"f{number}" in writer.log.table.files:
                gone = Remove(f"f{number}", 5, True)
                writer.log.commit("REMOVE", partial(_only, gone))
            case _:
                writer.count()
        pictures.append(picture(writer.log.table))
        if len(pictures) - 1 in checkpoints:
            writer.log.write_checkpoint()
    return world, pictures


def _only(action: Action, _: TableState) -> list[Action]:
    return [action]


moves = st.lists(st.tuples(st.sampled_from(["add", "remove", "count"]), st.integers(0, 4)), max_size=40)


@given(moves, st.sets(st.integers(0, 40), max_size=4))
def test_state_at_each_version_is_what_the_state_was_then(moves: list, checkpoints: set[int]) -> None:
    world, pictures = history(moves, checkpoints)
    reader = world.process().store

    for version, then in enumerate(pictures):
        assert picture(load_version(reader, ROOT, version)) == then


def test_state_at_a_version_is_read_past_a_checkpoint_of_other_software_that_says_more() -> None:
    world, pictures = history([("add", 0), ("add", 1), ("remove", 0), ("count", 0)], {1, 3})
    path = checkpoint_path(ROOT, 3)
    ours = world.objects.get(path)
    assert ours is not None
    world.objects.put(path, of_other_software(ours.data))

    assert picture(load_version(world.process().store, ROOT, 4)) == pictures[4]


def test_footer_of_a_checkpoint_with_any_byte_changed_is_damage_or_is_of_no_entry_or_another() -> None:
    """Arrow has many words for it, of which some are those of a defect in the program."""
    world, _ = history([("add", 0), ("add", 1), ("remove", 0)], {3})
    ours = world.objects.get(checkpoint_path(ROOT, 3))
    assert ours is not None
    length = int.from_bytes(ours.data[-8:-4], "little") + 8

    told = 0
    for place in range(len(ours.data) - length, len(ours.data)):
        for other in (0x00, 0xB9, ours.data[place] ^ 0x11):
            changed = ours.data[:place] + bytes([other]) + ours.data[place + 1 :]
            try:
                entry_of(changed, "x")
            except DamagedDataError:
                told += 1
    assert told > 100


def test_state_at_a_version_starts_at_the_checkpoint_below_it() -> None:
    world, pictures = history([("count", 0)] * 30, {10, 20, 25})
    store = world.process().store

    assert picture(load_version(store, ROOT, 23)) == pictures[23]

    read = [step.path for step in store.steps if step.operation is Operation.GET]
    assert read == [checkpoint_path(ROOT, 20), slot(20), slot(21), slot(22), slot(23)]


@pytest.mark.parametrize("lost", [checkpoint_path(ROOT, 20), slot(20)])
def test_checkpoint_without_its_entry_or_the_other_way_is_no_start(lost: str) -> None:
    world, pictures = history([("add", n) for n in range(30)], {10, 20})
    store = world.process().store
    if lost == slot(20):
        world.objects.delete(lost)
        assert picture(load_version(store, ROOT, 19)) == pictures[19]
        with pytest.raises(OffsetOutOfRangeError):
            load_version(store, ROOT, 23)
        return
    world.objects.delete(lost)

    assert picture(load_version(store, ROOT, 23)) == pictures[23]


def cleaned_world() -> World:
    """Versions 0 to 30, of which everything below the checkpoint at 20 is cleaned up."""
    world, _ = history([("count", 0)] * 20, {10, 20})
    world.advance_ms(40 * DAY_MS)
    writer = world.process()
    for _ in range(10):
        writer.count()
    assert clean_up(writer.context, ROOT, 30 * DAY_MS).oldest_kept == 20
    return world


@pytest.mark.parametrize("version", [0, 10, 19])
def test_version_that_cleanup_has_taken_says_so(version: int) -> None:
    with pytest.raises(OffsetOutOfRangeError, match=f"cleaned up; .*log=table version={version}"):
        load_version(cleaned_world().process().store, ROOT, version)


@pytest.mark.parametrize("version", [20, 25, 30])
def test_version_that_cleanup_has_left_is_read(version: int) -> None:
    assert load_version(cleaned_world().process().store, ROOT, version).number("counter") == version


def test_store_that_can_not_be_reached_is_told_as_such() -> None:
    store = cleaned_world().process(on(Operation.GET, slot(21), Fault.FAIL_BEFORE)).store

    with pytest.raises(StoreUnavailableError):
        load_version(store, ROOT, 25)


# -- the first version that says something -------------------------------------------------------


def counted_to(number: int) -> Callable[[Commit], bool]:
    return lambda commit: any(isinstance(a, Txn) and a.version >= number for a in commit.actions)


@pytest.mark.parametrize(("number", "version"), [(1, 1), (2, 2), (7, 7), (12, 12), (13, None), (99, None)])
def test_first_version_is_the_lowest_that_says_so(number: int, version: int | None) -> None:
    world, _ = history([("count", 0)] * 12, set())

    assert first_version_where(world.process().store, ROOT, 12, counted_to(number)) == version


def test_first_version_is_never_above_the_head_that_is_known() -> None:
    world, _ = history([("count", 0)] * 12, set())

    assert first_version_where(world.process().store, ROOT, 5, counted_to(6)) is None


def test_first_version_is_the_creation_when_that_says_so_already() -> None:
    world, _ = history([("count", 0)] * 12, set())

    assert first_version_where(world.process().store, ROOT, 12, lambda commit: True) == 0


def test_first_version_asks_by_bisection() -> None:
    world, _ = history([("count", 0)] * 60, set())
    store = world.process().store

    first_version_where(store, ROOT, 60, counted_to(33))

    # Each entry, and the one below it, which tells whether it counts.
    assert len(store.steps) <= 2 * 7


@pytest.mark.parametrize("number", [21, 22, 30])
def test_first_version_is_found_above_what_cleanup_has_taken(number: int) -> None:
    assert first_version_where(cleaned_world().process().store, ROOT, 30, counted_to(number)) == number


@pytest.mark.parametrize("number", [1, 15, 20])
def test_first_version_that_may_be_among_those_gone_says_so(number: int) -> None:
    with pytest.raises(OffsetOutOfRangeError, match="cleaned up"):
        first_version_where(cleaned_world().process().store, ROOT, 30, counted_to(number))


def test_nothing_that_says_so_is_no_matter_of_cleanup() -> None:
    assert first_version_where(cleaned_world().process().store, ROOT, 30, counted_to(31)) is None
