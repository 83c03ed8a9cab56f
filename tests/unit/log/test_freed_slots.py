"""A commit whose slot was cleaned up before its answer was settled, and created again by a late put (log rule 3)."""

from __future__ import annotations

import pytest

from tests.unit.log.world import DAY_MS, World, others_go_on_and_clean_up, slot
from txntable.log.actions import Commit, CommitInfo
from txntable.log.entry_encoding import encode_commit
from txntable.log.outcome import Unknown
from txntable.testing.fault_plan import Fault, Operation, Step, on


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
            another = encode_commit(Commit(1, CommitInfo("another", None, 1, "X"), ()), "x")
            world.objects.put(slot(1), own if finds == "its own entry" else another)
            sleeper.environment.advance_ms(3 * DAY_MS)

    sleeper.store.on_step = sleep
    outcome = sleeper.count()

    assert outcome == Unknown(1)
    assert sleeper.counter() == 202
