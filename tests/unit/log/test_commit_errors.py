"""What an error in the middle of a commit, or of an opening, leaves behind (PROTOCOL.md §4.2, rules 1 and 3)."""

from __future__ import annotations

import pytest

from tests.doubles.fault_plan import Fault, Operation, on
from tests.unit.log.world import DAY_MS, GUARD_MS, Nothing, Process, World, slot
from txntable.errors import (
    InvalidConfigError,
    StorePermissionError,
    StoreUnavailableError,
    TxnTableError,
    WarehouseNotFoundError,
)
from txntable.log.cleanup import clean_up
from txntable.log.delta_log import DeltaLog
from txntable.log.outcome import Committed, Unknown

PUT, GET = Operation.PUT_IF_ABSENT, Operation.GET


def world_with_log(commits: int = 0) -> tuple[World, Process]:
    world = World()
    first = world.process()
    first.create()
    for _ in range(commits):
        first.count()
    return world, first


def test_view_is_opened_again_when_its_opening_broke_off() -> None:
    """Half of a log was read, then the rest of it was cleaned up: its next slot is no tail."""
    world, first = world_with_log(commits=10)
    reader = world.process(on(GET, slot(2), Fault.FAIL_BEFORE))
    with pytest.raises(StoreUnavailableError):
        reader.log.refresh()
    for _ in range(100):
        first.count()
    world.time.advance_ms(3 * DAY_MS)
    first.environment.advance_ms(3 * DAY_MS)
    first.count()
    assert slot(2) in clean_up(first.context, "table", DAY_MS).paths

    outcome = reader.count()

    assert isinstance(outcome, Committed)
    assert first.counter() == 112


def test_commit_is_unknown_when_the_view_can_not_be_reopened_to_look_for_it() -> None:
    """An error would be a definite no, and the commit is in the log."""
    world, first = world_with_log()
    slow = world.process(on(GET, "_last_checkpoint", Fault.FAIL_BEFORE, occurrence=2))
    slow.log.refresh()

    def answer_late(step) -> None:
        if step.operation is PUT and step.path == slot(1):
            slow.environment.advance_ms(GUARD_MS + 1)

    slow.store.on_step = answer_late

    assert slow.count() == Unknown(1)
    assert first.counter() == 1


@pytest.mark.parametrize("error", [StorePermissionError, InvalidConfigError, WarehouseNotFoundError])
def test_commit_is_unknown_when_the_store_can_not_be_asked_after_a_lost_answer(error: type[TxnTableError]) -> None:
    world, first = world_with_log()
    writer = world.process(on(PUT, slot(1), Fault.LOST_ANSWER), on(GET, slot(1), Fault.FAIL_BEFORE, occurrence=2))
    writer.log.refresh()

    def expire(step) -> None:
        if [s.operation for s in writer.store.steps if s.path == slot(1)].count(PUT) > 1:
            raise error("the keys end, the bucket was made again elsewhere")

    writer.store.on_step = expire

    assert writer.count() == Unknown(1)
    assert first.counter() == 1


def test_commit_is_refused_when_it_never_could_be_put() -> None:
    world, first = world_with_log()
    writer = world.process(on(Operation.HEAD, "system/clock", Fault.FAIL_BEFORE))

    with pytest.raises(StoreUnavailableError):
        writer.count()
    assert first.counter() == 0


def test_commit_whose_answers_were_lost_shows_the_log_as_of_its_first_put() -> None:
    """Others may have gone on between the put that landed and the answer that said so."""
    world, _ = world_with_log()
    writer = world.process(on(PUT, slot(1), Fault.LOST_ANSWER), on(GET, slot(1), Fault.FAIL_BEFORE, occurrence=2))
    writer.log.refresh()
    other = DeltaLog(writer.context, "other", Nothing())

    def read_other(step) -> None:
        puts = [s for s in writer.store.steps if s.path == slot(1) and s.operation is PUT]
        if len(puts) == 1 and step.operation is GET and step.path == slot(1):
            other.refresh()

    writer.store.on_step = read_other
    outcome = writer.count()

    assert outcome == Committed(1)
    assert not writer.log.was_read_after(other)


def test_view_that_did_not_reach_the_tail_was_not_read_since() -> None:
    world, first = world_with_log()
    reader = world.process(on(GET, slot(2), Fault.FAIL_BEFORE, occurrence=2))
    reader.log.refresh()
    for _ in range(3):
        first.count()
    other = DeltaLog(reader.context, "other", Nothing())
    other.refresh()

    with pytest.raises(StoreUnavailableError):
        reader.log.refresh()

    assert not reader.log.was_read_after(other)


def test_reader_that_sleeps_in_its_request_does_not_take_a_deleted_slot_for_the_tail() -> None:
    world, first = world_with_log()
    reader = world.process()
    reader.log.refresh()
    slept: list[int] = []

    def sleep(step) -> None:
        if not slept:
            slept.append(step.number)
            for _ in range(100):
                first.count()
            world.advance_ms(3 * DAY_MS)
            first.count()
            assert slot(1) in clean_up(first.context, "table", DAY_MS).paths

    reader.store.on_step = sleep

    assert reader.log.refresh().number("counter") == 101
