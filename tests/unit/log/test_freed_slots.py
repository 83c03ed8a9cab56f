"""Slots that were cleaned up under who works there: a commit's, created again by a late put (rule 3), a reader's."""

from __future__ import annotations

import pytest

from tests.doubles.fault_plan import Fault, Operation, Rule, Step, on
from tests.unit.log.world import DAY_MS, World, others_go_on_and_clean_up, slot
from txntable.format.layout import last_checkpoint_path
from txntable.log.actions import Commit, CommitInfo
from txntable.log.cleanup import clean_up
from txntable.log.entry_encoding import encode_commit
from txntable.log.outcome import Committed, Unknown

PUT = Operation.PUT_IF_ABSENT


@pytest.mark.parametrize("finds", ["another's entry", "its own entry"])
def test_commit_that_slept_over_its_cleanup_is_not_taken_for_a_lost_one(finds: str) -> None:
    """Found by the model of slots: it landed, was cleaned up, and the freed slot was created again by a late put."""
    world = World()
    first = world.process()
    first.create()
    sleeper = world.process(on(Operation.PUT_IF_ABSENT, slot(1), Fault.LOST_ANSWER))
    sleeper.log.refresh()
    slept: list[int] = []

    def sleep(step: Step) -> None:
        if step.operation is Operation.GET and step.path == slot(1) and slot(1) in world.paths() and not slept:
            slept.append(step.number)
            own = world.objects.snapshot()[slot(1)].data
            others_go_on_and_clean_up(world, first)
            another = encode_commit(Commit(1, CommitInfo("a" * 32, None, 1, "X", "a" * 32), ()), "x")
            world.objects.put(slot(1), own if finds == "its own entry" else another)
            sleeper.environment.advance_ms(3 * DAY_MS)

    sleeper.store.on_step = sleep
    outcome = sleeper.count()

    assert outcome == Unknown(1)
    assert sleeper.counter() == 202


@pytest.mark.parametrize("finds", ["another's entry", "its own entry"])
def test_commit_that_was_answered_after_its_cleanup_is_not_taken_for_a_lost_one(finds: str) -> None:
    """Found by a review: it landed and was cleaned up; the freed slot was created again by another's late put."""
    world = World()
    first = world.process()
    first.create()

    def sleep() -> None:
        own = world.objects.snapshot()[slot(1)].data
        others_go_on_and_clean_up(world, first)
        another = encode_commit(Commit(1, CommitInfo("a" * 32, None, 1, "X", "a" * 32), ()), "x")
        world.objects.put(slot(1), own if finds == "its own entry" else another)
        sleeper.environment.advance_ms(3 * DAY_MS)

    sleeper = world.process(
        Rule(Fault.SLOW, lambda step: (step.operation, step.path) == (PUT, slot(1)), meanwhile=sleep)
    )
    sleeper.log.refresh()
    outcome = sleeper.count()

    assert outcome == Unknown(1)
    assert sleeper.counter() == 202


def test_commit_whose_slot_is_still_free_after_a_long_sleep_is_put_again_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Decided anew it would be another commit: then the first put could land late, and both would count."""
    world = World()
    world.process().create()
    sleeper = world.process(on(PUT, slot(1), Fault.LATE_LANDING))
    sleeper.log.refresh()

    def sleep(step: Step) -> None:
        if step.operation is PUT and len([one for one in sleeper.store.steps if one.operation is PUT]) == 2:
            sleeper.store.land()

    sleeper.store.on_step = sleep
    monkeypatch.setattr(sleeper.environment, "sleep_ms", lambda _: sleeper.environment.advance_ms(DAY_MS))
    outcome = sleeper.count()

    assert outcome == Committed(1)
    assert sleeper.counter() == 1


def test_reader_starts_again_when_the_log_is_cleaned_up_after_it_listed_it() -> None:
    """Without a hint the names are listed; the checkpoint that is among them is gone when it is asked for."""
    world = World()
    first = world.process()
    first.create()
    others_go_on_and_clean_up(world, first)
    hint = last_checkpoint_path("table")
    world.objects.restore({path: found for path, found in world.objects.snapshot().items() if path != hint})
    reader = world.process()
    listed: list[str] = []

    def interfere(step: Step) -> None:
        if reader.store.steps[-2:-1] and reader.store.steps[-2].operation is Operation.LIST and not listed:
            listed.append(step.path)
            for _ in range(200):
                first.count()
            world.advance_ms(3 * DAY_MS)
            first.count()
            clean_up(first.context, "table", DAY_MS)
            assert step.path not in world.paths()

    reader.store.on_step = interfere

    assert reader.log.refresh().version == first.log.refresh().version
    assert listed
