"""state(checkpoint + tail) = state(fold from version 0), and what cleanup leaves (PROTOCOL.md §4.3-4.5)."""

from __future__ import annotations

import json

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.doubles.fault_plan import Fault, Operation, Step, on
from tests.doubles.stepping_store import ProcessKilled
from tests.unit.log.world import DAY_MS, GUARD_MS, Nothing, Process, World, file, slot
from txntable.errors import DamagedDataError, InvalidConfigError
from txntable.format.layout import checkpoint_path, last_checkpoint_path
from txntable.log.actions import Remove, Txn
from txntable.log.cleanup import clean_up
from txntable.log.delta_log import DeltaLog
from txntable.log.outcome import Committed, Unchanged
from txntable.log.table_state import TableState


def picture(table: TableState) -> tuple:
    """All that a state says, comparable."""
    files = sorted((add.path, add.size, tuple(add.partition_values.items()), add.tag) for add in table.files)
    return (table.version, table.commit_id, table.timestamp_ms, table.metadata, files, dict(table.numbers))


def fold_from_zero(world: World) -> TableState:
    """The state of a log that was never checkpointed: every hint and checkpoint is hidden."""
    reader = world.process()
    hidden = {p: o for p, o in world.objects.snapshot().items() if "checkpoint" in p}
    for path in hidden:
        world.objects.delete(path)
    try:
        return reader.log.refresh()
    finally:
        for path, stored in hidden.items():
            world.objects.put(path, stored.data)


@pytest.fixture
def world() -> World:
    return World()


def test_state_from_a_checkpoint_equals_the_fold_from_zero(world: World) -> None:
    writer = world.process()
    writer.create()
    for number in range(150):
        writer.add_file(f"f{number % 40}")
        if number % 7 == 0:
            writer.log.commit("REMOVE", lambda table: [Remove("f0", 5, True)] if "f0" in table.files else [])
        writer.count()

    assert any("checkpoint.parquet" in path for path in world.paths())
    assert picture(world.process().log.refresh()) == picture(fold_from_zero(world)) == picture(writer.log.table)


def test_tombstones_survive_a_checkpoint_until_their_retention(world: World) -> None:
    writer = world.process()
    writer.create()
    writer.add_file("old")
    now = writer.log.table.timestamp_ms
    writer.log.commit("REMOVE", lambda table: [Remove("old", now, True, {}, 7)])
    writer.log.write_checkpoint()

    assert world.process().log.refresh().tombstones == {"old": Remove("old", now, False, {}, 7)}


def test_cold_start_makes_no_list_when_the_hint_is_good(world: World) -> None:
    writer = world.process()
    writer.create()
    for _ in range(100):
        writer.count()
    reader = world.process()

    reader.log.refresh()

    assert [step.operation for step in reader.store.steps].count(Operation.LIST) == 0
    assert len(reader.store.steps) <= 5


@pytest.mark.parametrize("hint", [None, b"", b"{}", b'{"version":999}'])
def test_cold_start_finds_the_newest_checkpoint_when_the_hint_is_missing_or_wrong(
    world: World, hint: bytes | None
) -> None:
    writer = world.process()
    writer.create()
    for _ in range(210):
        writer.count()
    for path in sorted(world.paths()):
        if path <= slot(150):
            world.objects.delete(path)
    world.objects.delete(last_checkpoint_path("table"))
    if hint is not None:
        world.objects.put(last_checkpoint_path("table"), hint)

    assert world.process().log.refresh().number("counter") == 210


def test_log_is_refused_when_it_begins_with_a_gap(world: World) -> None:
    writer = world.process()
    writer.create()
    writer.count()
    world.objects.delete(slot(0))

    with pytest.raises(DamagedDataError, match="gap"):
        world.process().log.refresh()


def test_log_is_refused_when_its_checkpoint_is_truncated(world: World) -> None:
    writer = world.process()
    writer.create()
    for _ in range(100):
        writer.count()
    path = checkpoint_path("table", 100)
    stored = world.objects.get(path)
    assert stored is not None
    world.objects.put(path, stored.data[:100])

    with pytest.raises(DamagedDataError, match=r"checkpoint cannot be read; delete it, and .* where the entries below"):
        world.process().log.refresh()


def test_cleanup_is_refused_when_the_retention_is_below_the_floor(world: World) -> None:
    writer = world.process()
    writer.create()

    with pytest.raises(InvalidConfigError, match="a day"):
        clean_up(writer.context, "table", DAY_MS - 1)


def test_cleanup_deletes_nothing_when_no_checkpoint_is_old_enough(world: World) -> None:
    writer = world.process()
    writer.create()
    for _ in range(120):
        writer.count()

    assert clean_up(writer.context, "table", DAY_MS).paths == ()
    world.advance_ms(2 * DAY_MS)
    assert slot(0) in clean_up(writer.context, "table", DAY_MS).paths


