"""Which version was the newest at a time, by the store's times of the entries."""

from __future__ import annotations

import pytest

from tests.doubles.fault_plan import Operation
from tests.doubles.manual_environment import START_MS
from tests.unit.log.world import ROOT, World, slot
from txntable.log.entry_time import version_as_of

HOUR_MS = 3_600_000


def world_with_versions_an_hour_apart(versions: int) -> World:
    """Version n was written n hours after the start."""
    world = World()
    process = world.process()
    process.create()
    for _ in range(versions - 1):
        world.advance_ms(HOUR_MS)
        process.count()
    return world


def as_of(world: World, hours: float, head: int = 5) -> int | None:
    process = world.process()
    return version_as_of(process.context, ROOT, head, START_MS + int(hours * HOUR_MS))


@pytest.mark.parametrize(
    ("hours", "version"), [(-0.1, None), (0, 0), (0.9, 0), (1, 1), (2.5, 2), (4.9, 4), (5, 5), (99, 5)]
)
def test_version_as_of_is_the_last_one_written_by_then(hours: float, version: int | None) -> None:
    assert as_of(world_with_versions_an_hour_apart(6), hours) == version


@pytest.mark.parametrize(("hours", "version"), [(-1, 2), (2.5, 2), (3, 3), (4.5, 4)])
def test_entry_that_was_cleaned_up_counts_as_older_than_any_time(hours: float, version: int) -> None:
    world = world_with_versions_an_hour_apart(6)
    for gone in range(3):
        world.objects.delete(slot(gone))

    assert as_of(world, hours) == version


@pytest.mark.parametrize("head", range(4))
def test_version_as_of_is_never_above_the_head_that_is_known(head: int) -> None:
    assert as_of(world_with_versions_an_hour_apart(6), 99, head) == head


def test_version_as_of_asks_by_bisection() -> None:
    world = world_with_versions_an_hour_apart(60)
    process = world.process()

    assert version_as_of(process.context, ROOT, 59, START_MS + 20 * HOUR_MS) == 20

    assert len(process.store.steps) <= 6
    assert {step.operation for step in process.store.steps} == {Operation.HEAD}
