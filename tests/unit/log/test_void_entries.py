"""What processes of another past leave in a log is stepped over by everyone, or fenced off (PROTOCOL.md §4.6)."""

from __future__ import annotations

import json

import pytest

from tests.unit.log.pasts import entries, log_of, plant, recovering, wiped
from tests.unit.log.world import DAY_MS, ROOT, Process, World, file, slot
from txntable.errors import DamagedDataError, WarehouseReplacedError
from txntable.format.layout import checkpoint_path, last_checkpoint_path
from txntable.log.actions import Remove
from txntable.log.chain import verify_chain
from txntable.log.checkpoint import LogTail
from txntable.log.cleanup import clean_up
from txntable.log.outcome import CommitOutcome, Committed
from txntable.log.time_travel import first_version_where, load_version


def test_entry_of_another_incarnation_is_stepped_over_by_everyone() -> None:
    world, writer, _ = log_of(5)
    other = world.process()
    other.log.refresh()
    new = wiped(world, 2)
    assert plant(world, writer) == slot(6)
    reader = world.process()
    assert reader.log.refresh().version == 2

    outcomes: list[CommitOutcome] = [new.count() for _ in range(20)]

    assert outcomes == [Committed(version) for version in (3, 4, 5, *range(7, 24))]
    for log in (reader.log, world.process().log):
        table = log.refresh()
        assert (table.version, table.number("counter")) == (23, 22)
        assert "past" not in table.files
    assert load_version(new.store, ROOT, 6).numbers == load_version(new.store, ROOT, 5).numbers
    verify_chain(new.store, ROOT, range(24))
    for start in range(1, 9):
        verify_chain(new.store, ROOT, range(start, 24))


def test_entry_of_another_incarnation_above_the_tail_is_no_gap() -> None:
    world, writer, _ = log_of(12)
    new = wiped(world, 9)
    plant(world, writer)

    assert world.process().log.refresh().version == 9
    assert new.count() == Committed(10)


def test_gap_below_an_entry_of_this_log_stays_damage() -> None:
    world, _, past = log_of(12)
    world.objects.restore({path: found for path, found in past[12].items() if path != slot(10)})

    with pytest.raises(DamagedDataError, match="gap"):
        world.process().log.refresh()


def naive_fold(world: World) -> set[str]:
    """The live files as a Delta reader folds them that knows nothing of void entries."""
    live: set[str] = set()
    for path in entries(world):
        if path.endswith(".json"):
            for line in world.objects.snapshot()[path].data.decode().splitlines():
                action = json.loads(line)
                if "add" in action:
                    live.add(action["add"]["path"])
                elif "remove" in action:
                    live.discard(action["remove"]["path"])
    return live


def test_next_commit_undoes_a_void_entry_for_readers_that_fold_every_entry() -> None:
    world, writer, _ = log_of(4)
    writer.add_file("both")
    new = wiped(world, 1)
    for name in ("both", "kept"):
        new.add_file(name)
    with pytest.raises(WarehouseReplacedError):
        writer.log.commit("ANY", lambda table: [Remove("kept", 1, True), file("both", 99), file("past"), file("again")])
    while not new.log.refresh().void:
        new.count()

    new.add_file("again")

    assert new.log.table.files.paths() == naive_fold(world) == {"both", "kept", "again"}
    assert world.process().log.refresh().files.paths() == {"both", "kept", "again"}
    newest = load_version(new.store, ROOT, 7)
    assert newest.files.get("both") == file("both")
    entry = world.objects.snapshot()[slot(7)].data.decode()
    assert '"repairs":3' in entry
    assert entry.count('"dataChange":false') == 3
    new.count()
    assert "repairs" not in world.objects.snapshot()[slot(8)].data.decode()


def test_checkpoint_is_written_at_no_void_version() -> None:
    world, writer, _ = log_of(99)
    new = wiped(world)
    plant(world, writer)
    while not new.log.refresh().void:
        new.count()

    new.log.write_checkpoint()
    assert not any("checkpoint" in path for path in world.paths())
    new.count()
    new.log.write_checkpoint()
    assert world.process().log.refresh().number("counter") == 100


def test_checkpoint_of_another_log_at_the_same_version_is_not_read() -> None:
    world, writer, _ = log_of(20)
    writer.log.write_checkpoint()
    planted = {path: found for path, found in world.objects.snapshot().items() if "checkpoint" in path}
    new = wiped(world, 10)
    for path, found in planted.items():
        world.objects.put(path, found.data)
    for _ in range(15):
        new.count()

    assert world.process().log.refresh().number("counter") == 25
    assert load_version(new.store, ROOT, 22).number("counter") == 22


