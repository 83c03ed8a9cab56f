"""Log rules 1, 2, 3, 7, 8, 9 with the fault injected at the store (PROTOCOL.md §4.2)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.doubles.fault_plan import Fault, Operation, Step, on
from tests.doubles.stepping_store import ProcessKilled
from tests.unit.log.world import (
    DAY_MS,
    GUARD_MS,
    Process,
    World,
    creation,
    file,
    info_above,
    others_go_on_and_clean_up,
    slot,
)
from txntable.errors import DamagedDataError, InvalidRequestError, UnsupportedFormatError
from txntable.log.actions import Commit, CommitInfo, Txn, decode_commit
from txntable.log.entry_encoding import encode_commit
from txntable.log.outcome import Committed, Unchanged, Unknown
from txntable.storage.object_store import ObjectStore

PUT = Operation.PUT_IF_ABSENT


def world_with_log() -> tuple[World, Process]:
    world = World()
    first = world.process()
    first.create()
    return world, first


def intruder(value: int):
    """Another writer that takes the slot with a valid commit."""

    def write(store: ObjectStore, path: str) -> None:
        below = path[:-25] + f"{int(path[-25:-5]) - 1:020d}.json"
        found = store.get(below)
        assert found is not None
        version = int(path[-25:-5])
        previous = decode_commit(version - 1, found.data, below).info
        time_ms, chain = previous.timestamp_ms + 1, previous.digest
        info = CommitInfo("e" * 32, previous.commit_id, time_ms, "INTRUDE", previous.log, chain)
        store.put_if_absent(path, encode_commit(Commit(version, info, (Txn("counter", value),)), "another"))

    return write


# -- rule 1: the answer to a put is settled by reading the slot --------------------------------


@pytest.mark.parametrize(
    "fault",
    [Fault.FAIL_BEFORE, Fault.LOST_ANSWER, Fault.EXISTS_LOST, Fault.CONFLICT_409, Fault.LATE_LANDING],
    ids=lambda fault: fault.name,
)
def test_commit_counts_once_at_the_next_slot_when_the_answer_is_wrong(fault: Fault) -> None:
    world, _ = world_with_log()
    process = world.process(on(PUT, slot(1), fault, lands_at=1_000))

    outcome = process.count()

    assert outcome == Committed(1)
    process.store.land()
    assert process.counter() == 1
    assert slot(2) not in world.paths()


def test_commit_is_decided_again_when_another_took_the_slot() -> None:
    world, _ = world_with_log()
    process = world.process(on(PUT, slot(1), Fault.TAKEN, intruder=intruder(41)))

    outcome = process.count()

    assert outcome == Committed(2)
    assert process.counter() == 42


def test_commit_reads_the_winners_entry_once_when_another_took_the_slot() -> None:
    world, _ = world_with_log()
    process = world.process(on(PUT, slot(1), Fault.TAKEN, intruder=intruder(41)))

    process.count()

    read = [step.path for step in process.store.steps if step.operation is Operation.GET]
    assert read.count(slot(1)) == 2, "once for the tail, once after the put"
    put = [step.path for step in process.store.steps if step.operation is PUT and step.path.startswith("table/")]
    assert put == [slot(1), slot(2)]


def test_commit_of_ours_that_landed_late_is_found_as_ours_when_the_retry_meets_it() -> None:
    world, _ = world_with_log()
    process = world.process(on(PUT, slot(1), Fault.LATE_LANDING, lands_at=6))

    assert process.count() == Committed(1)
    assert process.counter() == 1


def test_commit_is_unknown_when_the_store_can_not_be_reached() -> None:
    world, _ = world_with_log()
    process = world.process(
        on(PUT, slot(1), Fault.FAIL_BEFORE, occurrence=None), on(PUT, slot(2), Fault.FAIL_BEFORE, occurrence=None)
    )

    assert process.count() == Unknown(1)
    assert slot(1) not in world.paths()


def test_commit_decides_on_its_own_late_landing_when_called_again_after_unknown() -> None:
    world, _ = world_with_log()
    process = world.process(*[on(PUT, slot(1), Fault.LATE_LANDING, occurrence=n, lands_at=99) for n in range(1, 30)])
    assert process.count() == Unknown(1)

    process.store.land()
    outcome = process.count()

    assert outcome == Committed(2)
    assert process.counter() == 2


def test_commit_answers_unchanged_from_the_head_when_nothing_is_to_be_written() -> None:
    world, first = world_with_log()
    other = world.process()
    other.log.refresh()
    first.count()

    outcome = other.log.commit("NOTHING", lambda table: [])

    assert outcome == Unchanged(1)


def test_error_of_a_decision_is_raised_only_when_the_head_agrees() -> None:
    world, first = world_with_log()
    other = world.process()
    other.log.refresh()
    first.count()

    def decide(table):
        if table.number("counter") == 0:
            raise DamagedDataError("the counter is missing")
        return [Txn("seen", 1)]

    assert other.log.commit("LOOK", decide) == Committed(2)


def test_commit_is_refused_when_it_names_a_path_twice() -> None:
    _, process = world_with_log()

    with pytest.raises(InvalidRequestError, match="nothing was written"):
        process.log.commit("TWICE", lambda table: [file("a"), file("a")])


# -- rule 3: stale views ----------------------------------------------------------------------


def test_stale_writer_is_not_believed_when_its_slot_was_cleaned_up_and_created_again() -> None:
    """The put succeeds: the slot is empty, because the log above it was cleaned away."""
    world, first = world_with_log()
    sleeper = world.process()
    sleeper.log.refresh()
    others_go_on_and_clean_up(world, first)

    sleeper.environment.advance_ms(3 * DAY_MS)
    outcome = sleeper.count()

    assert isinstance(outcome, Committed)
    assert outcome.version > 200
    assert sleeper.counter() == 202


@pytest.mark.parametrize("sleeps_in", ["before the put", "in the put"])
def test_writer_that_sleeps_at_its_put_is_not_believed_when_the_slot_was_deleted(sleeps_in: str) -> None:
    world, first = world_with_log()
    sleeper = world.process()
    sleeper.log.refresh()
    slept: list[int] = []

    def sleep(step) -> None:
        if step.operation is PUT and not slept:
            slept.append(step.number)
            others_go_on_and_clean_up(world, first)
            if sleeps_in == "in the put":
                sleeper.environment.advance_ms(3 * DAY_MS)
            else:
                # Only the wall clock ran on: the machine was suspended.
                sleeper.environment.advance_wall_ms(3 * DAY_MS)

    sleeper.store.on_step = sleep
    outcome = sleeper.count()

    # It was not, and nothing that is left tells: had it landed before the cleanup, the same would be there.
    assert outcome == Unknown(1)
    assert sleeper.counter() == 201
    assert sleeper.count() == Committed(202)
    assert sleeper.counter() == 202


def test_loser_that_slept_over_the_winners_entry_opens_the_log_anew() -> None:
    world, _ = world_with_log()
    process = world.process(on(PUT, slot(1), Fault.TAKEN, intruder=intruder(41)))
    process.log.refresh()
    lost_at: list[int] = []

    def sleep(step: Step) -> None:
        if step.operation is Operation.GET and step.path == slot(1) and not lost_at:
            lost_at.append(step.number)
            process.environment.advance_ms(GUARD_MS)

    process.store.on_step = sleep
    outcome = process.count()

    assert outcome == Committed(2)
    assert process.store.steps[lost_at[0]].path.endswith("_last_checkpoint")
    assert process.counter() == 42


def test_stale_reader_does_not_take_a_deleted_slot_for_the_tail() -> None:
    world, first = world_with_log()
    sleeper = world.process()
    sleeper.log.refresh()
    others_go_on_and_clean_up(world, first)

    sleeper.environment.advance_ms(GUARD_MS)
    table = sleeper.log.refresh()

    assert table.number("counter") == 201


def test_own_commit_is_recognised_when_the_answer_comes_after_the_guard() -> None:
    world, first = world_with_log()
    slow = world.process()
    slow.log.refresh()

    def answer_late(step) -> None:
        if step.operation is PUT and step.path == slot(1):
            slow.environment.advance_ms(GUARD_MS + 1)

    slow.store.on_step = answer_late
    outcome = slow.count()

    assert outcome == Committed(1)
    assert first.counter() == 1


@pytest.mark.parametrize("is_created_again", [False, True])
def test_reader_starts_again_when_the_log_is_cleaned_up_under_its_cold_start(is_created_again: bool) -> None:
    """Hint and checkpoint are read, then the entries above go, and the start may be created again by a late put."""
    world, first = world_with_log()
    for _ in range(100):
        first.count()
    world.advance_ms(3 * DAY_MS)
    reader = world.process()
    seen: list[str] = []

    def interfere(step) -> None:
        if step.path == slot(101) and not seen:
            seen.append(step.path)
            start = world.objects.snapshot()[slot(100)].data
            others_go_on_and_clean_up(world, first)
            assert slot(100) not in world.paths()
            if is_created_again:
                world.objects.put(slot(100), start)

    reader.store.on_step = interfere
    table = reader.log.refresh()

    assert seen
    assert table.number("counter") == 301


# -- rules 7, 8, 9 ----------------------------------------------------------------------------


def test_commit_succeeds_when_its_checkpoint_can_not_be_written() -> None:
    world, _ = world_with_log()
    process = world.process(
        on(PUT, "checkpoint.parquet", Fault.FAIL_BEFORE), on(Operation.PUT, "_last_checkpoint", Fault.FAIL_BEFORE)
    )

    outcomes = [process.count() for _ in range(100)]

    assert outcomes[-1] == Committed(100)
    assert not any("checkpoint" in path for path in world.paths())


@pytest.mark.parametrize(
    ("damage", "error"),
    [
        (b"", DamagedDataError),
        (b'{"commitInfo":', DamagedDataError),
        (b'{"add":{}}\n', DamagedDataError),
        (b'{"commitInfo":{"timestamp":1,"operation":"WRITE"}}\n', DamagedDataError),
    ],
)
def test_log_is_refused_when_an_entry_is_damaged_or_foreign(damage: bytes, error: type[Exception]) -> None:
    world, first = world_with_log()
    world.objects.put(slot(1), damage)

    with pytest.raises(error, match=slot(1)):
        first.log.refresh()


def test_log_is_refused_when_it_has_an_unknown_action() -> None:
    world, first = world_with_log()
    info = info_above(first.log.table, "a" * 32)
    data = encode_commit(Commit(1, info, ()), "x") + b'{"domainMetadata":{"domain":"d"}}\n'
    world.objects.put(slot(1), data)

    with pytest.raises(DamagedDataError, match="domainMetadata"):
        first.log.refresh()


def test_log_is_refused_when_it_needs_a_newer_client() -> None:
    world, first = world_with_log()
    info = info_above(first.log.table, "a" * 32)
    protocol = encode_commit(Commit(1, info, (creation()[0],)), "x").replace(b"exclusiveWriter", b"exclusiveWriter9")
    world.objects.put(slot(1), protocol)

    with pytest.raises(UnsupportedFormatError, match="upgrade"):
        first.log.refresh()


def test_log_is_refused_when_an_entry_does_not_follow_the_one_below() -> None:
    world, first = world_with_log()
    data = encode_commit(Commit(1, replace(info_above(first.log.table, "a" * 32), previous="b" * 32), ()), "x")
    world.objects.put(slot(1), data)

    with pytest.raises(DamagedDataError, match="does not continue"):
        first.log.refresh()


ROUND_TRIP_MS = 40


def waits_before_commits(process: Process, commits: int) -> list[float]:
    """How long a process waited by its own will before each of its next commits."""
    waits: list[float] = []

    def slow(step) -> None:
        process.environment.advance_ms(ROUND_TRIP_MS)

    def sleep(milliseconds: float) -> None:
        waits[-1] += milliseconds

    process.store.on_step = slow
    process.environment.sleep_ms = sleep  # type: ignore[method-assign]
    for _ in range(commits):
        waits.append(0)
        process.count()
    return waits


def test_lone_writer_waits_after_every_sixty_fourth_commit_only() -> None:
    _, process = world_with_log()

    waits = waits_before_commits(process, 130)

    assert [number for number, wait in enumerate(waits) if wait] == [62, 126], "version 0 was its first commit"


def test_writer_that_met_another_waits_a_jittered_round_trip_after_each_success() -> None:
    world, first = world_with_log()
    first.count()
    world.process().count()

    waits = waits_before_commits(first, 20)

    assert waits[0] == 0, "a loser tries again at once"
    assert all(0 < wait <= ROUND_TRIP_MS for wait in waits[1:17]), waits
    assert len(set(waits[1:17])) > 1, "jittered"
    assert waits[17:] == [0] * 3, "alone again"


def test_process_that_dies_after_its_put_has_committed() -> None:
    world, _ = world_with_log()
    dying = world.process(on(PUT, slot(1), Fault.KILL_AFTER))

    with pytest.raises(ProcessKilled):
        dying.count()

    assert world.process().counter() == 1


def test_in_commit_timestamps_rise_when_the_stores_clock_goes_back() -> None:
    world, first = world_with_log()
    first.count()
    before = first.log.table.timestamp_ms
    world.store_time.skew_ms = -DAY_MS

    late = world.process()
    late.count()

    assert late.log.table.timestamp_ms == before + 1