def test_every_version_within_retention_stays_readable_after_a_cleanup(world: World) -> None:
    writer = world.process()
    writer.create()
    for _ in range(230):
        writer.count()
        world.advance_ms(DAY_MS // 50)

    spec = clean_up(writer.context, "table", DAY_MS)

    # 50 commits a day: versions 180 and above were the head within the last day.
    assert spec.oldest_kept == 100
    assert {slot(n) for n in range(100, 231)} <= world.paths()
    assert slot(99) not in world.paths()


@pytest.mark.parametrize("hint", [None, b'{"version":100}'], ids=["hint lost", "hint of the older checkpoint"])
def test_log_reads_to_its_tail_wherever_a_cleanup_was_killed(hint: bytes | None) -> None:
    """What is left must be a good start with everything above it: files go oldest first, each by itself."""
    for killed_after in (1, 2, 50, 99, 101, 102, 150, 201):
        world = World()
        writer = world.process()
        writer.create()
        for _ in range(210):
            writer.count()
        world.advance_ms(3 * DAY_MS)
        cleaner = world.process(on(Operation.DELETE, "", Fault.KILL_AFTER, occurrence=killed_after))
        with pytest.raises(ProcessKilled):
            clean_up(cleaner.context, "table", DAY_MS)
        if hint is None:
            world.objects.delete(last_checkpoint_path("table"))
        else:
            world.objects.put(last_checkpoint_path("table"), hint)

        assert world.process().log.refresh().number("counter") == 210, killed_after


class TwoViews(RuleBasedStateMachine):
    """Two writers and a sleeper on one log, with cleanup: no update is ever lost or made up."""

    @initialize()
    def begin(self) -> None:
        self.world = World()
        self.awake = self.world.process()
        self.awake.create()
        self.sleeper = self.world.process()
        self.sleeper.log.refresh()
        self.counted = 0

    def _count(self, process: Process) -> None:
        outcome = process.count()
        assert isinstance(outcome, Committed)
        self.counted += 1

    @rule(times=st.integers(1, 120))
    def awake_counts(self, times: int) -> None:
        for _ in range(times):
            self._count(self.awake)

    @rule()
    def sleeper_counts(self) -> None:
        self._count(self.sleeper)

    @rule()
    def sleeper_reads(self) -> None:
        assert self.sleeper.log.refresh().number("counter") == self.counted

    @rule()
    def sleeper_changes_nothing(self) -> None:
        seen: list[int] = []

        def look(table: TableState) -> list[Txn]:
            seen.append(table.number("counter"))
            return []

        outcome = self.sleeper.log.commit("LOOK", look)
        assert isinstance(outcome, Unchanged)
        assert seen[-1] == self.counted

    @rule(milliseconds=st.sampled_from([1, GUARD_MS - 1, GUARD_MS, DAY_MS, 3 * DAY_MS]))
    def time_passes(self, milliseconds: int) -> None:
        self.world.advance_ms(milliseconds)

    @rule()
    def awake_checkpoints(self) -> None:
        self.awake.log.write_checkpoint()

    @rule()
    def awake_cleans_up(self) -> None:
        clean_up(self.awake.context, "table", DAY_MS)

    @precondition(lambda self: self.counted % 5 == 0)
    @rule()
    def a_file_comes(self) -> None:
        self.sleeper.log.commit("FILE", lambda table: [file(f"f{table.number('counter')}"), Txn("files", 1)])

    @invariant()
    def a_fresh_reader_sees_everything(self) -> None:
        if hasattr(self, "world"):
            fresh = DeltaLog(self.awake.context, "table", Nothing()).refresh()
            assert fresh.number("counter") == self.counted
            assert len(fresh.files) == len(list(fresh.files))


TestTwoViews = TwoViews.TestCase
TestTwoViews.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)


def test_lost_entry_below_one_that_is_asked_for_with_it_is_damage_and_not_the_end_of_the_log(world: World) -> None:
    writer = world.process()
    writer.create()
    for _ in range(3):
        writer.count()
    world.objects.delete(slot(1))

    with pytest.raises(DamagedDataError, match=r"gap.*00000000000000000001\.json"):
        world.process().log.refresh()


def test_entry_that_comes_while_the_next_one_is_asked_for_is_no_gap(world: World) -> None:
    """The slots of one look are asked for at once: a later one may be answered after others went on."""
    writer, reader = world.process(), world.process()
    writer.create()

    def go_on(step: Step) -> None:
        if step.path == slot(2) and writer.log.table.version == 0:
            writer.count()
            writer.count()

    reader.store.on_step = go_on
    reader.log.refresh()

    assert reader.log.table.version == 2


def test_entry_whose_commit_info_comes_with_another_action_is_damage() -> None:
    """Other readers would show the file, and ours would not see it."""
    world = World()
    writer = world.process()
    writer.create()
    writer.add_file("p00000/a.parquet")
    found = world.objects.get(slot(1))
    assert found is not None
    first, second = (json.loads(line) for line in found.data.decode().splitlines())
    world.objects.put(slot(1), json.dumps({**first, **second}).encode() + b"\n")

    with pytest.raises(DamagedDataError, match=slot(1)):
        world.process().log.refresh()


def test_follower_keeps_no_more_files_as_objects_than_a_short_tail(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("txntable.log.table_state._SHORT_TAIL", 10)
    writer, follower = world.process(), world.process()
    writer.create()

    for number in range(40):
        writer.add_file(f"f{number}")
        follower.log.refresh()

    files = follower.log.table.files
    assert files.paths() == {f"f{number}" for number in range(40)}
    assert len(list(files.tail())) <= 10