def test_job_of_the_past_writes_no_checkpoint() -> None:
    world, writer, _ = log_of(20)
    wiped(world, 3)

    with pytest.raises(WarehouseReplacedError):
        writer.log.write_worthwhile_checkpoint(LogTail(entries=99))
    assert not any("checkpoint" in path for path in world.paths())


def test_cleanup_does_not_take_an_old_void_entry_for_the_age_of_those_below() -> None:
    world, writer, _ = log_of(150)
    new = wiped(world, 3)
    plant(world, writer)
    world.advance_ms(10 * 86_400_000)
    for _ in range(200):
        new.count()

    assert clean_up(new.context, ROOT, 86_400_000).paths == ()


def planted_checkpoint_of_another_log(at: int, commits: int) -> tuple[World, Process]:
    """A log in which a process of before has left its checkpoint, at a version that the log has by now."""
    world, writer, _ = log_of(at)
    writer.log.write_checkpoint()
    planted = world.objects.snapshot()[checkpoint_path(ROOT, at)]
    new = wiped(world)
    world.objects.put(checkpoint_path(ROOT, at), planted.data)
    for _ in range(commits):
        new.count()
    return world, new


def test_cleanup_keeps_what_stands_below_a_checkpoint_of_another_log() -> None:
    world, new = planted_checkpoint_of_another_log(20, 30)
    world.advance_ms(10 * DAY_MS)
    new.count()

    assert clean_up(new.context, ROOT, DAY_MS).paths == ()
    assert world.process().log.refresh().number("counter") == 31


def test_checkpoint_of_another_log_is_not_hinted_at() -> None:
    world, new = planted_checkpoint_of_another_log(20, 20)

    new.log.write_checkpoint()

    assert last_checkpoint_path(ROOT) not in world.paths()
    new.count()
    new.log.write_checkpoint()
    assert last_checkpoint_path(ROOT) in world.paths()


def test_past_version_is_looked_for_among_entries_that_count() -> None:
    world, writer, _ = log_of(9)
    new = wiped(world, 3)
    plant(world, writer)
    for _ in range(12):
        new.count()

    def holds(commit: object) -> bool:
        return "past" in str(commit) or any(f"version={n})" in str(commit) for n in range(13, 20))

    assert first_version_where(new.store, ROOT, 16, holds) == 14


# -- a restored log: the same incarnation ---------------------------------------------------------


def restored_with_a_stray() -> tuple[World, Process]:
    """Restore a copy under a living process, which plants its entry; then the log grows up to it."""
    world, writer, past = log_of(6)
    world.objects.restore(past[4])
    plant(world, writer)
    new = world.process()
    new.count()
    new.count()
    return world, new


def test_stray_entry_of_this_incarnation_is_damage_that_says_what_to_do() -> None:
    world, new = restored_with_a_stray()

    for process in (new, world.process()):
        with pytest.raises(DamagedDataError, match="fence-all"):
            process.log.refresh()


def test_fence_leaves_a_stray_entry_behind_for_everyone() -> None:
    world, _ = restored_with_a_stray()
    operator = world.process()

    assert recovering(operator).fence() == Committed(8)

    for process in (world.process(), world.process()):
        assert isinstance(process.count(), Committed)
    table = world.process().log.refresh()
    assert table.number("counter") == 8
    assert table.files.paths() == naive_fold(world) == set()
    assert load_version(operator.store, ROOT, 7).number("counter") == 6


def test_fence_fills_a_hole_below_entries_of_before_and_makes_them_void() -> None:
    world, writer, past = log_of(5)
    world.objects.restore(past[4])
    plant(world, writer)
    with pytest.raises(DamagedDataError, match="fence-all"):
        world.process().log.refresh()

    assert recovering(world.process()).fence() == Committed(5)

    for _ in range(20):
        world.process().count()
    assert world.process().log.refresh().number("counter") == 24


def test_fenced_log_makes_void_what_a_process_plants_afterwards() -> None:
    world, writer, past = log_of(6)
    world.objects.restore(past[4])
    recovering(world.process()).fence()
    plant(world, writer)

    new = world.process()
    for _ in range(10):
        assert isinstance(new.count(), Committed)
    assert world.process().log.refresh().number("counter") == 14


@pytest.mark.parametrize("call", ["count", "refresh"])
def test_process_of_before_a_fence_stops_at_it_also_where_it_has_read_nothing_later(call: str) -> None:
    """A segment that it has uploaded before the restore may be gone; found by the simulation."""
    world, writer, _ = log_of(4)
    recovering(world.process()).fence()
    before = entries(world)

    with pytest.raises(WarehouseReplacedError):
        writer.count() if call == "count" else writer.log.refresh()

    assert entries(world) == before
    assert world.process().count() == Committed(6)


def test_fence_of_a_log_that_is_not_there_writes_nothing() -> None:
    world = World()

    recovering(world.process()).fence()

    assert entries(world) == []
